/*
 * ALLREDUCE: dst0.. = src0 + .. of all ranks' inputs; ALLREDUCE_ADD adds src8, full shape or one row for all, in the
 * same pass. F32, or F16 throughout (summed as floats, rounded once).
 *
 * src0..3 are the ranks' inputs, src4..7 their fences, dst0.. the outputs of those ranks that want one. Every rank runs
 * the op over the same tensors, but reduces its own slice only, for all outputs. The order of the sum is that of the
 * ranks, whoever computes it, so that all outputs are the same bits. Between its entry barrier (sequence number seq)
 * and its exit barrier (seq + 1) a rank may read the peers' inputs and write their outputs: before, these may not be
 * ready; after, they may be reused.
 *
 * With param PAIRS the inputs are pairs (hvx-pair.h), [N, M, 2], as MUL_MAT gives them: the ranks' parts of a sum over
 * K whose float hardly depends on where K was cut. The outputs are those floats, [N, M].
 *
 * Kernel 0 takes dense tensors as one row of elements and a slice of columns; kernel 1 takes rows with any stride and a
 * slice of rows. VTCM: region i holds input i, the residual behind the inputs, the last region the output; all per
 * thread, `stages` tiles each.
 */
#include "htp-kernel.h"
#include "htp-opcodes.h"
#include "hvx-convert.h"
#include "hvx-pair.h"

enum { PARAM_SEQ = 0, PARAM_RANK = 1, PARAM_N_RANKS = 2, PARAM_PAIRS = 3 };
enum { KERNEL_1D = 0, KERNEL_2D = 1 };
enum { KARG_CHUNK = 0, KARG_STAGES = 1, KARG_FIRST = 2, KARG_COUNT = 3 };
enum { FENCES = HTP_MAX_RANKS, RESIDUAL = 2 * HTP_MAX_RANKS, MAX_IN = HTP_MAX_RANKS + 1 };
#define MAX_STAGES 4u
#define MAX_TILE (1u << 20) /* elements or rows */

struct side {
    uint8_t *data;
    uint32_t stride; /* bytes from row to row; 0: one row for all. Of a pair, from hi to lo */
};

struct allreduce {
    uint32_t n_ranks, rank, n_in, n_out;
    bool pairs;
    struct side in[MAX_IN], out[HTP_MAX_DST];
    uint32_t elem_bytes;
    uint32_t n_rows, n_cols;         /* as the kernel sees the tensors */
    uint32_t row, rows, col, cols;   /* this rank's slice */
    uint32_t block, chunk, stages;   /* rows and columns of a tile, tiles in flight */
    uint32_t pitch;                  /* bytes of a row of a tile in VTCM */
};

struct tile {
    uint32_t row, rows, col, cols;
    uint8_t *in[MAX_IN], *out;
};

/* ---- from the op; nothing is proved yet ---- */

/* The first row dimension that is walked; its stride is that of all rows. */
static uint32_t row_dim(const struct htp_tensor *t) {
    uint32_t d = 1;
    while (d < HTP_MAX_DIMS - 1 && t->ne[d] == 1) {
        d++;
    }
    return d;
}

static struct side side_of(const struct htp_tensor *t, bool is_1d) {
    return (struct side){t->data, is_1d || htp_nrows(t) == 1 ? 0 : t->nb[row_dim(t)]};
}

static struct allreduce allreduce_of(const struct htp_op *op) {
    const struct htp_tensor *dst = op->dst[0];
    bool is_1d = op->kparams[HTP_KP_KERNEL] == KERNEL_1D;
    struct allreduce a = {
        .n_ranks = (uint32_t) op->params[PARAM_N_RANKS],
        .rank = (uint32_t) op->params[PARAM_RANK],
        .pairs = op->params[PARAM_PAIRS] != 0,
        .elem_bytes = dst->type == HTP_F16 ? 2 : 4,
        .n_rows = is_1d ? 1 : htp_nrows(dst),
        .n_cols = is_1d ? dst->ne[0] * htp_nrows(dst) : dst->ne[0],
        .block = (uint32_t) op->kparams[HTP_KP_BLOCK],
        .chunk = (uint32_t) htp_karg(op, KARG_CHUNK),
        .stages = (uint32_t) htp_karg(op, KARG_STAGES),
    };
    uint32_t first = (uint32_t) htp_karg(op, KARG_FIRST), count = (uint32_t) htp_karg(op, KARG_COUNT);
    a.row = is_1d ? 0 : first;
    a.rows = is_1d ? 1 : count;
    a.col = is_1d ? first : 0;
    a.cols = is_1d ? count : a.n_cols;
    return a;
}

