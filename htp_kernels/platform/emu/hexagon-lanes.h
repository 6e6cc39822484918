// Scalar intrinsics that compute on the bytes, halfwords or words of a register or a pair.
#ifndef HEXNPU_EMU_HEXAGON_LANES_H
#define HEXNPU_EMU_HEXAGON_LANES_H

#include "hexagon_types.h"

#define HEX_INLINE static inline __attribute__((always_inline, unused))

typedef int8_t hex_b8 __attribute__((vector_size(8)));
typedef uint8_t hex_ub8 __attribute__((vector_size(8)));
typedef int16_t hex_h4 __attribute__((vector_size(8)));
typedef uint16_t hex_uh4 __attribute__((vector_size(8)));
typedef int32_t hex_w2 __attribute__((vector_size(8)));
typedef uint32_t hex_uw2 __attribute__((vector_size(8)));
// The same lanes with room for a sum, a difference or a product.
typedef int16_t hex_b8_wide __attribute__((vector_size(16)));
typedef int32_t hex_h4_wide __attribute__((vector_size(16)));
typedef int64_t hex_w2_wide __attribute__((vector_size(16)));

#define HEX_WIDE(lanes, v) __builtin_convertvector((lanes) (v), lanes##_WIDE)
#define hex_b8_WIDE hex_b8_wide
#define hex_ub8_WIDE hex_b8_wide
#define hex_h4_WIDE hex_h4_wide
#define hex_uh4_WIDE hex_h4_wide
#define hex_w2_WIDE hex_w2_wide
#define hex_uw2_WIDE hex_w2_wide

HEX_INLINE Word64 hex_narrow_b(hex_b8_wide v, int16_t low, int16_t high) {
    v = __builtin_elementwise_min(__builtin_elementwise_max(v, (hex_b8_wide){0} + low), (hex_b8_wide){0} + high);
    return (Word64) __builtin_convertvector(v, hex_b8);
}

HEX_INLINE Word64 hex_narrow_h(hex_h4_wide v, int32_t low, int32_t high) {
    v = __builtin_elementwise_min(__builtin_elementwise_max(v, (hex_h4_wide){0} + low), (hex_h4_wide){0} + high);
    return (Word64) __builtin_convertvector(v, hex_h4);
}

HEX_INLINE Word64 hex_narrow_w(hex_w2_wide v, int64_t low, int64_t high) {
    v = __builtin_elementwise_min(__builtin_elementwise_max(v, (hex_w2_wide){0} + low), (hex_w2_wide){0} + high);
    return (Word64) __builtin_convertvector(v, hex_w2);
}

// Sums and differences: wrapping, and saturating.
HEX_INLINE Word64 Q6_P_vaddub_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) ((hex_ub8) Rss + (hex_ub8) Rtt);
}

HEX_INLINE Word64 Q6_P_vaddb_PP(Word64 Rss, Word64 Rtt) {
    return Q6_P_vaddub_PP(Rss, Rtt);
}

HEX_INLINE Word64 Q6_P_vaddh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) ((hex_uh4) Rss + (hex_uh4) Rtt);
}

HEX_INLINE Word64 Q6_P_vaddw_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) ((hex_uw2) Rss + (hex_uw2) Rtt);
}

HEX_INLINE Word64 Q6_P_vsubub_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) ((hex_ub8) Rtt - (hex_ub8) Rss);
}

HEX_INLINE Word64 Q6_P_vsubb_PP(Word64 Rss, Word64 Rtt) {
    return Q6_P_vsubub_PP(Rss, Rtt);
}

HEX_INLINE Word64 Q6_P_vsubh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) ((hex_uh4) Rtt - (hex_uh4) Rss);
}

HEX_INLINE Word64 Q6_P_vsubw_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) ((hex_uw2) Rtt - (hex_uw2) Rss);
}

HEX_INLINE Word64 Q6_P_vaddub_PP_sat(Word64 Rss, Word64 Rtt) {
    return hex_narrow_b(HEX_WIDE(hex_ub8, Rss) + HEX_WIDE(hex_ub8, Rtt), 0, UINT8_MAX);
}

HEX_INLINE Word64 Q6_P_vaddh_PP_sat(Word64 Rss, Word64 Rtt) {
    return hex_narrow_h(HEX_WIDE(hex_h4, Rss) + HEX_WIDE(hex_h4, Rtt), INT16_MIN, INT16_MAX);
}

