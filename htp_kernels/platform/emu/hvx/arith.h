// Element-wise addition, subtraction, averages, absolute values, minimum and maximum.
// Wrapping forms compute on unsigned lanes, because signed overflow is undefined in C.
#ifndef HEXNPU_EMU_HVX_ARITH_H
#define HEXNPU_EMU_HVX_ARITH_H

#include "base.h"

// Wrapping.

HVX_INLINE HVX_Vector Q6_Vb_vadd_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u8) Vu + (hvx_u8) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wb_vadd_WbWb(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u8w) Vuu + (hvx_u8w) Vvv);
}

HVX_INLINE HVX_Vector Q6_Vh_vadd_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u16) Vu + (hvx_u16) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vadd_WhWh(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u16w) Vuu + (hvx_u16w) Vvv);
}

HVX_INLINE HVX_Vector Q6_Vw_vadd_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vu + (hvx_u32) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vadd_WwWw(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u32w) Vuu + (hvx_u32w) Vvv);
}

HVX_INLINE HVX_Vector Q6_Vb_vsub_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u8) Vu - (hvx_u8) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wb_vsub_WbWb(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u8w) Vuu - (hvx_u8w) Vvv);
}

HVX_INLINE HVX_Vector Q6_Vh_vsub_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u16) Vu - (hvx_u16) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vsub_WhWh(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u16w) Vuu - (hvx_u16w) Vvv);
}

HVX_INLINE HVX_Vector Q6_Vw_vsub_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vu - (hvx_u32) Vv);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vsub_WwWw(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W((hvx_u32w) Vuu - (hvx_u32w) Vvv);
}

// Saturating.

HVX_INLINE HVX_Vector Q6_Vb_vadd_VbVb_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_i8) Vu, (hvx_i8) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wb_vadd_WbWb_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_i8w) Vuu, (hvx_i8w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vh_vadd_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_i16) Vu, (hvx_i16) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vadd_WhWh_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_i16w) Vuu, (hvx_i16w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vw_vadd_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vadd_WwWw_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_i32w) Vuu, (hvx_i32w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vub_vadd_VubVub_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_u8) Vu, (hvx_u8) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wub_vadd_WubWub_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_u8w) Vuu, (hvx_u8w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vuh_vadd_VuhVuh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_u16) Vu, (hvx_u16) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vadd_WuhWuh_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_u16w) Vuu, (hvx_u16w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vuw_vadd_VuwVuw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_add_sat((hvx_u32) Vu, (hvx_u32) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vadd_WuwWuw_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_u32w) Vuu, (hvx_u32w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vb_vsub_VbVb_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_i8) Vu, (hvx_i8) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wb_vsub_WbWb_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_i8w) Vuu, (hvx_i8w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vh_vsub_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_i16) Vu, (hvx_i16) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vsub_WhWh_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_i16w) Vuu, (hvx_i16w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vw_vsub_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vsub_WwWw_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_i32w) Vuu, (hvx_i32w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vub_vsub_VubVub_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_u8) Vu, (hvx_u8) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wub_vsub_WubWub_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_u8w) Vuu, (hvx_u8w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vuh_vsub_VuhVuh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_u16) Vu, (hvx_u16) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vsub_WuhWuh_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_u16w) Vuu, (hvx_u16w) Vvv));
}

