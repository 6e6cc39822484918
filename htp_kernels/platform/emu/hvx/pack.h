// Packing, unpacking, extension and saturation between lane sizes, in order or in place.
#ifndef HEXNPU_EMU_HVX_PACK_H
#define HEXNPU_EMU_HVX_PACK_H

#include "base.h"
#include "shift.h"

#define HVX_EVEN(i) (2 * (i))
#define HVX_ODD(i) (2 * (i) + 1)

// Pack across lanes: Vv fills the low half of the result, Vu the high one.

HVX_INLINE HVX_Vector Q6_Vb_vpacke_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_EVEN, 0)));
}

HVX_INLINE HVX_Vector Q6_Vb_vpacko_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_ODD, 0)));
}

HVX_INLINE HVX_Vector Q6_Vh_vpacke_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_EVEN, 0)));
}

HVX_INLINE HVX_Vector Q6_Vh_vpacko_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_ODD, 0)));
}

HVX_INLINE HVX_Vector Q6_Vb_vpack_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vb_vpacke_VhVh(HVX_V(hvx_sat_h_b((hvx_i16) Vu)), HVX_V(hvx_sat_h_b((hvx_i16) Vv)));
}

HVX_INLINE HVX_Vector Q6_Vub_vpack_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vb_vpacke_VhVh(HVX_V(hvx_sat_h_ub((hvx_i16) Vu)), HVX_V(hvx_sat_h_ub((hvx_i16) Vv)));
}

HVX_INLINE HVX_Vector Q6_Vh_vpack_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vh_vpacke_VwVw(HVX_V(hvx_sat_w_h((hvx_i32) Vu)), HVX_V(hvx_sat_w_h((hvx_i32) Vv)));
}

HVX_INLINE HVX_Vector Q6_Vuh_vpack_VwVw_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vh_vpacke_VwVw(HVX_V(hvx_sat_w_uh((hvx_i32) Vu)), HVX_V(hvx_sat_w_uh((hvx_i32) Vv)));
}

// Unpack across lanes: the low half of the vector to the low vector of the pair.

HVX_INLINE HVX_VectorPair Q6_Wh_vunpack_Vb(HVX_Vector Vu) {
    return HVX_W(__builtin_convertvector((hvx_i8) Vu, hvx_i16w));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vunpack_Vub(HVX_Vector Vu) {
    return HVX_W(__builtin_convertvector((hvx_u8) Vu, hvx_u16w));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vunpack_Vh(HVX_Vector Vu) {
    return HVX_W(__builtin_convertvector((hvx_i16) Vu, hvx_i32w));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vunpack_Vuh(HVX_Vector Vu) {
    return HVX_W(__builtin_convertvector((hvx_u16) Vu, hvx_u32w));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vunpackoor_WhVb(HVX_VectorPair Vxx, HVX_Vector Vu) {
    return Vxx | HVX_W(__builtin_convertvector((hvx_u8) Vu, hvx_u16w) << 8);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vunpackoor_WwVh(HVX_VectorPair Vxx, HVX_Vector Vu) {
    return Vxx | HVX_W(__builtin_convertvector((hvx_u16) Vu, hvx_u32w) << 16);
}

// Extension in place: even lanes to the low vector, odd lanes to the high one.

HVX_INLINE HVX_VectorPair Q6_Wh_vsxt_Vb(HVX_Vector Vu) {
    return HVX_PAIR(hvx_even_b(Vu), hvx_odd_b(Vu));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vsxt_Vh(HVX_Vector Vu) {
    return HVX_PAIR(hvx_even_h(Vu), hvx_odd_h(Vu));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vzxt_Vub(HVX_Vector Vu) {
    return HVX_PAIR(hvx_even_ub(Vu), hvx_odd_ub(Vu));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vzxt_Vuh(HVX_Vector Vu) {
    return HVX_PAIR(hvx_even_uh(Vu), hvx_odd_uh(Vu));
}

// Saturation and interleaving: Vv to the even sub-lanes, Vu to the odd ones.

HVX_INLINE HVX_Vector Q6_Vub_vsat_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b(hvx_sat_h_ub((hvx_i16) Vv), hvx_sat_h_ub((hvx_i16) Vu));
}

HVX_INLINE HVX_Vector Q6_Vh_vsat_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_sat_w_h((hvx_i32) Vv), hvx_sat_w_h((hvx_i32) Vu));
}

HVX_INLINE HVX_Vector Q6_Vuh_vsat_VuwVuw(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h(hvx_sat_uw_uh((hvx_u32) Vv), hvx_sat_uw_uh((hvx_u32) Vu));
}

#endif