HEX_INLINE Word64 Q6_P_vadduh_PP_sat(Word64 Rss, Word64 Rtt) {
    return hex_narrow_h(HEX_WIDE(hex_uh4, Rss) + HEX_WIDE(hex_uh4, Rtt), 0, UINT16_MAX);
}

HEX_INLINE Word64 Q6_P_vaddw_PP_sat(Word64 Rss, Word64 Rtt) {
    return hex_narrow_w(HEX_WIDE(hex_w2, Rss) + HEX_WIDE(hex_w2, Rtt), INT32_MIN, INT32_MAX);
}

HEX_INLINE Word64 Q6_P_vsubub_PP_sat(Word64 Rtt, Word64 Rss) {
    return hex_narrow_b(HEX_WIDE(hex_ub8, Rtt) - HEX_WIDE(hex_ub8, Rss), 0, UINT8_MAX);
}

HEX_INLINE Word64 Q6_P_vsubh_PP_sat(Word64 Rtt, Word64 Rss) {
    return hex_narrow_h(HEX_WIDE(hex_h4, Rtt) - HEX_WIDE(hex_h4, Rss), INT16_MIN, INT16_MAX);
}

HEX_INLINE Word64 Q6_P_vsubuh_PP_sat(Word64 Rtt, Word64 Rss) {
    return hex_narrow_h(HEX_WIDE(hex_uh4, Rtt) - HEX_WIDE(hex_uh4, Rss), 0, UINT16_MAX);
}

HEX_INLINE Word64 Q6_P_vsubw_PP_sat(Word64 Rtt, Word64 Rss) {
    return hex_narrow_w(HEX_WIDE(hex_w2, Rtt) - HEX_WIDE(hex_w2, Rss), INT32_MIN, INT32_MAX);
}

// Halfwords of one register.
HEX_INLINE Word32 Q6_R_vaddh_RR(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_vaddh_PP(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_vaddh_RR_sat(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_vaddh_PP_sat(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_vadduh_RR_sat(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_vadduh_PP_sat(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_vsubh_RR(Word32 Rt, Word32 Rs) {
    return (Word32) Q6_P_vsubh_PP(Rt, Rs);
}

HEX_INLINE Word32 Q6_R_vsubh_RR_sat(Word32 Rt, Word32 Rs) {
    return (Word32) Q6_P_vsubh_PP_sat(Rt, Rs);
}

HEX_INLINE Word32 Q6_R_vsubuh_RR_sat(Word32 Rt, Word32 Rs) {
    return (Word32) Q6_P_vsubuh_PP_sat(Rt, Rs);
}

// Averages, rounded down or half up.
HEX_INLINE Word64 Q6_P_vavgub_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_ub8, Rss) + HEX_WIDE(hex_ub8, Rtt)) >> 1, hex_b8);
}

HEX_INLINE Word64 Q6_P_vavgub_PP_rnd(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_ub8, Rss) + HEX_WIDE(hex_ub8, Rtt) + 1) >> 1, hex_b8);
}

HEX_INLINE Word64 Q6_P_vavgh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_h4, Rss) + HEX_WIDE(hex_h4, Rtt)) >> 1, hex_h4);
}

HEX_INLINE Word64 Q6_P_vavgh_PP_rnd(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_h4, Rss) + HEX_WIDE(hex_h4, Rtt) + 1) >> 1, hex_h4);
}

HEX_INLINE Word64 Q6_P_vavguh_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_uh4, Rss) + HEX_WIDE(hex_uh4, Rtt)) >> 1, hex_h4);
}

HEX_INLINE Word64 Q6_P_vavguh_PP_rnd(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_uh4, Rss) + HEX_WIDE(hex_uh4, Rtt) + 1) >> 1, hex_h4);
}

HEX_INLINE Word64 Q6_P_vavgw_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_w2, Rss) + HEX_WIDE(hex_w2, Rtt)) >> 1, hex_w2);
}

HEX_INLINE Word64 Q6_P_vavgw_PP_rnd(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_w2, Rss) + HEX_WIDE(hex_w2, Rtt) + 1) >> 1, hex_w2);
}

HEX_INLINE Word64 Q6_P_vavguw_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_uw2, Rss) + HEX_WIDE(hex_uw2, Rtt)) >> 1, hex_w2);
}

HEX_INLINE Word64 Q6_P_vavguw_PP_rnd(Word64 Rss, Word64 Rtt) {
    return (Word64) __builtin_convertvector((HEX_WIDE(hex_uw2, Rss) + HEX_WIDE(hex_uw2, Rtt) + 1) >> 1, hex_w2);
}

