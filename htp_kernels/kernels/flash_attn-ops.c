/*
 * FLASH_ATTN_EXT: dst = softmax(scale q k^T + slope mask) v, without ever holding a whole row of scores.
 *
 * q [D, T, H, B] F32 or F16, k [D, KV, Hkv, Bkv] and v [Dv, KV, Hkv, Bkv] F16 or Q8_0, mask F16 [KV, >= T, 1, any] and
 * sinks F32 [H] optional; dst F32 [Dv, H, T, B]. The H / Hkv heads of a group share every K/V block. Units
 * (hvx-fa-units.h) go to the threads in turn; where there are few of them, the K/V rows are cut into chunks whose
 * partial results are joined in order in the end.
 *
 * VTCM, per thread: two blocks each of K, V and mask and two of query rows in flight; floats: K transposed, V, Q,
 * scores, the softmax of each row, two accumulators. Shared: partial results.
 */
#include <math.h>

#include "htp-kernel.h"
#include "hvx-base.h"
#include "hvx-fa-core.h"
#include "hvx-fa-prep.h"
#include "hvx-fa-units.h"

/* The thread's queue, counted: `loaded` marks of steps are numbers of pushed transfers. */
struct fa_fifo {
    struct dma_queue *q;
    uint32_t pushed, popped;
};

static void fa_push(struct fa_fifo *f, void *dst, const void *src, uint32_t dst_stride, uint32_t src_stride,
                    uint32_t row_bytes, uint32_t n_rows) {
    dma_push(f->q, dst, src, dst_stride, src_stride, row_bytes, n_rows);
    f->pushed++;
}

static void fa_wait(struct fa_fifo *f, uint32_t mark) {
    for (; (int32_t) (mark - f->popped) > 0; f->popped++) {
        dma_pop(f->q);
    }
}

struct fa_thread {
    const struct fa *p;
    uint32_t index;
    struct fa_fifo fifo;
    uint8_t *k[FA_STAGES], *v[FA_STAGES], *q[FA_STAGES], *mask[FA_STAGES];
    uint8_t *kt, *vf, *qf, *scores, *stats;
    uint8_t *acc[2];
    uint32_t stored[2]; /* mark of each accumulator's last write-back */
    uint32_t turn;      /* accumulator of the unit in work */
};

static struct fa_thread fa_thread_at(const struct fa *p, uint32_t index) {
    uint8_t *work = htp_vtcm(p->op, FA_REGION_WORK, index);
    struct fa_thread t = {
        .p = p,
        .index = index,
        .fifo = {.q = htp_dma(p->op, index)},
        .kt = work,
        .vf = work + p->at_v,
        .qf = work + p->at_q,
        .scores = work + p->at_scores,
        .stats = work + p->at_stats,
        .acc = {work + p->at_acc, work + p->at_acc + p->rows * p->v_wide},
    };
    for (uint32_t s = 0; s < FA_STAGES; s++) {
        t.k[s] = htp_vtcm(p->op, FA_REGION_K, index) + s * fa_block_bytes(p->k_pitch);
        t.v[s] = htp_vtcm(p->op, FA_REGION_V, index) + s * fa_block_bytes(p->v_pitch);
        t.q[s] = htp_vtcm(p->op, FA_REGION_Q, index) + s * p->rows * p->q_pitch;
        t.mask[s] = p->mask ? htp_vtcm(p->op, FA_REGION_MASK, index) + s * p->mask_rows * HVX_BYTES : NULL;
    }
    return t;
}

/* ---- transfers ---- */