static void add_sides(struct allreduce *a, const struct htp_op *op) {
    bool is_1d = op->kparams[HTP_KP_KERNEL] == KERNEL_1D;
    for (; a->n_in < a->n_ranks; a->n_in++) {
        const struct htp_tensor *t = op->src[a->n_in];
        a->in[a->n_in] = a->pairs ? (struct side){t->data, t->nb[2]} : side_of(t, is_1d);
    }
    if (op->opcode == HTP_OP_ALLREDUCE_ADD) {
        a->in[a->n_in++] = side_of(op->src[RESIDUAL], is_1d);
    }
    for (; a->n_out < HTP_MAX_DST && op->dst[a->n_out]; a->n_out++) {
        a->out[a->n_out] = side_of(op->dst[a->n_out], is_1d);
    }
    a->pitch = hex_round_up(a->chunk * a->elem_bytes, HVX_BYTES);
}

/* Rows of VTCM that a tile of input i takes. */
static uint32_t held_rows(const struct allreduce *a, uint32_t i) {
    return a->pairs && i < a->n_ranks ? 2 : a->in[i].stride ? a->block : 1;
}

/* ---- proof ---- */

/* The rows of all dimensions follow each other with one stride (2D), or nothing lies between the elements (1D). */
static bool is_regular(const struct htp_tensor *t, bool dense, uint32_t elem_bytes) {
    uint64_t step = (uint64_t) t->ne[0] * elem_bytes;
    for (uint32_t d = 1; d < HTP_MAX_DIMS; d++) {
        if (t->ne[d] == 1) {
            continue;
        }
        if ((dense || d > row_dim(t)) && t->nb[d] != step) {
            return false;
        }
        step = (uint64_t) t->nb[d] * t->ne[d];
    }
    return true;
}

static const char *const src_names[] = {"src0", "src1", "src2", "src3"};
static const char *const dst_names[] = {"dst0", "dst1", "dst2", "dst3"};

static enum htp_status check_operand(struct htp_op *op, const char *field, const struct htp_tensor *t, uint32_t ne2) {
    const struct htp_tensor *dst = op->dst[0];
    bool one_row = t == op->src[RESIDUAL] && op->kparams[HTP_KP_KERNEL] == KERNEL_2D && htp_nrows(t) == 1;
    if (t->type != dst->type || (t->type != HTP_F32 && t->type != HTP_F16)) {
        return htp_unsupported(op, field, "has type %u; all are F32 or all F16", t->type);
    }
    for (uint32_t d = 0; d < HTP_MAX_DIMS; d++) {
        uint32_t want = d == 2 ? ne2 : dst->ne[d];
        if (t->ne[d] != want && !(one_row && d > 0)) {
            return htp_bad(op, field, "ne[%u] is %u, must be %u", d, t->ne[d], want);
        }
    }
    bool is_1d = op->kparams[HTP_KP_KERNEL] == KERNEL_1D;
    if (!is_regular(t, is_1d, dst->type == HTP_F16 ? 2 : 4)) {
        return htp_unsupported(op, field, is_1d ? "is not dense" : "has rows without one stride");
    }
    return HTP_OK;
}

