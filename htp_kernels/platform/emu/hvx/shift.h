// Shifts, rotations, rounding and narrowing shifts, and counts of leading bits.
// A scalar amount is taken modulo the lane width; a vector amount is signed and shifts the other way when negative.
#ifndef HEXNPU_EMU_HVX_SHIFT_H
#define HEXNPU_EMU_HVX_SHIFT_H

#include "base.h"

// By a scalar.

HVX_INLINE HVX_Vector Q6_Vh_vasl_VhR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vu << (Rt & 15));
}

HVX_INLINE HVX_Vector Q6_Vh_vasr_VhR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_i16) Vu >> (Rt & 15));
}

HVX_INLINE HVX_Vector Q6_Vuh_vlsr_VuhR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vu >> (Rt & 15));
}

HVX_INLINE HVX_Vector Q6_Vh_vaslacc_VhVhR(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vx + (hvx_u16) Q6_Vh_vasl_VhR(Vu, Rt));
}

HVX_INLINE HVX_Vector Q6_Vh_vasracc_VhVhR(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vx + (hvx_u16) Q6_Vh_vasr_VhR(Vu, Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vasl_VwR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vu << (Rt & 31));
}

HVX_INLINE HVX_Vector Q6_Vw_vasr_VwR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_i32) Vu >> (Rt & 31));
}

HVX_INLINE HVX_Vector Q6_Vuw_vlsr_VuwR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vu >> (Rt & 31));
}

HVX_INLINE HVX_Vector Q6_Vw_vaslacc_VwVwR(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Q6_Vw_vasl_VwR(Vu, Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vasracc_VwVwR(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Q6_Vw_vasr_VwR(Vu, Rt));
}

HVX_INLINE HVX_Vector Q6_Vub_vlsr_VubR(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u8) Vu >> (Rt & 7));
}

// By a vector: 5 signed bits for halfwords, 6 for words. -s - 1 = ~s, so a full-width shift takes two steps.

HVX_INLINE hvx_i16 hvx_shift_amount_h(HVX_Vector v) {
    return (hvx_i16) ((hvx_u16) v << 11) >> 11;
}

HVX_INLINE HVX_Vector Q6_Vh_vasr_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 s = hvx_shift_amount_h(Vv);
    HVX_Vector left = HVX_V(((hvx_u16) Vu << ((hvx_u16) ~s & 15)) << 1);
    HVX_Vector right = HVX_V((hvx_i16) Vu >> (s & 15));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), left, right);
}

HVX_INLINE HVX_Vector Q6_Vh_vasl_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 s = hvx_shift_amount_h(Vv);
    HVX_Vector right = HVX_V(((hvx_i16) Vu >> (~s & 15)) >> 1);
    HVX_Vector left = HVX_V((hvx_u16) Vu << ((hvx_u16) s & 15));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), right, left);
}

HVX_INLINE HVX_Vector Q6_Vh_vlsr_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 s = hvx_shift_amount_h(Vv);
    HVX_Vector left = HVX_V(((hvx_u16) Vu << ((hvx_u16) ~s & 15)) << 1);
    HVX_Vector right = HVX_V((hvx_u16) Vu >> ((hvx_u16) s & 15));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), left, right);
}

HVX_INLINE hvx_i32 hvx_shift_amount_w(HVX_Vector v) {
    return (hvx_i32) ((hvx_u32) v << 26) >> 26;
}

HVX_INLINE HVX_Vector Q6_Vw_vasr_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 s = hvx_shift_amount_w(Vv);
    HVX_Vector left = HVX_V(((hvx_u32) Vu << ((hvx_u32) ~s & 31)) << 1);
    HVX_Vector right = HVX_V((hvx_i32) Vu >> (s & 31));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), left, right);
}

HVX_INLINE HVX_Vector Q6_Vw_vasl_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 s = hvx_shift_amount_w(Vv);
    HVX_Vector right = HVX_V(((hvx_i32) Vu >> (~s & 31)) >> 1);
    HVX_Vector left = HVX_V((hvx_u32) Vu << ((hvx_u32) s & 31));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), right, left);
}

HVX_INLINE HVX_Vector Q6_Vw_vlsr_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 s = hvx_shift_amount_w(Vv);
    HVX_Vector left = HVX_V(((hvx_u32) Vu << ((hvx_u32) ~s & 31)) << 1);
    HVX_Vector right = HVX_V((hvx_u32) Vu >> ((hvx_u32) s & 31));
    return Q6_V_vmux_QVV(HVX_Q(s < 0), left, right);
}

HVX_INLINE HVX_Vector Q6_Vuw_vrotr_VuwVuw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u32 x = (hvx_u32) Vu, n = (hvx_u32) Vv & 31;
    return HVX_V((x >> n) | (x << (-n & 31)));
}