static void fa_load_q(struct fa_thread *t, const struct fa_unit *u, uint8_t *to) {
    const struct fa *p = t->p;
    const uint8_t *from = p->q->data + (size_t) u->batch * p->q->nb[3] + (size_t) u->kv_head * p->group * p->q->nb[2];
    struct fa_rect r;
    for (uint32_t i = 0; fa_rect_at(p, u, i, &r); i++) {
        fa_push(&t->fifo, to + (size_t) r.row * p->q_pitch,
                from + (size_t) r.token * p->q->nb[1] + (size_t) r.head * p->q->nb[2], r.row_step * p->q_pitch,
                r.along_tokens ? p->q->nb[1] : p->q->nb[2], fa_row_bytes(p->q), r.n);
    }
}

static void fa_store(struct fa_thread *t, const struct fa_unit *u, const uint8_t *acc) {
    const struct fa *p = t->p;
    uint8_t *to = p->dst->data + (size_t) u->batch * p->dst->nb[3] + (size_t) u->kv_head * p->group * p->dst->nb[1];
    struct fa_rect r;
    for (uint32_t i = 0; fa_rect_at(p, u, i, &r); i++) {
        fa_push(&t->fifo, to + (size_t) r.token * p->dst->nb[2] + (size_t) r.head * p->dst->nb[1],
                acc + (size_t) r.row * p->v_wide, r.along_tokens ? p->dst->nb[2] : p->dst->nb[1],
                r.row_step * p->v_wide, p->dv * 4, r.n);
    }
}

static const uint8_t *fa_kv_at(const struct fa *p, const struct htp_tensor *kv, const struct fa_step *s) {
    uint32_t batch = s->unit.batch / (p->n_batch / kv->ne[3]);
    return kv->data + (size_t) batch * kv->nb[3] + (size_t) s->unit.kv_head * kv->nb[2] + (size_t) s->col * kv->nb[1];
}

static void fa_load(struct fa_thread *t, struct fa_step *s, uint32_t slot) {
    const struct fa *p = t->p;
    if (s->n_cols) {
        if (s->first) {
            fa_load_q(t, &s->unit, t->q[slot]);
        }
        fa_push(&t->fifo, t->k[slot], fa_kv_at(p, p->k, s), p->k_pitch, p->k->nb[1], fa_row_bytes(p->k), s->n_cols);
        if (p->mask) {
            fa_push(&t->fifo, t->mask[slot], fa_mask_at(p, &s->unit, fa_first_token(p, &s->unit), s->col), HVX_BYTES,
                    p->mask->nb[1], s->n_cols * 2, fa_unit_tokens(p, &s->unit));
        }
        fa_push(&t->fifo, t->v[slot], fa_kv_at(p, p->v, s), p->v_pitch, p->v->nb[1], fa_row_bytes(p->v), s->n_cols);
    }
    s->loaded = t->fifo.pushed;
}

/* ---- a unit ---- */

/* ALiBi as ggml has it: powers of 2^(-bias / n), n the power of two below the head count; the heads above it take odd
 * half steps. */
static float fa_slope(const struct fa *p, uint32_t head) {
    if (p->max_bias <= 0.0f) {
        return 1.0f;
    }
    uint32_t n = 1;
    while (2 * n <= p->n_heads) {
        n *= 2;
    }
    float step = head < n ? p->max_bias : p->max_bias / 2.0f;
    uint32_t power = head < n ? head + 1 : 2 * (head - n) + 1;
    return powf(exp2f(-step / (float) n), (float) power);
}

static uint32_t fa_head(const struct fa *p, const struct fa_unit *u, uint32_t row) {
    return u->kv_head * p->group + (u->row + row) % p->group;
}

static void fa_unit_begin(struct fa_thread *t, const struct fa_unit *u) {
    const struct fa *p = t->p;
    fa_wait(&t->fifo, t->stored[t->turn]);
    uint8_t *acc = t->acc[t->turn];
    for (uint32_t i = 0; i < u->n_rows * p->v_wide; i += HVX_BYTES) {
        hvx_store(acc + i, Q6_V_vzero());
    }
    for (uint32_t r = 0; r < u->n_rows; r++) {
        fa_stats_begin(t->stats + r * FA_STAT_BYTES, fa_slope(p, fa_head(p, u, r)));
    }
}

