/* Exponential and natural logarithm of floats. */
#pragma once

#include "hvx-arith.h"

/* x as n ln 2 + r with |r| <= ln 2 / 2, for |x| < 128. */
struct hvx_exp_parts {
    HVX_Vector n, r;
};

static inline struct hvx_exp_parts hvx_exp_reduce_sf(HVX_Vector x) {
    HVX_Vector n = hvx_sf_to_w_rne(hvx_mul_sf(x, hvx_splat_sf(0x1.715476p+0f)));
#if __HVX_ARCH__ >= 79
    HVX_Vector f = hvx_w_to_sf(n);
    HVX_Vector r = hvx_fma_sf(x, f, hvx_splat_sf(-0x1.62ep-1f)); /* n times the short upper part is exact */
    return (struct hvx_exp_parts){n, hvx_fma_sf(r, f, hvx_splat_sf(-0x1.0bfbe8p-15f))};
#else
    /* qfloat would lose bits of n ln 2. In fixed point, 24 fraction bits, ln 2 = 177 * 2^16 + 29207 + 991 / 2^10. */
    HVX_Vector fixed = Q6_Vw_equals_Vsf(Q6_Vw_vadd_VwVw(x, Q6_V_vsplat_R(24 << 23)));
    fixed = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x00800000), hvx_abs_sf(x)), Q6_V_vzero(), fixed);
    HVX_Vector high = Q6_Vw_vasl_VwR(Q6_Vw_vmpyi_VwRh(n, 177 << 16 | 177), 16);
    HVX_Vector middle = Q6_Vw_vmpyi_VwRh(n, 29207 << 16 | 29207);
    HVX_Vector low = Q6_Vw_vasr_VwR(Q6_Vw_vmpyi_VwRh(n, 991 << 16 | 991), 10);
    fixed = Q6_Vw_vsub_VwVw(fixed, Q6_Vw_vadd_VwVw(high, Q6_Vw_vadd_VwVw(middle, low)));
    HVX_Vector r = Q6_Vw_vsub_VwVw(hvx_w_to_sf(fixed), Q6_V_vsplat_R(24 << 23));
    r = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(fixed, Q6_V_vzero()), Q6_V_vzero(), r);
    return (struct hvx_exp_parts){n, r};
#endif
}

/*
 * e^x: 1 ulp from v79 on, 5e-7 relative before. From 88.7229 on inf, below -87.3365 (where the result leaves the
 * normal numbers) 0, NaN stays NaN. e^r = 1 + r + r^2 P(r), P minimax to 4e-9.
 */
static inline HVX_Vector hvx_exp_sf(HVX_Vector x) {
    HVX_Vector inside = hvx_max_sf(hvx_min_sf(x, hvx_splat_sf(89.0f)), hvx_splat_sf(-88.0f));
    struct hvx_exp_parts p = hvx_exp_reduce_sf(inside);
    HVX_Vector y = hvx_splat_sf(0x1.6dbc68p-10f);
    y = hvx_fma_sf(hvx_splat_sf(0x1.124148p-7f), y, p.r);
    y = hvx_fma_sf(hvx_splat_sf(0x1.555454p-5f), y, p.r);
    y = hvx_fma_sf(hvx_splat_sf(0x1.555486p-3f), y, p.r);
    y = hvx_fma_sf(hvx_splat_sf(0.5f), y, p.r);
    y = hvx_fma_sf(p.r, hvx_mul_sf(p.r, p.r), y);
    y = hvx_add_sf(hvx_splat_sf(1.0f), y);
    y = Q6_Vw_vadd_VwVw(y, Q6_Vw_vasl_VwR(p.n, 23));
    HVX_VectorPred small = Q6_Q_vcmp_gt_VsfVsf(hvx_splat_sf(-0x1.5d589ep+6f), x);
    HVX_VectorPred large = Q6_Q_vcmp_gt_VsfVsf(x, hvx_splat_sf(0x1.62e42ep+6f));
    y = Q6_V_vmux_QVV(small, Q6_V_vzero(), Q6_V_vmux_QVV(large, Q6_V_vsplat_R(0x7f800000), y));
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}

/* (ln(1 + f) - f) / f^2 on [sqrt(1/2) - 1, sqrt(2) - 1], minimax to 1e-9. */
static inline HVX_Vector hvx_log1p_short_sf(HVX_Vector f) {
    static const float c[9] = {
        0.06952548772096634f, -0.11845924705266953f, 0.11886059492826462f, -0.12376189231872559f, 0.14216013252735138f,
        -0.16669610142707825f, 0.2000235766172409f, -0.24999982118606567f, 0.3333330750465393f,
    };
    HVX_Vector y = hvx_splat_sf(c[0]);
    for (int i = 1; i < 9; i++) {
        y = hvx_fma_sf(hvx_splat_sf(c[i]), y, f);
    }
    return hvx_fma_sf(hvx_splat_sf(-0.5f), y, f);
}

/*
 * ln(x): 2 ulp from v79 on and 2e-6 relative before, where |ln x| > 0.3; absolute 3e-8 (2e-7) nearer to 1.
 * Of 0 and subnormals -inf, of a negative number NaN, of inf inf, NaN stays NaN.
 */
static inline HVX_Vector hvx_log_sf(HVX_Vector x) {
    HVX_Vector infinity = Q6_V_vsplat_R(0x7f800000), nan = Q6_V_vsplat_R(0x7fc00000), zero = Q6_V_vzero();
    HVX_Vector shifted = Q6_Vw_vsub_VwVw(x, Q6_V_vsplat_R(0x3f3504f3)); /* exponents turn over at sqrt(1/2) */
    HVX_Vector n = Q6_Vw_vasr_VwR(shifted, 23);
    HVX_Vector mantissa = Q6_Vw_vsub_VwVw(x, Q6_Vw_vasl_VwR(n, 23));
    HVX_Vector f = hvx_sub_sf(mantissa, hvx_splat_sf(1.0f)), e = hvx_w_to_sf(n);
    HVX_Vector small = hvx_mul_sf(e, hvx_splat_sf(0x1.0bfbe8p-15f)); /* the rest of ln 2, and what is not f itself */
    small = hvx_fma_sf(small, hvx_mul_sf(f, f), hvx_log1p_short_sf(f));
    HVX_Vector y = hvx_fma_sf(hvx_add_sf(small, f), e, hvx_splat_sf(0x1.62ep-1f));
    HVX_VectorPred is_zero = Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x00800000), hvx_abs_sf(x));
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(zero, x), nan, y);
    y = Q6_V_vmux_QVV(is_zero, hvx_neg_sf(infinity), y);
    y = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(x, infinity), infinity, y);
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}