HVX_INLINE HVX_Vector Q6_Vuw_vsub_VuwVuw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_sub_sat((hvx_u32) Vu, (hvx_u32) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vsub_WuwWuw_sat(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    return HVX_W(__builtin_elementwise_sub_sat((hvx_u32w) Vuu, (hvx_u32w) Vvv));
}

// An unsigned byte and a signed one: the sum or difference lies in [-128, 382] and fits a halfword.
HVX_INLINE HVX_Vector Q6_Vub_vadd_VubVb_sat(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 even = (hvx_i16) hvx_even_ub(Vu) + hvx_even_b(Vv);
    hvx_i16 odd = (hvx_i16) hvx_odd_ub(Vu) + hvx_odd_b(Vv);
    return hvx_join_b((hvx_u16) hvx_clamp_h(even, 0, 255), (hvx_u16) hvx_clamp_h(odd, 0, 255));
}

HVX_INLINE HVX_Vector Q6_Vub_vsub_VubVb_sat(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 even = (hvx_i16) hvx_even_ub(Vu) - hvx_even_b(Vv);
    hvx_i16 odd = (hvx_i16) hvx_odd_ub(Vu) - hvx_odd_b(Vv);
    return hvx_join_b((hvx_u16) hvx_clamp_h(even, 0, 255), (hvx_u16) hvx_clamp_h(odd, 0, 255));
}

// Widening: even lanes to the low vector, odd lanes to the high one.

HVX_INLINE HVX_VectorPair Q6_Wh_vadd_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_ub(Vu) + hvx_even_ub(Vv), hvx_odd_ub(Vu) + hvx_odd_ub(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vadd_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_h(Vu) + hvx_even_h(Vv), hvx_odd_h(Vu) + hvx_odd_h(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vadd_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_uh(Vu) + hvx_even_uh(Vv), hvx_odd_uh(Vu) + hvx_odd_uh(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vsub_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_ub(Vu) - hvx_even_ub(Vv), hvx_odd_ub(Vu) - hvx_odd_ub(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vsub_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_h(Vu) - hvx_even_h(Vv), hvx_odd_h(Vu) - hvx_odd_h(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vsub_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_uh(Vu) - hvx_even_uh(Vv), hvx_odd_uh(Vu) - hvx_odd_uh(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vaddacc_WhVubVub(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_W((hvx_u16w) Vxx + (hvx_u16w) Q6_Wh_vadd_VubVub(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vaddacc_WwVhVh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_W((hvx_u32w) Vxx + (hvx_u32w) Q6_Ww_vadd_VhVh(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vaddacc_WwVuhVuh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_W((hvx_u32w) Vxx + (hvx_u32w) Q6_Ww_vadd_VuhVuh(Vu, Vv));
}

// Under a predicate.

HVX_INLINE HVX_Vector Q6_Vb_condacc_QVbVb(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u8) Vx + (hvx_u8) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vb_condacc_QnVbVb(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u8) Vx + (hvx_u8) Vu));
}

HVX_INLINE HVX_Vector Q6_Vh_condacc_QVhVh(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u16) Vx + (hvx_u16) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vh_condacc_QnVhVh(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u16) Vx + (hvx_u16) Vu));
}

HVX_INLINE HVX_Vector Q6_Vw_condacc_QVwVw(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u32) Vx + (hvx_u32) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vw_condacc_QnVwVw(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u32) Vx + (hvx_u32) Vu));
}

HVX_INLINE HVX_Vector Q6_Vb_condnac_QVbVb(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u8) Vx - (hvx_u8) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vb_condnac_QnVbVb(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u8) Vx - (hvx_u8) Vu));
}

HVX_INLINE HVX_Vector Q6_Vh_condnac_QVhVh(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u16) Vx - (hvx_u16) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vh_condnac_QnVhVh(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u16) Vx - (hvx_u16) Vu));
}

HVX_INLINE HVX_Vector Q6_Vw_condnac_QVwVw(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, HVX_V((hvx_u32) Vx - (hvx_u32) Vu), Vx);
}

HVX_INLINE HVX_Vector Q6_Vw_condnac_QnVwVw(HVX_VectorPred Qv, HVX_Vector Vx, HVX_Vector Vu) {
    return Q6_V_vmux_QVV(Qv, Vx, HVX_V((hvx_u32) Vx - (hvx_u32) Vu));
}

