/* Sine and cosine of floats. */
#pragma once

#include "hvx-arith.h"

struct hvx_sin_cos {
    HVX_Vector sin, cos;
};

/*
 * For |x| < 2^16: absolute error 1e-7 from v79 on; before, |x| * 2^-22 more, because qfloat cannot subtract exactly.
 * Infinity and NaN give NaN from v79 on. x is reduced by multiples of pi / 2, held as three short parts whose products
 * are exact, and a rest.
 */
static inline struct hvx_sin_cos hvx_sin_cos_sf(HVX_Vector x) {
    HVX_Vector n = hvx_sf_to_w_rne(hvx_mul_sf(x, hvx_splat_sf(0x1.45f306p-1f))), f = hvx_w_to_sf(n);
    HVX_Vector r = hvx_fma_sf(x, f, hvx_splat_sf(-0x1.92p+0f));
    r = hvx_fma_sf(r, f, hvx_splat_sf(-0x1.fap-12f));
    r = hvx_fma_sf(r, f, hvx_splat_sf(-0x1.54p-20f));
    r = hvx_fma_sf(r, f, hvx_splat_sf(-0x1.10b462p-30f));
    HVX_Vector z = hvx_mul_sf(r, r);
    HVX_Vector s = hvx_fma_sf(hvx_splat_sf(0.008332131430506706f), hvx_splat_sf(-0.00019510838319547474f), z);
    s = hvx_fma_sf(hvx_splat_sf(-0.16666653752326965f), s, z);
    s = hvx_fma_sf(r, hvx_mul_sf(r, z), s);
    HVX_Vector c = hvx_fma_sf(hvx_splat_sf(-0.0013887305976822972f), hvx_splat_sf(2.4431205019936897e-05f), z);
    c = hvx_fma_sf(hvx_splat_sf(0.04166664555668831f), c, z);
    c = hvx_fma_sf(hvx_splat_sf(-0.5f), c, z);
    c = hvx_fma_sf(hvx_splat_sf(1.0f), c, z);
    HVX_Vector one = Q6_V_vsplat_R(1);
    HVX_VectorPred odd = Q6_Q_vcmp_eq_VwVw(Q6_V_vand_VV(n, one), one);
    HVX_Vector sin_sign = Q6_Vw_vasl_VwR(Q6_V_vand_VV(n, Q6_V_vsplat_R(2)), 30);
    HVX_Vector cos_sign = Q6_Vw_vasl_VwR(Q6_V_vand_VV(Q6_Vw_vadd_VwVw(n, one), Q6_V_vsplat_R(2)), 30);
    return (struct hvx_sin_cos){Q6_V_vxor_VV(Q6_V_vmux_QVV(odd, c, s), sin_sign),
                                Q6_V_vxor_VV(Q6_V_vmux_QVV(odd, s, c), cos_sign)};
}
