// The qfloat intrinsics, over either model. A qf16 vector is computed as its even and its odd lanes.
//
// Left out, so that they do not compile: vilog2 of halves, conversions between f8 and qf16, and the moves of the extension
// bits (vgetqfext, vsetqfext, vmerge), which this layout does not have.
#ifndef HEXNPU_EMU_HVX_QF_INTRINSICS_H
#define HEXNPU_EMU_HVX_QF_INTRINSICS_H

#include "bf.h"

HVX_INLINE HVX_Vector hvx_qf16_lanes(hvx_qf_op op, HVX_Vector u, HVX_Vector v) {
    return hvx_join_h((hvx_u32) hvx_qf_apply(op, HVX_QF16, hvx_even_h(u), hvx_even_h(v)),
                      (hvx_u32) hvx_qf_apply(op, HVX_QF16, hvx_odd_h(u), hvx_odd_h(v)));
}

HVX_INLINE HVX_Vector hvx_qf16_products(hvx_qf_product_op op, HVX_Vector u, HVX_Vector v) {
    return hvx_join_h((hvx_u32) hvx_qf_apply_product(op, HVX_QF16, HVX_QF16, hvx_even_h(u), hvx_even_h(v)),
                      (hvx_u32) hvx_qf_apply_product(op, HVX_QF16, HVX_QF16, hvx_odd_h(u), hvx_odd_h(v)));
}

// Even lanes to the low vector of the result, odd lanes to the high one.
HVX_INLINE HVX_VectorPair hvx_qf32_products_of_16(hvx_qf_product_op op, HVX_Vector u, HVX_Vector v) {
    return HVX_PAIR(hvx_qf_apply_product(op, HVX_QF32, HVX_QF16, hvx_even_h(u), hvx_even_h(v)),
                    hvx_qf_apply_product(op, HVX_QF32, HVX_QF16, hvx_odd_h(u), hvx_odd_h(v)));
}

HVX_INLINE HVX_Vector hvx_flip_sf(HVX_Vector v) {
    return v ^ Q6_V_vsplat_R((int32_t) 0x80000000u);
}

HVX_INLINE HVX_Vector hvx_flip_hf(HVX_Vector v) {
    return v ^ Q6_Vh_vsplat_R(0x8000);
}

