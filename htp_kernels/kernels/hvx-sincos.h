/*
 * sin and cos of 32 floats. The angle is reduced by multiples of pi/2 taken off in four parts: the first three have 7
 * bits, so that up to 2^17 quarter turns their products and the differences are exact (v79 on). Then a polynomial on
 * [-pi/4, pi/4]; about 1 ulp of 1.0.
 */
#pragma once

#include <math.h>

#include "hvx-base.h"
#include "hvx-math.h"

#define HVX_SINCOS_MAX 131072.0f /* |angle| that hvx_sincos_sf takes */

struct hvx_sincos {
    HVX_Vector sin, cos;
};

/* c0 + z (c1 + z c2) */
static inline HVX_Vector hvx_poly2_sf(HVX_Vector z, float c0, float c1, float c2) {
    HVX_Vector y = hvx_add_sf(hvx_mul_sf(z, hvx_splat_sf(c2)), hvx_splat_sf(c1));
    return hvx_add_sf(hvx_mul_sf(z, y), hvx_splat_sf(c0));
}

static inline struct hvx_sincos hvx_sincos_sf(HVX_Vector angle) {
    /* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
    HVX_Vector magic = hvx_splat_sf(12582912.0f);
    HVX_Vector shifted = hvx_add_sf(hvx_mul_sf(angle, hvx_splat_sf(0.636619772f)), magic);
    HVX_Vector n = hvx_sub_sf(shifted, magic);
    HVX_Vector r = hvx_sub_sf(angle, hvx_mul_sf(n, hvx_splat_sf(0x1.9p+0f)));
    r = hvx_sub_sf(r, hvx_mul_sf(n, hvx_splat_sf(0x1.0cp-7f)));
    r = hvx_sub_sf(r, hvx_mul_sf(n, hvx_splat_sf(0x1.ecp-14f)));
    r = hvx_sub_sf(r, hvx_mul_sf(n, hvx_splat_sf(0x1.5110b4p-22f)));

    HVX_Vector z = hvx_mul_sf(r, r);
    HVX_Vector s = hvx_poly2_sf(z, -0x1.55553ep-3f, 0x1.1104c6p-7f, -0x1.989012p-13f);
    s = hvx_add_sf(hvx_mul_sf(hvx_mul_sf(s, z), r), r);
    HVX_Vector c = hvx_poly2_sf(z, 0x1.55554ap-5f, -0x1.6c0bb6p-10f, 0x1.99c3ccp-16f);
    c = hvx_sub_sf(hvx_mul_sf(hvx_mul_sf(c, z), z), hvx_mul_sf(z, hvx_splat_sf(0.5f)));
    c = hvx_add_sf(c, hvx_splat_sf(1.0f));

    /* Quarter n: odd ones swap sin and cos, sin is negative in 2 and 3, cos in 1 and 2. */
    HVX_Vector one = Q6_V_vsplat_R(1);
    HVX_VectorPred odd = Q6_Q_vcmp_eq_VwVw(Q6_V_vand_VV(shifted, one), one);
    HVX_Vector two = Q6_V_vsplat_R(2);
    HVX_Vector sin_sign = Q6_Vw_vasl_VwR(Q6_V_vand_VV(shifted, two), 30);
    HVX_Vector cos_sign = Q6_Vw_vasl_VwR(Q6_V_vand_VV(Q6_Vw_vadd_VwVw(shifted, one), two), 30);
    return (struct hvx_sincos) {
        .sin = Q6_V_vxor_VV(Q6_V_vmux_QVV(odd, c, s), sin_sign),
        .cos = Q6_V_vxor_VV(Q6_V_vmux_QVV(odd, s, c), cos_sign),
    };
}

/*
 * sin and cos of n <= 32 angles in memory, of any size; whole vectors are written. Before v79 one at a time: qfloat
 * rounds even what is exact, and the reduction lives on exact differences.
 */
static inline void hvx_sincos_row(const float *angle, uint32_t n, float *sin_out, float *cos_out) {
#if __HVX_ARCH__ >= 79
    const float in_range = HVX_SINCOS_MAX;
    struct hvx_sincos v = hvx_sincos_sf(hvx_load(angle));
    hvx_store(sin_out, v.sin);
    hvx_store(cos_out, v.cos);
#else
    const float in_range = -1.0f;
#endif
    for (uint32_t i = 0; i < n; i++) {
        if (!(fabsf(angle[i]) <= in_range)) {
            sin_out[i] = sinf(angle[i]);
            cos_out[i] = cosf(angle[i]);
        }
    }
}
