// Lanes as floating-point numbers, and the conversions every float intrinsic is made of.
//
// Halves have no arithmetic of their own here: they are widened to float, computed and rounded once. That equals
// direct half arithmetic for +, - and *, because float has 24 >= 2 * 11 + 2 bits of precision.
//
// Worst difference to the exact result, in ulp, of everything in sf.h, hf.h, bf.h, cvt.h on every arch: 0.5 (nearest
// even), except Q6_Vsf_vdmpyacc_VsfVhfVhf, which rounds twice (0.5 of the dot product and 0.5 of the sum), and 0 for
// what is exact: signs, minima and maxima, compares, Wsf_vcvt_Vhf, Wsf_vmpy_VhfVhf, truncations. For qfloat see
// qf-legacy.h (v73, v75) and qf-ieee.h (v79, v81).
#ifndef HEXNPU_EMU_HVX_FLOAT_H
#define HEXNPU_EMU_HVX_FLOAT_H

#include "base.h"

#ifndef __HVX_ARCH__
#define __HVX_ARCH__ 79
#endif

typedef float hvx_f32 __attribute__((vector_size(128), may_alias));
typedef float hvx_f32w __attribute__((vector_size(256), may_alias)); // a pair, or 64 halves widened
typedef _Float16 hvx_f16 __attribute__((vector_size(128), may_alias));
typedef _Float16 hvx_f16n __attribute__((vector_size(64), may_alias)); // 32 halves

#define HVX_EVEN(i) (2 * (i))
#define HVX_ODD(i) (2 * (i) + 1)
#define HVX_ZIP(i) ((i) / 2 + 32 * ((i) % 2)) // lanes of two 32-lane vectors in turn

// The 64 halves of a vector as floats, in lane order.
HVX_INLINE hvx_f32w hvx_hf_widen(HVX_Vector v) {
    return __builtin_convertvector((hvx_f16) v, hvx_f32w);
}

// 64 floats rounded to the nearest half, ties to even; from 65520 on to infinity.
HVX_INLINE HVX_Vector hvx_hf_narrow(hvx_f32w v) {
    return HVX_V(__builtin_convertvector(v, hvx_f16));
}

HVX_INLINE hvx_f32 hvx_hf_even(HVX_Vector v) {
    hvx_f16 h = (hvx_f16) v;
    return __builtin_convertvector(__builtin_shufflevector(h, h, HVX_EACH_32(HVX_EVEN, 0)), hvx_f32);
}

HVX_INLINE hvx_f32 hvx_hf_odd(HVX_Vector v) {
    hvx_f16 h = (hvx_f16) v;
    return __builtin_convertvector(__builtin_shufflevector(h, h, HVX_EACH_32(HVX_ODD, 0)), hvx_f32);
}

// Two float vectors rounded to halves: `even` into the even lanes, `odd` into the odd ones.
HVX_INLINE HVX_Vector hvx_hf_zip(hvx_f32 even, hvx_f32 odd) {
    hvx_f16n e = __builtin_convertvector(even, hvx_f16n), o = __builtin_convertvector(odd, hvx_f16n);
    return HVX_V(__builtin_shufflevector(e, o, HVX_EACH_64(HVX_ZIP, 0)));
}

// bfloat16 lanes as floats; bfloat16 is the upper half of a float.
HVX_INLINE hvx_f32 hvx_bf_even(HVX_Vector v) {
    return (hvx_f32) ((hvx_u32) v << 16);
}

HVX_INLINE hvx_f32 hvx_bf_odd(HVX_Vector v) {
    return (hvx_f32) ((hvx_u32) v & 0xffff0000u);
}

// Lane by lane `a` where the mask is all ones, `b` where it is zero. (C has no ?: on vectors; this becomes a blend.)
HVX_INLINE HVX_Vector hvx_pick(HVX_Vector mask, HVX_Vector a, HVX_Vector b) {
    return (a & mask) | (b & ~mask);
}

// Lanes where u comes after v in the order -NaN, -inf, ..., -0, +0, ..., +inf, +NaN.
HVX_INLINE HVX_Vector hvx_sf_after(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 u = (hvx_i32) Vu, v = (hvx_i32) Vv;
    return HVX_V((u > v) ^ ((u & v) < 0)); // two negative numbers compare the other way round; equal ones may do either
}

HVX_INLINE HVX_Vector hvx_hf_after(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 u = (hvx_i16) Vu, v = (hvx_i16) Vv;
    return HVX_V((u > v) ^ ((u & v) < 0));
}

// Lanes where either is a NaN.
HVX_INLINE HVX_Vector hvx_sf_unordered(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_f32 u = (hvx_f32) Vu, v = (hvx_f32) Vv;
    return HVX_V((u != u) | (v != v));
}

HVX_INLINE HVX_Vector hvx_hf_unordered(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 infinity = (hvx_i16){0} + 0x7c00;
    return HVX_V((((hvx_i16) Vu & 0x7fff) > infinity) | (((hvx_i16) Vv & 0x7fff) > infinity));
}

#endif
