// Half precision: arithmetic, widening arithmetic, min and max, sign. Each result is rounded once, to nearest even.
// A widening instruction takes its operands' even lanes for the low vector of the result, the odd ones for the high.
#ifndef HEXNPU_EMU_HVX_HF_H
#define HEXNPU_EMU_HVX_HF_H

#include "float.h"

HVX_INLINE HVX_Vector Q6_Vhf_vadd_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_hf_narrow(hvx_hf_widen(Vu) + hvx_hf_widen(Vv));
}

HVX_INLINE HVX_Vector Q6_Vhf_vsub_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_hf_narrow(hvx_hf_widen(Vu) - hvx_hf_widen(Vv));
}

HVX_INLINE HVX_Vector Q6_Vhf_vmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_hf_narrow(hvx_hf_widen(Vu) * hvx_hf_widen(Vv));
}

// x + u * v rounded once. The product is exact in float; their sum is rounded to odd (truncated, and the last bit set
// where anything was lost), which makes the second rounding, to half, harmless.
HVX_INLINE HVX_Vector Q6_Vhf_vmpyacc_VhfVhfVhf(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_f32w product = hvx_hf_widen(Vu) * hvx_hf_widen(Vv), x = hvx_hf_widen(Vx), sum = product + x;
    hvx_f32w back = sum - x, lost = (product - back) + (x - (sum - back));
    hvx_i32w bits = (hvx_i32w) sum;
    hvx_i32w too_large = (lost != 0) & ((lost > 0) != (bits >= 0)); // rounded away from zero: one step back
    hvx_i32w odd = (bits + too_large) | ((lost != 0) & 1);
    hvx_i32w finite = lost == lost;
    return hvx_hf_narrow((hvx_f32w) ((odd & finite) | (bits & ~finite)));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vadd_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_hf_even(Vu) + hvx_hf_even(Vv), hvx_hf_odd(Vu) + hvx_hf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vsub_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_hf_even(Vu) - hvx_hf_even(Vv), hvx_hf_odd(Vu) - hvx_hf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_hf_even(Vu) * hvx_hf_even(Vv), hvx_hf_odd(Vu) * hvx_hf_odd(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wsf_vmpyacc_WsfVhfVhf(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_f32 lo = (hvx_f32) Q6_V_lo_W(Vxx), hi = (hvx_f32) Q6_V_hi_W(Vxx);
    lo = __builtin_elementwise_fma(hvx_hf_even(Vu), hvx_hf_even(Vv), lo);
    hi = __builtin_elementwise_fma(hvx_hf_odd(Vu), hvx_hf_odd(Vv), hi);
    return HVX_PAIR(lo, hi);
}

// u[2i] v[2i] + u[2i+1] v[2i+1]: both products are exact, so the sum is rounded once.
HVX_INLINE HVX_Vector Q6_Vsf_vdmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_hf_odd(Vu) * hvx_hf_odd(Vv) + hvx_hf_even(Vu) * hvx_hf_even(Vv));
}

// The accumulator is added to the rounded vdmpy; the device may keep more bits between the two.
HVX_INLINE HVX_Vector Q6_Vsf_vdmpyacc_VsfVhfVhf(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_f32) Vx + (hvx_f32) Q6_Vsf_vdmpy_VhfVhf(Vu, Vv));
}

HVX_INLINE HVX_Vector Q6_Vhf_vfneg_Vhf(HVX_Vector Vu) {
    return HVX_V((hvx_u16) Vu ^ 0x8000);
}

HVX_INLINE HVX_Vector Q6_Vhf_vabs_Vhf(HVX_Vector Vu) {
    return HVX_V((hvx_u16) Vu & 0x7fff);
}

// Order and NaN as in sf.h.
HVX_INLINE HVX_Vector Q6_Vhf_vfmax_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector larger = hvx_pick(hvx_hf_after(Vu, Vv), Vu, Vv);
    return hvx_pick(hvx_hf_unordered(Vu, Vv), Q6_Vh_vsplat_R(0x7fff), larger);
}

HVX_INLINE HVX_Vector Q6_Vhf_vfmin_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector smaller = hvx_pick(hvx_hf_after(Vu, Vv), Vv, Vu);
    return hvx_pick(hvx_hf_unordered(Vu, Vv), Q6_Vh_vsplat_R(0x7fff), smaller);
}

HVX_INLINE HVX_Vector Q6_Vhf_vmax_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
#if __HVX_ARCH__ >= 81
    return Q6_Vhf_vfmax_VhfVhf(Vu, Vv);
#else
    return hvx_pick(hvx_hf_after(Vu, Vv), Vu, Vv);
#endif
}

HVX_INLINE HVX_Vector Q6_Vhf_vmin_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
#if __HVX_ARCH__ >= 81
    return Q6_Vhf_vfmin_VhfVhf(Vu, Vv);
#else
    return hvx_pick(hvx_hf_after(Vu, Vv), Vv, Vu);
#endif
}

#endif
