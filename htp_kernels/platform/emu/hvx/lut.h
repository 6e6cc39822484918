// Table look-ups. A byte index hits when its top bits equal R's low ones; a miss gives 0. Bit 1 of R picks the odd
// elements of the table.
#ifndef HEXNPU_EMU_HVX_LUT_H
#define HEXNPU_EMU_HVX_LUT_H

#include "permute.h"

// Bytes: a table of 32 entries is every second byte of 64, at 64 * (R & 1) + 2 * index + odd.
HVX_INLINE HVX_Vector hvx_lut32(HVX_Vector index, HVX_Vector table, Word32 Rt) {
    return hvx_permute_bytes(table, ((hvx_u8) index << 1) | (uint8_t) ((Rt >> 1) & 1));
}

HVX_INLINE HVX_Vector Q6_Vb_vlut32_VbVbR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    HVX_Vector hit = HVX_V(((hvx_u8) Vu & 0xe0) == (uint8_t) ((Rt & 7) << 5));
    return hvx_lut32(Vu, Vv, Rt) & hit;
}

HVX_INLINE HVX_Vector Q6_Vb_vlut32_VbVbR_nomatch(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return hvx_lut32(HVX_V(((hvx_u8) Vu & 0x1f) | (uint8_t) ((Rt & 7) << 5)), Vv, Rt);
}

HVX_INLINE HVX_Vector Q6_Vb_vlut32or_VbVbVbR(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return Vx | Q6_Vb_vlut32_VbVbR(Vu, Vv, Rt);
}

HVX_INLINE HVX_Vector Q6_Vb_vlut32_VbVbI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return Q6_Vb_vlut32_VbVbR(Vu, Vv, Iu3);
}

HVX_INLINE HVX_Vector Q6_Vb_vlut32or_VbVbVbI(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return Vx | Q6_Vb_vlut32_VbVbR(Vu, Vv, Iu3);
}

// Halfwords: a table of 16 entries, at 32 * (R & 1) + 2 * index + odd. Even index bytes fill the low vector.
HVX_INLINE hvx_u16 hvx_lut16(hvx_u16 index, HVX_Vector table, Word32 Rt) {
    return hvx_permute_halves(table, ((index & 31) << 1) | (uint16_t) ((Rt >> 1) & 1));
}

HVX_INLINE hvx_u16 hvx_lut16_match(hvx_u16 index, HVX_Vector table, Word32 Rt) {
    hvx_u16 hit = (hvx_u16) ((index & 0xf0) == (uint16_t) ((Rt & 15) << 4));
    return hvx_lut16(index, table, Rt) & hit;
}

HVX_INLINE HVX_VectorPair Q6_Wh_vlut16_VbVhR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return HVX_PAIR(hvx_lut16_match(hvx_even_ub(Vu), Vv, Rt), hvx_lut16_match(hvx_odd_ub(Vu), Vv, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vlut16_VbVhR_nomatch(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    uint16_t top = (uint16_t) ((Rt & 15) << 4);
    return HVX_PAIR(hvx_lut16((hvx_even_ub(Vu) & 15) | top, Vv, Rt), hvx_lut16((hvx_odd_ub(Vu) & 15) | top, Vv, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vlut16or_WhVbVhR(
    HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return Vxx | Q6_Wh_vlut16_VbVhR(Vu, Vv, Rt);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vlut16_VbVhI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return Q6_Wh_vlut16_VbVhR(Vu, Vv, Iu3);
}

HVX_INLINE HVX_VectorPair Q6_Wh_vlut16or_WhVbVhI(
    HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return Vxx | Q6_Wh_vlut16_VbVhR(Vu, Vv, Iu3);
}

// One of the scalar's four halfwords, chosen by the top two bits of each lane.
HVX_INLINE HVX_Vector Q6_Vh_vlut4_VuhPh(HVX_Vector Vu, Word64 Rtt) {
    HVX_Vector even = Q6_Vh_vsplat_R((Word32) Rtt), odd = Q6_Vh_vsplat_R((Word32) (Rtt >> 16));
    HVX_Vector even_high = Q6_Vh_vsplat_R((Word32) (Rtt >> 32)), odd_high = Q6_Vh_vsplat_R((Word32) (Rtt >> 48));
    HVX_Vector bit14 = HVX_V((hvx_i16) ((hvx_u16) Vu << 1) >> 15), bit15 = HVX_V((hvx_i16) Vu >> 15);
    HVX_Vector low = Q6_V_vmux_QVV(HVX_Q(bit14), odd, even);
    HVX_Vector high = Q6_V_vmux_QVV(HVX_Q(bit14), odd_high, even_high);
    return Q6_V_vmux_QVV(HVX_Q(bit15), high, low);
}

#endif