static uint8_t *fa_part(const struct fa *p, uint32_t chunk, uint32_t row) {
    return htp_vtcm(p->op, FA_REGION_PARTS, 0)
           + ((size_t) chunk * p->n_batch * p->n_kv_heads * p->n_list + row) * p->part_bytes;
}

static void fa_unit_keep(struct fa_thread *t, const struct fa_unit *u) {
    const struct fa *p = t->p;
    for (uint32_t r = 0; r < u->n_rows; r++) {
        uint8_t *part = fa_part(p, u->chunk, (u->batch * p->n_kv_heads + u->kv_head) * p->n_list + u->row + r);
        const uint8_t *acc = t->acc[t->turn] + (size_t) r * p->v_wide;
        hvx_store(part, hvx_load(t->stats + r * FA_STAT_BYTES + FA_MAX));
        hvx_store(part + HVX_BYTES, hvx_load(t->stats + r * FA_STAT_BYTES + FA_SUM));
        for (uint32_t i = 0; i < p->v_wide; i += HVX_BYTES) {
            hvx_store(part + FA_PARTIAL_HEAD + i, hvx_load(acc + i));
        }
    }
}

static void fa_unit_end(struct fa_thread *t, const struct fa_unit *u) {
    const struct fa *p = t->p;
    if (p->n_chunks > 1) {
        fa_unit_keep(t, u);
        return;
    }
    uint8_t *acc = t->acc[t->turn];
    for (uint32_t r = 0; r < u->n_rows; r++) {
        const uint8_t *stats = t->stats + r * FA_STAT_BYTES;
        const float *sink = p->sinks ? &p->sinks[fa_head(p, u, r)] : NULL;
        fa_scale_row(acc + (size_t) r * p->v_wide, p->v_wide,
                     fa_final_scale(hvx_load(stats + FA_MAX), hvx_load(stats + FA_SUM), sink));
    }
    fa_store(t, u, acc);
    t->stored[t->turn] = t->fifo.pushed;
    t->turn ^= 1;
}

/* ---- a step ---- */

/* Whether so many rows use a block that it is worth turning it into floats first. */
static bool fa_is_wide(const struct fa_step *s) {
    return s->unit.n_rows > 2 * FA_GROUP;
}

static void fa_scores(struct fa_thread *t, const struct fa_step *s) {
    const struct fa *p = t->p;
    bool wide = fa_is_wide(s);
    float q[FA_GROUP * FA_MAX_DIMS] __attribute__((aligned(HVX_BYTES)));
    for (uint32_t r = 0; r < s->unit.n_rows; r += FA_GROUP) {
        uint32_t n_rows = hex_min(FA_GROUP, s->unit.n_rows - r);
        fa_fetch(q, FA_MAX_DIMS, t->qf + (size_t) r * p->q_wide, p->q_wide, n_rows, p->dk);
        struct fa_product product = {
            .weight = q,
            .weight_pitch = FA_MAX_DIMS,
            .matrix = t->kt,
            .matrix_pitch = wide ? FA_BLOCK * 4 : FA_BLOCK * 2,
            .wide = wide,
            .n_terms = p->dk,
            .out = t->scores + (size_t) r * FA_BLOCK * 4,
            .out_pitch = FA_BLOCK * 4,
        };
        fa_product_run(&product, n_rows, hex_ceil_div(s->n_cols, HVX_F32));
    }
}

static void fa_softmax(struct fa_thread *t, const struct fa_step *s, const uint8_t *mask) {
    const struct fa *p = t->p;
    const struct fa_softmax how = {.softcap = p->softcap, .n_cols = s->n_cols, .masked = mask != NULL};
    uint32_t in_group = s->unit.row % p->group; /* the head, counted up instead of divided */
    for (uint32_t r = 0; r < s->unit.n_rows; r++) {
        fa_softmax_row(&how, t->scores + (size_t) r * FA_BLOCK * 4, mask, t->stats + r * FA_STAT_BYTES);
        if (++in_group == p->group) {
            in_group = 0;
            mask = mask ? mask + HVX_BYTES : NULL;
        }
    }
}