static enum htp_status check_ranks(struct htp_op *op) {
    uint32_t n_ranks = (uint32_t) op->params[PARAM_N_RANKS], rank = (uint32_t) op->params[PARAM_RANK];
    if (n_ranks < 2 || n_ranks > HTP_MAX_RANKS || rank >= n_ranks) {
        return htp_bad(op, "params", "rank %u of %u; there are 2 to %u", rank, n_ranks, HTP_MAX_RANKS);
    }
    for (uint32_t i = 0; i < HTP_MAX_RANKS; i++) {
        const struct htp_tensor *fence = op->src[FENCES + i];
        if (!op->src[i] != (i >= n_ranks) || !fence != (i >= n_ranks)) {
            return htp_bad(op, "src", "%u ranks have an input (src%u) and a fence (src%u) each, and nobody else",
                           n_ranks, i, FENCES + i);
        }
        for (uint32_t j = 0; fence && j < i; j++) {
            if (op->src[FENCES + j]->data == fence->data) {
                return htp_bad(op, "src", "ranks %u and %u have one fence", j, i);
            }
        }
    }
    if (!op->src[RESIDUAL] == (op->opcode == HTP_OP_ALLREDUCE_ADD) || op->src[RESIDUAL + 1]) {
        return htp_bad(op, "src8", "is what ALLREDUCE_ADD adds, and nothing else");
    }
    const struct htp_tensor *dst = op->dst[0];
    bool matrix = dst->type == HTP_F32 && dst->ne[2] == 1 && dst->ne[3] == 1;
    if (op->params[PARAM_PAIRS] && (op->kparams[HTP_KP_KERNEL] != KERNEL_1D || !matrix)) {
        return htp_unsupported(op, "params", "sums of pairs are dense F32 matrices");
    }
    return HTP_OK;
}

static enum htp_status check_operands(struct htp_op *op) {
    uint32_t ne2 = op->dst[0]->ne[2];
    enum htp_status status = HTP_OK;
    for (uint32_t i = 0; i < HTP_MAX_DST && status == HTP_OK; i++) {
        if (op->dst[i] && (i >= (uint32_t) op->params[PARAM_N_RANKS] || (i && !op->dst[i - 1]))) {
            return htp_bad(op, "dst", "dst%u is one too many, or follows a hole", i);
        }
        if (op->dst[i]) {
            status = check_operand(op, dst_names[i], op->dst[i], ne2);
        }
    }
    for (uint32_t i = 0; i < (uint32_t) op->params[PARAM_N_RANKS] && status == HTP_OK; i++) {
        status = check_operand(op, src_names[i], op->src[i], op->params[PARAM_PAIRS] ? 2 : ne2);
    }
    if (status == HTP_OK && op->src[RESIDUAL]) {
        status = check_operand(op, "src8", op->src[RESIDUAL], ne2);
    }
    return status;
}

static enum htp_status check_plan(struct htp_op *op, const struct allreduce *a) {
    if (a->block == 0 || a->block > MAX_TILE || a->chunk == 0 || a->chunk > MAX_TILE || a->stages == 0
        || a->stages > MAX_STAGES) {
        return htp_bad(op, "kernel_params", "tiles of %u x %u, %u in flight: must be 1 to %u, 1 to %u", a->block,
                       a->chunk, a->stages, MAX_TILE, MAX_STAGES);
    }
    if ((uint64_t) a->row + a->rows > a->n_rows || (uint64_t) a->col + a->cols > a->n_cols) {
        return htp_bad(op, "kernel_params", "the slice of %u x %u from %u, %u leaves %u x %u", a->rows, a->cols, a->row,
                       a->col, a->n_rows, a->n_cols);
    }
    for (uint32_t i = 0; i <= a->n_in; i++) {
        uint64_t rows = i < a->n_in ? held_rows(a, i) : a->block;
        uint64_t need = rows * a->pitch * a->stages;
        if (htp_vtcm_bytes(op, i) < need || !(op->kparams[HTP_KP_REGIONS + 2 * i] & HTP_REGION_PER_THREAD)) {
            return htp_bad(op, "kernel_params", "region %u must be per thread and have %llu bytes", i,
                           (unsigned long long) need);
        }
    }
    return HTP_OK;
}

static enum htp_status allreduce_check(struct htp_op *op) {
    if (op->kparams[HTP_KP_KERNEL] != KERNEL_1D && op->kparams[HTP_KP_KERNEL] != KERNEL_2D) {
        return htp_bad(op, "kernel_params", "there is no kernel %d", op->kparams[HTP_KP_KERNEL]);
    }
    enum htp_status status = check_ranks(op);
    if (status == HTP_OK) {
        status = check_operands(op);
    }
    if (status != HTP_OK || op->empty) {
        return status;
    }
    struct allreduce a = allreduce_of(op);
    add_sides(&a, op);
    return check_plan(op, &a);
}

