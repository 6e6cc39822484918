/*
 * GET_ROWS: dst row i = table row idx[i]; SET_ROWS: table row idx[i] = src row i. Of one type, rows go from DDR to
 * DDR by DMA alone; otherwise through VTCM, where they are converted, in chunks of a row so that all threads have
 * work.
 *
 * `dense` is the side with a row for each index. A row that an index outside the table names is not touched, and the
 * op reports the first such index once all others are done. Of two indices that name one row the later one wins.
 */
#include "htp-kernel.h"
#include "htp-opcodes.h"
#include "hvx-convert.h"

#define MAX_STAGES 4u
#define DIRECT_IN_FLIGHT 16u

enum karg { KARG_CHUNK, KARG_STAGES };
enum region { REGION_IN, REGION_OUT };

struct move {
    const struct htp_tensor *dense, *table, *idx;
    bool set;
    hvx_convert convert; /* NULL: one type */
    uint32_t from_type, to_type;
    uint32_t chunk, n_chunks, stages;
    uint32_t n_rows;  /* of dense, all planes */
    bool may_repeat;  /* SET_ROWS: an index may name a row twice */
    uint32_t bad[HTP_MAX_THREADS]; /* the first row of each thread whose index is bad, or n_rows */
};

/* A chunk of a row on its way. */
struct piece {
    uint8_t *to;
    const uint8_t *from;
    uint32_t n;
};

struct place {
    uint32_t i, j, k; /* dimensions 1..3 of dense */
};

static struct move move_of(const struct htp_op *op) {
    bool set = op->opcode == HTP_OP_SET_ROWS;
    struct move m = {
        .dense = set ? op->src[0] : op->dst[0],
        .table = set ? op->dst[0] : op->src[0],
        .idx = op->src[1],
        .set = set,
        .from_type = op->src[0]->type,
        .to_type = op->dst[0]->type,
        .chunk = (uint32_t) htp_karg(op, KARG_CHUNK),
        .stages = (uint32_t) htp_karg(op, KARG_STAGES),
    };
    m.convert = m.from_type == m.to_type ? NULL : convert_of(m.to_type, m.from_type);
    return m;
}

static struct place place_of(const struct move *m, uint32_t row) {
    const uint32_t *ne = m->dense->ne;
    uint32_t plane = row / ne[1];
    return (struct place){row - plane * ne[1], plane % ne[2], plane / ne[2]};
}

/* Index i of the row of indices that belongs to plane (j, k). */
static int64_t index_at(const struct move *m, uint32_t i, uint32_t j, uint32_t k) {
    const struct htp_tensor *t = m->idx;
    const uint8_t *row = t->data + (size_t) (j % t->ne[1]) * t->nb[1] + (size_t) (k % t->ne[2]) * t->nb[2];
    const uint8_t *p = row + (size_t) i * t->nb[0];
    return t->type == HTP_I64 ? *(const int64_t *) (const void *) p : *(const int32_t *) (const void *) p;
}

static bool is_overwritten(const struct move *m, struct place at, int64_t index) {
    for (uint32_t i = at.i + 1; m->may_repeat && i < m->dense->ne[1]; i++) {
        if (index_at(m, i, at.j, at.k) == index) {
            return true;
        }
    }
    return false;
}

