/*
 * The pipeline of every op that works on rows: DDR -> DMA -> VTCM -> compute -> VTCM -> DMA -> DDR.
 *
 * The destination's shape is the walk: columns (ne[0]) and three row dimensions. Every tensor is a view of the walk: a
 * size-1 dimension has stride 0, a repeating one wraps. A tile is a block of rows, or a column chunk of one row; no
 * tile crosses a place where some tensor's row stride breaks. A family fills a `struct rows_pipe` from its op (rows_init,
 * rows_add), proves it with rows_check and runs it with rows_run, which calls `compute` once a tile. What else `compute`
 * needs stands behind the pipe in a struct of the family's own.
 *
 * VTCM: region s holds source s, region n_src the destination, one of each per thread, each `stages` buffers of rows of
 * rows_pitch() bytes. Lanes behind a row's end hold anything: elementwise code may compute them, reductions mask them.
 */
#pragma once

#include "htp-kernel.h"
#include "hvx-base.h"

#define ROWS_MAX_SRC 3
#define ROWS_MAX_STAGES 4
#define ROWS_MAX_BLOCK 65536u

/* The first kernel_params.args of every row-wise family; the family's own begin at ROWS_KARGS. */
enum rows_karg { ROWS_KARG_CHUNK = 0, ROWS_KARG_STAGES = 1, ROWS_KARGS = 2 };

struct rows_view {
    uint8_t *data;
    uint32_t elem_bytes;
    uint32_t n_cols;    /* the walk's, or fewer */
    uint32_t stride[3]; /* bytes a step of walk dimension 1..3 */
    uint32_t wrap[3];   /* the index is taken modulo this; 0 = as it is */
};

struct rows_tile {
    uint32_t step;     /* in this thread's sequence */
    uint32_t index[3]; /* of the first row, in the walk's dimensions 1..3 */
    uint32_t n_rows;
    uint32_t col, n_cols;
    uint8_t *src[ROWS_MAX_SRC];
    uint32_t src_pitch[ROWS_MAX_SRC]; /* bytes from row to row in VTCM; 0 where one row serves the whole tile */
    bool src_fresh[ROWS_MAX_SRC];     /* false: the same bytes as in the tile before, already prepared */
    uint8_t *dst;
    uint32_t dst_pitch;
};

struct rows_pipe {
    uint32_t ne[4];
    uint32_t n_src;
    struct rows_view src[ROWS_MAX_SRC];
    struct rows_view dst;
    uint32_t block;  /* rows a tile */
    uint32_t chunk;  /* columns a tile */
    uint32_t stages; /* tiles in flight */
    bool elementwise; /* columns do not depend on each other: rows may be cut, and narrow ones repeat in VTCM */
    bool places;      /* `compute` asks for a row's place: row dimensions stay as they are */
    void (*compute)(const struct rows_pipe *p, const struct rows_tile *t);
};

/* ---- from the op to the pipe (nothing is proved yet: safe on any op) ---- */

static inline struct rows_view rows_view(const struct rows_pipe *p, const struct htp_tensor *t, uint32_t elem_bytes) {
    struct rows_view v = {.data = t->data, .elem_bytes = elem_bytes, .n_cols = t->ne[0]};
    for (uint32_t d = 0; d < 3; d++) {
        uint32_t n = t->ne[d + 1];
        v.stride[d] = n == 1 ? 0 : t->nb[d + 1];
        v.wrap[d] = n > 1 && n < p->ne[d + 1] ? n : 0;
    }
    return v;
}

static inline struct rows_pipe rows_init(const struct htp_op *op, uint32_t elem_bytes) {
    const struct htp_tensor *dst = op->dst[0];
    struct rows_pipe p = {
        .ne = {dst->ne[0], dst->ne[1], dst->ne[2], dst->ne[3]},
        .block = (uint32_t) op->kparams[HTP_KP_BLOCK],
        .chunk = (uint32_t) htp_karg(op, ROWS_KARG_CHUNK),
        .stages = (uint32_t) htp_karg(op, ROWS_KARG_STAGES),
    };
    p.dst = rows_view(&p, dst, elem_bytes);
    return p;
}

static inline struct rows_view *rows_add(struct rows_pipe *p, const struct htp_tensor *t, uint32_t elem_bytes) {
    p->src[p->n_src] = rows_view(p, t, elem_bytes);
    return &p->src[p->n_src++];
}

static inline bool rows_empty(const struct rows_pipe *p) {
    return !p->ne[0] || !p->ne[1] || !p->ne[2] || !p->ne[3];
}

static inline struct rows_view *rows_view_at(struct rows_pipe *p, uint32_t i) {
    return i < p->n_src ? &p->src[i] : &p->dst;
}

