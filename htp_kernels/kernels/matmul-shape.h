/*
 * A matmul op as its kernels see it.
 *
 * dst[n, m] = sum over k of W[k, n] * X[k, m]. Weights are computed by units: a tile row (32 rows) of a repacked
 * weight, 8 rows of a flat one. A plane is one matrix product; where W is one matrix and X, dst and addend are dense,
 * all planes are columns of one. Per plane and chunk of columns, the threads bring the chunk's activations into VTCM,
 * then each streams its share of the units of all weights, `per_step` at a time, and writes blocks of `block_cols`
 * columns.
 *
 * With sections (tiled weights only) the products of so many k each are summed as floats, and the sections' sums as
 * pairs (hvx-pair.h): a K that is cut between sections, over the ranks of a group, then sums to the same float but for
 * one time in a million or so. A part of such a sum leaves as a pair: dst[.., 0] is hi, dst[.., 1] is lo.
 */
#pragma once

#include "htp-kernel.h"
#include "htp-tiles.h"
#include "hvx-base.h"

/* params */
enum mm_param { MM_PARAM_SECTION, MM_PARAM_PAIR };
/* kernel_params.kernel, numbered as --hex-mm-select does */
enum mm_kernel { MM_FLAT = 1, MM_TILED = 2 };
/* kernel_params.args; HTP_KP_BLOCK is per_step */
enum mm_karg { MM_KARG_CHUNK, MM_KARG_BLOCK_COLS, MM_KARG_SEGMENT, MM_KARG_DEPTH };
/* VTCM regions: activations shared or per thread, the others per thread */
enum mm_region { MM_R_ACT, MM_R_STAGE, MM_R_WEIGHT, MM_R_OUT, MM_R_ADDEND };

#define MM_MAX_DEPTH 8u
#define MM_FLAT_ROWS 8u
#define MM_OUT_SLACK 128u /* a flat unit's 8 sums are stored by whole vectors */

struct mm;

/* One K segment of a column of X, `n` floats in VTCM, into the column's activations. */
typedef void (*mm_prepare)(const struct mm *mm, uint8_t *stage, uint8_t *act, uint32_t segment, uint32_t n,
                           uint8_t *scratch);
/* One unit times n_cols columns into `out`; `add` (NULL: nothing) is added. */
typedef void (*mm_compute)(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols, uint8_t *out,
                           const uint8_t *add);

struct mm {
    const struct htp_tensor *x, *addend;
    const struct htp_tensor *w[HTP_MAX_DST], *dst[HTP_MAX_DST];
    uint32_t n_w, kernel, type;
    uint32_t k;
    uint32_t n_planes, n_cols;
    uint32_t unit_rows;
    uint32_t n_units[HTP_MAX_DST], all_units;
    uint32_t w_row, w_pitch; /* a row's bytes in DDR and in VTCM (tiled: of a unit) */
    uint32_t unit_bytes;     /* in VTCM */
    uint32_t section;  /* tiles of a section; 0: all of K is one */
    uint32_t n_parts;  /* 2: results are pairs */
    uint32_t per_step, chunk, block_cols, segment, depth;
    uint32_t n_segments, record_bytes; /* of the activations of a column */
    uint32_t act_pitch, out_pitch, add_pitch;
    uint32_t out_part; /* bytes from hi to lo in a block of results */
    mm_prepare prepare;
    mm_compute compute;
};

/* Bytes of the scales (or of the sums) of a segment's blocks. */
static inline uint32_t mm_scales_bytes(uint32_t segment) {
    return hex_round_up(segment / HTP_TILE_K * 4, HVX_BYTES);
}

/* A segment's activations: floats (flat), or bytes, scales, sums and room for a store that runs over (tiled). */
static inline uint32_t mm_record_bytes(uint32_t kernel, uint32_t segment) {
    return kernel == MM_FLAT ? segment * 4 : segment + 2 * mm_scales_bytes(segment) + HVX_BYTES;
}

/* A column's activations: the records of its segments, then their marks (matmul-mark.h). */
static inline uint64_t mm_column_bytes(uint32_t kernel, uint32_t segment, uint32_t n_segments) {
    return n_segments * ((uint64_t) mm_record_bytes(kernel, segment) + HVX_BYTES);
}

static inline uint32_t mm_stage_bytes(uint32_t segment) {
    return 2 * 4 * segment + mm_scales_bytes(segment);
}

/* Whether dimensions 1..3 of a result can be walked as one. */
static inline bool mm_is_dense(const struct htp_tensor *t) {
    return (t->ne[2] == 1 || t->nb[2] == (uint64_t) t->nb[1] * t->ne[1]) &&
           (t->ne[3] == 1 || t->nb[3] == (uint64_t) t->nb[1] * t->ne[1] * t->ne[2]);
}

static inline bool mm_has_one_plane(const struct mm *mm) {
    bool dense = mm_is_dense(mm->x);
    for (uint32_t i = 0; i < mm->n_w; i++) {
        dense = dense && mm->w[i]->ne[2] == 1 && mm->w[i]->ne[3] == 1 && mm_is_dense(mm->dst[i]);
    }
    return dense && (!mm->addend || mm->addend->ne[1] != mm->x->ne[1] || mm_is_dense(mm->addend));
}

static inline const uint8_t *mm_plane(const struct htp_tensor *t, uint32_t i2, uint32_t i3) {
    return t->data + (size_t) i2 * t->nb[2] + (size_t) i3 * t->nb[3];
}
