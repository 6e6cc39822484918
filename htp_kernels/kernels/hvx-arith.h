/*
 * Float arithmetic by architecture: from v79 on the sf/hf instructions (IEEE, nearest even), before that qfloat and a
 * conversion. A qfloat result is within 1.5 ulp (of the largest of operands and result), an exact one included: 1 + 0
 * gives 1 + 1 ulp. qfloat has neither infinity nor NaN: their bit patterns compute as numbers from 2^128 on.
 */
#pragma once

#include "hvx-base.h"

static inline HVX_Vector hvx_splat_sf(float f) {
    union {
        float f;
        int32_t i;
    } u = {.f = f};
    return Q6_V_vsplat_R(u.i);
}

static inline HVX_Vector hvx_add_sf(HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vsf_vadd_VsfVsf(a, b);
#else
    return Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_VsfVsf(a, b));
#endif
}

static inline HVX_Vector hvx_sub_sf(HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vsf_vsub_VsfVsf(a, b);
#else
    return Q6_Vsf_equals_Vqf32(Q6_Vqf32_vsub_VsfVsf(a, b));
#endif
}

static inline HVX_Vector hvx_mul_sf(HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vsf_vmpy_VsfVsf(a, b);
#else
    return Q6_Vsf_equals_Vqf32(Q6_Vqf32_vmpy_VsfVsf(a, b));
#endif
}

/* acc + a * b, the product rounded first. */
static inline HVX_Vector hvx_fma_sf(HVX_Vector acc, HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vsf_vadd_VsfVsf(acc, Q6_Vsf_vmpy_VsfVsf(a, b));
#else
    return Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_Vqf32Vsf(Q6_Vqf32_vmpy_VsfVsf(a, b), acc));
#endif
}

/* Before v81 +NaN is the greatest number and -NaN the least; from v81 on NaN wins. */
static inline HVX_Vector hvx_max_sf(HVX_Vector a, HVX_Vector b) {
    return Q6_Vsf_vmax_VsfVsf(a, b);
}

static inline HVX_Vector hvx_min_sf(HVX_Vector a, HVX_Vector b) {
    return Q6_Vsf_vmin_VsfVsf(a, b);
}

static inline HVX_Vector hvx_abs_sf(HVX_Vector v) {
    return Q6_V_vand_VV(v, Q6_V_vsplat_R(0x7fffffff));
}

static inline HVX_Vector hvx_neg_sf(HVX_Vector v) {
    return Q6_V_vxor_VV(v, Q6_V_vsplat_R((int32_t) 0x80000000u));
}

static inline HVX_Vector hvx_sign_sf(HVX_Vector v) {
    return Q6_V_vand_VV(v, Q6_V_vsplat_R((int32_t) 0x80000000u));
}

static inline HVX_VectorPred hvx_is_nan_sf(HVX_Vector v) {
    return Q6_Q_vcmp_gt_VwVw(hvx_abs_sf(v), Q6_V_vsplat_R(0x7f800000));
}

/* `result`, but NaN where x is NaN: qfloat arithmetic does not carry it there by itself. */
static inline HVX_Vector hvx_keep_nan_sf(HVX_Vector x, HVX_Vector result) {
#if __HVX_ARCH__ >= 79
    (void) x;
    return result;
#else
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, result);
#endif
}

/* 32 integers to floats, nearest even. */
static inline HVX_Vector hvx_w_to_sf(HVX_Vector v) {
    return Q6_Vsf_equals_Vw(v);
}