/* Makes row dimension d + 1 (of 0..2) part of d where every tensor simply goes on, so that blocks get longer. */
static inline void rows_fold(struct rows_pipe *p, uint32_t d) {
    uint32_t *ne = p->ne + 1;
    for (uint32_t i = 0; i <= p->n_src; i++) {
        const struct rows_view *v = rows_view_at(p, i);
        bool goes_on = v->stride[d + 1] == (uint64_t) v->stride[d] * ne[d];
        if (v->wrap[d] || v->wrap[d + 1] || !(goes_on || ne[d] == 1 || ne[d + 1] == 1)) {
            return;
        }
    }
    for (uint32_t i = 0; i <= p->n_src; i++) {
        struct rows_view *v = rows_view_at(p, i);
        v->stride[d] = ne[d] == 1 ? v->stride[d + 1] : v->stride[d];
        v->stride[d + 1] = d == 0 ? v->stride[2] : 0;
        v->wrap[d + 1] = d == 0 ? v->wrap[2] : 0;
        v->stride[2] = 0;
        v->wrap[2] = 0;
    }
    ne[d] *= ne[d + 1];
    ne[d + 1] = d == 0 ? ne[2] : 1;
    ne[2] = 1;
}

static inline void rows_fold_all(struct rows_pipe *p) {
    if (!p->places) {
        rows_fold(p, 1);
        rows_fold(p, 0);
    }
}

/* Bytes from row to row of a buffer; a repeated row is written in whole vectors and may pass its end by one. */
static inline uint64_t rows_pitch(const struct rows_pipe *p, const struct rows_view *v) {
    bool repeats = p->elementwise && v->n_cols < p->ne[0];
    uint64_t cols = hex_min(p->chunk, repeats ? p->ne[0] : v->n_cols);
    uint64_t bytes = (cols * v->elem_bytes + HVX_BYTES - 1) / HVX_BYTES * HVX_BYTES;
    return bytes + (repeats ? HVX_BYTES : 0);
}

static inline uint64_t rows_buffer_bytes(const struct rows_pipe *p, const struct rows_view *v) {
    return rows_pitch(p, v) * (v->stride[0] ? p->block : 1);
}

/* ---- proof ---- */

static inline enum htp_status rows_check_type(struct htp_op *op, const char *name, const struct htp_tensor *t, uint32_t type) {
    return t->type == type ? HTP_OK : htp_unsupported(op, name, "has type %u, must be %u", t->type, type);
}

/* A source whose rows repeat over the destination's; its columns are the family's business. */
static inline enum htp_status rows_check_repeat(struct htp_op *op, const char *name, const struct htp_tensor *t,
                                                uint32_t type) {
    enum htp_status status = rows_check_type(op, name, t, type);
    const struct htp_tensor *dst = op->dst[0];
    for (uint32_t d = 1; d < HTP_MAX_DIMS && status == HTP_OK; d++) {
        if (dst->ne[d] && (t->ne[d] == 0 || dst->ne[d] % t->ne[d])) {
            return htp_bad(op, name, "ne[%u] is %u and does not repeat into %u", d, t->ne[d], dst->ne[d]);
        }
    }
    return status;
}

/* A source of the destination's shape, from dimension `from` on. */
static inline enum htp_status rows_check_same(struct htp_op *op, const char *name, const struct htp_tensor *t,
                                              uint32_t type, uint32_t from) {
    enum htp_status status = rows_check_type(op, name, t, type);
    const struct htp_tensor *dst = op->dst[0];
    for (uint32_t d = from; d < HTP_MAX_DIMS && status == HTP_OK; d++) {
        if (t->ne[d] != dst->ne[d]) {
            return htp_bad(op, name, "ne[%u] is %u, dst has %u", d, t->ne[d], dst->ne[d]);
        }
    }
    return status;
}

static inline enum htp_status rows_check_region(struct htp_op *op, const struct rows_pipe *p, uint32_t i,
                                                const struct rows_view *v) {
    uint64_t need = rows_buffer_bytes(p, v) * p->stages;
    if (!(op->kparams[HTP_KP_REGIONS + 2 * i] & HTP_REGION_PER_THREAD)) {
        return htp_bad(op, "kernel_params", "region %u must be per thread", i);
    }
    if (htp_vtcm_bytes(op, i) < need) {
        return htp_bad(op, "kernel_params", "region %u has %u bytes, needs %llu", i, htp_vtcm_bytes(op, i),
                       (unsigned long long) need);
    }
    return HTP_OK;
}

