/* A tile row (32 weight rows, include/htp-tiles.h) times columns of quantized activations. */
#pragma once

#include "hvx-math.h"
#include "hvx-pair.h"
#include "matmul-mark.h"
#include "matmul-shape.h"

#define MM_INLINE static inline __attribute__((always_inline))

/* 64 halves as floats: the even ones (scales) low, the odd ones (minima) high. */
static inline HVX_VectorPair mm_split_hf(HVX_Vector v) {
    HVX_Vector one = Q6_Vh_vsplat_R(0x3c00);
#if __HVX_ARCH__ >= 79
    return Q6_Wsf_vmpy_VhfVhf(v, one);
#else
    HVX_VectorPair q = Q6_Wqf32_vmpy_VhfVhf(v, one);
    return Q6_W_vcombine_VV(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(q)), Q6_Vsf_equals_Vqf32(Q6_V_lo_W(q)));
#endif
}

/* acc[c] += 4 consecutive k of 32 rows times the same 4 of column c. */
MM_INLINE void mm_dot4(HVX_Vector *acc, uint32_t n_cols, HVX_Vector w, const uint8_t *q, uint32_t pitch) {
    for (uint32_t c = 0; c < n_cols; c++) {
        acc[c] = Q6_Vw_vrmpyacc_VwVubRb(acc[c], w, *(const int32_t *) (q + c * pitch));
    }
}

/* The exact integer dot products of a tile. q, sums: those of the tile's block in the first column. */
MM_INLINE void mm_tile_dots(uint32_t type, HVX_Vector *acc, uint32_t n_cols, const uint8_t *w, const uint8_t *q,
                            const uint8_t *sums, uint32_t pitch) {
    for (uint32_t c = 0; c < n_cols; c++) {
        acc[c] = type == HTP_TILE_Q4_1 ? Q6_V_vzero() : Q6_V_vsplat_R(*(const int32_t *) (sums + c * pitch));
    }
    if (type == HTP_TILE_Q8_0) {
        for (uint32_t j = 0; j < 8; j++) {
            mm_dot4(acc, n_cols, hvx_load(w + j * HVX_BYTES), q + 4 * j, pitch);
        }
        return;
    }
    HVX_Vector nibble = Q6_Vb_vsplat_R(0x0f);
    for (uint32_t j = 0; j < 4; j++) {
        HVX_Vector packed = hvx_load(w + j * HVX_BYTES);
        mm_dot4(acc, n_cols, Q6_V_vand_VV(packed, nibble), q + 4 * j, pitch);
        mm_dot4(acc, n_cols, Q6_V_vand_VV(Q6_Vuh_vlsr_VuhR(packed, 4), nibble), q + 16 + 4 * j, pitch);
    }
}

/* sum[c] += n tiles times the blocks of column c whose bytes are at q and whose scales are at d. */
MM_INLINE void mm_tiles(const struct mm *mm, uint32_t type, uint32_t n_cols, uint32_t n, HVX_Vector *sum,
                        const uint8_t *w, const uint8_t *q, const uint8_t *d) {
    uint32_t pitch = mm->act_pitch, scales_bytes = mm_scales_bytes(mm->segment), tile_bytes = htp_tile_bytes(type);
    for (uint32_t b = 0; b < n; b++, w += tile_bytes, q += HTP_TILE_K, d += 4) {
        HVX_Vector dot[4];
        mm_tile_dots(type, dot, n_cols, w, q, d + scales_bytes, pitch);
        HVX_VectorPair scales = mm_split_hf(hvx_load(w + tile_bytes - HVX_BYTES));
        for (uint32_t c = 0; c < n_cols; c++) {
            HVX_Vector scale = hvx_mul_sf(Q6_V_lo_W(scales), Q6_V_vsplat_R(*(const int32_t *) (d + c * pitch)));
            sum[c] = hvx_fma_sf(sum[c], hvx_w_to_sf(dot[c]), scale);
            if (type == HTP_TILE_Q4_1) {
                HVX_Vector block_sum = Q6_V_vsplat_R(*(const int32_t *) (d + scales_bytes + c * pitch));
                sum[c] = hvx_fma_sf(sum[c], Q6_V_hi_W(scales), block_sum);
            }
        }
    }
}

