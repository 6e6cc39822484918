/* Sigmoid, tanh and the activations made of them. From v79 on within 4 ulp, before within 2e-6 relative. */
#pragma once

#include "hvx-exp.h"
#include "hvx-inverse.h"

/* e^-|x| and 1 / (1 + e^-|x|): neither can overflow. */
struct hvx_decay {
    HVX_Vector e, inverse;
};

static inline struct hvx_decay hvx_decay_sf(HVX_Vector x) {
    HVX_Vector e = hvx_exp_sf(Q6_V_vor_VV(x, Q6_V_vsplat_R((int32_t) 0x80000000u)));
    return (struct hvx_decay){e, hvx_recip_normal_sf(hvx_add_sf(hvx_splat_sf(1.0f), e))};
}

/* 1 / (1 + e^-x). */
static inline HVX_Vector hvx_sigmoid_sf(HVX_Vector x) {
    struct hvx_decay d = hvx_decay_sf(x);
    HVX_VectorPred negative = Q6_Q_vcmp_gt_VwVw(Q6_V_vzero(), x);
    return hvx_keep_nan_sf(x, Q6_V_vmux_QVV(negative, hvx_mul_sf(d.e, d.inverse), d.inverse));
}

static inline HVX_Vector hvx_silu_sf(HVX_Vector x) {
    return hvx_keep_nan_sf(x, hvx_mul_sf(x, hvx_sigmoid_sf(x)));
}

/* tanh: (1 - e^-2|x|) / (1 + e^-2|x|); below 0.625 x + x^3 P(x^2), which does not cancel. */
static inline HVX_Vector hvx_tanh_sf(HVX_Vector x) {
    HVX_Vector a = hvx_min_sf(hvx_abs_sf(x), hvx_splat_sf(20.0f)), square = hvx_mul_sf(a, a);
    struct hvx_decay d = hvx_decay_sf(hvx_add_sf(a, a));
    HVX_Vector far = hvx_mul_sf(hvx_sub_sf(hvx_splat_sf(1.0f), d.e), d.inverse);
    HVX_Vector p = hvx_splat_sf(-0.005528630688786507f);
    p = hvx_fma_sf(hvx_splat_sf(0.020483313128352165f), p, square);
    p = hvx_fma_sf(hvx_splat_sf(-0.05369296669960022f), p, square);
    p = hvx_fma_sf(hvx_splat_sf(0.1333089917898178f), p, square);
    p = hvx_fma_sf(hvx_splat_sf(-0.3333326280117035f), p, square);
    HVX_Vector near = hvx_fma_sf(a, hvx_mul_sf(a, square), p);
    HVX_VectorPred is_near = Q6_Q_vcmp_gt_VwVw(hvx_splat_sf(0.625f), a);
    HVX_Vector y = Q6_V_vor_VV(hvx_abs_sf(Q6_V_vmux_QVV(is_near, near, far)), hvx_sign_sf(x));
    return Q6_V_vmux_QVV(hvx_is_nan_sf(x), x, y);
}

/* x limited to [-most, most]. */
static inline HVX_Vector hvx_clamp_sf(HVX_Vector x, float most) {
    return hvx_max_sf(hvx_min_sf(x, hvx_splat_sf(most)), hvx_splat_sf(-most));
}

/* ggml's GELU: x / 2 (1 + tanh(u)) with u = sqrt(2 / pi) x (1 + 0.044715 x^2), computed as x sigmoid(2 u). */
static inline HVX_Vector hvx_gelu_sf(HVX_Vector x) {
    HVX_Vector near = hvx_clamp_sf(x, 20.0f); /* beyond, the sigmoid is 0 or 1 */
    HVX_Vector cubic = hvx_fma_sf(hvx_splat_sf(1.0f), hvx_splat_sf(0.044715f), hvx_mul_sf(near, near));
    HVX_Vector u2 = hvx_mul_sf(hvx_mul_sf(hvx_splat_sf(1.5957691216057308f), near), cubic);
    return hvx_keep_nan_sf(x, hvx_mul_sf(x, hvx_sigmoid_sf(u2)));
}

/* ggml's quick GELU: x sigmoid(1.702 x). */
static inline HVX_Vector hvx_gelu_quick_sf(HVX_Vector x) {
    HVX_Vector near = hvx_clamp_sf(x, 80.0f);
    return hvx_keep_nan_sf(x, hvx_mul_sf(x, hvx_sigmoid_sf(hvx_mul_sf(near, hvx_splat_sf(1.702f)))));
}