// Shifts Vu's word with the pair's low word behind it, and puts the bits that drop out into the low word.
HVX_INLINE HVX_VectorPair Q6_Ww_vasrinto_WwVwVw(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i64w value = hvx_wide_w(Vu) << 32;
    hvx_u32 low = (hvx_u32) Q6_V_lo_W(Vxx);
    hvx_i64w mask = (hvx_wide_uw(low) << 32) | hvx_wide_uw(low);
    hvx_i64w low_mask = (hvx_i64w){0} + 0xffffffffll;
    hvx_i64w amount = hvx_wide_w(Vv);
    hvx_i64w count = (amount & 0x3f) - (amount & 0x40);
    hvx_i64w right_by = count & 63, left_by = -count & 63;
    hvx_i64w right = (value >> right_by) | (mask & (low_mask >> right_by));
    hvx_i64w left = (value << left_by) | (mask & (low_mask << left_by));
    hvx_i64w negative = count < 0;
    hvx_i64w result = ((left & negative) | (right & ~negative)) & ~(count == -64);
    return HVX_PAIR(hvx_narrow_w(result), hvx_narrow_w(result >> 32));
}

// Right shifts with a half added first, without a wider lane. n = 0 rounds nothing.
HVX_INLINE hvx_i32 hvx_asr_rnd_w(hvx_i32 v, int n) {
    return n ? (v >> n) + ((v >> (n - 1)) & 1) : v;
}

HVX_INLINE hvx_u32 hvx_lsr_rnd_w(hvx_u32 v, int n) {
    return n ? (v >> n) + ((v >> (n - 1)) & 1) : v;
}

HVX_INLINE hvx_i16 hvx_asr_rnd_h(hvx_i16 v, int n) {
    return n ? (hvx_i16) ((v >> n) + ((v >> (n - 1)) & 1)) : v;
}

HVX_INLINE hvx_u16 hvx_lsr_rnd_h(hvx_u16 v, int n) {
    return n ? (hvx_u16) ((v >> n) + ((v >> (n - 1)) & 1)) : v;
}

// Saturation of a wide lane to the narrow one named last, still in the wide lane.
HVX_INLINE hvx_u32 hvx_sat_w_h(hvx_i32 v) {
    return (hvx_u32) hvx_clamp_w(v, INT16_MIN, INT16_MAX);
}

HVX_INLINE hvx_u32 hvx_sat_w_uh(hvx_i32 v) {
    return (hvx_u32) hvx_clamp_w(v, 0, UINT16_MAX);
}

HVX_INLINE hvx_u32 hvx_sat_uw_uh(hvx_u32 v) {
    return __builtin_elementwise_min(v, (hvx_u32){0} + UINT16_MAX);
}

HVX_INLINE hvx_u16 hvx_sat_h_b(hvx_i16 v) {
    return (hvx_u16) hvx_clamp_h(v, INT8_MIN, INT8_MAX);
}

HVX_INLINE hvx_u16 hvx_sat_h_ub(hvx_i16 v) {
    return (hvx_u16) hvx_clamp_h(v, 0, UINT8_MAX);
}

HVX_INLINE hvx_u16 hvx_sat_uh_ub(hvx_u16 v) {
    return __builtin_elementwise_min(v, (hvx_u16){0} + UINT8_MAX);
}

// Narrowing: Vv to the even sub-lanes, Vu to the odd ones.

HVX_INLINE HVX_Vector Q6_Vh_vasr_VwVwR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return hvx_join_h((hvx_u32) Vv >> (Rt & 15), (hvx_u32) Vu >> (Rt & 15));
}

