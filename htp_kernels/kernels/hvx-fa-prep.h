/*
 * Flash attention, before the arithmetic: a block of up to 64 K or V rows in VTCM is laid out so that the inner loops
 * need no reduction. K is transposed, so that a vector holds one element of many rows; V stays in rows. Where many
 * query rows use the block it becomes floats once; where few do, it stays halves and is converted as it is used.
 */
#pragma once

#include "htp-wire.h"
#include "hvx-base.h"
#include "hvx-math.h"

#define FA_BLOCK 64u /* K/V rows a step */
#define FA_Q8_BLOCK 32u
#define FA_Q8_BYTES 34u /* half scale, 32 bytes */

/* The low halfword of the word that begins at p. */
static inline uint16_t fa_half_at(const uint8_t *p) {
    return (uint16_t) Q6_R_vextract_VR(hvx_loadu(p), 0);
}

/*
 * Q8_0 rows to halves in place, two blocks (68 bytes -> one vector) at a time from the row's end, so that what is
 * written never reaches what is still to be read. Reads up to 34 bytes behind the room of a row of halves, and uses
 * none of them.
 */
static inline void fa_dequant_row(uint8_t *row, uint32_t n) {
    HVX_VectorPred first = Q6_Q_vsetq_R(32), first_halves = Q6_Q_vsetq_R(64);
    for (uint32_t i = hex_ceil_div(n, 2 * FA_Q8_BLOCK); i-- > 0;) {
        const uint8_t *in = row + (size_t) i * 2 * FA_Q8_BYTES;
        HVX_Vector scale =
            Q6_V_vmux_QVV(first_halves, hvx_splat_hf(fa_half_at(in)), hvx_splat_hf(fa_half_at(in + FA_Q8_BYTES)));
        /* The second block's bytes lie 4 further on than they would without its scale and the first one's. */
        HVX_Vector bytes = Q6_V_vmux_QVV(first, hvx_loadu(in + 2), hvx_loadu(in + 4));
        HVX_Vector values = Q6_Vhf_equals_Vh(Q6_V_lo_W(Q6_Wh_vunpack_Vb(bytes)));
        hvx_store(row + (size_t) i * HVX_BYTES, hvx_mul_hf(values, scale));
    }
}

static inline void fa_dequant(uint8_t *rows, uint32_t pitch, uint32_t n_rows, uint32_t n, uint32_t type) {
    if (type == HTP_Q8_0) {
        for (uint32_t r = 0; r < n_rows; r++) {
            fa_dequant_row(rows + (size_t) r * pitch, n);
        }
    }
}

/* Swaps bit log2(bytes / 4) of the word index with the bit that tells a from b. */
static inline __attribute__((always_inline)) void fa_swap(HVX_Vector *a, HVX_Vector *b, int bytes) {
    HVX_VectorPair w = Q6_W_vshuff_VVR(*b, *a, bytes);
    *a = Q6_V_lo_W(w);
    *b = Q6_V_hi_W(w);
}

/* The coarse half of a transposition of 32 rows of 32 words: eight vectors at a time, so that they stay in registers.
 */
static inline void fa_transpose_coarse(const uint8_t *rows, uint32_t pitch, HVX_Vector out[32]) {
    for (uint32_t i = 0; i < 4; i++) {
        HVX_Vector v[8];
        for (uint32_t j = 0; j < 8; j++) {
            v[j] = hvx_load(rows + (size_t) (i + 4 * j) * pitch);
        }
        for (uint32_t j = 0; j < 4; j++) {
            fa_swap(&v[j], &v[j + 4], 64);
        }
        for (uint32_t j = 0; j < 8; j += 4) {
            fa_swap(&v[j], &v[j + 2], 32);
            fa_swap(&v[j + 1], &v[j + 3], 32);
        }
        for (uint32_t j = 0; j < 8; j += 2) {
            fa_swap(&v[j], &v[j + 1], 16);
        }
        for (uint32_t j = 0; j < 8; j++) {
            out[i + 4 * j] = v[j];
        }
    }
}

