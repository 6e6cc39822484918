// Scalar intrinsics that move the bytes and halfwords of a register or a pair, and arithmetic and logic on whole pairs.
#ifndef HEXNPU_EMU_HEXAGON_PAIRS_H
#define HEXNPU_EMU_HEXAGON_PAIRS_H

#include "hexagon-lanes.h"

// Moves between lane sizes.
HEX_INLINE Word64 Q6_P_vsplatb_R(Word32 Rs) {
    return (Word64) ((hex_b8){0} + (int8_t) Rs);
}

HEX_INLINE Word64 Q6_P_vsxtbh_R(Word32 Rs) {
    hex_b8_wide v = HEX_WIDE(hex_b8, (UWord64) (UWord32) Rs);
    return (Word64) __builtin_shufflevector(v, v, 0, 1, 2, 3);
}

HEX_INLINE Word64 Q6_P_vzxtbh_R(Word32 Rs) {
    hex_b8_wide v = HEX_WIDE(hex_ub8, (UWord64) (UWord32) Rs);
    return (Word64) __builtin_shufflevector(v, v, 0, 1, 2, 3);
}

HEX_INLINE Word64 Q6_P_vsxthw_R(Word32 Rs) {
    hex_h4_wide v = HEX_WIDE(hex_h4, (UWord64) (UWord32) Rs);
    return (Word64) __builtin_shufflevector(v, v, 0, 1);
}

HEX_INLINE Word64 Q6_P_vzxthw_R(Word32 Rs) {
    hex_h4_wide v = HEX_WIDE(hex_uh4, (UWord64) (UWord32) Rs);
    return (Word64) __builtin_shufflevector(v, v, 0, 1);
}

typedef int8_t hex_b4 __attribute__((vector_size(4)));
typedef int16_t hex_h2 __attribute__((vector_size(4)));

HEX_INLINE Word32 Q6_R_vtrunehb_P(Word64 Rss) {
    return (Word32) (hex_b4) __builtin_shufflevector((hex_b8) Rss, (hex_b8) Rss, 0, 2, 4, 6);
}

HEX_INLINE Word32 Q6_R_vtrunohb_P(Word64 Rss) {
    return (Word32) (hex_b4) __builtin_shufflevector((hex_b8) Rss, (hex_b8) Rss, 1, 3, 5, 7);
}

HEX_INLINE Word64 Q6_P_vtrunewh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_shufflevector((hex_h4) Rtt, (hex_h4) Rss, 0, 2, 4, 6);
}

HEX_INLINE Word64 Q6_P_vtrunowh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_shufflevector((hex_h4) Rtt, (hex_h4) Rss, 1, 3, 5, 7);
}

HEX_INLINE Word32 Q6_R_vsathb_P(Word64 Rss) {
    return Q6_R_vtrunehb_P(hex_narrow_h(HEX_WIDE(hex_h4, Rss), INT8_MIN, INT8_MAX));
}

HEX_INLINE Word32 Q6_R_vsathub_P(Word64 Rss) {
    return Q6_R_vtrunehb_P(hex_narrow_h(HEX_WIDE(hex_h4, Rss), 0, UINT8_MAX));
}

HEX_INLINE Word32 Q6_R_vsatwh_P(Word64 Rss) {
    Word64 v = hex_narrow_w(HEX_WIDE(hex_w2, Rss), INT16_MIN, INT16_MAX);
    return (Word32) (hex_h2) __builtin_shufflevector((hex_h4) v, (hex_h4) v, 0, 2);
}

HEX_INLINE Word32 Q6_R_vsatwuh_P(Word64 Rss) {
    Word64 v = hex_narrow_w(HEX_WIDE(hex_w2, Rss), 0, UINT16_MAX);
    return (Word32) (hex_h2) __builtin_shufflevector((hex_h4) v, (hex_h4) v, 0, 2);
}

HEX_INLINE Word64 Q6_P_shuffeb_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_shufflevector((hex_b8) Rtt, (hex_b8) Rss, 0, 8, 2, 10, 4, 12, 6, 14);
}

HEX_INLINE Word64 Q6_P_shuffob_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_shufflevector((hex_b8) Rss, (hex_b8) Rtt, 1, 9, 3, 11, 5, 13, 7, 15);
}

HEX_INLINE Word64 Q6_P_shuffeh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_shufflevector((hex_h4) Rtt, (hex_h4) Rss, 0, 4, 2, 6);
}

HEX_INLINE Word64 Q6_P_shuffoh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_shufflevector((hex_h4) Rss, (hex_h4) Rtt, 1, 5, 3, 7);
}

HEX_INLINE Word64 Q6_P_packhl_RR(Word32 Rs, Word32 Rt) {
    UWord32 s = (UWord32) Rs, t = (UWord32) Rt;
    return (Word64) (((UWord64) ((s & 0xffff0000) | t >> 16) << 32) | (s << 16) | (t & 0xffff));
}