static void fa_values(struct fa_thread *t, const struct fa_step *s, const uint8_t *v) {
    const struct fa *p = t->p;
    bool wide = fa_is_wide(s);
    float weight[FA_GROUP * FA_BLOCK] __attribute__((aligned(HVX_BYTES)));
    for (uint32_t r = 0; r < s->unit.n_rows; r += FA_GROUP) {
        uint32_t n_rows = hex_min(FA_GROUP, s->unit.n_rows - r);
        fa_fetch(weight, FA_BLOCK, t->scores + (size_t) r * FA_BLOCK * 4, FA_BLOCK * 4, n_rows, s->n_cols);
        for (uint32_t i = 0; i < p->dv; i += 2 * HVX_F32) {
            struct fa_product product = {
                .weight = weight,
                .weight_pitch = FA_BLOCK,
                .matrix = wide ? t->vf + i * 4 : v + i * 2,
                .matrix_pitch = wide ? p->v_wide : p->v_pitch,
                .wide = wide,
                .n_terms = s->n_cols,
                .out = t->acc[t->turn] + (size_t) r * p->v_wide + i * 4,
                .out_pitch = p->v_wide,
                .stats = t->stats + r * FA_STAT_BYTES,
            };
            fa_product_run(&product, n_rows, p->dv - i > HVX_F32 ? 2 : 1);
        }
    }
}

static void fa_step_run(struct fa_thread *t, const struct fa_step *s, uint32_t slot) {
    const struct fa *p = t->p;
    const struct htp_op *op = p->op;
    uint32_t info = s->number & (HTP_TRACE_STOP - 1);
    if (s->first) {
        htp_trace_start(op, t->index, HTP_TR_HVX_FA_Q_PREP, info);
        fa_prep_q(t->q[slot], p->q_pitch, s->unit.n_rows, p->dk, p->q->type, p->scale, t->qf, p->q_wide);
        htp_trace_stop(op, t->index, HTP_TR_HVX_FA_Q_PREP, info);
    }
    htp_trace_start(op, t->index, HTP_TR_HVX_FA_K_PREP, info);
    fa_dequant(t->k[slot], p->k_pitch, s->n_cols, p->dk, p->k->type);
    fa_prep_k(t->k[slot], p->k_pitch, s->n_cols, p->dk, t->kt, fa_is_wide(s));
    htp_trace_stop(op, t->index, HTP_TR_HVX_FA_K_PREP, info);

    htp_trace_start(op, t->index, HTP_TR_HVX_FA_QK, info);
    fa_scores(t, s);
    htp_trace_stop(op, t->index, HTP_TR_HVX_FA_QK, info);

    htp_trace_start(op, t->index, HTP_TR_HVX_FA_SFM, info);
    fa_softmax(t, s, t->mask[slot]);
    htp_trace_stop(op, t->index, HTP_TR_HVX_FA_SFM, info);

    htp_trace_start(op, t->index, HTP_TR_HVX_FA_V_PREP, info);
    fa_dequant(t->v[slot], p->v_pitch, s->n_cols, p->dv, p->v->type);
    if (fa_is_wide(s)) {
        fa_widen(t->v[slot], p->v_pitch, s->n_cols, p->dv, t->vf, p->v_wide);
    }
    htp_trace_stop(op, t->index, HTP_TR_HVX_FA_V_PREP, info);

    htp_trace_start(op, t->index, HTP_TR_HVX_COMP, info);
    fa_values(t, s, t->v[slot]);
    htp_trace_stop(op, t->index, HTP_TR_HVX_COMP, info);
}

/* ---- the job ---- */