static inline enum htp_status rows_check_tiles(struct htp_op *op, const struct rows_pipe *p) {
    if (p->block == 0 || p->block > ROWS_MAX_BLOCK) {
        return htp_bad(op, "kernel_params", "block is %u, must be 1 to %u", p->block, ROWS_MAX_BLOCK);
    }
    if (p->stages == 0 || p->stages > ROWS_MAX_STAGES) {
        return htp_bad(op, "kernel_params", "%u stages, must be 1 to %u", p->stages, ROWS_MAX_STAGES);
    }
    if (p->chunk < p->ne[0] && (p->chunk == 0 || p->chunk % HVX_F16 || !p->elementwise)) {
        return htp_bad(op, "kernel_params", "cannot work in chunks of %u columns of %u", p->chunk, p->ne[0]);
    }
    return HTP_OK;
}

/* The plan fits the pipe. Leaves the pipe folded. */
static inline enum htp_status rows_check(struct htp_op *op, struct rows_pipe *p) {
    if (rows_empty(p)) {
        return HTP_OK;
    }
    enum htp_status status = rows_check_tiles(op, p);
    if (status != HTP_OK) {
        return status;
    }
    rows_fold_all(p);
    for (uint32_t i = 0; i <= p->n_src && status == HTP_OK; i++) {
        const struct rows_view *v = rows_view_at(p, i);
        if (v->n_cols != p->ne[0] && v->n_cols != 1 && p->chunk < p->ne[0]) {
            return htp_bad(op, "kernel_params", "chunks of %u columns cut a repeated row of %u", p->chunk, v->n_cols);
        }
        status = rows_check_region(op, p, i, v);
    }
    return status;
}

/* ---- the walk ---- */

struct rows_cursor {
    uint32_t left; /* units (rows, or chunks of rows) that this thread still has */
    uint32_t step;
    uint32_t index[3];
    uint32_t col;
};

static inline struct rows_cursor rows_begin(const struct rows_pipe *p, uint32_t thread, uint32_t n_threads) {
    uint32_t n_chunks = hex_ceil_div(p->ne[0], p->chunk);
    uint32_t n_units = p->ne[1] * p->ne[2] * p->ne[3] * n_chunks;
    struct hex_range share = hex_share(n_units, thread, n_threads);
    struct rows_cursor c = {.left = share.end - share.first};
    if (share.first) {
        uint32_t row = share.first / n_chunks;
        c.col = (share.first - row * n_chunks) * p->chunk;
        c.index[0] = row % p->ne[1];
        c.index[1] = row / p->ne[1] % p->ne[2];
        c.index[2] = row / p->ne[1] / p->ne[2];
    }
    return c;
}

/* Rows from `row` on that lie in one run of every tensor. */
static inline uint32_t rows_run_length(const struct rows_pipe *p, uint32_t row, uint32_t most) {
    uint32_t n = hex_min(most, p->ne[1] - row);
    for (uint32_t s = 0; s < p->n_src; s++) {
        uint32_t wrap = p->src[s].wrap[0];
        n = wrap ? hex_min(n, wrap - row % wrap) : n;
    }
    return n;
}

/* Fills the tile's place in the walk and moves the cursor behind it. */
static inline void rows_take(const struct rows_pipe *p, struct rows_cursor *c, struct rows_tile *t) {
    t->step = c->step++;
    t->col = c->col;
    t->n_cols = hex_min(p->chunk, p->ne[0] - c->col);
    for (uint32_t d = 0; d < 3; d++) {
        t->index[d] = c->index[d];
    }
    bool cut = p->chunk < p->ne[0];
    t->n_rows = cut ? 1 : rows_run_length(p, c->index[0], hex_min(p->block, c->left));
    c->left -= t->n_rows;
    c->col += t->n_cols;
    if (c->col < p->ne[0]) {
        return;
    }
    c->col = 0;
    c->index[0] += t->n_rows;
    for (uint32_t d = 0; d < 2 && c->index[d] == p->ne[d + 1]; d++) {
        c->index[d] = 0;
        c->index[d + 1]++;
    }
}

static inline uint8_t *rows_address(const struct rows_view *v, const struct rows_tile *t) {
    size_t offset = v->n_cols == 1 ? 0 : (size_t) t->col * v->elem_bytes;
    for (uint32_t d = 0; d < 3; d++) {
        offset += (size_t) v->stride[d] * (v->wrap[d] ? t->index[d] % v->wrap[d] : t->index[d]);
    }
    return v->data + offset;
}

/* ---- the pipeline ---- */

/* A source's buffers in turn: a row that the next tile needs again is not loaded again. */
struct rows_buffers {
    uint8_t *base;
    uint32_t pitch;
    uint32_t bytes;
    uint32_t turn;
    const uint8_t *loaded; /* DDR address of what the buffer `turn` holds */
    uint32_t loaded_rows, loaded_cols;
};

