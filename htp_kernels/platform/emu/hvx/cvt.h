// Conversions between float formats and integers. `vcvt` rounds to nearest even, `_equals_` to an integer truncates.
// All saturate; NaN becomes the greatest integer (vcvt) or the end of the range on its sign's side (_equals_).
#ifndef HEXNPU_EMU_HVX_CVT_H
#define HEXNPU_EMU_HVX_CVT_H

#include "float.h"

// Even lanes to the low vector, odd lanes to the high one.
HVX_INLINE HVX_VectorPair Q6_Wsf_vcvt_Vhf(HVX_Vector Vu) {
    return HVX_PAIR(hvx_hf_even(Vu), hvx_hf_odd(Vu));
}

// Vu to the even lanes, Vv to the odd ones.
HVX_INLINE HVX_Vector Q6_Vhf_vcvt_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_hf_zip((hvx_f32) Vu, (hvx_f32) Vv);
}

HVX_INLINE HVX_Vector Q6_Vsf_equals_Vw(HVX_Vector Vu) {
    return HVX_V(__builtin_convertvector((hvx_i32) Vu, hvx_f32));
}

HVX_INLINE HVX_Vector Q6_Vw_equals_Vsf(HVX_Vector Vu) {
    HVX_Vector fits = HVX_V((hvx_f32) (Vu & 0x7fffffff) < 0x1p31f), end = (Vu >> 31) ^ 0x7fffffff;
    hvx_f32 inside = (hvx_f32) (Vu & fits); // converting anything else is undefined in C
    return hvx_pick(fits, HVX_V(__builtin_convertvector(inside, hvx_i32)), end);
}

HVX_INLINE HVX_Vector Q6_Vhf_vcvt_Vh(HVX_Vector Vu) {
    return hvx_hf_narrow(__builtin_convertvector((hvx_i16) Vu, hvx_f32w));
}

HVX_INLINE HVX_Vector Q6_Vhf_vcvt_Vuh(HVX_Vector Vu) {
    return hvx_hf_narrow(__builtin_convertvector((hvx_u16) Vu, hvx_f32w)); // 65520 and more become infinity
}

HVX_INLINE HVX_Vector Q6_Vhf_equals_Vh(HVX_Vector Vu) {
    return hvx_hf_narrow(__builtin_convertvector((hvx_i16) Vu, hvx_f32w));
}

// Every NaN lane replaced by an infinity: of its own sign, or positive.
HVX_INLINE HVX_Vector hvx_hf_nan_to_inf(HVX_Vector Vu, int keep_sign) {
    HVX_Vector sign = keep_sign ? Vu & Q6_Vh_vsplat_R(0x8000) : Q6_V_vzero();
    return hvx_pick(hvx_hf_unordered(Vu, Vu), sign | Q6_Vh_vsplat_R(0x7c00), Vu);
}

// Floats clamped to [low, high] and truncated, as halfwords.
HVX_INLINE HVX_Vector hvx_trunc_to_int(hvx_f32w v, float low, float high) {
    v = __builtin_elementwise_min(__builtin_elementwise_max(v, (hvx_f32w){0} + low), (hvx_f32w){0} + high);
    return HVX_V(__builtin_convertvector(__builtin_convertvector(v, hvx_i32w), hvx_i16));
}

// Halves without NaN rounded to nearest even and clamped to [low, high], as halfwords.
HVX_INLINE HVX_Vector hvx_hf_to_int(HVX_Vector v, float low, float high) {
    return hvx_trunc_to_int(__builtin_elementwise_roundeven(hvx_hf_widen(v)), low, high);
}

HVX_INLINE HVX_Vector Q6_Vh_equals_Vhf(HVX_Vector Vu) {
    return hvx_trunc_to_int(hvx_hf_widen(hvx_hf_nan_to_inf(Vu, 1)), -32768.0f, 32767.0f);
}

#if __HVX_ARCH__ >= 81
HVX_INLINE HVX_Vector Q6_Vh_equals_Vhf_rnd(HVX_Vector Vu) {
    return hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 1), -32768.0f, 32767.0f);
}
#endif