// With carry: bit 4i of the predicate is word i's carry in; a carry out sets all four bits of its word.
HVX_INLINE hvx_u32 hvx_carry_in(HVX_VectorPred q) {
    return (hvx_u32) q & 1;
}

HVX_INLINE HVX_Vector Q6_Vw_vadd_VwVwQ_carry(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred *Qx) {
    hvx_u32 a = (hvx_u32) Vu, carry = hvx_carry_in(*Qx), sum = a + (hvx_u32) Vv + carry;
    *Qx = HVX_Q((sum < a) | ((sum == a) & (carry != 0)));
    return HVX_V(sum);
}

HVX_INLINE HVX_Vector Q6_Vw_vsub_VwVwQ_carry(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred *Qx) {
    return Q6_Vw_vadd_VwVwQ_carry(Vu, ~Vv, Qx);
}

HVX_INLINE HVX_Vector Q6_Vw_vadd_VwVwQ_carry_sat(HVX_Vector Vu, HVX_Vector Vv, HVX_VectorPred Qs) {
    return hvx_narrow_w_sat(hvx_wide_w(Vu) + hvx_wide_w(Vv) + hvx_wide_uw(hvx_carry_in(Qs)));
}

// Word i of Vu over word i of Vv is a 64-bit number.
HVX_INLINE HVX_Vector Q6_Vw_vsatdw_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w_sat((hvx_wide_w(Vu) << 32) | hvx_wide_uw((hvx_u32) Vv));
}

// Averages: floor of the half sum without a wider lane, or with a half added first (:rnd).

HVX_INLINE HVX_Vector Q6_Vub_vavg_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u8) Vu & (hvx_u8) Vv) + (((hvx_u8) Vu ^ (hvx_u8) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vub_vavg_VubVub_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u8) Vu | (hvx_u8) Vv) - (((hvx_u8) Vu ^ (hvx_u8) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vuh_vavg_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u16) Vu & (hvx_u16) Vv) + (((hvx_u16) Vu ^ (hvx_u16) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vuh_vavg_VuhVuh_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u16) Vu | (hvx_u16) Vv) - (((hvx_u16) Vu ^ (hvx_u16) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vuw_vavg_VuwVuw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u32) Vu & (hvx_u32) Vv) + (((hvx_u32) Vu ^ (hvx_u32) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vuw_vavg_VuwVuw_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u32) Vu | (hvx_u32) Vv) - (((hvx_u32) Vu ^ (hvx_u32) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vb_vavg_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i8) Vu & (hvx_i8) Vv) + (((hvx_i8) Vu ^ (hvx_i8) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vb_vavg_VbVb_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i8) Vu | (hvx_i8) Vv) - (((hvx_i8) Vu ^ (hvx_i8) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vh_vavg_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i16) Vu & (hvx_i16) Vv) + (((hvx_i16) Vu ^ (hvx_i16) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vh_vavg_VhVh_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i16) Vu | (hvx_i16) Vv) - (((hvx_i16) Vu ^ (hvx_i16) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vw_vavg_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i32) Vu & (hvx_i32) Vv) + (((hvx_i32) Vu ^ (hvx_i32) Vv) >> 1));
}

HVX_INLINE HVX_Vector Q6_Vw_vavg_VwVw_rnd(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_i32) Vu | (hvx_i32) Vv) - (((hvx_i32) Vu ^ (hvx_i32) Vv) >> 1));
}

// Half the difference: a - b = a + ~b + 1, the rounded average of a and ~b.

HVX_INLINE HVX_Vector Q6_Vb_vnavg_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vb_vavg_VbVb_rnd(Vu, ~Vv);
}

HVX_INLINE HVX_Vector Q6_Vh_vnavg_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vh_vavg_VhVh_rnd(Vu, ~Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vnavg_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vw_vavg_VwVw_rnd(Vu, ~Vv);
}

HVX_INLINE HVX_Vector Q6_Vb_vnavg_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector flip = Q6_Vb_vsplat_R(0x80);
    return Q6_Vb_vnavg_VbVb(Vu ^ flip, Vv ^ flip);
}

