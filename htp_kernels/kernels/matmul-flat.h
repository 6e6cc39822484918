/* Eight rows of F16 or F32 weights times columns of float activations: dot products along k, in float. */
#pragma once

#include "hvx-math.h"
#include "matmul-quant.h"
#include "matmul-shape.h"
#include "matmul-tile.h"

/* The sum of v[i]'s lanes in lane i, for 8 vectors. */
static inline HVX_Vector mm_sum8_sf(const HVX_Vector *v) {
    HVX_Vector s[8];
    for (uint32_t i = 0; i < 8; i++) {
        s[i] = v[i];
    }
    for (uint32_t n = 4, bytes = 4; n >= 1; n /= 2, bytes *= 2) {
        for (uint32_t i = 0; i < n; i++) {
            HVX_VectorPair p = mm_exchange(s[2 * i], s[2 * i + 1], (int) bytes);
            s[i] = hvx_add_sf(Q6_V_lo_W(p), Q6_V_hi_W(p));
        }
    }
    HVX_Vector sum = hvx_add_sf(s[0], Q6_V_vror_VR(s[0], 64));
    return hvx_add_sf(sum, Q6_V_vror_VR(sum, 32));
}

/* One vector of k of n_rows rows times n_cols columns; n_rows * n_cols = 8. `keep`: bytes of it that are the row's. */
MM_INLINE void mm_flat_step(const struct mm *mm, uint32_t type, uint32_t n_rows, uint32_t n_cols, HVX_Vector *acc,
                            const uint8_t *w, const uint8_t *x, uint32_t keep) {
    for (uint32_t r = 0; r < n_rows; r++) {
        HVX_Vector v = hvx_load(w + r * mm->w_pitch);
        v = keep < HVX_BYTES ? Q6_V_vand_QV(Q6_Q_vsetq2_R((int) keep), v) : v;
        HVX_VectorPair wide = type == HTP_F16 ? hvx_hf_to_sf(v) : Q6_W_vcombine_VV(v, v);
        for (uint32_t c = 0; c < n_cols; c++) {
            HVX_Vector *a = acc + r * n_cols + c;
            *a = hvx_fma_sf(*a, Q6_V_lo_W(wide), hvx_load(x + c * mm->act_pitch));
            if (type == HTP_F16) {
                *a = hvx_fma_sf(*a, Q6_V_hi_W(wide), hvx_load(x + c * mm->act_pitch + HVX_BYTES));
            }
        }
    }
}

MM_INLINE HVX_Vector mm_flat_dots(const struct mm *mm, uint32_t type, uint32_t n_rows, uint32_t n_cols,
                                  const uint8_t *w, const uint8_t *x) {
    HVX_Vector acc[8];
    for (uint32_t i = 0; i < 8; i++) {
        acc[i] = Q6_V_vzero();
    }
    uint32_t n_whole = mm->w_row / HVX_BYTES, rest = mm->w_row % HVX_BYTES;
    uint32_t step = type == HTP_F16 ? 2 * HVX_BYTES : HVX_BYTES;
    for (uint32_t i = 0; i < n_whole; i++, w += HVX_BYTES, x += step) {
        mm_flat_step(mm, type, n_rows, n_cols, acc, w, x, HVX_BYTES);
    }
    if (rest) {
        mm_flat_step(mm, type, n_rows, n_cols, acc, w, x, rest);
    }
    return mm_sum8_sf(acc);
}

/* Stores 32 lanes of which the first ones count: what lies behind is overwritten next, or is slack. */
static inline void mm_flat_store(const struct mm *mm, uint8_t *out, HVX_Vector v, const uint8_t *add,
                                 const uint8_t *act) {
    hvx_storeu(out, mm_with_mark(mm, act, add ? hvx_add_sf(v, hvx_loadu(add)) : v));
}

MM_INLINE void mm_flat_unit(const struct mm *mm, uint32_t type, const uint8_t *w, const uint8_t *act, uint32_t n_cols,
                            uint8_t *out, const uint8_t *add) {
    uint32_t c = 0;
    for (; c + 4 <= n_cols; c += 4) {
        const uint8_t *x = act + c * mm->act_pitch;
        for (uint32_t r = 0; r < MM_FLAT_ROWS; r += 2) {
            HVX_Vector v = mm_flat_dots(mm, type, 2, 4, w + r * mm->w_pitch, x); /* row r: lanes 0..3, r + 1: 4..7 */
            HVX_VectorPair rows = Q6_W_vshuff_VVR(Q6_V_vror_VR(v, 16), v, -4);   /* column i: lanes 2i, 2i + 1 */
            for (uint32_t i = 0; i < 4; i++) {
                const uint8_t *a = add ? add + (c + i) * mm->add_pitch + r * 4 : NULL;
                HVX_Vector pair = Q6_V_vror_VR(Q6_V_lo_W(rows), (int) (8 * i));
                mm_flat_store(mm, out + (c + i) * mm->out_pitch + r * 4, pair, a, x + i * mm->act_pitch);
            }
        }
    }
    for (; c < n_cols; c++) {
        const uint8_t *x = act + c * mm->act_pitch;
        HVX_Vector v = mm_flat_dots(mm, type, 8, 1, w, x);
        mm_flat_store(mm, out + c * mm->out_pitch, v, add ? add + c * mm->add_pitch : NULL, x);
    }
}

static inline void mm_flat_f16(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols, uint8_t *out,
                               const uint8_t *add) {
    mm_flat_unit(mm, HTP_F16, w, act, n_cols, out, add);
}

static inline void mm_flat_f32(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols, uint8_t *out,
                               const uint8_t *add) {
    mm_flat_unit(mm, HTP_F32, w, act, n_cols, out, add);
}
