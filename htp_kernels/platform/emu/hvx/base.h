// What every HVX family header builds on: lane types, halves and pairs, in-lane widening and narrowing.
//
// Everything is written with vector extensions, so that values stay in registers. HEXNPU_EMU_GENERIC turns off all
// paths that use one processor's instructions; the tests prove that both give the same bits.
#ifndef HEXNPU_EMU_HVX_BASE_H
#define HEXNPU_EMU_HVX_BASE_H

#include "../hexagon_types.h"

#if defined(__x86_64__) && !defined(HEXNPU_EMU_GENERIC)
#include <immintrin.h>
#define HVX_EMU_AVX2 1
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define HVX_EMU_AVX512 1
#endif
#if defined(HVX_EMU_AVX512) && defined(__AVX512VBMI__)
#define HVX_EMU_VBMI 1
#endif
#if defined(HVX_EMU_AVX512) && defined(__AVX512VNNI__)
#define HVX_EMU_VNNI 1
#endif
#endif

#define HVX_INLINE static inline __attribute__((always_inline, unused))

// Lanes of one vector ...
typedef int8_t hvx_i8 __attribute__((vector_size(128), may_alias));
typedef uint8_t hvx_u8 __attribute__((vector_size(128), may_alias));
typedef int16_t hvx_i16 __attribute__((vector_size(128), may_alias));
typedef uint16_t hvx_u16 __attribute__((vector_size(128), may_alias));
typedef int32_t hvx_i32 __attribute__((vector_size(128), may_alias));
typedef uint32_t hvx_u32 __attribute__((vector_size(128), may_alias));
// ... of a pair, and of a vector's lanes widened to twice their size.
typedef int8_t hvx_i8w __attribute__((vector_size(256), may_alias));
typedef uint8_t hvx_u8w __attribute__((vector_size(256), may_alias));
typedef int16_t hvx_i16w __attribute__((vector_size(256), may_alias));
typedef uint16_t hvx_u16w __attribute__((vector_size(256), may_alias));
typedef int32_t hvx_i32w __attribute__((vector_size(256), may_alias));
typedef uint32_t hvx_u32w __attribute__((vector_size(256), may_alias));
typedef int64_t hvx_i64w __attribute__((vector_size(256), may_alias));

#define HVX_V(x) ((HVX_Vector) (x))
#define HVX_W(x) ((HVX_VectorPair) (x))
#define HVX_Q(x) ((HVX_VectorPred) (x))

// F(0), F(1), ... as an index list for __builtin_shufflevector.
#define HVX_EACH_8(F, n) F((n)), F((n) + 1), F((n) + 2), F((n) + 3), F((n) + 4), F((n) + 5), F((n) + 6), F((n) + 7)
#define HVX_EACH_32(F, n) HVX_EACH_8(F, n), HVX_EACH_8(F, (n) + 8), HVX_EACH_8(F, (n) + 16), HVX_EACH_8(F, (n) + 24)
#define HVX_EACH_64(F, n) HVX_EACH_32(F, n), HVX_EACH_32(F, (n) + 32)
#define HVX_EACH_128(F, n) HVX_EACH_64(F, n), HVX_EACH_64(F, (n) + 64)
#define HVX_INDEX(i) (i)

HVX_INLINE HVX_Vector Q6_V_lo_W(HVX_VectorPair Vss) {
    return __builtin_shufflevector(Vss, Vss, HVX_EACH_32(HVX_INDEX, 0));
}

HVX_INLINE HVX_Vector Q6_V_hi_W(HVX_VectorPair Vss) {
    return __builtin_shufflevector(Vss, Vss, HVX_EACH_32(HVX_INDEX, 32));
}

HVX_INLINE HVX_VectorPair Q6_W_vcombine_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return __builtin_shufflevector(Vv, Vu, HVX_EACH_64(HVX_INDEX, 0));
}

HVX_INLINE HVX_Vector Q6_V_vzero(void) {
    return (HVX_Vector){0};
}

HVX_INLINE HVX_VectorPair Q6_W_vzero(void) {
    return (HVX_VectorPair){0};
}

HVX_INLINE HVX_Vector Q6_V_equals_V(HVX_Vector Vu) {
    return Vu;
}

HVX_INLINE HVX_VectorPair Q6_W_equals_W(HVX_VectorPair Vuu) {
    return Vuu;
}

HVX_INLINE HVX_Vector Q6_V_vsplat_R(Word32 Rt) {
    return HVX_V((hvx_i32){0} + Rt);
}

HVX_INLINE HVX_Vector Q6_Vh_vsplat_R(Word32 Rt) {
    return HVX_V((hvx_i16){0} + (int16_t) Rt);
}

HVX_INLINE HVX_Vector Q6_Vb_vsplat_R(Word32 Rt) {
    return HVX_V((hvx_i8){0} + (int8_t) Rt);
}

