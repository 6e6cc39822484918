/*
 * Flash attention, what is to be done: how an op is cut into units, and in which order their K/V blocks are visited.
 *
 * All query rows that share a K/V head are one list, token by token: row i is token i / group, head i % group of the
 * group. A unit is up to `rows` neighbours of that list against one chunk of the K/V rows. Blocks whose mask is -inf
 * for every row of the unit are left out. Nothing here depends on the number of threads.
 */
#pragma once

#include <string.h>

#include "htp-kernel.h"
#include "hvx-base.h"
#include "hvx-fa-core.h"

#define FA_MAX_DIMS 512u
#define FA_MAX_ROWS 64u
#define FA_STAGES 2u

enum fa_param { FA_PARAM_SCALE = 0, FA_PARAM_MAX_BIAS = 1, FA_PARAM_SOFTCAP = 2 };
enum fa_karg { FA_KARG_ROWS = 0, FA_KARG_CHUNKS = 1, FA_KARG_CHUNK_COLS = 2 };
enum fa_region {
    FA_REGION_K = 0,
    FA_REGION_V = 1,
    FA_REGION_Q = 2,
    FA_REGION_MASK = 3,
    FA_REGION_WORK = 4,
    FA_REGION_PARTS = 5
};

struct fa {
    struct htp_op *op;
    const struct htp_tensor *q, *k, *v, *mask, *dst;
    const float *sinks; /* NULL = none */
    uint32_t dk, dv, n_kv, n_tokens, n_heads, n_kv_heads, n_batch;
    uint32_t group;  /* query heads a K/V head */
    uint32_t n_list; /* query rows a K/V head */
    uint32_t rows, n_tiles, n_chunks, chunk_cols;
    uint32_t n_units;
    float scale, max_bias, softcap;

    /* Bytes from row to row in VTCM, as loaded and as computed with. */
    uint32_t k_pitch, v_pitch, q_pitch;
    uint32_t q_wide, v_wide;
    uint32_t mask_rows; /* tokens a unit may touch */
    /* Places in a thread's work region. */
    uint32_t at_v, at_q, at_scores, at_stats, at_acc, work_bytes;
    uint32_t part_bytes;
};

/* Safe on any op with the tensors present, sizes up to FA_MAX_DIMS, rows and group above 0. */
static inline struct fa fa_init(struct htp_op *op) {
    struct fa p = {
        .op = op,
        .q = op->src[0],
        .k = op->src[1],
        .v = op->src[2],
        .mask = op->src[3],
        .dst = op->dst[0],
        .sinks = op->src[4] ? (const float *) op->src[4]->data : NULL,
        .dk = op->src[0]->ne[0],
        .dv = op->src[2]->ne[0],
        .n_kv = op->src[1]->ne[1],
        .n_tokens = op->src[0]->ne[1],
        .n_heads = op->src[0]->ne[2],
        .n_batch = op->src[0]->ne[3],
        .n_kv_heads = op->src[1]->ne[2],
        .rows = (uint32_t) htp_karg(op, FA_KARG_ROWS),
        .n_chunks = (uint32_t) htp_karg(op, FA_KARG_CHUNKS),
        .chunk_cols = (uint32_t) htp_karg(op, FA_KARG_CHUNK_COLS),
        .scale = htp_param_f32(op, FA_PARAM_SCALE),
        .max_bias = htp_param_f32(op, FA_PARAM_MAX_BIAS),
        .softcap = htp_param_f32(op, FA_PARAM_SOFTCAP),
    };
    if (p.softcap != 0.0f) {
        p.scale /= p.softcap;
    }
    p.group = p.n_heads / p.n_kv_heads;
    p.n_list = p.group * p.n_tokens;
    p.n_tiles = hex_ceil_div(p.n_list, p.rows);
    p.n_units = p.n_batch * p.n_kv_heads * p.n_tiles * p.n_chunks;
    p.k_pitch = hex_round_up(p.dk * 2, HVX_BYTES); /* room for halves, also where Q8_0 is loaded */
    p.v_pitch = hex_round_up(p.dv * 2, HVX_BYTES);
    p.q_pitch = hex_round_up(p.dk * (p.q->type == HTP_F16 ? 2 : 4), HVX_BYTES);
    p.q_wide = hex_round_up(p.dk, HVX_F16) * 4;
    p.v_wide = hex_round_up(p.dv, HVX_F16) * 4;
    p.mask_rows = p.mask ? hex_min(p.n_tokens, hex_ceil_div(p.rows, p.group) + 1) : 0;
    p.at_v = p.dk * FA_BLOCK * 4;
    p.at_q = p.at_v + FA_BLOCK * p.v_wide;
    p.at_scores = p.at_q + p.rows * p.q_wide;
    p.at_stats = p.at_scores + p.rows * FA_BLOCK * 4;
    p.at_acc = p.at_stats + p.rows * FA_STAT_BYTES;
    p.work_bytes = p.at_acc + 2 * p.rows * p.v_wide;
    p.part_bytes = FA_PARTIAL_HEAD + p.v_wide;
    return p;
}

/* Bytes of a loaded block; what is behind its last row is read (never used) by the dequantization. */
static inline uint32_t fa_block_bytes(uint32_t pitch) {
    return FA_BLOCK * pitch + HVX_BYTES;
}

static inline uint32_t fa_row_bytes(const struct htp_tensor *t) {
    return t->type == HTP_Q8_0 ? t->ne[0] / FA_Q8_BLOCK * FA_Q8_BYTES : t->ne[0] * (t->type == HTP_F16 ? 2 : 4);
}

