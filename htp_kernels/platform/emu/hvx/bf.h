// bfloat16: widening arithmetic (even lanes to the low vector, odd ones to the high), conversion, min and max.
#ifndef HEXNPU_EMU_HVX_BF_H
#define HEXNPU_EMU_HVX_BF_H

#include "float.h"
#include "sf.h"

HVX_INLINE HVX_VectorPair Q6_Wsf_vadd_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_bf_even(Vu) + hvx_bf_even(Vv), hvx_bf_odd(Vu) + hvx_bf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vsub_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_bf_even(Vu) - hvx_bf_even(Vv), hvx_bf_odd(Vu) - hvx_bf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vmpy_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_bf_even(Vu) * hvx_bf_even(Vv), hvx_bf_odd(Vu) * hvx_bf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vmpyacc_WsfVbfVbf(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_f32 lo = (hvx_f32) Q6_V_lo_W(Vxx), hi = (hvx_f32) Q6_V_hi_W(Vxx);
    lo = __builtin_elementwise_fma(hvx_bf_even(Vu), hvx_bf_even(Vv), lo);
    hi = __builtin_elementwise_fma(hvx_bf_odd(Vu), hvx_bf_odd(Vv), hi);
    return HVX_PAIR(lo, hi);
}

// The upper half of each float, rounded to nearest even; NaN becomes 0x7fff.
HVX_INLINE hvx_u32 hvx_bf_round(HVX_Vector v) {
    hvx_u32 bits = (hvx_u32) v, rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return (hvx_u32) hvx_pick(hvx_sf_unordered(v, v), Q6_V_vsplat_R(0x7fff), HVX_V(rounded));
}

// Vu to the even lanes, Vv to the odd ones.
HVX_INLINE HVX_Vector Q6_Vbf_vcvt_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_bf_round(Vu), hvx_bf_round(Vv));
}

// A NaN wins, as 0x7fff.
HVX_INLINE HVX_Vector Q6_Vbf_vmax_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector even = Q6_Vsf_vfmax_VsfVsf(HVX_V(hvx_bf_even(Vu)), HVX_V(hvx_bf_even(Vv)));
    HVX_Vector odd = Q6_Vsf_vfmax_VsfVsf(HVX_V(hvx_bf_odd(Vu)), HVX_V(hvx_bf_odd(Vv)));
    return hvx_join_h((hvx_u32) even >> 16, (hvx_u32) odd >> 16);
}

HVX_INLINE HVX_Vector Q6_Vbf_vmin_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector even = Q6_Vsf_vfmin_VsfVsf(HVX_V(hvx_bf_even(Vu)), HVX_V(hvx_bf_even(Vv)));
    HVX_Vector odd = Q6_Vsf_vfmin_VsfVsf(HVX_V(hvx_bf_odd(Vu)), HVX_V(hvx_bf_odd(Vv)));
    return hvx_join_h((hvx_u32) even >> 16, (hvx_u32) odd >> 16);
}

#endif