/* ---- the sum ---- */

#define INLINE static inline __attribute__((always_inline))

INLINE void sum_row_f32(uint8_t *to, uint8_t *const *from, uint32_t n_in, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += HVX_BYTES) {
        HVX_Vector sum = hvx_load(from[0] + i);
        for (uint32_t s = 1; s < n_in; s++) {
            sum = hvx_add_sf(sum, hvx_load(from[s] + i));
        }
        hvx_store(to + i, sum);
    }
}

INLINE void sum_row_f16(uint8_t *to, uint8_t *const *from, uint32_t n_in, uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += HVX_BYTES) {
        HVX_VectorPair first = convert_hf_sf(hvx_load(from[0] + i));
        HVX_Vector lo = Q6_V_lo_W(first), hi = Q6_V_hi_W(first);
        for (uint32_t s = 1; s < n_in; s++) {
            HVX_VectorPair next = convert_hf_sf(hvx_load(from[s] + i));
            lo = hvx_add_sf(lo, Q6_V_lo_W(next));
            hi = hvx_add_sf(hi, Q6_V_hi_W(next));
        }
        hvx_store(to + i, convert_sf_hf(lo, hi));
    }
}

/* Of n_ranks pairs, and of what is behind them. */
INLINE void sum_pairs(uint8_t *to, uint8_t *const *from, uint32_t n_ranks, bool residual, uint32_t pitch,
                      uint32_t bytes) {
    for (uint32_t i = 0; i < bytes; i += HVX_BYTES) {
        HVX_Vector hi = hvx_load(from[0] + i), lo = hvx_load(from[0] + pitch + i);
        for (uint32_t s = 1; s < n_ranks; s++) {
            lo = hvx_add_sf(lo, hvx_load(from[s] + pitch + i));
            hvx_pair_add(&hi, &lo, hvx_load(from[s] + i));
        }
        HVX_Vector sum = hvx_pair_value(hi, lo);
        hvx_store(to + i, residual ? hvx_add_sf(sum, hvx_load(from[n_ranks] + i)) : sum);
    }
}

INLINE void sum_row(bool half, uint8_t *to, uint8_t *const *from, uint32_t n_in, uint32_t bytes) {
    if (half) {
        sum_row_f16(to, from, n_in, bytes);
    } else {
        sum_row_f32(to, from, n_in, bytes);
    }
}

static void sum_tile(const struct allreduce *a, const struct tile *t) {
    uint8_t *from[MAX_IN];
    bool half = a->elem_bytes == 2;
    uint32_t bytes = t->cols * a->elem_bytes;
    if (a->pairs) {
        sum_pairs(t->out, t->in, a->n_ranks, a->n_in > a->n_ranks, a->pitch, bytes);
        return;
    }
    for (uint32_t r = 0; r < t->rows; r++) {
        for (uint32_t s = 0; s < a->n_in; s++) {
            from[s] = t->in[s] + (a->in[s].stride ? (size_t) r * a->pitch : 0);
        }
        uint8_t *to = t->out + (size_t) r * a->pitch;
        switch (a->n_in) {
        case 2: sum_row(half, to, from, 2, bytes); break;
        case 3: sum_row(half, to, from, 3, bytes); break;
        case 4: sum_row(half, to, from, 4, bytes); break;
        default: sum_row(half, to, from, 5, bytes); break;
        }
    }
}

/* ---- the pipeline ---- */

static uint8_t *place(const struct allreduce *a, const struct side *s, const struct tile *t) {
    return s->data + (size_t) s->stride * t->row + (size_t) t->col * a->elem_bytes;
}