HEX_INLINE Word32 Q6_R_vavgh_RR(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_vavgh_PP(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_vavgh_RR_rnd(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_vavgh_PP_rnd(Rs, Rt);
}

// Minima and maxima.
HEX_INLINE Word64 Q6_P_vmaxb_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_b8) Rtt, (hex_b8) Rss);
}

HEX_INLINE Word64 Q6_P_vmaxub_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_ub8) Rtt, (hex_ub8) Rss);
}

HEX_INLINE Word64 Q6_P_vmaxh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_h4) Rtt, (hex_h4) Rss);
}

HEX_INLINE Word64 Q6_P_vmaxuh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_uh4) Rtt, (hex_uh4) Rss);
}

HEX_INLINE Word64 Q6_P_vmaxw_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_w2) Rtt, (hex_w2) Rss);
}

HEX_INLINE Word64 Q6_P_vmaxuw_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_uw2) Rtt, (hex_uw2) Rss);
}

HEX_INLINE Word64 Q6_P_vminb_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_b8) Rtt, (hex_b8) Rss);
}

HEX_INLINE Word64 Q6_P_vminub_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_ub8) Rtt, (hex_ub8) Rss);
}

HEX_INLINE Word64 Q6_P_vminh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_h4) Rtt, (hex_h4) Rss);
}

HEX_INLINE Word64 Q6_P_vminuh_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_uh4) Rtt, (hex_uh4) Rss);
}

HEX_INLINE Word64 Q6_P_vminw_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_w2) Rtt, (hex_w2) Rss);
}

HEX_INLINE Word64 Q6_P_vminuw_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) __builtin_elementwise_min((hex_uw2) Rtt, (hex_uw2) Rss);
}

// Absolute values and differences.
HEX_INLINE Word64 Q6_P_vabsh_P(Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_h4) Rss, (hex_h4) ((hex_uh4){0} - (hex_uh4) Rss));
}

HEX_INLINE Word64 Q6_P_vabsh_P_sat(Word64 Rss) {
    hex_h4_wide v = HEX_WIDE(hex_h4, Rss);
    return hex_narrow_h(__builtin_elementwise_max(v, -v), INT16_MIN, INT16_MAX);
}

HEX_INLINE Word64 Q6_P_vabsw_P(Word64 Rss) {
    return (Word64) __builtin_elementwise_max((hex_w2) Rss, (hex_w2) ((hex_uw2){0} - (hex_uw2) Rss));
}

HEX_INLINE Word64 Q6_P_vabsw_P_sat(Word64 Rss) {
    hex_w2_wide v = HEX_WIDE(hex_w2, Rss);
    return hex_narrow_w(__builtin_elementwise_max(v, -v), INT32_MIN, INT32_MAX);
}

HEX_INLINE Word64 Q6_P_vabsdiffh_PP(Word64 Rtt, Word64 Rss) {
    hex_h4_wide v = HEX_WIDE(hex_h4, Rtt) - HEX_WIDE(hex_h4, Rss);
    return (Word64) __builtin_convertvector(__builtin_elementwise_max(v, -v), hex_h4);
}

HEX_INLINE Word64 Q6_P_vabsdiffw_PP(Word64 Rtt, Word64 Rss) {
    hex_w2_wide v = HEX_WIDE(hex_w2, Rtt) - HEX_WIDE(hex_w2, Rss);
    return (Word64) __builtin_convertvector(__builtin_elementwise_max(v, -v), hex_w2);
}

// Shifts by an immediate.
HEX_INLINE Word64 Q6_P_vaslh_PI(Word64 Rss, Word32 Iu4) {
    return (Word64) ((hex_uh4) Rss << (uint16_t) Iu4);
}

HEX_INLINE Word64 Q6_P_vasrh_PI(Word64 Rss, Word32 Iu4) {
    return (Word64) ((hex_h4) Rss >> (int16_t) Iu4);
}

HEX_INLINE Word64 Q6_P_vlsrh_PI(Word64 Rss, Word32 Iu4) {
    return (Word64) ((hex_uh4) Rss >> (uint16_t) Iu4);
}

HEX_INLINE Word64 Q6_P_vaslw_PI(Word64 Rss, Word32 Iu5) {
    return (Word64) ((hex_uw2) Rss << (uint32_t) Iu5);
}

