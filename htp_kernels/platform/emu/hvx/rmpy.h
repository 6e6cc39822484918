// Four-way byte dot products (vrmpy) into words, and sums of absolute differences over the same windows.
#ifndef HEXNPU_EMU_HVX_RMPY_H
#define HEXNPU_EMU_HVX_RMPY_H

#include "permute.h"

HVX_INLINE HVX_Vector hvx_dot4_ub_b_step(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u32 sum = (hvx_u32) Vx;
    for (int n = 0; n < 4; n++) {
        sum += hvx_ub_of_w(Vu, n) * (hvx_u32) hvx_b_of_w(Vv, n);
    }
    return HVX_V(sum);
}

// Vx.w += Vu.ub . Vv.b, modulo 2^32: exactly one vpdpbusd per 64 bytes where the processor has it.
HVX_INLINE HVX_Vector hvx_dot4_ub_b(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
#if defined(HVX_EMU_VNNI)
    return hvx_from_zmm(_mm512_dpbusd_epi32(hvx_zmm(Vx, 0), hvx_zmm(Vu, 0), hvx_zmm(Vv, 0)),
                        _mm512_dpbusd_epi32(hvx_zmm(Vx, 1), hvx_zmm(Vu, 1), hvx_zmm(Vv, 1)));
#elif defined(HVX_EMU_AVX2)
    // vpmaddubsw saturates, so widen first: even and odd bytes as halfwords, then pairwise products to words.
    typedef int ymm_words __attribute__((vector_size(32)));
    union hvx_ymm {
        HVX_Vector v;
        __m256i y[4];
    } even = {.v = HVX_V(hvx_even_ub(Vu))}, odd = {.v = HVX_V(hvx_odd_ub(Vu))};
    union hvx_ymm even_b = {.v = HVX_V(hvx_even_b(Vv))}, odd_b = {.v = HVX_V(hvx_odd_b(Vv))}, out;
    for (int i = 0; i < 4; i++) {
        ymm_words products = (ymm_words) _mm256_madd_epi16(even.y[i], even_b.y[i]);
        out.y[i] = (__m256i) (products + (ymm_words) _mm256_madd_epi16(odd.y[i], odd_b.y[i]));
    }
    return HVX_V((hvx_u32) Vx + (hvx_u32) out.v);
#else
    return hvx_dot4_ub_b_step(Vx, Vu, Vv);
#endif
}

// Signed by signed: (u + 128) . v - 128 . v. The second product depends on Vv only and leaves a loop that reuses it.
HVX_INLINE HVX_Vector hvx_dot4_b_b(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector bias = Q6_Vb_vsplat_R(0x80);
    HVX_Vector excess = hvx_dot4_ub_b(Q6_V_vzero(), bias, Vv);
    return HVX_V((hvx_u32) hvx_dot4_ub_b(Vx, Vu ^ bias, Vv) - (hvx_u32) excess);
}