static inline struct rows_buffers rows_buffers(const struct htp_op *op, const struct rows_pipe *p, uint32_t region,
                                               const struct rows_view *v, uint32_t thread) {
    return (struct rows_buffers){
        .base = htp_vtcm(op, region, thread),
        .pitch = (uint32_t) rows_pitch(p, v),
        .bytes = (uint32_t) rows_buffer_bytes(p, v),
    };
}

static inline void rows_load(const struct rows_pipe *p, struct dma_queue *q, struct rows_buffers *b,
                             struct rows_tile *t, uint32_t s) {
    const struct rows_view *v = &p->src[s];
    const uint8_t *from = rows_address(v, t);
    uint32_t n_rows = v->stride[0] ? t->n_rows : 1;
    bool again = b->loaded == from && b->loaded_rows == n_rows && b->loaded_cols == t->n_cols;
    if (!again) {
        b->turn = b->turn + 1 == p->stages ? 0 : b->turn + 1;
        b->loaded = from;
        b->loaded_rows = n_rows;
        b->loaded_cols = t->n_cols;
    }
    t->src[s] = b->base + (size_t) b->turn * b->bytes;
    t->src_pitch[s] = v->stride[0] ? b->pitch : 0;
    t->src_fresh[s] = !again;
    uint32_t n_cols = hex_min(v->n_cols, t->n_cols);
    dma_push(q, t->src[s], from, b->pitch, v->stride[0], n_cols * v->elem_bytes, again ? 0 : n_rows);
}

static inline void rows_store(const struct rows_pipe *p, struct dma_queue *q, const struct rows_tile *t) {
    dma_push(q, rows_address(&p->dst, t), t->dst, p->dst.stride[0], t->dst_pitch, t->n_cols * p->dst.elem_bytes, t->n_rows);
}

static inline void rows_job(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    const struct rows_pipe *p = (const struct rows_pipe *) arg;
    struct rows_cursor cursor = rows_begin(p, thread, n_threads);
    if (!cursor.left) {
        return;
    }
    struct dma_queue *q = htp_dma(op, thread);
    struct rows_buffers in[ROWS_MAX_SRC];
    for (uint32_t s = 0; s < p->n_src; s++) {
        in[s] = rows_buffers(op, p, s, &p->src[s], thread);
    }
    struct rows_buffers out = rows_buffers(op, p, p->n_src, &p->dst, thread);
    struct rows_tile tiles[ROWS_MAX_STAGES];

    /* Each destination buffer begins with a write-back of no rows, so that every step pops the same things. */
    uint32_t primed = 0;
    for (; primed < p->stages && cursor.left; primed++) {
        struct rows_tile *t = &tiles[primed];
        rows_take(p, &cursor, t);
        t->dst = out.base + (size_t) primed * out.bytes;
        t->dst_pitch = out.pitch;
        dma_push(q, rows_address(&p->dst, t), t->dst, out.pitch, out.pitch, 0, 0);
        for (uint32_t s = 0; s < p->n_src; s++) {
            rows_load(p, q, &in[s], t, s);
        }
    }
    uint32_t left = primed;
    for (uint32_t i = 0; left; i = i + 1 == primed ? 0 : i + 1) {
        struct rows_tile *t = &tiles[i];
        for (uint32_t n = 0; n < 1 + p->n_src; n++) {
            dma_pop(q);
        }
        htp_trace_start(op, thread, HTP_TR_HVX_COMP, t->step);
        p->compute(p, t);
        htp_trace_stop(op, thread, HTP_TR_HVX_COMP, t->step);
        rows_store(p, q, t);
        left--;
        if (cursor.left) {
            rows_take(p, &cursor, t);
            for (uint32_t s = 0; s < p->n_src; s++) {
                rows_load(p, q, &in[s], t, s);
            }
            left++;
        }
    }
    for (uint32_t n = 0; n < primed; n++) {
        dma_pop(q);
    }
}

static inline enum htp_status rows_run(struct htp_op *op, struct rows_pipe *p) {
    if (!rows_empty(p)) {
        rows_fold_all(p);
        p->chunk = hex_min(p->chunk, p->ne[0]);
        htp_run(op, rows_job, p);
    }
    return HTP_OK;
}

/* ---- in VTCM ---- */

/* Fills a row with copies of its first n_have elements, up to n_cols (whole vectors are written). */
static inline void rows_repeat(uint8_t *row, uint32_t elem_bytes, uint32_t n_have, uint32_t n_cols) {
    uint32_t have = n_have * elem_bytes;
    uint32_t want = n_cols * elem_bytes;
    while (have < want) {
        uint32_t copy = hex_min(have, want - have);
        for (uint32_t i = 0; i < copy; i += HVX_BYTES) {
            hvx_storeu(row + have + i, hvx_loadu(row + i));
        }
        have += copy;
    }
}