HVX_INLINE HVX_Vector Q6_Vh_vcvt_Vhf(HVX_Vector Vu) {
    return hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), -32768.0f, 32767.0f);
}

HVX_INLINE HVX_Vector Q6_Vuh_vcvt_Vhf(HVX_Vector Vu) {
    return hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), 0.0f, 65535.0f);
}

// Bytes 4i and 4i + 1 of the result from Vu, 4i + 2 and 4i + 3 from Vv: halfword pairs of both in turn.
HVX_INLINE HVX_Vector hvx_bytes_by_pairs(HVX_Vector u, HVX_Vector v) {
    hvx_u32 low = ((hvx_u32) u & 0xff) | (((hvx_u32) u >> 8) & 0xff00);
    hvx_u32 high = ((hvx_u32) v & 0xff) | (((hvx_u32) v >> 8) & 0xff00);
    return hvx_join_h(low, high);
}

HVX_INLINE HVX_Vector Q6_Vb_vcvt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_bytes_by_pairs(hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), -128.0f, 127.0f),
                              hvx_hf_to_int(hvx_hf_nan_to_inf(Vv, 0), -128.0f, 127.0f));
}

HVX_INLINE HVX_Vector Q6_Vub_vcvt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_bytes_by_pairs(hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), 0.0f, 255.0f),
                              hvx_hf_to_int(hvx_hf_nan_to_inf(Vv, 0), 0.0f, 255.0f));
}

// Bytes 4i and 4i + 1 into halfwords 2i and 2i + 1 of the low vector, 4i + 2 and 4i + 3 into the high one.
HVX_INLINE HVX_VectorPair Q6_Whf_vcvt_Vb(HVX_Vector Vu) {
    HVX_Vector low = hvx_join_h((hvx_u32) hvx_b_of_w(Vu, 0), (hvx_u32) hvx_b_of_w(Vu, 1));
    HVX_Vector high = hvx_join_h((hvx_u32) hvx_b_of_w(Vu, 2), (hvx_u32) hvx_b_of_w(Vu, 3));
    return HVX_PAIR(Q6_Vhf_vcvt_Vh(low), Q6_Vhf_vcvt_Vh(high));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vcvt_Vub(HVX_Vector Vu) {
    HVX_Vector low = hvx_join_h(hvx_ub_of_w(Vu, 0), hvx_ub_of_w(Vu, 1));
    HVX_Vector high = hvx_join_h(hvx_ub_of_w(Vu, 2), hvx_ub_of_w(Vu, 3));
    return HVX_PAIR(Q6_Vhf_vcvt_Vh(low), Q6_Vhf_vcvt_Vh(high));
}

#if __HVX_ARCH__ >= 79
// The same with plain even and odd bytes.
HVX_INLINE HVX_Vector Q6_Vb_vcvt2_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b((hvx_u16) hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), -128.0f, 127.0f),
                      (hvx_u16) hvx_hf_to_int(hvx_hf_nan_to_inf(Vv, 0), -128.0f, 127.0f));
}

HVX_INLINE HVX_Vector Q6_Vub_vcvt2_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b((hvx_u16) hvx_hf_to_int(hvx_hf_nan_to_inf(Vu, 0), 0.0f, 255.0f),
                      (hvx_u16) hvx_hf_to_int(hvx_hf_nan_to_inf(Vv, 0), 0.0f, 255.0f));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vcvt2_Vb(HVX_Vector Vu) {
    return HVX_PAIR(Q6_Vhf_vcvt_Vh(HVX_V(hvx_even_b(Vu))), Q6_Vhf_vcvt_Vh(HVX_V(hvx_odd_b(Vu))));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vcvt2_Vub(HVX_Vector Vu) {
    return HVX_PAIR(Q6_Vhf_vcvt_Vh(HVX_V(hvx_even_ub(Vu))), Q6_Vhf_vcvt_Vh(HVX_V(hvx_odd_ub(Vu))));
}
#endif

#endif
