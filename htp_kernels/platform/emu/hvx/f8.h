// Eight-bit floats (v79): a sign, four bits of exponent with bias 8, three of significand. There is no infinity and no
// negative zero: 0x80 is the only NaN, 0x7f is 240, the largest number, and 0x01 is 2^-10.
//
// A widening instruction takes even bytes for the low vector, odd ones for the high. Sums and products of two are exact
// in float and rounded once, to half; the accumulating product is rounded to float, then to half.
#ifndef HEXNPU_EMU_HVX_F8_H
#define HEXNPU_EMU_HVX_F8_H

#include "hf.h"

#if __HVX_ARCH__ >= 79

#define HVX_F8_NAN 0x80

// Bytes in halfword lanes as floats; the NaN becomes some number. A half with the same bits is 128 times too small, also
// where it is subnormal.
HVX_INLINE hvx_f32w hvx_f8_widen(hvx_u16 v) {
    hvx_u16 half = ((v & 0x80) << 8) | ((v & 0x7f) << 7);
    return hvx_hf_widen(HVX_V(half)) * 128.0f;
}

// Results as halves; NaN in the lanes where an operand was.
HVX_INLINE HVX_Vector hvx_f8_result(hvx_f32w sum, hvx_u16 u, hvx_u16 v) {
    hvx_i16 nan = (u == HVX_F8_NAN) | (v == HVX_F8_NAN);
    return hvx_pick(HVX_V(nan), Q6_Vh_vsplat_R(0x7fff), hvx_hf_narrow(sum));
}

// Halves rounded to nearest even, in halfword lanes: what is too large, infinity and NaN become the NaN, and what is too
// small becomes 0. Adding a power of two 20 binary places above x leaves the three places that count.
HVX_INLINE hvx_u16 hvx_f8_narrow(HVX_Vector v) {
    hvx_f32w x = hvx_hf_widen(v & Q6_Vh_vsplat_R(0x7fff));
    hvx_u32w smallest = (hvx_u32w){0} + ((127u - 7) << 23), exponent = (hvx_u32w) x & 0x7f800000u;
    hvx_f32w magic = (hvx_f32w) (__builtin_elementwise_max(exponent, smallest) + (20u << 23));
    hvx_f32w rounded = (x + magic) - magic;
    hvx_u16 fits = __builtin_convertvector((hvx_u32w) (rounded <= 240.0f), hvx_u16);
    hvx_u16 magnitude = ((hvx_u16) hvx_hf_narrow(rounded * (1.0f / 128)) >> 7) & fits;
    hvx_u16 sign = ((hvx_u16) v >> 8) & (hvx_u16) (magnitude != 0) & 0x80;
    return magnitude | sign | (HVX_F8_NAN & ~fits);
}

HVX_INLINE HVX_VectorPair Q6_Whf_vadd_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 u0 = hvx_even_ub(Vu), u1 = hvx_odd_ub(Vu), v0 = hvx_even_ub(Vv), v1 = hvx_odd_ub(Vv);
    return HVX_PAIR(hvx_f8_result(hvx_f8_widen(u0) + hvx_f8_widen(v0), u0, v0),
                    hvx_f8_result(hvx_f8_widen(u1) + hvx_f8_widen(v1), u1, v1));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vsub_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 u0 = hvx_even_ub(Vu), u1 = hvx_odd_ub(Vu), v0 = hvx_even_ub(Vv), v1 = hvx_odd_ub(Vv);
    return HVX_PAIR(hvx_f8_result(hvx_f8_widen(u0) - hvx_f8_widen(v0), u0, v0),
                    hvx_f8_result(hvx_f8_widen(u1) - hvx_f8_widen(v1), u1, v1));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vmpy_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 u0 = hvx_even_ub(Vu), u1 = hvx_odd_ub(Vu), v0 = hvx_even_ub(Vv), v1 = hvx_odd_ub(Vv);
    return HVX_PAIR(hvx_f8_result(hvx_f8_widen(u0) * hvx_f8_widen(v0), u0, v0),
                    hvx_f8_result(hvx_f8_widen(u1) * hvx_f8_widen(v1), u1, v1));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vmpyacc_WhfVV(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 u0 = hvx_even_ub(Vu), u1 = hvx_odd_ub(Vu), v0 = hvx_even_ub(Vv), v1 = hvx_odd_ub(Vv);
    hvx_f32w x0 = hvx_hf_widen(Q6_V_lo_W(Vxx)), x1 = hvx_hf_widen(Q6_V_hi_W(Vxx));
    return HVX_PAIR(hvx_f8_result(hvx_f8_widen(u0) * hvx_f8_widen(v0) + x0, u0, v0),
                    hvx_f8_result(hvx_f8_widen(u1) * hvx_f8_widen(v1) + x1, u1, v1));
}

HVX_INLINE HVX_VectorPair Q6_Whf_vcvt_V(HVX_Vector Vu) {
    hvx_u16 u0 = hvx_even_ub(Vu), u1 = hvx_odd_ub(Vu);
    return HVX_PAIR(hvx_f8_result(hvx_f8_widen(u0), u0, u0), hvx_f8_result(hvx_f8_widen(u1), u1, u1));
}

HVX_INLINE HVX_Vector Q6_V_vcvt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b(hvx_f8_narrow(Vu), hvx_f8_narrow(Vv));
}

HVX_INLINE HVX_Vector Q6_V_vabs_V(HVX_Vector Vu) {
    hvx_u8 u = (hvx_u8) Vu;
    return HVX_V(u & ~((hvx_u8) (u != HVX_F8_NAN) & HVX_F8_NAN));
}

HVX_INLINE HVX_Vector Q6_V_vfneg_V(HVX_Vector Vu) {
    hvx_u8 u = (hvx_u8) Vu, number = (hvx_u8) ((u & 0x7f) != 0); // neither 0 nor the NaN
    return HVX_V(u ^ (number & 0x80));
}

// Lanes where u is greater than v, both numbers: magnitudes of negative ones count the other way.
HVX_INLINE HVX_Vector hvx_f8_greater(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i8 u = (hvx_i8) Vu, v = (hvx_i8) Vv;
    return HVX_V((u ^ ((u >> 7) & 0x7f)) > (v ^ ((v >> 7) & 0x7f)));
}

HVX_INLINE HVX_Vector hvx_f8_or_nan(HVX_Vector Vu, HVX_Vector Vv, HVX_Vector result) {
    HVX_Vector nan = HVX_V(((hvx_u8) Vu == HVX_F8_NAN) | ((hvx_u8) Vv == HVX_F8_NAN));
    return hvx_pick(nan, Q6_Vb_vsplat_R(HVX_F8_NAN), result);
}

HVX_INLINE HVX_Vector Q6_V_vfmax_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_f8_or_nan(Vu, Vv, hvx_pick(hvx_f8_greater(Vu, Vv), Vu, Vv));
}

HVX_INLINE HVX_Vector Q6_V_vfmin_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_f8_or_nan(Vu, Vv, hvx_pick(hvx_f8_greater(Vu, Vv), Vv, Vu));
}

#endif

#endif