HEX_INLINE Word64 Q6_P_valignb_PPI(Word64 Rtt, Word64 Rss, Word32 Iu3) {
    UWord64 high = Iu3 ? (UWord64) Rtt << (64 - 8 * Iu3) : 0;
    return (Word64) ((UWord64) Rss >> (8 * Iu3) | high);
}

HEX_INLINE Word64 Q6_P_vspliceb_PPI(Word64 Rss, Word64 Rtt, Word32 Iu3) {
    UWord64 low = (UWord64) Rss & ((1ull << (8 * Iu3)) - 1);
    return (Word64) ((UWord64) Rtt << (8 * Iu3) | low);
}

HEX_INLINE Word32 Q6_R_aslh_R(Word32 Rs) {
    return (Word32) ((UWord32) Rs << 16);
}

HEX_INLINE Word32 Q6_R_asrh_R(Word32 Rs) {
    return Rs >> 16;
}

HEX_INLINE Word32 Q6_R_sxtb_R(Word32 Rs) {
    return (int8_t) Rs;
}

HEX_INLINE Word32 Q6_R_sxth_R(Word32 Rs) {
    return (int16_t) Rs;
}

HEX_INLINE Word32 Q6_R_zxtb_R(Word32 Rs) {
    return Rs & 0xff;
}

HEX_INLINE Word32 Q6_R_zxth_R(Word32 Rs) {
    return Rs & 0xffff;
}

HEX_INLINE Word64 Q6_P_sxtw_R(Word32 Rs) {
    return Rs;
}

// Whole pairs.
HEX_INLINE Word64 Q6_P_and_PP(Word64 Rss, Word64 Rtt) {
    return Rss & Rtt;
}

HEX_INLINE Word64 Q6_P_or_PP(Word64 Rss, Word64 Rtt) {
    return Rss | Rtt;
}

HEX_INLINE Word64 Q6_P_xor_PP(Word64 Rss, Word64 Rtt) {
    return Rss ^ Rtt;
}

HEX_INLINE Word64 Q6_P_and_PnP(Word64 Rtt, Word64 Rss) {
    return Rtt & ~Rss;
}

HEX_INLINE Word64 Q6_P_or_PnP(Word64 Rtt, Word64 Rss) {
    return Rtt | ~Rss;
}

HEX_INLINE Word64 Q6_P_not_P(Word64 Rss) {
    return ~Rss;
}

HEX_INLINE Word64 Q6_P_neg_P(Word64 Rss) {
    return (Word64) (0 - (UWord64) Rss);
}

HEX_INLINE Word64 Q6_P_abs_P(Word64 Rss) {
    return Rss < 0 ? Q6_P_neg_P(Rss) : Rss;
}

HEX_INLINE Word64 Q6_P_max_PP(Word64 Rss, Word64 Rtt) {
    return Rss > Rtt ? Rss : Rtt;
}

HEX_INLINE Word64 Q6_P_min_PP(Word64 Rtt, Word64 Rss) {
    return Rtt < Rss ? Rtt : Rss;
}

HEX_INLINE UWord64 Q6_P_maxu_PP(Word64 Rss, Word64 Rtt) {
    return (UWord64) Rss > (UWord64) Rtt ? (UWord64) Rss : (UWord64) Rtt;
}

HEX_INLINE UWord64 Q6_P_minu_PP(Word64 Rtt, Word64 Rss) {
    return (UWord64) Rtt < (UWord64) Rss ? (UWord64) Rtt : (UWord64) Rss;
}

HEX_INLINE Word64 Q6_P_mpyacc_RR(Word64 Rxx, Word32 Rs, Word32 Rt) {
    return (Word64) ((UWord64) Rxx + (UWord64) ((Word64) Rs * Rt));
}

HEX_INLINE Word64 Q6_P_mpynac_RR(Word64 Rxx, Word32 Rs, Word32 Rt) {
    return (Word64) ((UWord64) Rxx - (UWord64) ((Word64) Rs * Rt));
}

HEX_INLINE Word64 Q6_P_mpyuacc_RR(Word64 Rxx, Word32 Rs, Word32 Rt) {
    return (Word64) ((UWord64) Rxx + (UWord64) (UWord32) Rs * (UWord32) Rt);
}

HEX_INLINE Word32 Q6_R_addasl_RRI(Word32 Rt, Word32 Rs, Word32 Iu3) {
    return (Word32) ((UWord32) Rt + ((UWord32) Rs << Iu3));
}

HEX_INLINE Word32 Q6_R_neg_R(Word32 Rs) {
    return (Word32) (0 - (UWord32) Rs);
}

HEX_INLINE Word32 Q6_R_not_R(Word32 Rs) {
    return ~Rs;
}

HEX_INLINE Word32 Q6_R_cmp_eq_RR(Word32 Rs, Word32 Rt) {
    return Rs == Rt;
}

#endif