/* The thread's share of rows: partial results to dst, as many at a time as an accumulator and the queue take. */
static void fa_join_rows(struct fa_thread *t, uint32_t n_threads) {
    const struct fa *p = t->p;
    uint32_t n_all = p->n_batch * p->n_kv_heads * p->n_list;
    struct hex_range share = hex_share(n_all, t->index, n_threads);
    size_t step = (size_t) n_all * p->part_bytes;
    uint8_t *out = t->acc[0];
    for (uint32_t row = share.first, n = 0; row < share.end; row++, n++) {
        if (n == hex_min(p->rows, DMA_QUEUE_DEPTH)) {
            fa_wait(&t->fifo, t->fifo.pushed);
            n = 0;
        }
        uint32_t i = row % p->n_list;
        uint32_t kv_head = row / p->n_list % p->n_kv_heads;
        uint32_t batch = row / p->n_list / p->n_kv_heads;
        uint32_t head = kv_head * p->group + i % p->group;
        uint8_t *own = out + (size_t) n * p->v_wide;
        fa_join(fa_part(p, 0, row), step, p->n_chunks, p->sinks ? &p->sinks[head] : NULL, own, p->v_wide);
        uint8_t *to = p->dst->data + (size_t) batch * p->dst->nb[3] + (size_t) (i / p->group) * p->dst->nb[2]
                      + (size_t) head * p->dst->nb[1];
        fa_push(&t->fifo, to, own, p->dv * 4, p->v_wide, p->dv * 4, 1);
    }
}

static void fa_job(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    const struct fa *p = (const struct fa *) arg;
    struct fa_thread t = fa_thread_at(p, thread);
    struct fa_walk walk = {.stride = n_threads};
    struct fa_step steps[FA_STAGES];
    bool there[FA_STAGES];
    fa_walk_enter(p, &walk, thread);
    for (uint32_t s = 0; s < FA_STAGES; s++) {
        there[s] = fa_walk_next(p, &walk, &steps[s]);
        if (there[s]) {
            fa_load(&t, &steps[s], s);
        }
    }
    for (uint32_t s = 0; there[s]; s = (s + 1) % FA_STAGES) {
        struct fa_step step = steps[s];
        fa_wait(&t.fifo, step.loaded);
        if (step.first) {
            fa_unit_begin(&t, &step.unit);
        }
        if (step.n_cols) {
            fa_step_run(&t, &step, s);
        }
        const struct fa_step *next = &steps[(s + 1) % FA_STAGES];
        if (!there[(s + 1) % FA_STAGES] || next->first) {
            fa_unit_end(&t, &step.unit);
        }
        there[s] = fa_walk_next(p, &walk, &steps[s]);
        if (there[s]) {
            fa_load(&t, &steps[s], s);
        }
    }
    if (p->n_chunks > 1) {
        htp_barrier(op);
        fa_join_rows(&t, n_threads);
    }
    fa_wait(&t.fifo, t.fifo.pushed);
}

/* ---- the op ---- */

static bool fa_is_kv(const struct htp_tensor *t) {
    return (t->type == HTP_F16 && t->nb[0] == 2)
           || (t->type == HTP_Q8_0 && t->nb[0] == FA_Q8_BYTES && t->ne[0] % FA_Q8_BLOCK == 0);
}

