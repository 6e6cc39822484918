/*
 * Activations into VTCM. For tiled weights: int8 blocks of 32, d = max|x| / 127, q = x / d rounded to nearest even, and
 * per block what its weights' zero point or minimum is multiplied with. For flat weights: floats, zero-padded.
 *
 * Infinity or NaN in a block makes its d infinity or NaN, so all results of that column are infinity or NaN. A block
 * whose greatest magnitude is below 2^-100 counts as zero.
 */
#pragma once

#include "hvx-math.h"
#include "matmul-mark.h"
#include "matmul-shape.h"

#define MM_GROUP 4u /* blocks that fill a vector of bytes */

/* Exchanges the odd units of `bytes` of `a` with the even ones of `b`. */
static inline HVX_VectorPair mm_exchange(HVX_Vector a, HVX_Vector b, int bytes) {
    return Q6_W_vshuff_VVR(b, a, bytes);
}

/* The greatest word of v[i] in lane i (and i + 4, i + 8, ...). */
static inline HVX_Vector mm_max4(const HVX_Vector *v) {
    HVX_VectorPair p = mm_exchange(v[0], v[1], 4), q = mm_exchange(v[2], v[3], 4);
    p = mm_exchange(Q6_Vw_vmax_VwVw(Q6_V_lo_W(p), Q6_V_hi_W(p)), Q6_Vw_vmax_VwVw(Q6_V_lo_W(q), Q6_V_hi_W(q)), 8);
    HVX_Vector m = Q6_Vw_vmax_VwVw(Q6_V_lo_W(p), Q6_V_hi_W(p));
    m = Q6_Vw_vmax_VwVw(m, Q6_V_vror_VR(m, 64));
    m = Q6_Vw_vmax_VwVw(m, Q6_V_vror_VR(m, 32));
    return Q6_Vw_vmax_VwVw(m, Q6_V_vror_VR(m, 16));
}

/* The sum of v[i]'s words in lane i. */
static inline HVX_Vector mm_sum4(const HVX_Vector *v) {
    HVX_VectorPair p = mm_exchange(v[0], v[1], 4), q = mm_exchange(v[2], v[3], 4);
    p = mm_exchange(Q6_Vw_vadd_VwVw(Q6_V_lo_W(p), Q6_V_hi_W(p)), Q6_Vw_vadd_VwVw(Q6_V_lo_W(q), Q6_V_hi_W(q)), 8);
    HVX_Vector s = Q6_Vw_vadd_VwVw(Q6_V_lo_W(p), Q6_V_hi_W(p));
    s = Q6_Vw_vadd_VwVw(s, Q6_V_vror_VR(s, 64));
    s = Q6_Vw_vadd_VwVw(s, Q6_V_vror_VR(s, 32));
    return Q6_Vw_vadd_VwVw(s, Q6_V_vror_VR(s, 16));
}

/* The first n words, then zeros. */
static inline HVX_Vector mm_first_words(HVX_Vector v, uint32_t n) {
    return n < HVX_F32 ? Q6_V_vand_QV(Q6_Q_vsetq2_R((int) (n * 4)), v) : v;
}

/* d of 32 blocks from their greatest magnitudes; *inverse = 1 / d. Magnitudes compare and saturate as integers. */
static inline HVX_Vector mm_block_scales(HVX_Vector magnitude, HVX_Vector *inverse) {
    HVX_VectorPred tiny = Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x0d800000), magnitude); /* 2^-100 */
    HVX_VectorPred special = Q6_Q_vcmp_gt_VwVw(magnitude, Q6_V_vsplat_R(0x7f7fffff));
    HVX_Vector d = hvx_mul_sf(magnitude, hvx_splat_sf(1.0f / 127.0f));
    *inverse = Q6_V_vmux_QVV(tiny, Q6_V_vzero(), hvx_recip_sf(d));
    /* Before v79 qfloat would make numbers of infinity and NaN. */
    return Q6_V_vmux_QVV(tiny, Q6_V_vzero(), Q6_V_vmux_QVV(special, magnitude, d));
}