HVX_INLINE HVX_Vector Q6_Vh_vasr_VwVwR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_w_h((hvx_i32) Vv >> n), hvx_sat_w_h((hvx_i32) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vh_vasr_VwVwR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_w_h(hvx_asr_rnd_w((hvx_i32) Vv, n)), hvx_sat_w_h(hvx_asr_rnd_w((hvx_i32) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_VwVwR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_w_uh((hvx_i32) Vv >> n), hvx_sat_w_uh((hvx_i32) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_VwVwR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_w_uh(hvx_asr_rnd_w((hvx_i32) Vv, n)), hvx_sat_w_uh(hvx_asr_rnd_w((hvx_i32) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_VuwVuwR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_uw_uh((hvx_u32) Vv >> n), hvx_sat_uw_uh((hvx_u32) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_VuwVuwR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 15;
    return hvx_join_h(hvx_sat_uw_uh(hvx_lsr_rnd_w((hvx_u32) Vv, n)), hvx_sat_uw_uh(hvx_lsr_rnd_w((hvx_u32) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vb_vasr_VhVhR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_h_b((hvx_i16) Vv >> n), hvx_sat_h_b((hvx_i16) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vb_vasr_VhVhR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_h_b(hvx_asr_rnd_h((hvx_i16) Vv, n)), hvx_sat_h_b(hvx_asr_rnd_h((hvx_i16) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vub_vasr_VhVhR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_h_ub((hvx_i16) Vv >> n), hvx_sat_h_ub((hvx_i16) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vub_vasr_VhVhR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_h_ub(hvx_asr_rnd_h((hvx_i16) Vv, n)), hvx_sat_h_ub(hvx_asr_rnd_h((hvx_i16) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vub_vasr_VuhVuhR_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_uh_ub((hvx_u16) Vv >> n), hvx_sat_uh_ub((hvx_u16) Vu >> n));
}

HVX_INLINE HVX_Vector Q6_Vub_vasr_VuhVuhR_rnd_sat(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    int n = Rt & 7;
    return hvx_join_b(hvx_sat_uh_ub(hvx_lsr_rnd_h((hvx_u16) Vv, n)), hvx_sat_uh_ub(hvx_lsr_rnd_h((hvx_u16) Vu, n)));
}

HVX_INLINE HVX_Vector Q6_Vh_vround_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_sat_w_h(hvx_asr_rnd_w((hvx_i32) Vv, 16)), hvx_sat_w_h(hvx_asr_rnd_w((hvx_i32) Vu, 16)));
}

HVX_INLINE HVX_Vector Q6_Vuh_vround_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_sat_w_uh(hvx_asr_rnd_w((hvx_i32) Vv, 16)), hvx_sat_w_uh(hvx_asr_rnd_w((hvx_i32) Vu, 16)));
}

HVX_INLINE HVX_Vector Q6_Vuh_vround_VuwVuw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_sat_uw_uh(hvx_lsr_rnd_w((hvx_u32) Vv, 16)), hvx_sat_uw_uh(hvx_lsr_rnd_w((hvx_u32) Vu, 16)));
}

HVX_INLINE HVX_Vector Q6_Vb_vround_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b(hvx_sat_h_b(hvx_asr_rnd_h((hvx_i16) Vv, 8)), hvx_sat_h_b(hvx_asr_rnd_h((hvx_i16) Vu, 8)));
}

HVX_INLINE HVX_Vector Q6_Vub_vround_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b(hvx_sat_h_ub(hvx_asr_rnd_h((hvx_i16) Vv, 8)), hvx_sat_h_ub(hvx_asr_rnd_h((hvx_i16) Vu, 8)));
}

HVX_INLINE HVX_Vector Q6_Vub_vround_VuhVuh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b(hvx_sat_uh_ub(hvx_lsr_rnd_h((hvx_u16) Vv, 8)), hvx_sat_uh_ub(hvx_lsr_rnd_h((hvx_u16) Vu, 8)));
}

// Narrowing a pair by a vector of amounts (v69): even sub-lanes from the low vector.

HVX_INLINE HVX_Vector Q6_Vub_vasr_WuhVub_sat(HVX_VectorPair Vuu, HVX_Vector Vv) {
    hvx_u16 low = (hvx_u16) Q6_V_lo_W(Vuu), high = (hvx_u16) Q6_V_hi_W(Vuu);
    hvx_u16 n0 = (hvx_u16) hvx_even_ub(Vv) & 7, n1 = (hvx_u16) hvx_odd_ub(Vv) & 7;
    return hvx_join_b(hvx_sat_uh_ub(low >> n0), hvx_sat_uh_ub(high >> n1));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_WwVuh_sat(HVX_VectorPair Vuu, HVX_Vector Vv) {
    hvx_i32 low = (hvx_i32) Q6_V_lo_W(Vuu), high = (hvx_i32) Q6_V_hi_W(Vuu);
    hvx_i32 n0 = (hvx_i32) hvx_even_uh(Vv) & 15, n1 = (hvx_i32) hvx_odd_uh(Vv) & 15;
    return hvx_join_h(hvx_sat_w_uh(low >> n0), hvx_sat_w_uh(high >> n1));
}

HVX_INLINE HVX_Vector Q6_Vub_vasr_WuhVub_rnd_sat(HVX_VectorPair Vuu, HVX_Vector Vv) {
    hvx_u16 low = (hvx_u16) Q6_V_lo_W(Vuu), high = (hvx_u16) Q6_V_hi_W(Vuu);
    hvx_u16 n0 = (hvx_u16) hvx_even_ub(Vv) & 7, n1 = (hvx_u16) hvx_odd_ub(Vv) & 7;
    hvx_u16 half0 = (low >> ((n0 - 1) & 7)) & (hvx_u16) (n0 != 0) & 1;
    hvx_u16 half1 = (high >> ((n1 - 1) & 7)) & (hvx_u16) (n1 != 0) & 1;
    return hvx_join_b(hvx_sat_uh_ub((low >> n0) + half0), hvx_sat_uh_ub((high >> n1) + half1));
}

HVX_INLINE HVX_Vector Q6_Vuh_vasr_WwVuh_rnd_sat(HVX_VectorPair Vuu, HVX_Vector Vv) {
    hvx_i32 low = (hvx_i32) Q6_V_lo_W(Vuu), high = (hvx_i32) Q6_V_hi_W(Vuu);
    hvx_i32 n0 = (hvx_i32) hvx_even_uh(Vv) & 15, n1 = (hvx_i32) hvx_odd_uh(Vv) & 15;
    hvx_i32 half0 = (low >> ((n0 - 1) & 15)) & (hvx_i32) (n0 != 0) & 1;
    hvx_i32 half1 = (high >> ((n1 - 1) & 15)) & (hvx_i32) (n1 != 0) & 1;
    return hvx_join_h(hvx_sat_w_uh((low >> n0) + half0), hvx_sat_w_uh((high >> n1) + half1));
}

// clang 18 and 19 have no vector popcount: sums of bits in pairs, nibbles and bytes there.
#if __has_builtin(__builtin_elementwise_popcount)
HVX_INLINE hvx_u16 hvx_popcount_h(hvx_u16 v) {
    return __builtin_elementwise_popcount(v);
}

HVX_INLINE hvx_u32 hvx_popcount_w(hvx_u32 v) {
    return __builtin_elementwise_popcount(v);
}
#else
HVX_INLINE hvx_u16 hvx_popcount_h(hvx_u16 v) {
    v -= (v >> 1) & 0x5555;
    v = (v & 0x3333) + ((v >> 2) & 0x3333);
    v = (v + (v >> 4)) & 0x0f0f;
    return (v + (v >> 8)) & 0x1f;
}

HVX_INLINE hvx_u32 hvx_popcount_w(hvx_u32 v) {
    hvx_u16 halves = hvx_popcount_h((hvx_u16) v);
    return ((hvx_u32) halves & 0xffff) + ((hvx_u32) halves >> 16);
}
#endif

// Leading zeros: smear the top bit downwards and count what is left above it.
HVX_INLINE hvx_u16 hvx_clz_h(hvx_u16 v) {
    v |= v >> 1;
    v |= v >> 2;
    v |= v >> 4;
    v |= v >> 8;
    return hvx_popcount_h(~v);
}

HVX_INLINE hvx_u32 hvx_clz_w(hvx_u32 v) {
    v |= v >> 1;
    v |= v >> 2;
    v |= v >> 4;
    v |= v >> 8;
    v |= v >> 16;
    return hvx_popcount_w(~v);
}

// How many leading bits equal the sign bit, the sign itself counted.
HVX_INLINE hvx_u16 hvx_clb_h(HVX_Vector v) {
    return hvx_clz_h((hvx_u16) v ^ (hvx_u16) ((hvx_i16) v >> 15));
}

HVX_INLINE hvx_u32 hvx_clb_w(HVX_Vector v) {
    return hvx_clz_w((hvx_u32) v ^ (hvx_u32) ((hvx_i32) v >> 31));
}

HVX_INLINE HVX_Vector Q6_Vuh_vcl0_Vuh(HVX_Vector Vu) {
    return HVX_V(hvx_clz_h((hvx_u16) Vu));
}

HVX_INLINE HVX_Vector Q6_Vuw_vcl0_Vuw(HVX_Vector Vu) {
    return HVX_V(hvx_clz_w((hvx_u32) Vu));
}

HVX_INLINE HVX_Vector Q6_Vh_vnormamt_Vh(HVX_Vector Vu) {
    return HVX_V(hvx_clb_h(Vu) - 1);
}

HVX_INLINE HVX_Vector Q6_Vw_vnormamt_Vw(HVX_Vector Vu) {
    return HVX_V(hvx_clb_w(Vu) - 1);
}

HVX_INLINE HVX_Vector Q6_Vh_vadd_vclb_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_clb_h(Vu) + (hvx_u16) Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vadd_vclb_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_clb_w(Vu) + (hvx_u32) Vv);
}

HVX_INLINE HVX_Vector Q6_Vh_vpopcount_Vh(HVX_Vector Vu) {
    return HVX_V(hvx_popcount_h((hvx_u16) Vu));
}

#endif