// Unsigned by unsigned: u . (v - 128) + 128 . u.
HVX_INLINE HVX_Vector hvx_dot4_ub_ub(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector bias = Q6_Vb_vsplat_R(0x80);
    HVX_Vector missing = hvx_dot4_ub_b(Q6_V_vzero(), Vu, bias);
    return HVX_V((hvx_u32) hvx_dot4_ub_b(Vx, Vu, Vv ^ bias) - (hvx_u32) missing);
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpy_VubVb(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_ub_b(Q6_V_vzero(), Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpyacc_VwVubVb(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_ub_b(Vx, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpy_VubRb(HVX_Vector Vu, Word32 Rt) {
    return hvx_dot4_ub_b(Q6_V_vzero(), Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpyacc_VwVubRb(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return hvx_dot4_ub_b(Vx, Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpy_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_b_b(Q6_V_vzero(), Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vrmpyacc_VwVbVb(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_b_b(Vx, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vuw_vrmpy_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_ub_ub(Q6_V_vzero(), Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vuw_vrmpyacc_VuwVubVub(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot4_ub_ub(Vx, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vuw_vrmpy_VubRub(HVX_Vector Vu, Word32 Rt) {
    return hvx_dot4_ub_ub(Q6_V_vzero(), Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vuw_vrmpyacc_VuwVubRub(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return hvx_dot4_ub_ub(Vx, Vu, Q6_V_vsplat_R(Rt));
}

// The sliding forms over a pair, one window for each result vector. Window 0 is the low vector, its byte 0 taken from
// the high vector when the immediate is 1; window 1 is the high vector's first half before the low one's second half.
HVX_INLINE HVX_Vector hvx_window_low(HVX_VectorPair Vuu, Word32 Iu1) {
    hvx_u32 low = (hvx_u32) Q6_V_lo_W(Vuu), high = (hvx_u32) Q6_V_hi_W(Vuu);
    return HVX_V(Iu1 ? (low & ~0xffu) | (high & 0xff) : low);
}

HVX_INLINE HVX_Vector hvx_window_high(HVX_VectorPair Vuu, Word32 Iu1) {
    hvx_u32 low = (hvx_u32) Q6_V_lo_W(Vuu), high = (hvx_u32) Q6_V_hi_W(Vuu);
    uint32_t from_high = Iu1 ? 0x00ffffffu : 0x0000ffffu;
    return HVX_V((high & from_high) | (low & ~from_high));
}

// The scalar's bytes as window 0 and window 1 meet them: rotated up by the immediate, and two bytes further.
HVX_INLINE Word32 hvx_rotate_up(Word32 Rt, int bytes) {
    uint32_t r = (uint32_t) Rt;
    int bits = 8 * (bytes & 3);
    return bits ? (Word32) ((r << bits) | (r >> (32 - bits))) : Rt;
}

HVX_INLINE HVX_VectorPair Q6_Ww_vrmpyacc_WwWubRbI(
    HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    HVX_Vector r0 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1)), r1 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1 + 2));
    HVX_Vector low = hvx_dot4_ub_b(Q6_V_lo_W(Vxx), hvx_window_low(Vuu, Iu1), r0);
    HVX_Vector high = hvx_dot4_ub_b(Q6_V_hi_W(Vxx), hvx_window_high(Vuu, Iu1), r1);
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vrmpy_WubRbI(HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    return Q6_Ww_vrmpyacc_WwWubRbI(Q6_W_vzero(), Vuu, Rt, Iu1);
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vrmpyacc_WuwWubRubI(
    HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    HVX_Vector r0 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1)), r1 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1 + 2));
    HVX_Vector low = hvx_dot4_ub_ub(Q6_V_lo_W(Vxx), hvx_window_low(Vuu, Iu1), r0);
    HVX_Vector high = hvx_dot4_ub_ub(Q6_V_hi_W(Vxx), hvx_window_high(Vuu, Iu1), r1);
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vrmpy_WubRubI(HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    return Q6_Wuw_vrmpyacc_WuwWubRubI(Q6_W_vzero(), Vuu, Rt, Iu1);
}

HVX_INLINE hvx_u32 hvx_sad4(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 u = (hvx_u8) Vu, v = (hvx_u8) Vv;
    hvx_u8 distance = __builtin_elementwise_max(u, v) - __builtin_elementwise_min(u, v);
    return (hvx_u32) hvx_dot4_ub_b(Vx, HVX_V(distance), Q6_Vb_vsplat_R(1));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vrsadacc_WuwWubRubI(
    HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    HVX_Vector r0 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1)), r1 = Q6_V_vsplat_R(hvx_rotate_up(Rt, Iu1 + 2));
    hvx_u32 low = hvx_sad4(Q6_V_lo_W(Vxx), hvx_window_low(Vuu, Iu1), r0);
    hvx_u32 high = hvx_sad4(Q6_V_hi_W(Vxx), hvx_window_high(Vuu, Iu1), r1);
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vrsad_WubRubI(HVX_VectorPair Vuu, Word32 Rt, Word32 Iu1) {
    return Q6_Wuw_vrsadacc_WuwWubRubI(Q6_W_vzero(), Vuu, Rt, Iu1);
}

HVX_INLINE hvx_u32 hvx_distance_w(hvx_u32 a, hvx_u32 b) {
    return __builtin_elementwise_max(a, b) - __builtin_elementwise_min(a, b);
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vdsadacc_WuwWuhRuh(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    hvx_u32 r0 = (hvx_u32){0} + hvx_r_uh(Rt, 0), r1 = (hvx_u32){0} + hvx_r_uh(Rt, 1);
    hvx_u32 low = hvx_distance_w(hvx_even_uh(u0), r0) + hvx_distance_w(hvx_odd_uh(u0), r1);
    hvx_u32 high = hvx_distance_w(hvx_odd_uh(u0), r0) + hvx_distance_w(hvx_even_uh(u1), r1);
    return HVX_W((hvx_u32w) Vxx + (hvx_u32w) HVX_PAIR(low, high));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vdsad_WuhRuh(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Wuw_vdsadacc_WuwWuhRuh(Q6_W_vzero(), Vuu, Rt);
}

#endif