/* Floats to integers, nearest, ties to even, exact on every arch for |v| < 2^22. */
static inline HVX_Vector hvx_sf_to_w_rne(HVX_Vector v) {
#if __HVX_ARCH__ >= 79
    HVX_Vector magic = Q6_V_vsplat_R(0x4b400000); /* 1.5 * 2^23: its last bit counts ones */
    return Q6_Vw_vsub_VwVw(Q6_Vsf_vadd_VsfVsf(v, magic), magic);
#else
    /* Twice the value truncated is exact; an odd one with nothing cut off is a tie. */
    HVX_Vector twice = Q6_Vw_vadd_VwVw(v, Q6_V_vsplat_R(0x00800000)), one = Q6_V_vsplat_R(1);
    HVX_VectorPred small = Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x3f000000), hvx_abs_sf(v)); /* |v| < 1/2 */
    HVX_Vector t = Q6_Vw_vabs_Vw(Q6_Vw_equals_Vsf(twice));
    HVX_VectorPred tie = Q6_Q_vcmp_eq_VwVw(Q6_Vsf_equals_Vw(t), hvx_abs_sf(twice));
    HVX_Vector half = Q6_Vw_vasr_VwR(t, 1);
    HVX_Vector up = Q6_V_vmux_QVV(tie, Q6_V_vand_VV(t, Q6_V_vand_VV(half, one)), Q6_V_vand_VV(t, one));
    HVX_Vector n = Q6_V_vmux_QVV(small, Q6_V_vzero(), Q6_Vw_vadd_VwVw(half, up));
    HVX_Vector minus = Q6_Vw_vasr_VwR(v, 31);
    return Q6_Vw_vsub_VwVw(Q6_V_vxor_VV(n, minus), minus);
#endif
}

/*
 * 64 halves to floats in lane order: the first 32 in the low vector. Exact from v79 on; before, 1.5 ulp, for subnormal
 * halves 2^-37.
 */
static inline HVX_VectorPair hvx_hf_to_sf(HVX_Vector v) {
    HVX_Vector one = Q6_Vh_vsplat_R(0x3c00), s = Q6_Vh_vshuff_Vh(v);
#if __HVX_ARCH__ >= 79
    return Q6_Wsf_vmpy_VhfVhf(s, one);
#else
    HVX_VectorPair p = Q6_Wqf32_vmpy_VhfVhf(s, one);
    return Q6_W_vcombine_VV(Q6_Vsf_equals_Vqf32(Q6_V_hi_W(p)), Q6_Vsf_equals_Vqf32(Q6_V_lo_W(p)));
#endif
}

#if __HVX_ARCH__ < 79
/* What a float from 65520 on becomes as a half: infinity or NaN, in the low halfword. */
static inline HVX_Vector hvx_hf_special(HVX_Vector v) {
    HVX_Vector kind = Q6_V_vmux_QVV(hvx_is_nan_sf(v), Q6_V_vsplat_R(0x7e00), Q6_V_vsplat_R(0x7c00));
    return Q6_V_vor_VV(kind, Q6_Vuw_vlsr_VuwR(hvx_sign_sf(v), 16));
}
#endif

/* Two vectors of floats to 64 halves in lane order, nearest even; overflow to infinity on every arch. */
static inline HVX_Vector hvx_sf_to_hf(HVX_Vector lo, HVX_Vector hi) {
#if __HVX_ARCH__ >= 79
    return Q6_Vh_vdeal_Vh(Q6_Vhf_vcvt_VsfVsf(lo, hi));
#else
    HVX_Vector zero = Q6_V_vzero(), ones = Q6_V_vsplat_R(-1), limit = Q6_V_vsplat_R(0x477fefff); /* 65520 - 1 ulp */
    HVX_VectorPair q = Q6_W_vcombine_VV(Q6_Vqf32_vadd_VsfVsf(hi, zero), Q6_Vqf32_vadd_VsfVsf(lo, zero));
    HVX_Vector lo_large = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(hvx_abs_sf(lo), limit), ones, zero);
    HVX_Vector hi_large = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(hvx_abs_sf(hi), limit), ones, zero);
    HVX_Vector large = Q6_Vh_vshuffe_VhVh(hi_large, lo_large);
    HVX_Vector special = Q6_Vh_vshuffe_VhVh(hvx_hf_special(hi), hvx_hf_special(lo));
    HVX_VectorPred is_large = Q6_Q_vcmp_eq_VhVh(large, ones);
    return Q6_Vh_vdeal_Vh(Q6_V_vmux_QVV(is_large, special, Q6_Vhf_equals_Wqf32(q)));