// Pair of two results that are not HVX_Vectors yet; the low one first, as hardware numbers them.
#define HVX_PAIR(lo, hi) Q6_W_vcombine_VV(HVX_V(hi), HVX_V(lo))

// Even and odd sub-lanes, widened in place: byte 2i and 2i + 1 of halfword i, halfword 2i and 2i + 1 of word i.
HVX_INLINE hvx_i16 hvx_even_b(HVX_Vector v) {
    return (hvx_i16) ((hvx_u16) v << 8) >> 8;
}

HVX_INLINE hvx_i16 hvx_odd_b(HVX_Vector v) {
    return (hvx_i16) v >> 8;
}

HVX_INLINE hvx_u16 hvx_even_ub(HVX_Vector v) {
    return (hvx_u16) v & 0xff;
}

HVX_INLINE hvx_u16 hvx_odd_ub(HVX_Vector v) {
    return (hvx_u16) v >> 8;
}

HVX_INLINE hvx_i32 hvx_even_h(HVX_Vector v) {
    return (hvx_i32) ((hvx_u32) v << 16) >> 16;
}

HVX_INLINE hvx_i32 hvx_odd_h(HVX_Vector v) {
    return (hvx_i32) v >> 16;
}

HVX_INLINE hvx_u32 hvx_even_uh(HVX_Vector v) {
    return (hvx_u32) v & 0xffff;
}

HVX_INLINE hvx_u32 hvx_odd_uh(HVX_Vector v) {
    return (hvx_u32) v >> 16;
}

// Byte n of every word, widened in place.
HVX_INLINE hvx_u32 hvx_ub_of_w(HVX_Vector v, int n) {
    return ((hvx_u32) v >> (8 * n)) & 0xff;
}

HVX_INLINE hvx_i32 hvx_b_of_w(HVX_Vector v, int n) {
    return (hvx_i32) ((hvx_u32) v << (24 - 8 * n)) >> 24;
}

// Byte or halfword n of a scalar operand.
HVX_INLINE int32_t hvx_r_b(Word32 Rt, int n) {
    return (int8_t) ((uint32_t) Rt >> (8 * n));
}

HVX_INLINE uint32_t hvx_r_ub(Word32 Rt, int n) {
    return (uint8_t) ((uint32_t) Rt >> (8 * n));
}

HVX_INLINE int32_t hvx_r_h(Word32 Rt, int n) {
    return (int16_t) ((uint32_t) Rt >> (16 * n));
}

HVX_INLINE uint32_t hvx_r_uh(Word32 Rt, int n) {
    return (uint16_t) ((uint32_t) Rt >> (16 * n));
}

// Narrowing into even and odd sub-lanes; only the low half of each lane is taken.
HVX_INLINE HVX_Vector hvx_join_b(hvx_u16 even, hvx_u16 odd) {
    return HVX_V((even & 0xff) | (odd << 8));
}

HVX_INLINE HVX_Vector hvx_join_h(hvx_u32 even, hvx_u32 odd) {
    return HVX_V((even & 0xffff) | (odd << 16));
}

// All lanes of one sign-extended or zero-extended to twice the size, in order.
HVX_INLINE hvx_i64w hvx_wide_w(HVX_Vector v) {
    return __builtin_convertvector((hvx_i32) v, hvx_i64w);
}

HVX_INLINE hvx_i64w hvx_wide_uw(hvx_u32 v) {
    return __builtin_convertvector(v, hvx_i64w);
}

HVX_INLINE HVX_Vector hvx_narrow_w(hvx_i64w v) {
    return HVX_V(__builtin_convertvector(v, hvx_i32));
}

HVX_INLINE hvx_i16 hvx_clamp_h(hvx_i16 v, int16_t low, int16_t high) {
    return __builtin_elementwise_min(__builtin_elementwise_max(v, (hvx_i16){0} + low), (hvx_i16){0} + high);
}

HVX_INLINE hvx_i32 hvx_clamp_w(hvx_i32 v, int32_t low, int32_t high) {
    return __builtin_elementwise_min(__builtin_elementwise_max(v, (hvx_i32){0} + low), (hvx_i32){0} + high);
}

HVX_INLINE hvx_i64w hvx_clamp_d(hvx_i64w v, int64_t low, int64_t high) {
    return __builtin_elementwise_min(__builtin_elementwise_max(v, (hvx_i64w){0} + low), (hvx_i64w){0} + high);
}

HVX_INLINE HVX_Vector hvx_narrow_w_sat(hvx_i64w v) {
    return hvx_narrow_w(hvx_clamp_d(v, INT32_MIN, INT32_MAX));
}

// The bitwise choice that predicates ask for: bytes of `a` where q is set, of `b` elsewhere.
HVX_INLINE HVX_Vector Q6_V_vmux_QVV(HVX_VectorPred Qt, HVX_Vector Vu, HVX_Vector Vv) {
    return (Vu & HVX_V(Qt)) | (Vv & ~HVX_V(Qt));
}

#endif
