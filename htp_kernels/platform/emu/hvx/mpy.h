// Multiplications of bytes, halfwords and words. Products wrap in their lane unless the name says :sat.
#ifndef HEXNPU_EMU_HVX_MPY_H
#define HEXNPU_EMU_HVX_MPY_H

#include "base.h"

#define HVX_ADD_H(x, y) HVX_W((hvx_u16w) (x) + (hvx_u16w) (y))
#define HVX_ADD_W(x, y) HVX_W((hvx_u32w) (x) + (hvx_u32w) (y))

// Even and odd products to a pair of twice the lane size: even ones to the low vector.

HVX_INLINE HVX_VectorPair Q6_Wh_vmpy_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR((hvx_u16) hvx_even_b(Vu) * (hvx_u16) hvx_even_b(Vv),
        (hvx_u16) hvx_odd_b(Vu) * (hvx_u16) hvx_odd_b(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpyacc_WhVbVb(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_H(Vxx, Q6_Wh_vmpy_VbVb(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpy_VubVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_ub(Vu) * (hvx_u16) hvx_even_b(Vv), hvx_odd_ub(Vu) * (hvx_u16) hvx_odd_b(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpyacc_WhVubVb(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_H(Vxx, Q6_Wh_vmpy_VubVb(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpy_VubRb(HVX_Vector Vu, Word32 Rt) {
    return Q6_Wh_vmpy_VubVb(Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vmpyacc_WhVubRb(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 Rt) {
    return HVX_ADD_H(Vxx, Q6_Wh_vmpy_VubRb(Vu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vmpy_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_ub(Vu) * hvx_even_ub(Vv), hvx_odd_ub(Vu) * hvx_odd_ub(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vmpyacc_WuhVubVub(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_H(Vxx, Q6_Wuh_vmpy_VubVub(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vmpy_VubRub(HVX_Vector Vu, Word32 Rt) {
    return Q6_Wuh_vmpy_VubVub(Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wuh_vmpyacc_WuhVubRub(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 Rt) {
    return HVX_ADD_H(Vxx, Q6_Wuh_vmpy_VubRub(Vu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpy_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR((hvx_u32) hvx_even_h(Vu) * (hvx_u32) hvx_even_h(Vv),
        (hvx_u32) hvx_odd_h(Vu) * (hvx_u32) hvx_odd_h(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpyacc_WwVhVh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_W(Vxx, Q6_Ww_vmpy_VhVh(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpy_VhRh(HVX_Vector Vu, Word32 Rt) {
    return Q6_Ww_vmpy_VhVh(Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpyacc_WwVhRh(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 Rt) {
    return HVX_ADD_W(Vxx, Q6_Ww_vmpy_VhRh(Vu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpy_VhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR((hvx_u32) hvx_even_h(Vu) * hvx_even_uh(Vv), (hvx_u32) hvx_odd_h(Vu) * hvx_odd_uh(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpyacc_WwVhVuh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_W(Vxx, Q6_Ww_vmpy_VhVuh(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vmpy_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(hvx_even_uh(Vu) * hvx_even_uh(Vv), hvx_odd_uh(Vu) * hvx_odd_uh(Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vmpyacc_WuwVuhVuh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_ADD_W(Vxx, Q6_Wuw_vmpy_VuhVuh(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vmpy_VuhRuh(HVX_Vector Vu, Word32 Rt) {
    return Q6_Wuw_vmpy_VuhVuh(Vu, Q6_V_vsplat_R(Rt));
}

HVX_INLINE HVX_VectorPair Q6_Wuw_vmpyacc_WuwVuhRuh(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 Rt) {
    return HVX_ADD_W(Vxx, Q6_Wuw_vmpy_VuhRuh(Vu, Rt));
}

HVX_INLINE HVX_VectorPair Q6_Ww_vmpyacc_WwVhRh_sat(HVX_VectorPair Vxx, HVX_Vector Vu, Word32 Rt) {
    return HVX_W(__builtin_elementwise_add_sat((hvx_i32w) Vxx, (hvx_i32w) Q6_Ww_vmpy_VhRh(Vu, Rt)));
}

HVX_INLINE HVX_Vector Q6_Vuw_vmpye_VuhRuh(HVX_Vector Vu, Word32 Rt) {
    return HVX_V(hvx_even_uh(Vu) * hvx_r_uh(Rt, 0));
}

HVX_INLINE HVX_Vector Q6_Vuw_vmpyeacc_VuwVuhRuh(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + hvx_even_uh(Vu) * hvx_r_uh(Rt, 0));
}

// Fractional products: (a * b * 2 [+ 0x8000]) >> 16. Only -1 * -1 leaves the range, and saturates.
HVX_INLINE HVX_Vector hvx_fractional(HVX_Vector Vu, HVX_Vector Vv, int32_t half) {
    hvx_i32 even = (hvx_even_h(Vu) * hvx_even_h(Vv) + half) >> 15;
    hvx_i32 odd = (hvx_odd_h(Vu) * hvx_odd_h(Vv) + half) >> 15;
    hvx_i32 top = (hvx_i32){0} + INT16_MAX;
    return hvx_join_h((hvx_u32) __builtin_elementwise_min(even, top), (hvx_u32) __builtin_elementwise_min(odd, top));
}

HVX_INLINE HVX_Vector Q6_Vh_vmpy_VhVh_s1_rnd_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_fractional(Vu, Vv, 0x4000);
}

HVX_INLINE HVX_Vector Q6_Vh_vmpy_VhRh_s1_rnd_sat(HVX_Vector Vu, Word32 Rt) {
    return hvx_fractional(Vu, Q6_V_vsplat_R(Rt), 0x4000);
}

HVX_INLINE HVX_Vector Q6_Vh_vmpy_VhRh_s1_sat(HVX_Vector Vu, Word32 Rt) {
    return hvx_fractional(Vu, Q6_V_vsplat_R(Rt), 0);
}

HVX_INLINE HVX_Vector Q6_Vuh_vmpy_VuhVuh_rs16(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h((hvx_even_uh(Vu) * hvx_even_uh(Vv)) >> 16, (hvx_odd_uh(Vu) * hvx_odd_uh(Vv)) >> 16);
}

// Low halves of products.

HVX_INLINE HVX_Vector Q6_Vh_vmpyi_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u16) Vu * (hvx_u16) Vv);
}

HVX_INLINE HVX_Vector Q6_Vh_vmpyiacc_VhVhVh(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u16) Vx + (hvx_u16) Vu * (hvx_u16) Vv);
}

// The scalar's four bytes, for halfwords 0 to 3 or words 0 to 3 and again; or its two halfwords for words 0 and 1.
#define HVX_CYCLE_4(i) ((i) & 3)

HVX_INLINE hvx_u16 hvx_r_bytes_h(Word32 Rt) {
    hvx_u16 r = (hvx_u16) Q6_V_vzero();
    r[0] = (uint16_t) hvx_r_b(Rt, 0), r[1] = (uint16_t) hvx_r_b(Rt, 1);
    r[2] = (uint16_t) hvx_r_b(Rt, 2), r[3] = (uint16_t) hvx_r_b(Rt, 3);
    return __builtin_shufflevector(r, r, HVX_EACH_64(HVX_CYCLE_4, 0));
}

HVX_INLINE hvx_u32 hvx_cycle_w(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    hvx_u32 r = (hvx_u32) Q6_V_vzero();
    r[0] = a, r[1] = b, r[2] = c, r[3] = d;
    return __builtin_shufflevector(r, r, HVX_EACH_32(HVX_CYCLE_4, 0));
}

HVX_INLINE hvx_u32 hvx_r_b_w(Word32 Rt) {
    return hvx_cycle_w((uint32_t) hvx_r_b(Rt, 0), (uint32_t) hvx_r_b(Rt, 1), (uint32_t) hvx_r_b(Rt, 2),
                       (uint32_t) hvx_r_b(Rt, 3));
}

HVX_INLINE hvx_u32 hvx_r_ub_w(Word32 Rt) {
    return hvx_cycle_w(hvx_r_ub(Rt, 0), hvx_r_ub(Rt, 1), hvx_r_ub(Rt, 2), hvx_r_ub(Rt, 3));
}

HVX_INLINE hvx_u32 hvx_r_h_w(Word32 Rt) {
    uint32_t even = (uint32_t) hvx_r_h(Rt, 0), odd = (uint32_t) hvx_r_h(Rt, 1);
    return hvx_cycle_w(even, odd, even, odd);
}

HVX_INLINE HVX_Vector Q6_Vh_vmpyi_VhRb(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vu * hvx_r_bytes_h(Rt));
}

HVX_INLINE HVX_Vector Q6_Vh_vmpyiacc_VhVhRb(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u16) Vx + (hvx_u16) Vu * hvx_r_bytes_h(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyi_VwRb(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vu * hvx_r_b_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyiacc_VwVwRb(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Vu * hvx_r_b_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyi_VwRub(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vu * hvx_r_ub_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyiacc_VwVwRub(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Vu * hvx_r_ub_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyi_VwRh(HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vu * hvx_r_h_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyiacc_VwVwRh(HVX_Vector Vx, HVX_Vector Vu, Word32 Rt) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Vu * hvx_r_h_w(Rt));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyieo_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(((hvx_u32) hvx_even_h(Vu) * (hvx_u32) hvx_odd_h(Vv)) << 16);
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyie_VwVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vu * hvx_even_uh(Vv));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyieacc_VwVwVuh(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Vu * hvx_even_uh(Vv));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyieacc_VwVwVh(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vx + (hvx_u32) Vu * (hvx_u32) hvx_even_h(Vv));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyio_VwVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_u32) Vu * (hvx_u32) hvx_odd_h(Vv));
}

// Words by halfwords: 48-bit products, of which the upper words are taken.
HVX_INLINE hvx_i64w hvx_product_even_uh(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_wide_w(Vu) * hvx_wide_uw(hvx_even_uh(Vv));
}

HVX_INLINE hvx_i64w hvx_product_odd_h(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_wide_w(Vu) * hvx_wide_w(HVX_V(hvx_odd_h(Vv)));
}

HVX_INLINE HVX_Vector Q6_Vw_vmpye_VwVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w(hvx_product_even_uh(Vu, Vv) >> 16);
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyo_VwVh_s1_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w_sat(hvx_product_odd_h(Vu, Vv) >> 15);
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyo_VwVh_s1_rnd_sat(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w_sat(((hvx_product_odd_h(Vu, Vv) >> 14) + 1) >> 1);
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyoacc_VwVwVh_s1_sat_shift(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w_sat((hvx_wide_w(Vx) + hvx_product_odd_h(Vu, Vv)) >> 15);
}

HVX_INLINE HVX_Vector Q6_Vw_vmpyoacc_VwVwVh_s1_rnd_sat_shift(HVX_Vector Vx, HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_narrow_w_sat((((hvx_wide_w(Vx) + hvx_product_odd_h(Vu, Vv)) >> 14) + 1) >> 1);
}

HVX_INLINE HVX_VectorPair Q6_W_vmpye_VwVuh(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i64w product = hvx_product_even_uh(Vu, Vv);
    return HVX_PAIR(hvx_narrow_w(product << 16), hvx_narrow_w(product >> 16));
}

HVX_INLINE HVX_VectorPair Q6_W_vmpyoacc_WVwVh(HVX_VectorPair Vxx, HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i64w product = hvx_product_odd_h(Vu, Vv) + hvx_wide_w(Q6_V_hi_W(Vxx));
    HVX_Vector low = hvx_join_h(hvx_odd_uh(Q6_V_lo_W(Vxx)), (hvx_u32) hvx_narrow_w(product));
    return HVX_PAIR(low, hvx_narrow_w(product >> 16));
}

#endif