#endif
}

static inline HVX_Vector hvx_splat_hf(uint16_t bits) {
    return Q6_Vh_vsplat_R(bits);
}

static inline HVX_Vector hvx_mul_hf(HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vhf_vmpy_VhfVhf(a, b);
#else
    return Q6_Vhf_equals_Wqf32(Q6_Wqf32_vmpy_VhfVhf(a, b));
#endif
}

#if __HVX_ARCH__ < 79
static inline HVX_VectorPair hvx_hf_to_qf32(HVX_Vector v) { /* even lanes low, odd lanes high */
    return Q6_Wqf32_vmpy_VhfVhf(v, Q6_Vh_vsplat_R(0x3c00));
}
#endif

static inline HVX_Vector hvx_add_hf(HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Vhf_vadd_VhfVhf(a, b);
#else
    HVX_VectorPair x = hvx_hf_to_qf32(a), y = hvx_hf_to_qf32(b);
    HVX_Vector lo = Q6_Vqf32_vadd_Vqf32Vqf32(Q6_V_lo_W(x), Q6_V_lo_W(y));
    HVX_Vector hi = Q6_Vqf32_vadd_Vqf32Vqf32(Q6_V_hi_W(x), Q6_V_hi_W(y));
    return Q6_Vhf_equals_Wqf32(Q6_W_vcombine_VV(hi, lo));
#endif
}

static inline HVX_Vector hvx_sub_hf(HVX_Vector a, HVX_Vector b) {
    return hvx_add_hf(a, Q6_V_vxor_VV(b, Q6_Vh_vsplat_R(0x8000)));
}

static inline HVX_Vector hvx_max_hf(HVX_Vector a, HVX_Vector b) {
    return Q6_Vhf_vmax_VhfVhf(a, b);
}

static inline HVX_Vector hvx_min_hf(HVX_Vector a, HVX_Vector b) {
    return Q6_Vhf_vmin_VhfVhf(a, b);
}

/* Products of halves added to floats: even lanes to the low vector of acc, odd lanes to the high one. */
static inline HVX_VectorPair hvx_fma_hf_sf(HVX_VectorPair acc, HVX_Vector a, HVX_Vector b) {
#if __HVX_ARCH__ >= 79
    return Q6_Wsf_vmpyacc_WsfVhfVhf(acc, a, b);
#else
    HVX_VectorPair p = Q6_Wqf32_vmpy_VhfVhf(a, b);
    HVX_Vector lo = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_Vqf32Vsf(Q6_V_lo_W(p), Q6_V_lo_W(acc)));
    HVX_Vector hi = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_Vqf32Vsf(Q6_V_hi_W(p), Q6_V_hi_W(acc)));
    return Q6_W_vcombine_VV(hi, lo);
#endif
}

/* Lane 0. */
static inline float hvx_first_sf(HVX_Vector v) {
    float lanes[HVX_F32] __attribute__((aligned(128)));
    hvx_store(lanes, v);
    return lanes[0];
}

/* The sum of the 32 lanes in every lane; pairwise, in an order that does not depend on anything. */
static inline HVX_Vector hvx_reduce_sum_sf(HVX_Vector v) {
    for (int bytes = 64; bytes >= 4; bytes /= 2) {
        v = hvx_add_sf(v, Q6_V_vror_VR(v, bytes));
    }
    return v;
}

static inline float hvx_reduce_sum_sf_scalar(HVX_Vector v) {
    return hvx_first_sf(hvx_reduce_sum_sf(v));
}

static inline HVX_Vector hvx_reduce_max_sf(HVX_Vector v) {
    for (int bytes = 64; bytes >= 4; bytes /= 2) {
        v = hvx_max_sf(v, Q6_V_vror_VR(v, bytes));
    }
    return v;
}

static inline float hvx_reduce_max_sf_scalar(HVX_Vector v) {
    return hvx_first_sf(hvx_reduce_max_sf(v));
}
