/*
 * CPY: the elements of src as dst's type, both strided as they like. Of one type, whatever it is, by DMA from DDR to
 * DDR; F32 to F16 and back through the row pipeline.
 */
#include "htp-rows-pipe.h"
#include "hvx-convert.h"

#define IN_FLIGHT 8u

/* The bytes of a row of one type: nb[0] is a block's, and ne[0] is whole blocks, so the runtime knows them already. */
static uint32_t row_bytes(const struct htp_tensor *t) {
    uint64_t bytes = t->size;
    for (uint32_t d = 1; d < HTP_MAX_DIMS; d++) {
        bytes -= t->ne[d] > 1 ? (t->ne[d] - 1ull) * t->nb[d] : 0;
    }
    return (uint32_t) bytes;
}

static void convert_tile(const struct rows_pipe *p, const struct rows_tile *t) {
    hvx_convert convert = p->dst.elem_bytes == 4 ? convert_f16_f32 : convert_f32_f16;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        convert(t->dst + (size_t) r * t->dst_pitch, t->src[0] + (size_t) r * t->src_pitch[0], t->n_cols);
    }
}

static bool is_plain(const struct htp_op *op) {
    return op->src[0]->type == op->dst[0]->type;
}

static struct rows_pipe pipe_of(const struct htp_op *op) {
    struct rows_pipe p = rows_init(op, is_plain(op) ? 1 : op->dst[0]->type == HTP_F32 ? 4 : 2);
    rows_add(&p, op->src[0], is_plain(op) ? 1 : op->src[0]->type == HTP_F32 ? 4 : 2);
    p.elementwise = true;
    p.compute = convert_tile;
    if (is_plain(op) && !rows_empty(&p)) {
        p.ne[0] = p.dst.n_cols = p.src[0].n_cols = row_bytes(op->dst[0]); /* the columns are bytes */
    }
    return p;
}

static void copy_job(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    const struct rows_pipe *p = (const struct rows_pipe *) arg;
    struct dma_queue *q = htp_dma(op, thread);
    struct rows_cursor cursor = rows_begin(p, thread, n_threads);
    struct rows_tile t;
    uint32_t in_flight = 0;
    while (cursor.left) {
        rows_take(p, &cursor, &t);
        if (in_flight == IN_FLIGHT) {
            dma_pop(q);
            in_flight--;
        }
        const uint8_t *from = rows_address(&p->src[0], &t);
        dma_push(q, rows_address(&p->dst, &t), from, p->dst.stride[0], p->src[0].stride[0], t.n_cols, t.n_rows);
        in_flight++;
    }
    for (; in_flight; in_flight--) {
        dma_pop(q);
    }
}

static enum htp_status cpy_check(struct htp_op *op) {
    const struct htp_tensor *src = op->src[0], *dst = op->dst[0];
    for (uint32_t d = 0; d < HTP_MAX_DIMS; d++) {
        if (src->ne[d] != dst->ne[d]) {
            return htp_bad(op, "src0.ne", "[%u] is %u, dst has %u", d, src->ne[d], dst->ne[d]);
        }
    }
    bool floats = (src->type == HTP_F32 && dst->type == HTP_F16) || (src->type == HTP_F16 && dst->type == HTP_F32);
    if (!is_plain(op) && !floats) {
        return htp_unsupported(op, "src0", "has type %u, which is not copied to type %u", src->type, dst->type);
    }
    struct rows_pipe p = pipe_of(op);
    return is_plain(op) && !rows_empty(&p) ? rows_check_tiles(op, &p) : rows_check(op, &p);
}

static enum htp_status cpy_run(struct htp_op *op) {
    struct rows_pipe p = pipe_of(op);
    if (!is_plain(op)) {
        return rows_run(op, &p);
    }
    rows_fold_all(&p);
    p.chunk = hex_min(p.chunk, p.ne[0]);
    htp_run(op, copy_job, &p);
    return HTP_OK;
}

const struct htp_kernel htp_cpy = {.check = cpy_check, .run = cpy_run, .in_place = true};