/* What a block's dot product lacks: for a zero point z the integer -z * sum of q, for a minimum the float d * sum. */
static inline HVX_Vector mm_block_sums(uint32_t type, HVX_Vector sum, HVX_Vector d) {
    switch (type) {
    case HTP_TILE_Q4_0:
        return Q6_Vw_vsub_VwVw(Q6_V_vzero(), Q6_Vw_vasl_VwR(sum, 3));
    case HTP_TILE_Q8_0:
        return Q6_Vw_vsub_VwVw(Q6_V_vzero(), Q6_Vw_vasl_VwR(sum, 7));
    default:
        return hvx_mul_sf(hvx_w_to_sf(sum), d);
    }
}

static inline HVX_Vector mm_quantize_group(const uint8_t *x, const int32_t *inverse, HVX_Vector *sum) {
    HVX_Vector q[MM_GROUP];
    for (uint32_t i = 0; i < MM_GROUP; i++) {
        q[i] = hvx_sf_to_w_rne(hvx_mul_sf(hvx_load(x + i * HVX_BYTES), Q6_V_vsplat_R(inverse[i])));
    }
    *sum = mm_sum4(q);
    return Q6_Vb_vpack_VhVh_sat(Q6_Vh_vpack_VwVw_sat(q[3], q[2]), Q6_Vh_vpack_VwVw_sat(q[1], q[0]));
}

/* Blocks behind n quantize whatever the stage holds there; nobody reads them. */
static inline void mm_prepare_tiled(const struct mm *mm, uint8_t *stage, uint8_t *act, uint32_t segment, uint32_t n,
                                    uint8_t *scratch) {
    uint8_t *record = act + segment * mm->record_bytes;
    uint8_t *scales = record + mm->segment, *sums = scales + mm_scales_bytes(mm->segment);
    uint32_t n_groups = hex_ceil_div(n, MM_GROUP * HTP_TILE_K), n_vectors = hex_ceil_div(n_groups * MM_GROUP, HVX_F32);
    for (uint32_t g = 0; g < n_groups; g++) {
        HVX_Vector v[MM_GROUP];
        for (uint32_t i = 0; i < MM_GROUP; i++) {
            v[i] = hvx_abs_sf(hvx_load(stage + (g * MM_GROUP + i) * HVX_BYTES));
        }
        hvx_storeu(scales + g * MM_GROUP * 4, mm_max4(v)); /* the lanes behind the first four are overwritten next */
    }
    HVX_Vector greatest = Q6_V_vzero();
    for (uint32_t v = 0; v < n_vectors; v++) {
        HVX_Vector inverse, magnitude = hvx_load(scales + v * HVX_BYTES);
        greatest = mm_mark_magnitudes(greatest, mm_first_words(magnitude, n / HTP_TILE_K - v * HVX_F32));
        hvx_store(scales + v * HVX_BYTES, mm_block_scales(magnitude, &inverse));
        hvx_store(scratch + v * HVX_BYTES, inverse);
    }
    for (uint32_t g = 0; g < n_groups; g++) {
        const int32_t *inverse = (const int32_t *) scratch + g * MM_GROUP;
        HVX_Vector sum;
        hvx_store(record + g * HVX_BYTES, mm_quantize_group(stage + g * MM_GROUP * HVX_BYTES, inverse, &sum));
        hvx_storeu(sums + g * MM_GROUP * 4, sum);
    }
    for (uint32_t v = 0; v < n_vectors; v++) {
        HVX_Vector sum = hvx_load(sums + v * HVX_BYTES), d = hvx_load(scales + v * HVX_BYTES);
        hvx_store(sums + v * HVX_BYTES, mm_block_sums(mm->type, sum, d));
    }
    mm_store_mark(mm, act, segment, greatest);
}

/* Floats as they are, then zeros up to a multiple of 64: what the last vector of a row of halves widens to. */
static inline void mm_prepare_flat(const struct mm *mm, uint8_t *stage, uint8_t *act, uint32_t segment, uint32_t n,
                                   uint8_t *scratch) {
    (void) scratch;
    uint8_t *to = act + segment * mm->record_bytes;
    HVX_Vector greatest = Q6_V_vzero();
    for (uint32_t done = 0; done < hex_round_up(n, 2 * HVX_F32); done += HVX_F32, stage += HVX_BYTES, to += HVX_BYTES) {
        HVX_Vector v = done < n ? mm_first_words(hvx_load(stage), n - done) : Q6_V_vzero();
        greatest = mm_mark_magnitudes(greatest, hvx_abs_sf(v));
        hvx_store(to, v);
    }
    mm_store_mark(mm, act, segment, greatest);
}