/* Whether some row of indices does not rise all along: only then can an index come twice. */
static bool may_repeat(const struct move *m) {
    const uint32_t *ne = m->idx->ne;
    for (uint32_t k = 0; k < ne[2]; k++) {
        for (uint32_t j = 0; j < ne[1]; j++) {
            for (uint32_t i = 1; i < ne[0]; i++) {
                if (index_at(m, i, j, k) <= index_at(m, i - 1, j, k)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* The chunk of unit `unit`; false where nothing is to be moved. */
static bool piece_of(struct move *m, uint32_t unit, uint32_t thread, struct piece *out) {
    uint32_t row = unit / m->n_chunks;
    uint32_t col = (unit - row * m->n_chunks) * m->chunk;
    struct place at = place_of(m, row);
    int64_t index = index_at(m, at.i, at.j, at.k);
    const struct htp_tensor *d = m->dense, *t = m->table;
    if (index < 0 || index >= t->ne[1]) {
        m->bad[thread] = hex_min(m->bad[thread], row);
        return false;
    }
    if (m->set && is_overwritten(m, at, index)) {
        return false;
    }
    uint8_t *dense = d->data + (size_t) at.i * d->nb[1] + (size_t) at.j * d->nb[2] + (size_t) at.k * d->nb[3];
    uint8_t *table = t->data + (size_t) index * t->nb[1] + (size_t) (at.j % t->ne[2]) * t->nb[2]
                     + (size_t) (at.k % t->ne[3]) * t->nb[3];
    out->to = (m->set ? table : dense) + convert_row_bytes(m->to_type, col);
    out->from = (m->set ? dense : table) + convert_row_bytes(m->from_type, col);
    out->n = hex_min(m->chunk, d->ne[0] - col);
    return true;
}

static bool next_piece(struct move *m, struct hex_range *units, uint32_t thread, struct piece *out) {
    while (units->first < units->end) {
        if (piece_of(m, units->first++, thread, out)) {
            return true;
        }
    }
    return false;
}

static void push_row(struct dma_queue *q, uint8_t *to, const uint8_t *from, uint32_t bytes) {
    dma_push(q, to, from, bytes, bytes, bytes, 1);
}

static void move_directly(struct move *m, struct dma_queue *q, struct hex_range units, uint32_t thread) {
    struct piece p;
    uint32_t in_flight = 0;
    while (next_piece(m, &units, thread, &p)) {
        if (in_flight == DIRECT_IN_FLIGHT) {
            dma_pop(q);
            in_flight--;
        }
        push_row(q, p.to, p.from, convert_row_bytes(m->to_type, p.n));
        in_flight++;
    }
    for (; in_flight; in_flight--) {
        dma_pop(q);
    }
}

static void move_converted(struct htp_op *op, struct move *m, struct hex_range units, uint32_t thread) {
    struct dma_queue *q = htp_dma(op, thread);
    uint8_t *in = htp_vtcm(op, REGION_IN, thread), *out = htp_vtcm(op, REGION_OUT, thread);
    size_t in_bytes = convert_buffer_bytes(m->from_type, m->chunk);
    size_t out_bytes = convert_buffer_bytes(m->to_type, m->chunk);
    struct piece pieces[MAX_STAGES];
    uint32_t primed = 0, step = 0;
    for (; primed < m->stages && next_piece(m, &units, thread, &pieces[primed]); primed++) {
        const struct piece *p = &pieces[primed];
        dma_push(q, p->to, out, 0, 0, 0, 0); /* nothing to write back yet */
        push_row(q, in + primed * in_bytes, p->from, convert_row_bytes(m->from_type, p->n));
    }
    uint32_t left = primed;
    for (uint32_t s = 0; left; s = s + 1 == primed ? 0 : s + 1, step++) {
        struct piece *p = &pieces[s];
        dma_pop(q);
        dma_pop(q);
        htp_trace_start(op, thread, HTP_TR_HVX_COMP, step);
        m->convert(out + s * out_bytes, in + s * in_bytes, p->n);
        htp_trace_stop(op, thread, HTP_TR_HVX_COMP, step);
        push_row(q, p->to, out + s * out_bytes, convert_row_bytes(m->to_type, p->n));
        left--;
        if (next_piece(m, &units, thread, p)) {
            push_row(q, in + s * in_bytes, p->from, convert_row_bytes(m->from_type, p->n));
            left++;
        }
    }
    for (uint32_t s = 0; s < primed; s++) {
        dma_pop(q);
    }
}

static void move_job(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    struct move *m = (struct move *) arg;
    struct hex_range units = hex_share(m->n_rows * m->n_chunks, thread, n_threads);
    if (m->convert) {
        move_converted(op, m, units, thread);
    } else {
        move_directly(m, htp_dma(op, thread), units, thread);
    }
}

static bool repeats(uint32_t n, uint32_t small) {
    return n == 0 || (small && n % small == 0);
}

static enum htp_status check_shapes(struct htp_op *op, const struct move *m) {
    const uint32_t *dense = m->dense->ne, *table = m->table->ne, *idx = m->idx->ne;
    if (m->idx->type != HTP_I32 && m->idx->type != HTP_I64) {
        return htp_unsupported(op, "src1", "has type %u, must be I32 or I64", m->idx->type);
    }
    if (dense[0] != table[0]) {
        return htp_bad(op, "src0.ne[0]", "is %u, dst has %u", op->src[0]->ne[0], op->dst[0]->ne[0]);
    }
    if (idx[0] != dense[1] || idx[3] != 1) {
        return htp_bad(op, "src1.ne", "is %u of ne[3] = %u, must be %u of 1", idx[0], idx[3], dense[1]);
    }
    for (uint32_t d = 2; d < HTP_MAX_DIMS; d++) {
        if (!repeats(dense[d], idx[d - 1])) {
            return htp_bad(op, "src1.ne", "[%u] is %u and does not repeat into %u", d - 1, idx[d - 1], dense[d]);
        }
        if (m->set ? dense[d] != table[d] : !repeats(dense[d], table[d])) {
            return htp_bad(op, "src0.ne", "[%u] is %u, dst has %u", d, op->src[0]->ne[d], op->dst[0]->ne[d]);
        }
    }
    return HTP_OK;
}

static enum htp_status check_region(struct htp_op *op, const struct move *m, uint32_t region, uint32_t type) {
    uint64_t need = (uint64_t) convert_buffer_bytes(type, m->chunk) * m->stages;
    if (!(op->kparams[HTP_KP_REGIONS + 2 * region] & HTP_REGION_PER_THREAD) || htp_vtcm_bytes(op, region) < need) {
        return htp_bad(op, "kernel_params", "region %u has %u bytes, needs %llu a thread", region,
                       htp_vtcm_bytes(op, region), (unsigned long long) need);
    }
    return HTP_OK;
}

static enum htp_status rows_check(struct htp_op *op) {
    struct move m = move_of(op);
    enum htp_status status = check_shapes(op, &m);
    if (status != HTP_OK) {
        return status;
    }
    if (!convert_row_bytes(m.from_type, CONVERT_ALIGN) || (m.from_type != m.to_type && !m.convert)) {
        return htp_unsupported(op, "src0", "has type %u, which is not moved to type %u", m.from_type, m.to_type);
    }
    uint32_t n = m.dense->ne[0];
    if (m.chunk == 0 || m.chunk > hex_max(n, 1) || (m.chunk < n && m.chunk % CONVERT_ALIGN)) {
        return htp_bad(op, "kernel_params", "chunk is %u of %u columns, must be all or a multiple of %u", m.chunk, n,
                       CONVERT_ALIGN);
    }
    if (!m.convert) {
        return HTP_OK;
    }
    if (m.stages == 0 || m.stages > MAX_STAGES) {
        return htp_bad(op, "kernel_params", "%u stages, must be 1 to %u", m.stages, MAX_STAGES);
    }
    status = check_region(op, &m, REGION_IN, m.from_type);
    return status == HTP_OK ? check_region(op, &m, REGION_OUT, m.to_type) : status;
}

static enum htp_status rows_run(struct htp_op *op) {
    struct move m = move_of(op);
    m.n_chunks = hex_ceil_div(m.dense->ne[0], m.chunk);
    m.n_rows = htp_nrows(m.dense);
    m.may_repeat = m.set && may_repeat(&m);
    for (uint32_t t = 0; t < HTP_MAX_THREADS; t++) {
        m.bad[t] = m.n_rows;
    }
    htp_run(op, move_job, &m);
    uint32_t bad = m.n_rows;
    for (uint32_t t = 0; t < HTP_MAX_THREADS; t++) {
        bad = hex_min(bad, m.bad[t]);
    }
    if (bad == m.n_rows) {
        return HTP_OK;
    }
    struct place at = place_of(&m, bad);
    return htp_bad(op, "src1", "index %lld at [%u, %u, %u] is outside of %u rows",
                   (long long) index_at(&m, at.i, at.j, at.k), at.i, at.j, at.k, m.table->ne[1]);
}

const struct htp_kernel htp_rows = {.check = rows_check, .run = rows_run};