MM_INLINE void mm_end_section(uint32_t n_cols, HVX_Vector *sum, HVX_Vector *hi, HVX_Vector *lo) {
    for (uint32_t c = 0; c < n_cols; c++) {
        hvx_pair_add(&hi[c], &lo[c], sum[c]);
        sum[c] = Q6_V_vzero();
    }
}

/* 32 results of the column whose activations are at `act`. */
MM_INLINE void mm_tile_store(const struct mm *mm, HVX_Vector hi, HVX_Vector lo, const uint8_t *act, uint8_t *out,
                             const uint8_t *add) {
    if (mm->n_parts == 2) {
        hvx_store(out + mm->out_part, lo);
    } else {
        hi = mm->section ? hvx_pair_value(hi, lo) : hi;
    }
    hvx_store(out, mm_with_mark(mm, act, add ? hvx_add_sf(hi, hvx_load(add)) : hi));
}

/* `type` and `n_cols` are literals at every call, so that the sums stay in registers. */
MM_INLINE void mm_tile_columns(const struct mm *mm, uint32_t type, uint32_t n_cols, const uint8_t *w,
                               const uint8_t *act, uint8_t *out, const uint8_t *add) {
    HVX_Vector sum[4], hi[4], lo[4];
    for (uint32_t c = 0; c < n_cols; c++) {
        sum[c] = hi[c] = lo[c] = Q6_V_vzero();
    }
    uint32_t left = mm->section; /* tiles of this section */
    for (uint32_t s = 0; s < mm->n_segments; s++) {
        const uint8_t *q = act + s * mm->record_bytes, *d = q + mm->segment;
        uint32_t n = hex_min(mm->segment, mm->k - s * mm->segment) / HTP_TILE_K;
        while (n) {
            uint32_t run = mm->section ? hex_min(n, left) : n;
            mm_tiles(mm, type, n_cols, run, sum, w, q, d);
            w += run * htp_tile_bytes(type), q += run * HTP_TILE_K, d += run * 4, n -= run, left -= run;
            if (left == 0) {
                mm_end_section(n_cols, sum, hi, lo);
                left = mm->section;
            }
        }
    }
    if (mm->section) {
        mm_end_section(n_cols, sum, hi, lo); /* the last one may be short */
    }
    for (uint32_t c = 0; c < n_cols; c++) {
        mm_tile_store(mm, mm->section ? hi[c] : sum[c], lo[c], act + c * mm->act_pitch, out + c * mm->out_pitch,
                      add ? add + c * mm->add_pitch : NULL);
    }
}

MM_INLINE void mm_tile_unit(const struct mm *mm, uint32_t type, const uint8_t *w, const uint8_t *act, uint32_t n_cols,
                            uint8_t *out, const uint8_t *add) {
    while (n_cols) {
        uint32_t n = n_cols >= 4 ? 4 : n_cols >= 2 ? 2 : 1;
        if (n == 4) {
            mm_tile_columns(mm, type, 4, w, act, out, add);
        } else if (n == 2) {
            mm_tile_columns(mm, type, 2, w, act, out, add);
        } else {
            mm_tile_columns(mm, type, 1, w, act, out, add);
        }
        n_cols -= n;
        act += n * mm->act_pitch;
        out += n * mm->out_pitch;
        if (add) {
            add += n * mm->add_pitch;
        }
    }
}

static inline void mm_tile_q4_0(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols,
                                uint8_t *out, const uint8_t *add) {
    mm_tile_unit(mm, HTP_TILE_Q4_0, w, act, n_cols, out, add);
}

static inline void mm_tile_q4_1(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols,
                                uint8_t *out, const uint8_t *add) {
    mm_tile_unit(mm, HTP_TILE_Q4_1, w, act, n_cols, out, add);
}

static inline void mm_tile_q8_0(const struct mm *mm, const uint8_t *w, const uint8_t *act, uint32_t n_cols,
                                uint8_t *out, const uint8_t *add) {
    mm_tile_unit(mm, HTP_TILE_Q8_0, w, act, n_cols, out, add);
}