struct fa_unit {
    uint32_t index;
    uint32_t chunk, batch, kv_head;
    uint32_t row, n_rows; /* in the head's list */
    uint32_t col, end;    /* K/V rows */
};

static inline struct fa_unit fa_unit_at(const struct fa *p, uint32_t index) {
    uint32_t tile = index % p->n_tiles;
    uint32_t rest = index / p->n_tiles;
    struct fa_unit u = {.index = index, .kv_head = rest % p->n_kv_heads, .row = tile * p->rows};
    rest /= p->n_kv_heads;
    u.batch = rest % p->n_batch;
    u.chunk = rest / p->n_batch;
    u.n_rows = hex_min(p->rows, p->n_list - u.row);
    u.col = hex_min(u.chunk * p->chunk_cols, p->n_kv);
    u.end = hex_min(u.col + p->chunk_cols, p->n_kv);
    return u;
}

static inline uint32_t fa_first_token(const struct fa *p, const struct fa_unit *u) {
    return u->row / p->group;
}

static inline uint32_t fa_unit_tokens(const struct fa *p, const struct fa_unit *u) {
    return (u->row + u->n_rows - 1) / p->group + 1 - fa_first_token(p, u);
}

static inline const uint8_t *fa_mask_at(const struct fa *p, const struct fa_unit *u, uint32_t token, uint32_t col) {
    return p->mask->data + (size_t) (u->batch % p->mask->ne[3]) * p->mask->nb[3] + (size_t) token * p->mask->nb[1]
           + col * 2;
}

/* The first n of the columns that some row of the unit sees, from `col` on: all behind are masked for every row. */
static inline uint32_t fa_live(const struct fa *p, const struct fa_unit *u, uint32_t col) {
    uint32_t n_cols = hex_min(FA_BLOCK, u->end - col);
    if (!p->mask) {
        return n_cols;
    }
    const uint64_t four_masked = 0x0001000100010001ull * FA_MASKED;
    uint32_t live = 0;
    uint32_t token = fa_first_token(p, u);
    for (uint32_t end = token + fa_unit_tokens(p, u); token < end && live < n_cols; token++) {
        const uint8_t *row = fa_mask_at(p, u, token, col);
        uint32_t n = n_cols;
        for (uint64_t four; n >= live + 4; n -= 4) {
            memcpy(&four, row + 2 * (n - 4), 8);
            if (four != four_masked) {
                break;
            }
        }
        for (uint16_t one; n > live; n--) {
            memcpy(&one, row + 2 * (n - 1), 2);
            if (one != FA_MASKED) {
                break;
            }
        }
        live = n;
    }
    return live;
}

/* One block of one unit. A unit without any visible block has a step of no columns. */
struct fa_step {
    struct fa_unit unit;
    uint32_t col, n_cols;
    bool first;
    uint32_t number;
    uint32_t loaded; /* transfers pushed until all of it is there */
};

struct fa_walk {
    struct fa_unit unit;
    uint32_t stride; /* of the thread's unit numbers */
    uint32_t col;
    uint32_t number;
    bool begun; /* the unit has had a step */
};

static inline void fa_walk_enter(const struct fa *p, struct fa_walk *w, uint32_t index) {
    w->unit.index = index;
    w->begun = false;
    if (index < p->n_units) {
        w->unit = fa_unit_at(p, index);
        w->col = w->unit.col;
    }
}

/* The next step of the thread; false when there is none. */
static inline bool fa_walk_next(const struct fa *p, struct fa_walk *w, struct fa_step *s) {
    while (w->unit.index < p->n_units) {
        uint32_t n_cols = 0;
        for (; w->col < w->unit.end && !n_cols; w->col += FA_BLOCK) {
            n_cols = fa_live(p, &w->unit, w->col);
        }
        bool found = n_cols || !w->begun;
        *s = (struct fa_step) {
            .unit = w->unit, .col = w->col - FA_BLOCK, .n_cols = n_cols, .first = !w->begun, .number = w->number};
        w->begun = true;
        if (!n_cols) {
            fa_walk_enter(p, w, w->unit.index + w->stride);
        }
        if (found) {
            w->number++;
            return true;
        }
    }
    return false;
}

/*
 * The rectangles in which a unit's rows lie in a tensor of tokens and heads: every head's tokens, or every token's
 * heads, whichever is fewer.
 */
struct fa_rect {
    uint32_t row;       /* in the unit */
    uint32_t row_step;
    uint32_t token, head; /* of that row; the head counts in the group */
    uint32_t n;
    bool along_tokens;
};

/* Rectangle `i`; false behind the last one. At most 9, as a unit has at most 64 rows. */
static inline bool fa_rect_at(const struct fa *p, const struct fa_unit *u, uint32_t i, struct fa_rect *r) {
    uint32_t n_tokens = fa_unit_tokens(p, u);
    uint32_t head = u->row % p->group;
    r->along_tokens = hex_min(p->group, u->n_rows) <= n_tokens;
    if (r->along_tokens) {
        r->row = i;
        r->row_step = p->group;
        r->n = i < u->n_rows ? (u->n_rows - i - 1) / p->group + 1 : 0;
        r->token = (u->row + i) / p->group;
        r->head = (u->row + i) % p->group;
        return i < hex_min(p->group, u->n_rows);
    }
    r->row = i ? i * p->group - head : 0;
    r->row_step = 1;
    r->token = fa_first_token(p, u) + i;
    r->head = i ? 0 : head;
    r->n = i < n_tokens ? hex_min(p->group - r->head, u->n_rows - r->row) : 0;
    return i < n_tokens;
}
