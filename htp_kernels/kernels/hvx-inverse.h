/*
 * Reciprocal, reciprocal square root, square root and division by Newton's iteration from an exponent trick.
 * Accuracy: 2 ulp from v79 on, 1e-6 relative before. A subnormal argument counts as 0; so does a result below 2^-126.
 */
#pragma once

#include "hvx-arith.h"

/* 1 / x for 2^-100 < |x| < 2^100; no special values. */
static inline HVX_Vector hvx_recip_normal_sf(HVX_Vector x) {
    HVX_Vector one = hvx_splat_sf(1.0f), minus_x = hvx_neg_sf(x);
    HVX_Vector y = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(0x7ef311c7), hvx_abs_sf(x)); /* within 12 % */
    y = Q6_V_vor_VV(y, hvx_sign_sf(x));
    for (int i = 0; i < 3; i++) {
        y = hvx_fma_sf(y, y, hvx_fma_sf(one, minus_x, y)); /* y + y (1 - x y) */
    }
    return y;
}

/* x with its exponent replaced, so 1 <= |x| < 2. */
static inline HVX_Vector hvx_mantissa_sf(HVX_Vector x) {
    HVX_Vector bits = Q6_V_vand_VV(x, Q6_V_vsplat_R((int32_t) 0x807fffffu));
    return Q6_V_vor_VV(bits, Q6_V_vsplat_R(0x3f800000));
}

/* 1 / x: 1 / 0 = inf with the sign of 0, 1 / inf = 0, NaN stays NaN. */
static inline HVX_Vector hvx_recip_sf(HVX_Vector x) {
    HVX_Vector magnitude = hvx_abs_sf(x), sign = hvx_sign_sf(x), infinity = Q6_V_vsplat_R(0x7f800000);
    HVX_Vector exponent = Q6_Vw_vsub_VwVw(Q6_V_vand_VV(x, infinity), Q6_V_vsplat_R(0x3f800000));
    HVX_VectorPred small = Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x00800000), magnitude);
    HVX_VectorPred large = Q6_Q_vcmp_gt_VwVw(magnitude, Q6_V_vsplat_R(0x7e7fffff)); /* from 2^126 on */
    HVX_Vector y = Q6_Vw_vsub_VwVw(hvx_recip_normal_sf(hvx_mantissa_sf(x)), exponent);
    y = Q6_V_vmux_QVV(small, Q6_V_vor_VV(sign, infinity), Q6_V_vmux_QVV(large, sign, y));
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}

/* a / b over the whole range. From v79 on zeros, infinities and NaN as IEEE; before, a / 0 and inf are undefined. */
static inline HVX_Vector hvx_div_sf(HVX_Vector a, HVX_Vector b) {
    HVX_Vector magnitude = hvx_abs_sf(b), sign = hvx_sign_sf(b), infinity = Q6_V_vsplat_R(0x7f800000);
    HVX_Vector exponent = Q6_V_vand_VV(b, infinity), y = hvx_recip_normal_sf(hvx_mantissa_sf(b));
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(exponent, Q6_V_vzero()), Q6_V_vor_VV(sign, infinity), y);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(magnitude, infinity), sign, y);
    y = Q6_V_vmux_QVV(hvx_is_nan_sf(b), b, y);
    /* 2^(127 - e); for e = 254 that is subnormal. */
    HVX_Vector scale = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(0x7f000000), exponent);
    scale = Q6_Vw_vmax_VwVw(scale, Q6_V_vsplat_R(0x00400000));
    return hvx_mul_sf(hvx_mul_sf(a, y), scale);
}

/* 1 / sqrt(x) for normal positive x; no special values. */
static inline HVX_Vector hvx_rsqrt_normal_sf(HVX_Vector x) {
    HVX_Vector one = hvx_splat_sf(1.0f), half = hvx_splat_sf(0.5f), minus_x = hvx_neg_sf(x);
    HVX_Vector y = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(0x5f3759df), Q6_Vw_vasr_VwR(x, 1)); /* within 3.5 % */
    for (int i = 0; i < 3; i++) {
        HVX_Vector error = hvx_fma_sf(one, hvx_mul_sf(minus_x, y), y); /* 1 - x y y */
        y = hvx_fma_sf(y, hvx_mul_sf(half, y), error);
    }
    return y;
}

/* 1 / sqrt(x): of 0 inf, of inf 0, of a negative number NaN. */
static inline HVX_Vector hvx_rsqrt_sf(HVX_Vector x) {
    HVX_Vector magnitude = hvx_abs_sf(x), infinity = Q6_V_vsplat_R(0x7f800000), nan = Q6_V_vsplat_R(0x7fc00000);
    HVX_Vector y = hvx_rsqrt_normal_sf(x);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(magnitude, infinity), Q6_V_vzero(), y);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vzero(), x), nan, y);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x00800000), magnitude), infinity, y);
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}

/* sqrt(x): of 0 and of a subnormal 0, of inf inf, of a negative number NaN. */
static inline HVX_Vector hvx_sqrt_sf(HVX_Vector x) {
    HVX_Vector magnitude = hvx_abs_sf(x), infinity = Q6_V_vsplat_R(0x7f800000);
    HVX_Vector y = hvx_mul_sf(x, hvx_rsqrt_sf(x));
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x00800000), magnitude), hvx_sign_sf(x), y);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(x, infinity), infinity, y);
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}