// qf32 sums.
HVX_INLINE HVX_Vector Q6_Vqf32_vadd_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_add_ieee, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vadd_Vqf32Vsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_add_mix, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vadd_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_add, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vsub_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_add_ieee, HVX_QF32, (hvx_i32) Vu, (hvx_i32) hvx_flip_sf(Vv)));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vsub_Vqf32Vsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_add_mix, HVX_QF32, (hvx_i32) Vu, (hvx_i32) hvx_flip_sf(Vv)));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vsub_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply(hvx_qf_sub, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

// qf32 products.
HVX_INLINE HVX_Vector Q6_Vqf32_vmpy_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply_product(hvx_qf_mpy_ieee, HVX_QF32, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vmpy_Vqf32Vqf32(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(hvx_qf_apply_product(hvx_qf_mpy, HVX_QF32, HVX_QF32, (hvx_i32) Vu, (hvx_i32) Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wqf32_vmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf32_products_of_16(hvx_qf_mpy_ieee, Vu, Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wqf32_vmpy_Vqf16Vhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf32_products_of_16(hvx_qf_mpy_mix, Vu, Vv);
}

HVX_INLINE HVX_VectorPair Q6_Wqf32_vmpy_Vqf16Vqf16(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf32_products_of_16(hvx_qf_mpy, Vu, Vv);
}

// qf16 sums and products.
HVX_INLINE HVX_Vector Q6_Vqf16_vadd_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_add_ieee, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vadd_Vqf16Vhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_add_mix, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vadd_Vqf16Vqf16(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_add, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vsub_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_add_ieee, Vu, hvx_flip_hf(Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vsub_Vqf16Vhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_add_mix, Vu, hvx_flip_hf(Vv));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vsub_Vqf16Vqf16(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_lanes(hvx_qf_sub, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vmpy_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_products(hvx_qf_mpy_ieee, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vmpy_Vqf16Vhf(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_products(hvx_qf_mpy_mix, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vmpy_Vqf16Vqf16(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_qf16_products(hvx_qf_mpy, Vu, Vv);
}

// To IEEE.
HVX_INLINE HVX_Vector Q6_Vsf_equals_Vqf32(HVX_Vector Vu) {
    return HVX_V(hvx_qf_to_sf((hvx_i32) Vu));
}

HVX_INLINE HVX_Vector hvx_hf_of(struct hvx_qf_format f, hvx_i32 even, hvx_i32 odd) {
    return hvx_join_h(hvx_qf_to_hf(f, even), hvx_qf_to_hf(f, odd));
}

HVX_INLINE HVX_Vector Q6_Vhf_equals_Vqf16(HVX_Vector Vu) {
    return hvx_hf_of(HVX_QF16, hvx_even_h(Vu), hvx_odd_h(Vu));
}

// The low vector to the even lanes, the high one to the odd lanes.
HVX_INLINE HVX_Vector Q6_Vhf_equals_Wqf32(HVX_VectorPair Vuu) {
    return hvx_hf_of(HVX_QF32, (hvx_i32) Q6_V_lo_W(Vuu), (hvx_i32) Q6_V_hi_W(Vuu));
}

#if __HVX_ARCH__ >= 79
// By a scalar.
HVX_INLINE HVX_Vector Q6_Vqf32_vmpy_VsfRsf(HVX_Vector Vu, Word32 Rt) {
    return Q6_Vqf32_vmpy_VsfVsf(Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vmpy_VhfRhf(HVX_Vector Vu, Word32 Rt) {
    return Q6_Vqf16_vmpy_VhfVhf(Vu, Q6_Vh_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vmpy_Vqf16Rhf(HVX_Vector Vu, Word32 Rt) {
    return Q6_Vqf16_vmpy_Vqf16Vhf(Vu, Q6_Vh_vsplat_R(Rt));
}
#endif

#if __HVX_ARCH__ >= 81
// From IEEE, sign, and subtraction the other way round.
HVX_INLINE HVX_Vector Q6_Vqf32_equals_Vsf(HVX_Vector Vu) {
    return HVX_V(hvx_qf_encode(HVX_QF32, (hvx_i32) Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf16_equals_Vhf(HVX_Vector Vu) {
    hvx_i32 even = hvx_qf_encode(HVX_QF16, hvx_even_h(Vu)), odd = hvx_qf_encode(HVX_QF16, hvx_odd_h(Vu));
    return hvx_join_h((hvx_u32) even, (hvx_u32) odd);
}

HVX_INLINE HVX_Vector Q6_Vqf32_equals_Vqf32(HVX_Vector Vu) {
    return Q6_Vqf32_equals_Vsf(Q6_Vsf_equals_Vqf32(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf16_equals_Vqf16(HVX_Vector Vu) {
    return Q6_Vqf16_equals_Vhf(Q6_Vhf_equals_Vqf16(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vneg_Vsf(HVX_Vector Vu) {
    return Q6_Vqf32_equals_Vsf(hvx_flip_sf(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vabs_Vsf(HVX_Vector Vu) {
    return Q6_Vqf32_equals_Vsf(Vu & 0x7fffffff);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vneg_Vhf(HVX_Vector Vu) {
    return Q6_Vqf16_equals_Vhf(hvx_flip_hf(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vabs_Vhf(HVX_Vector Vu) {
    return Q6_Vqf16_equals_Vhf(Vu & 0x7fff7fff);
}

HVX_INLINE HVX_Vector Q6_Vqf32_vneg_Vqf32(HVX_Vector Vu) {
    return Q6_Vqf32_vneg_Vsf(Q6_Vsf_equals_Vqf32(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vabs_Vqf32(HVX_Vector Vu) {
    return Q6_Vqf32_vabs_Vsf(Q6_Vsf_equals_Vqf32(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vneg_Vqf16(HVX_Vector Vu) {
    return Q6_Vqf16_vneg_Vhf(Q6_Vhf_equals_Vqf16(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf16_vabs_Vqf16(HVX_Vector Vu) {
    return Q6_Vqf16_vabs_Vhf(Q6_Vhf_equals_Vqf16(Vu));
}

HVX_INLINE HVX_Vector Q6_Vqf32_vsub_VsfVqf32(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vqf32_vadd_Vqf32Vsf(Q6_Vqf32_vneg_Vqf32(Vv), Vu);
}

HVX_INLINE HVX_Vector Q6_Vqf16_vsub_VhfVqf16(HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_Vqf16_vadd_Vqf16Vhf(Q6_Vqf16_vneg_Vqf16(Vv), Vu);
}

// The low vector to the even lanes, the high one to the odd lanes.
HVX_INLINE HVX_Vector Q6_Vbf_equals_Wqf32(HVX_VectorPair Vuu) {
    return Q6_Vbf_vcvt_VsfVsf(Q6_Vsf_equals_Vqf32(Q6_V_lo_W(Vuu)), Q6_Vsf_equals_Vqf32(Q6_V_hi_W(Vuu)));
}

// floor(log2 |x|); of zero the least word, of NaN the greatest, of infinity the greatest but one.
HVX_INLINE HVX_Vector Q6_Vw_vilog2_Vsf(HVX_Vector Vu) {
    hvx_i32 size = (hvx_i32) Vu & 0x7fffffff, field = size >> 23, subnormal = field == 0;
    hvx_i32 units = (hvx_i32) __builtin_convertvector(size, hvx_f32) >> 23; // of a subnormal's 2^-149
    hvx_i32 log2 = hvx_pick_w(subnormal, units - (127 + 149), field - 127);
    log2 = hvx_pick_w(size == 0, (hvx_i32){0} + INT32_MIN, log2);
    log2 = hvx_pick_w(size == 0x7f800000, (hvx_i32){0} + (INT32_MAX - 1), log2);
    return HVX_V(hvx_pick_w(size > 0x7f800000, (hvx_i32){0} + INT32_MAX, log2));
}

HVX_INLINE HVX_Vector Q6_Vw_vilog2_Vqf32(HVX_Vector Vu) {
    return Q6_Vw_vilog2_Vsf(Q6_Vsf_equals_Vqf32(Vu));
}
#endif

#endif