/* The fine half: vectors 4i to 4i + 3 of the coarse one's become words 4i to 4i + 3 of all rows. */
static inline __attribute__((always_inline)) void fa_transpose_fine(HVX_Vector v[4]) {
    fa_swap(&v[0], &v[2], 8);
    fa_swap(&v[1], &v[3], 8);
    fa_swap(&v[0], &v[1], 4);
    fa_swap(&v[2], &v[3], 4);
}

/* One element of 64 rows: halves as they are, or floats. */
static inline void fa_put_k(uint8_t *kt, uint32_t element, HVX_Vector halves, bool wide) {
    if (wide) {
        HVX_VectorPair w = hvx_hf_to_sf(halves);
        hvx_store(kt + (size_t) element * 2 * HVX_BYTES, Q6_V_lo_W(w));
        hvx_store(kt + (size_t) element * 2 * HVX_BYTES + HVX_BYTES, Q6_V_hi_W(w));
    } else {
        hvx_store(kt + (size_t) element * HVX_BYTES, halves);
    }
}

/* K rows of n halves, n a multiple of 8, to kt[element][64 rows]. Lanes of rows behind n_rows hold anything. */
static inline void fa_prep_k(const uint8_t *rows, uint32_t pitch, uint32_t n_rows, uint32_t n, uint8_t *kt, bool wide) {
    for (uint32_t first = 0; first < n; first += HVX_F16) {
        HVX_Vector low[32], high[32]; /* words of two neighbouring elements, of rows 0..31 and 32..63 */
        fa_transpose_coarse(rows + (size_t) first * 2, pitch, low);
        if (n_rows > 32) {
            fa_transpose_coarse(rows + (size_t) 32 * pitch + (size_t) first * 2, pitch, high);
        }
        uint32_t end = hex_min(n - first, HVX_F16) / 2;
        for (uint32_t i = 0; i < end; i += 4) {
            HVX_Vector a[4] = {low[i], low[i + 1], low[i + 2], low[i + 3]};
            fa_transpose_fine(a);
            HVX_Vector b[4] = {a[0], a[1], a[2], a[3]};
            if (n_rows > 32) {
                for (uint32_t j = 0; j < 4; j++) {
                    b[j] = high[i + j];
                }
                fa_transpose_fine(b);
            }
            for (uint32_t j = 0; j < 4; j++) {
                HVX_VectorPair halves = Q6_W_vdeal_VVR(b[j], a[j], -2);
                fa_put_k(kt, first + 2 * (i + j), Q6_V_lo_W(halves), wide);
                fa_put_k(kt, first + 2 * (i + j) + 1, Q6_V_hi_W(halves), wide);
            }
        }
    }
}

/* Rows of halves to rows of floats; elements are padded to a multiple of 64 that holds anything. */
static inline void fa_widen(const uint8_t *rows, uint32_t pitch, uint32_t n_rows, uint32_t n, uint8_t *out,
                            uint32_t out_pitch) {
    for (uint32_t r = 0; r < n_rows; r++) {
        const uint8_t *from = rows + (size_t) r * pitch;
        uint8_t *to = out + (size_t) r * out_pitch;
        for (uint32_t i = 0; i < n * 2; i += HVX_BYTES) {
            HVX_VectorPair w = hvx_hf_to_sf(hvx_load(from + i));
            hvx_store(to + 2 * i, Q6_V_lo_W(w));
            hvx_store(to + 2 * i + HVX_BYTES, Q6_V_hi_W(w));
        }
    }
}

/* Q rows, halves or floats, to floats times the scale of the scores. */
static inline void fa_prep_q(const uint8_t *rows, uint32_t pitch, uint32_t n_rows, uint32_t n, uint32_t type,
                             float scale, uint8_t *out, uint32_t out_pitch) {
    HVX_Vector by = hvx_splat_sf(scale);
    if (type == HTP_F16) {
        fa_widen(rows, pitch, n_rows, n, out, out_pitch);
        rows = out;
        pitch = out_pitch;
    }
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t i = 0; i < n * 4; i += HVX_BYTES) {
            hvx_store(out + (size_t) r * out_pitch + i, hvx_mul_sf(hvx_load(rows + (size_t) r * pitch + i), by));
        }
    }
}