static enum htp_status fa_check_types(struct htp_op *op) {
    const struct htp_tensor *q = op->src[0], *mask = op->src[3], *sinks = op->src[4], *dst = op->dst[0];
    if (!(q->type == HTP_F32 && q->nb[0] == 4) && !(q->type == HTP_F16 && q->nb[0] == 2)) {
        return htp_unsupported(op, "src0", "is of type %u with nb[0] = %u, must be F32 or F16 without gaps", q->type,
                               q->nb[0]);
    }
    for (uint32_t i = 1; i <= 2; i++) {
        const struct htp_tensor *t = op->src[i];
        if (!fa_is_kv(t)) {
            return htp_unsupported(op, i == 1 ? "src1" : "src2",
                                   "is of type %u with nb[0] = %u and %u columns, must be F16, or Q8_0 in "
                                   "blocks of 32",
                                   t->type, t->nb[0], t->ne[0]);
        }
    }
    if (mask && (mask->type != HTP_F16 || mask->nb[0] != 2)) {
        return htp_unsupported(op, "src3", "is of type %u with nb[0] = %u, must be F16 without gaps", mask->type,
                               mask->nb[0]);
    }
    if (sinks && (sinks->type != HTP_F32 || sinks->nb[0] != 4)) {
        return htp_unsupported(op, "src4", "is of type %u with nb[0] = %u, must be F32 without gaps", sinks->type,
                               sinks->nb[0]);
    }
    if (dst->type != HTP_F32 || dst->nb[0] != 4) {
        return htp_unsupported(op, "dst", "is of type %u with nb[0] = %u, must be F32 without gaps", dst->type,
                               dst->nb[0]);
    }
    return HTP_OK;
}

static enum htp_status fa_check_shapes(struct htp_op *op) {
    const struct htp_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3], *sinks = op->src[4],
                            *dst = op->dst[0];
    if (q->ne[0] < 8 || q->ne[0] > FA_MAX_DIMS || q->ne[0] % 8 || v->ne[0] < 8 || v->ne[0] > FA_MAX_DIMS
        || v->ne[0] % 8) {
        return htp_unsupported(op, "src.ne[0]", "heads of %u and %u, must be multiples of 8 up to %u", q->ne[0],
                               v->ne[0], FA_MAX_DIMS);
    }
    if (k->ne[0] != q->ne[0] || k->ne[1] != v->ne[1] || k->ne[2] != v->ne[2] || k->ne[3] != v->ne[3]) {
        return htp_bad(op, "src1.ne", "%u:%u:%u:%u does not go with heads of %u and v of %u:%u:%u", k->ne[0], k->ne[1],
                       k->ne[2], k->ne[3], q->ne[0], v->ne[1], v->ne[2], v->ne[3]);
    }
    if (dst->ne[0] != v->ne[0] || dst->ne[1] != q->ne[2] || dst->ne[2] != q->ne[1] || dst->ne[3] != q->ne[3]) {
        return htp_bad(op, "dst.ne", "is %u:%u:%u:%u, must be %u:%u:%u:%u", dst->ne[0], dst->ne[1], dst->ne[2],
                       dst->ne[3], v->ne[0], q->ne[2], q->ne[1], q->ne[3]);
    }
    if (k->ne[2] == 0 || k->ne[3] == 0 || q->ne[2] % k->ne[2] || q->ne[3] % k->ne[3]) {
        return htp_bad(op, "src1.ne", "%u heads and %u batches do not share %u and %u", q->ne[2], q->ne[3], k->ne[2],
                       k->ne[3]);
    }
    if (mask && (mask->ne[0] != k->ne[1] || mask->ne[1] < q->ne[1] || mask->ne[2] != 1 || mask->ne[3] == 0)) {
        return htp_bad(op, "src3.ne", "is %u:%u:%u:%u, must be %u columns for at least %u tokens", mask->ne[0],
                       mask->ne[1], mask->ne[2], mask->ne[3], k->ne[1], q->ne[1]);
    }
    if (sinks && sinks->ne[0] < q->ne[2]) {
        return htp_bad(op, "src4.ne[0]", "is %u, must be a number for each of %u heads", sinks->ne[0], q->ne[2]);
    }
    return HTP_OK;
}

static bool fa_empty(const struct htp_op *op) {
    const uint32_t *ne = op->dst[0]->ne;
    return !ne[1] || !ne[2] || !ne[3];
}