/* Tile `index` of the slice, in the buffers of `stage`, and its way in. */
static void take(struct htp_op *op, const struct allreduce *a, uint32_t thread, uint32_t index, uint32_t stage,
                 struct tile *t) {
    struct dma_queue *q = htp_dma(op, thread);
    uint32_t across = hex_ceil_div(a->cols, a->chunk);
    uint32_t down = index / across * a->block, right = index % across * a->chunk;
    *t = (struct tile){
        .row = a->row + down,
        .rows = hex_min(a->block, a->rows - down),
        .col = a->col + right,
        .cols = hex_min(a->chunk, a->cols - right),
    };
    for (uint32_t s = 0; s < a->n_in; s++) {
        uint32_t held = held_rows(a, s), rows = a->pairs ? held : hex_min(held, t->rows);
        t->in[s] = htp_vtcm(op, s, thread) + (size_t) stage * held * a->pitch;
        dma_push(q, t->in[s], place(a, &a->in[s], t), a->pitch, a->in[s].stride, t->cols * a->elem_bytes, rows);
    }
    t->out = htp_vtcm(op, a->n_in, thread) + (size_t) stage * a->block * a->pitch;
}

static void give(struct htp_op *op, const struct allreduce *a, uint32_t thread, const struct tile *t) {
    for (uint32_t d = 0; d < a->n_out; d++) {
        dma_push(htp_dma(op, thread), place(a, &a->out[d], t), t->out, a->out[d].stride, a->pitch,
                 t->cols * a->elem_bytes, t->rows);
    }
}

static void pop(struct htp_op *op, uint32_t thread, uint32_t n) {
    for (; n; n--) {
        dma_pop(htp_dma(op, thread));
    }
}

static void allreduce_job(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    const struct allreduce *a = (const struct allreduce *) arg;
    uint32_t n_tiles = hex_ceil_div(a->rows, a->block) * hex_ceil_div(a->cols, a->chunk);
    struct hex_range mine = hex_share(n_tiles, thread, n_threads);
    struct tile tiles[MAX_STAGES];
    uint32_t n = hex_min(a->stages, mine.end - mine.first);
    for (uint32_t i = 0; i < n; i++) {
        /* Write-backs of no rows, so that every step pops the same things. */
        for (uint32_t d = 0; d < a->n_out; d++) {
            dma_push(htp_dma(op, thread), a->out[d].data, a->out[d].data, 0, 0, 0, 0);
        }
        take(op, a, thread, mine.first + i, i, &tiles[i]);
    }
    for (uint32_t i = mine.first; i < mine.end; i++) {
        uint32_t stage = (i - mine.first) % n;
        pop(op, thread, a->n_out + a->n_in);
        htp_trace_start(op, thread, HTP_TR_HVX_COMP, i);
        sum_tile(a, &tiles[stage]);
        htp_trace_stop(op, thread, HTP_TR_HVX_COMP, i);
        give(op, a, thread, &tiles[stage]);
        if (i + n < mine.end) {
            take(op, a, thread, i + n, stage, &tiles[stage]);
        }
    }
    pop(op, thread, n * a->n_out);
}

/* Publishes seq and waits until every peer has got there too. */
static enum htp_status barrier(struct htp_op *op, const struct allreduce *a, uint32_t seq, uint32_t info) {
    const struct htp_tensor *own = op->src[FENCES + a->rank];
    enum htp_status status = HTP_OK;
    htp_fence_release(own, seq);
    for (uint32_t r = 0; r < a->n_ranks && status == HTP_OK; r++) {
        if (r != a->rank) {
            status = htp_fence_wait(op, FENCES + r, r, seq, info);
        }
    }
    if (status != HTP_OK) {
        htp_fence_fail(own, seq, status);
    }
    return status;
}

static enum htp_status allreduce_run(struct htp_op *op) {
    struct allreduce a = allreduce_of(op);
    uint32_t seq = (uint32_t) op->params[PARAM_SEQ];
    add_sides(&a, op);
    enum htp_status status = barrier(op, &a, seq, 0);
    if (status == HTP_OK && a.rows && a.cols) {
        htp_run(op, allreduce_job, &a);
    }
    return status == HTP_OK ? barrier(op, &a, seq + 1, 1) : status;
}

const struct htp_kernel htp_allreduce = {.check = allreduce_check, .run = allreduce_run, .in_place = true};
