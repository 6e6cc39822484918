// Sums of two, three or six products: vmpa, vmps, vdmpy, vtmpy, v6mpy.
#ifndef HEXNPU_EMU_HVX_MPYADD_H
#define HEXNPU_EMU_HVX_MPYADD_H

#include "mpy.h"
#include "lut.h"

// vmpa: a byte or halfword of the low vector and one of the high vector, each by its own coefficient.

HVX_INLINE HVX_VectorPair Q6_Wh_vmpa_WubRb(HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    hvx_u16 even = hvx_even_ub(u0) * (uint16_t) hvx_r_b(Rt, 0) + hvx_even_ub(u1) * (uint16_t) hvx_r_b(Rt, 1);
    hvx_u16 odd = hvx_odd_ub(u0) * (uint16_t) hvx_r_b(Rt, 2) + hvx_odd_ub(u1) * (uint16_t) hvx_r_b(Rt, 3);
    return HVX_PAIR(even, odd);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpaacc_WhWubRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    return HVX_ADD_H(Vxx, Q6_Wh_vmpa_WubRb(Vuu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpa_WubRub(HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    hvx_u16 even = hvx_even_ub(u0) * (uint16_t) hvx_r_ub(Rt, 0) + hvx_even_ub(u1) * (uint16_t) hvx_r_ub(Rt, 1);
    hvx_u16 odd = hvx_odd_ub(u0) * (uint16_t) hvx_r_ub(Rt, 2) + hvx_odd_ub(u1) * (uint16_t) hvx_r_ub(Rt, 3);
    return HVX_PAIR(even, odd);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpaacc_WhWubRub(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    return HVX_ADD_H(Vxx, Q6_Wh_vmpa_WubRub(Vuu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpa_WhRb(HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    hvx_u32 even = (hvx_u32) hvx_even_h(u0) * (uint32_t) hvx_r_b(Rt, 0)
        + (hvx_u32) hvx_even_h(u1) * (uint32_t) hvx_r_b(Rt, 1);
    hvx_u32 odd = (hvx_u32) hvx_odd_h(u0) * (uint32_t) hvx_r_b(Rt, 2)
        + (hvx_u32) hvx_odd_h(u1) * (uint32_t) hvx_r_b(Rt, 3);
    return HVX_PAIR(even, odd);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpaacc_WwWhRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    return HVX_ADD_W(Vxx, Q6_Ww_vmpa_WhRb(Vuu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpa_WuhRb(HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    hvx_u32 even = hvx_even_uh(u0) * (uint32_t) hvx_r_b(Rt, 0) + hvx_even_uh(u1) * (uint32_t) hvx_r_b(Rt, 1);
    hvx_u32 odd = hvx_odd_uh(u0) * (uint32_t) hvx_r_b(Rt, 2) + hvx_odd_uh(u1) * (uint32_t) hvx_r_b(Rt, 3);
    return HVX_PAIR(even, odd);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpaacc_WwWuhRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    return HVX_ADD_W(Vxx, Q6_Ww_vmpa_WuhRb(Vuu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpa_WubWb(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    HVX_VectorPair low = Q6_Wh_vmpy_VubVb(Q6_V_lo_W(Vuu), Q6_V_lo_W(Vvv));
    return HVX_ADD_H(low, Q6_Wh_vmpy_VubVb(Q6_V_hi_W(Vuu), Q6_V_hi_W(Vvv)));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpa_WubWub(HVX_VectorPair Vuu, HVX_VectorPair Vvv) {
    HVX_VectorPair low = Q6_Wuh_vmpy_VubVub(Q6_V_lo_W(Vuu), Q6_V_lo_W(Vvv));
    return HVX_ADD_H(low, Q6_Wuh_vmpy_VubVub(Q6_V_hi_W(Vuu), Q6_V_hi_W(Vvv)));
}

// Piecewise linear approximation: Vx * Vu plus or minus the halfword of the scalar that Vu's top two bits choose. The
// sums need 33 bits, so the product is halved first: its low 15 bits cannot carry into the result.
HVX_INLINE HVX_Vector hvx_linear_uh(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt, int32_t sign) {
    HVX_Vector offset = Q6_Vh_vlut4_VuhPh(Vu, Rtt);
    hvx_i32 even = hvx_even_h(Vx) * (hvx_i32) hvx_even_uh(Vu), odd = hvx_odd_h(Vx) * (hvx_i32) hvx_odd_uh(Vu);
    even = ((even >> 15) + (hvx_i32) hvx_even_uh(offset) * sign) >> 1;
    odd = ((odd >> 15) + (hvx_i32) hvx_odd_uh(offset) * sign) >> 1;
    return hvx_join_h((hvx_u32) hvx_clamp_w(even, INT16_MIN, INT16_MAX),
                      (hvx_u32) hvx_clamp_w(odd, INT16_MIN, INT16_MAX));
}

HVX_INLINE HVX_Vector Q6_Vh_vmpa_VhVhVuhPuh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    return hvx_linear_uh(Vx, Vu, Rtt, 1);
}

HVX_INLINE HVX_Vector Q6_Vh_vmps_VhVhVuhPuh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    return hvx_linear_uh(Vx, Vu, Rtt, -1);
}

HVX_INLINE HVX_Vector Q6_Vh_vmpa_VhVhVhPh_sat(HVX_Vector Vx, HVX_Vector Vu, Word64 Rtt) {
    HVX_Vector offset = Q6_Vh_vlut4_VuhPh(Vu, Rtt);
    hvx_i32 even = (hvx_even_h(Vx) * hvx_even_h(Vu) + (hvx_even_h(offset) << 14)) >> 15;
    hvx_i32 odd = (hvx_odd_h(Vx) * hvx_odd_h(Vu) + (hvx_odd_h(offset) << 14)) >> 15;
    return hvx_join_h((hvx_u32) hvx_clamp_w(even, INT16_MIN, INT16_MAX),
                      (hvx_u32) hvx_clamp_w(odd, INT16_MIN, INT16_MAX));
}

// vdmpy by bytes: two neighbours by two coefficients; the pair forms also slide by one lane into the high vector.

HVX_INLINE HVX_Vector Q6_Vh_vdmpyacc_VhVubRb(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    HVX_Vector r = Q6_V_vsplat_R(Rt);
    hvx_u16 even = hvx_even_ub(Vu) * (hvx_u16) hvx_even_b(r), odd = hvx_odd_ub(Vu) * (hvx_u16) hvx_odd_b(r);
    return HVX_V((hvx_u16) Vx + even + odd);
}

HVX_INLINE HVX_Vector Q6_Vh_vdmpy_VubRb(HVX_Vector Vu, Word32 Rt) {
    return Q6_Vh_vdmpyacc_VhVubRb(Q6_V_vzero(), Vu, Rt);
}

// Lane i + 1 of the row that alternates even lanes of the pair's vectors: the odd lanes of the low vector followed by
// the even ones of the high vector, as the sliding forms read them.
HVX_INLINE HVX_Vector hvx_slide_b(HVX_VectorPair Vuu) {
    return hvx_join_b((hvx_u16) Q6_V_lo_W(Vuu) >> 8, (hvx_u16) Q6_V_hi_W(Vuu));
}

HVX_INLINE HVX_Vector hvx_slide_h(HVX_VectorPair Vuu) {
    return hvx_join_h((hvx_u32) Q6_V_lo_W(Vuu) >> 16, (hvx_u32) Q6_V_hi_W(Vuu));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vdmpyacc_WhWubRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector low = Q6_Vh_vdmpyacc_VhVubRb(Q6_V_lo_W(Vxx), Q6_V_lo_W(Vuu), Rt);
    return HVX_PAIR(low, Q6_Vh_vdmpyacc_VhVubRb(Q6_V_hi_W(Vxx), hvx_slide_b(Vuu), Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vdmpy_WubRb(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Wh_vdmpyacc_WhWubRb(Q6_W_vzero(), Vuu, Rt);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwVhRb(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    HVX_Vector r = HVX_V(hvx_r_bytes_h(Rt));
    hvx_i32 sum = hvx_even_h(Vu) * hvx_even_h(r) + hvx_odd_h(Vu) * hvx_odd_h(r);
    return HVX_V((hvx_u32) Vx + (hvx_u32) sum);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_VhRb(HVX_Vector Vu, Word32 Rt) {
    return Q6_Vw_vdmpyacc_VwVhRb(Q6_V_vzero(), Vu, Rt);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vdmpyacc_WwWhRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector low = Q6_Vw_vdmpyacc_VwVhRb(Q6_V_lo_W(Vxx), Q6_V_lo_W(Vuu), Rt);
    return HVX_PAIR(low, Q6_Vw_vdmpyacc_VwVhRb(Q6_V_hi_W(Vxx), hvx_slide_h(Vuu), Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vdmpy_WhRb(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Ww_vdmpyacc_WwWhRb(Q6_W_vzero(), Vuu, Rt);
}

// vdmpy by halfwords: the sum of two products and the accumulator, saturated once.
HVX_INLINE HVX_Vector hvx_dot2_h_h_sat(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i64w sum = hvx_wide_w(Vx) + hvx_wide_w(HVX_V(hvx_even_h(Vu) * hvx_even_h(Vv)));
    return hvx_narrow_w_sat(sum + hvx_wide_w(HVX_V(hvx_odd_h(Vu) * hvx_odd_h(Vv))));
}

HVX_INLINE HVX_Vector hvx_dot2_h_uh_sat(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    hvx_i32 r0 = (hvx_i32){0} + (int32_t) hvx_r_uh(Rt, 0), r1 = (hvx_i32){0} + (int32_t) hvx_r_uh(Rt, 1);
    hvx_i64w sum = hvx_wide_w(Vx) + hvx_wide_w(HVX_V(hvx_even_h(Vu) * r0));
    return hvx_narrow_w_sat(sum + hvx_wide_w(HVX_V(hvx_odd_h(Vu) * r1)));
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_VhVh_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot2_h_h_sat(Q6_V_vzero(), Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwVhVh_sat(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_dot2_h_h_sat(Vx, Vu, Vv);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_VhRh_sat(HVX_Vector Vu, Word32 Rt) {
    return hvx_dot2_h_h_sat(Q6_V_vzero(), Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwVhRh_sat(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return hvx_dot2_h_h_sat(Vx, Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_WhRh_sat(HVX_VectorPair Vuu, Word32 Rt) {
    return hvx_dot2_h_h_sat(Q6_V_vzero(), hvx_slide_h(Vuu), Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwWhRh_sat(HVX_Vector Vx, HVX_VectorPair Vuu, Word32 Rt) {
    return hvx_dot2_h_h_sat(Vx, hvx_slide_h(Vuu), Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_VhRuh_sat(HVX_Vector Vu, Word32 Rt) {
    return hvx_dot2_h_uh_sat(Q6_V_vzero(), Vu, Rt);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwVhRuh_sat(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return hvx_dot2_h_uh_sat(Vx, Vu, Rt);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpy_WhRuh_sat(HVX_VectorPair Vuu, Word32 Rt) {
    return hvx_dot2_h_uh_sat(Q6_V_vzero(), hvx_slide_h(Vuu), Rt);
}

HVX_INLINE HVX_Vector Q6_Vw_vdmpyacc_VwWhRuh_sat(HVX_Vector Vx, HVX_VectorPair Vuu, Word32 Rt) {
    return hvx_dot2_h_uh_sat(Vx, hvx_slide_h(Vuu), Rt);
}

// vtmpy: two products and, with coefficient 1, the next lane but one.

HVX_INLINE HVX_VectorPair Q6_Wh_vtmpyacc_WhWubRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_VectorPair products = Q6_Wh_vdmpyacc_WhWubRb(Vxx, Vuu, Rt);
    HVX_Vector last = Q6_V_hi_W(Vuu);
    return HVX_ADD_H(products, HVX_PAIR(hvx_even_ub(last), hvx_odd_ub(last)));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vtmpy_WubRb(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Wh_vtmpyacc_WhWubRb(Q6_W_vzero(), Vuu, Rt);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vtmpyacc_WhWbRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_Vector r = Q6_V_vsplat_R(Rt), first = Q6_V_lo_W(Vuu), last = Q6_V_hi_W(Vuu);
    HVX_Vector middle = hvx_slide_b(Vuu);
    hvx_i16 r0 = hvx_even_b(r), r1 = hvx_odd_b(r);
    hvx_i16 even = hvx_even_b(first) * r0 + hvx_odd_b(first) * r1 + hvx_even_b(last);
    hvx_i16 odd = hvx_even_b(middle) * r0 + hvx_odd_b(middle) * r1 + hvx_odd_b(last);
    return HVX_ADD_H(Vxx, HVX_PAIR(even, odd));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vtmpy_WbRb(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Wh_vtmpyacc_WhWbRb(Q6_W_vzero(), Vuu, Rt);
}

HVX_INLINE HVX_VectorPair Q6_Ww_vtmpyacc_WwWhRb(HVX_VectorPair Vxx, HVX_VectorPair Vuu, Word32 Rt) {
    HVX_VectorPair products = Q6_Ww_vdmpyacc_WwWhRb(Vxx, Vuu, Rt);
    HVX_Vector last = Q6_V_hi_W(Vuu);
    return HVX_ADD_W(products, HVX_PAIR(hvx_even_h(last), hvx_odd_h(last)));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vtmpy_WhRb(HVX_VectorPair Vuu, Word32 Rt) {
    return Q6_Ww_vtmpyacc_WwWhRb(Q6_W_vzero(), Vuu, Rt);
}

// v6mpy (v68): six unsigned bytes of a pair by six signed coefficients of ten bits. Coefficient n of a word has its low
// eight bits in byte n and its top two in byte 3; the low vector of Vvv holds row 0, the high one row 1.
HVX_INLINE hvx_u32 hvx_coefficient(HVX_Vector v, int n) {
    hvx_u32 low = hvx_ub_of_w(v, n);
    hvx_i32 high = (hvx_i32) ((hvx_u32) v << (6 - 2 * n)) >> 30;
    return low | ((hvx_u32) high << 8);
}

HVX_INLINE hvx_u32 hvx_dot3(const hvx_u32 bytes[3], HVX_Vector row) {
    return bytes[0] * hvx_coefficient(row, 0) + bytes[1] * hvx_coefficient(row, 1) + bytes[2] * hvx_coefficient(row, 2);
}

// Even immediates sum both rows into the high result, odd ones into the low result.
HVX_INLINE HVX_VectorPair hvx_six_products(
    const hvx_u32 upper[3], const hvx_u32 lower[3], HVX_VectorPair Vvv, int odd) {
    HVX_Vector row0 = Q6_V_lo_W(Vvv), row1 = Q6_V_hi_W(Vvv);
    hvx_u32 both = hvx_dot3(upper, row1) + hvx_dot3(lower, row0);
    return odd ? HVX_PAIR(both, hvx_dot3(upper, row0)) : HVX_PAIR(hvx_dot3(lower, row1), both);
}

HVX_INLINE HVX_VectorPair Q6_Ww_v6mpy_WubWbI_v(HVX_VectorPair Vuu, HVX_VectorPair Vvv, Word32 Iu2) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    int shift = Iu2 < 2;
    HVX_Vector middle = shift ? u1 : u0, last = u1;
    const hvx_u32 upper[3] = {hvx_ub_of_w(u0, 2 + shift), hvx_ub_of_w(middle, shift ? 2 : 3),
                              hvx_ub_of_w(last, 2 + shift)};
    const hvx_u32 lower[3] = {hvx_ub_of_w(u0, shift), hvx_ub_of_w(middle, shift ? 0 : 1), hvx_ub_of_w(last, shift)};
    return hvx_six_products(upper, lower, Vvv, Iu2 & 1);
}

HVX_INLINE HVX_VectorPair Q6_Ww_v6mpy_WubWbI_h(HVX_VectorPair Vuu, HVX_VectorPair Vvv, Word32 Iu2) {
    HVX_Vector u0 = Q6_V_lo_W(Vuu), u1 = Q6_V_hi_W(Vuu);
    int shift = Iu2 < 2;
    HVX_Vector middle = shift ? u1 : u0;
    const hvx_u32 upper[3] = {hvx_ub_of_w(u1, shift ? 3 : 1), hvx_ub_of_w(middle, shift ? 1 : 3),
                              hvx_ub_of_w(u0, shift ? 3 : 1)};
    const hvx_u32 lower[3] = {hvx_ub_of_w(u1, shift ? 2 : 0), hvx_ub_of_w(middle, shift ? 0 : 2),
                              hvx_ub_of_w(u0, shift ? 2 : 0)};
    return hvx_six_products(upper, lower, Vvv, Iu2 & 1);
}

HVX_INLINE HVX_VectorPair Q6_Ww_v6mpyacc_WwWubWbI_v(
    HVX_VectorPair Vxx, HVX_VectorPair Vuu, HVX_VectorPair Vvv, Word32 Iu2) {
    return HVX_ADD_W(Vxx, Q6_Ww_v6mpy_WubWbI_v(Vuu, Vvv, Iu2));
}

HVX_INLINE HVX_VectorPair Q6_Ww_v6mpyacc_WwWubWbI_h(
    HVX_VectorPair Vxx, HVX_VectorPair Vuu, HVX_VectorPair Vvv, Word32 Iu2) {
    return HVX_ADD_W(Vxx, Q6_Ww_v6mpy_WubWbI_h(Vuu, Vvv, Iu2));
}

#endif