HEX_INLINE Word64 Q6_P_vasrw_PI(Word64 Rss, Word32 Iu5) {
    return (Word64) ((hex_w2) Rss >> Iu5);
}

HEX_INLINE Word64 Q6_P_vlsrw_PI(Word64 Rss, Word32 Iu5) {
    return (Word64) ((hex_uw2) Rss >> (uint32_t) Iu5);
}

// Products of bytes, and dot products.
HEX_INLINE Word64 Q6_P_vmpybu_RR(Word32 Rs, Word32 Rt) {
    hex_b8_wide product = HEX_WIDE(hex_ub8, (UWord64) (UWord32) Rs) * HEX_WIDE(hex_ub8, (UWord64) (UWord32) Rt);
    return (Word64) __builtin_shufflevector(product, product, 0, 1, 2, 3);
}

HEX_INLINE Word64 Q6_P_vmpybsu_RR(Word32 Rs, Word32 Rt) {
    hex_b8_wide product = HEX_WIDE(hex_b8, (UWord64) (UWord32) Rs) * HEX_WIDE(hex_ub8, (UWord64) (UWord32) Rt);
    return (Word64) __builtin_shufflevector(product, product, 0, 1, 2, 3);
}

HEX_INLINE Word64 hex_sums_of_four(const int32_t *products) {
    hex_w2 sums = {0};
    for (int i = 0; i < 8; i++) sums[i / 4] += products[i];
    return (Word64) sums;
}

HEX_INLINE Word64 Q6_P_vrmpybu_PP(Word64 Rss, Word64 Rtt) {
    int32_t products[8];
    for (int i = 0; i < 8; i++) products[i] = ((hex_ub8) Rss)[i] * ((hex_ub8) Rtt)[i];
    return hex_sums_of_four(products);
}

HEX_INLINE Word64 Q6_P_vrmpybsu_PP(Word64 Rss, Word64 Rtt) {
    int32_t products[8];
    for (int i = 0; i < 8; i++) products[i] = ((hex_b8) Rss)[i] * ((hex_ub8) Rtt)[i];
    return hex_sums_of_four(products);
}

HEX_INLINE Word64 Q6_P_vrmpybuacc_PP(Word64 Rxx, Word64 Rss, Word64 Rtt) {
    return Q6_P_vaddw_PP(Rxx, Q6_P_vrmpybu_PP(Rss, Rtt));
}

HEX_INLINE Word64 Q6_P_vrmpybsuacc_PP(Word64 Rxx, Word64 Rss, Word64 Rtt) {
    return Q6_P_vaddw_PP(Rxx, Q6_P_vrmpybsu_PP(Rss, Rtt));
}

HEX_INLINE Word64 Q6_P_vraddub_PP(Word64 Rss, Word64 Rtt) {
    int32_t sums[8];
    for (int i = 0; i < 8; i++) sums[i] = ((hex_ub8) Rss)[i] + ((hex_ub8) Rtt)[i];
    return hex_sums_of_four(sums);
}

HEX_INLINE Word64 Q6_P_vrsadub_PP(Word64 Rss, Word64 Rtt) {
    int32_t differences[8];
    for (int i = 0; i < 8; i++) {
        int32_t d = ((hex_ub8) Rss)[i] - ((hex_ub8) Rtt)[i];
        differences[i] = d < 0 ? -d : d;
    }
    return hex_sums_of_four(differences);
}

HEX_INLINE Word64 Q6_P_vraddubacc_PP(Word64 Rxx, Word64 Rss, Word64 Rtt) {
    return Q6_P_vaddw_PP(Rxx, Q6_P_vraddub_PP(Rss, Rtt));
}

HEX_INLINE Word64 Q6_P_vrsadubacc_PP(Word64 Rxx, Word64 Rss, Word64 Rtt) {
    return Q6_P_vaddw_PP(Rxx, Q6_P_vrsadub_PP(Rss, Rtt));
}

HEX_INLINE Word64 Q6_P_vrmpyh_PP(Word64 Rss, Word64 Rtt) {
    UWord64 sum = 0;
    for (int i = 0; i < 4; i++) sum += (UWord64) ((Word64) ((hex_h4) Rss)[i] * ((hex_h4) Rtt)[i]);
    return (Word64) sum;
}

HEX_INLINE Word64 Q6_P_vrmpyhacc_PP(Word64 Rxx, Word64 Rss, Word64 Rtt) {
    return (Word64) ((UWord64) Rxx + (UWord64) Q6_P_vrmpyh_PP(Rss, Rtt));
}

#endif