/* The cut: units and rows are counted in 32 bits, chunks are whole blocks and cover the K/V rows. */
static enum htp_status fa_check_cut(struct htp_op *op) {
    const struct htp_tensor *q = op->src[0];
    int32_t rows = htp_karg(op, FA_KARG_ROWS), n_chunks = htp_karg(op, FA_KARG_CHUNKS),
            cols = htp_karg(op, FA_KARG_CHUNK_COLS);
    if (op->kparams[HTP_KP_BLOCK] != (int32_t) FA_BLOCK || rows < 1 || rows > (int32_t) FA_MAX_ROWS) {
        return htp_bad(op, "kernel_params", "blocks of %d and %d rows, must be %u and 1 to %u",
                       op->kparams[HTP_KP_BLOCK], rows, FA_BLOCK, FA_MAX_ROWS);
    }
    if (n_chunks < 1 || cols < 1 || cols % (int32_t) FA_BLOCK
        || (uint64_t) n_chunks * (uint64_t) cols < op->src[1]->ne[1]
        || (uint64_t) n_chunks * (uint64_t) cols > INT32_MAX) {
        return htp_bad(op, "kernel_params.args", "%d chunks of %d columns for %u", n_chunks, cols, op->src[1]->ne[1]);
    }
    uint64_t heads = (uint64_t) q->ne[1] * q->ne[2];
    if (heads > INT32_MAX || heads * q->ne[3] > INT32_MAX || heads * q->ne[3] * (uint32_t) n_chunks > INT32_MAX) {
        return htp_bad(op, "src0.ne", "%u x %u x %u rows in %d chunks are more than 2^31", q->ne[1], q->ne[2], q->ne[3],
                       n_chunks);
    }
    return HTP_OK;
}

static enum htp_status fa_check_regions(struct htp_op *op) {
    struct fa p = fa_init(op);
    const uint64_t need[] = {
        [FA_REGION_K] = FA_STAGES * (uint64_t) fa_block_bytes(p.k_pitch),
        [FA_REGION_V] = FA_STAGES * (uint64_t) fa_block_bytes(p.v_pitch),
        [FA_REGION_Q] = FA_STAGES * (uint64_t) p.rows * p.q_pitch,
        [FA_REGION_MASK] = FA_STAGES * (uint64_t) p.mask_rows * HVX_BYTES,
        [FA_REGION_WORK] = p.work_bytes,
        [FA_REGION_PARTS] =
            p.n_chunks > 1 ? (uint64_t) p.n_chunks * p.n_batch * p.n_kv_heads * p.n_list * p.part_bytes : 0,
    };
    for (uint32_t i = 0; i < sizeof need / sizeof need[0]; i++) {
        bool per_thread = op->kparams[HTP_KP_REGIONS + 2 * i] & HTP_REGION_PER_THREAD;
        if (need[i] && (htp_vtcm_bytes(op, i) < need[i] || per_thread != (i != FA_REGION_PARTS))) {
            return htp_bad(op, "kernel_params.regions", "region %u has %u bytes%s, needs %llu%s", i,
                           htp_vtcm_bytes(op, i), per_thread ? " per thread" : "", (unsigned long long) need[i],
                           i != FA_REGION_PARTS ? " per thread" : "");
        }
    }
    return HTP_OK;
}

static enum htp_status fa_check(struct htp_op *op) {
    if (!op->src[0] || !op->src[1] || !op->src[2] || !op->dst[0]) {
        return htp_bad(op, "src", "q, k, v or dst is missing");
    }
    enum htp_status status = fa_check_types(op);
    status = status == HTP_OK ? fa_check_shapes(op) : status;
    if (status != HTP_OK || fa_empty(op)) {
        return status;
    }
    status = fa_check_cut(op);
    return status == HTP_OK ? fa_check_regions(op) : status;
}

static enum htp_status fa_run(struct htp_op *op) {
    if (!fa_empty(op)) {
        struct fa p = fa_init(op);
        htp_run(op, fa_job, &p);
    }
    return HTP_OK;
}

const struct htp_kernel htp_flash_attn = {.check = fa_check, .run = fa_run};