// Absolute values and differences.

HVX_INLINE HVX_Vector Q6_Vb_vabs_Vb(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_abs((hvx_i8) Vu));
}

HVX_INLINE HVX_Vector Q6_Vb_vabs_Vb_sat(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_max((hvx_i8) Vu, __builtin_elementwise_sub_sat((hvx_i8){0}, (hvx_i8) Vu)));
}

HVX_INLINE HVX_Vector Q6_Vh_vabs_Vh(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_abs((hvx_i16) Vu));
}

HVX_INLINE HVX_Vector Q6_Vh_vabs_Vh_sat(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_max((hvx_i16) Vu, __builtin_elementwise_sub_sat((hvx_i16){0}, (hvx_i16) Vu)));
}

HVX_INLINE HVX_Vector Q6_Vw_vabs_Vw(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_abs((hvx_i32) Vu));
}

HVX_INLINE HVX_Vector Q6_Vw_vabs_Vw_sat(HVX_Vector Vu) {
    return HVX_V(__builtin_elementwise_max((hvx_i32) Vu, __builtin_elementwise_sub_sat((hvx_i32){0}, (hvx_i32) Vu)));
}

HVX_INLINE HVX_Vector Q6_Vub_vabsdiff_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 a = (hvx_u8) Vu, b = (hvx_u8) Vv;
    return HVX_V((hvx_u8) __builtin_elementwise_max(a, b) - (hvx_u8) __builtin_elementwise_min(a, b));
}

HVX_INLINE HVX_Vector Q6_Vuh_vabsdiff_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 a = (hvx_u16) Vu, b = (hvx_u16) Vv;
    return HVX_V((hvx_u16) __builtin_elementwise_max(a, b) - (hvx_u16) __builtin_elementwise_min(a, b));
}

HVX_INLINE HVX_Vector Q6_Vuh_vabsdiff_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 a = (hvx_i16) Vu, b = (hvx_i16) Vv;
    return HVX_V((hvx_u16) __builtin_elementwise_max(a, b) - (hvx_u16) __builtin_elementwise_min(a, b));
}

HVX_INLINE HVX_Vector Q6_Vuw_vabsdiff_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 a = (hvx_i32) Vu, b = (hvx_i32) Vv;
    return HVX_V((hvx_u32) __builtin_elementwise_max(a, b) - (hvx_u32) __builtin_elementwise_min(a, b));
}

// Minimum and maximum.

HVX_INLINE HVX_Vector Q6_Vb_vmax_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_max((hvx_i8) Vu, (hvx_i8) Vv));
}

HVX_INLINE HVX_Vector Q6_Vub_vmax_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_max((hvx_u8) Vu, (hvx_u8) Vv));
}

HVX_INLINE HVX_Vector Q6_Vh_vmax_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_max((hvx_i16) Vu, (hvx_i16) Vv));
}

HVX_INLINE HVX_Vector Q6_Vuh_vmax_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_max((hvx_u16) Vu, (hvx_u16) Vv));
}

HVX_INLINE HVX_Vector Q6_Vw_vmax_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_max((hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_Vector Q6_Vb_vmin_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_min((hvx_i8) Vu, (hvx_i8) Vv));
}

HVX_INLINE HVX_Vector Q6_Vub_vmin_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_min((hvx_u8) Vu, (hvx_u8) Vv));
}

HVX_INLINE HVX_Vector Q6_Vh_vmin_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_min((hvx_i16) Vu, (hvx_i16) Vv));
}

HVX_INLINE HVX_Vector Q6_Vuh_vmin_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_min((hvx_u16) Vu, (hvx_u16) Vv));
}

HVX_INLINE HVX_Vector Q6_Vw_vmin_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_elementwise_min((hvx_i32) Vu, (hvx_i32) Vv));
}

#endif
