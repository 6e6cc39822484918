// Scalar intrinsics (Q6_R_*, Q6_P_*), cache maintenance and the user DMA instructions, under their SDK names.
#ifndef HEXNPU_EMU_HEXAGON_PROTOS_H
#define HEXNPU_EMU_HEXAGON_PROTOS_H

#include <string.h>

#include "hexagon-pairs.h"
#include "hexagon_types.h"

// User DMA: implemented by platform/emu/dma.c.
void Q6_dmstart_A(void *Rs);
void Q6_dmlink_AA(void *Rs, void *Rt);
void Q6_dmresume_A(void *Rs);
Word32 Q6_R_dmpoll(void);
Word32 Q6_R_dmwait(void);
Word32 Q6_R_dmpause(void);

// Caches. Host memory is coherent, so maintenance is only what orders accesses between threads and processes.
HEX_INLINE void Q6_dccleana_A(const void *Rs) {
    (void) Rs;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

HEX_INLINE void Q6_dcinva_A(const void *Rs) {
    (void) Rs;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// Where a session looks at or gives what others see: implemented by platform/emu/skew.c.
void emu_cleaninva(const void *Rs);

HEX_INLINE void Q6_dccleaninva_A(const void *Rs) {
    emu_cleaninva(Rs);
}

// Zeroes the 32-byte line that holds the address.
HEX_INLINE void Q6_dczeroa_A(void *Rs) {
    memset((void *) ((uintptr_t) Rs & ~(uintptr_t) 31), 0, 32);
}

// Prefetches are hints, and may name memory that is not there.
HEX_INLINE void Q6_dcfetch_A(const void *Rs) {
    __builtin_prefetch(Rs);
}

HEX_INLINE void Q6_l2fetch_AR(const void *Rs, Word32 Rt) {
    (void) Rt;
    __builtin_prefetch(Rs);
}

HEX_INLINE void Q6_l2fetch_AP(const void *Rs, Word64 Rtt) {
    (void) Rtt;
    __builtin_prefetch(Rs);
}

// Register pairs: the first operand is the high word.
HEX_INLINE Word64 Q6_P_combine_RR(Word32 Rs, Word32 Rt) {
    return (Word64) (((UWord64) (UWord32) Rs << 32) | (UWord32) Rt);
}

HEX_INLINE Word64 Q6_P_combine_RI(Word32 Rs, Word32 Is8) {
    return Q6_P_combine_RR(Rs, Is8);
}

HEX_INLINE Word64 Q6_P_combine_IR(Word32 Is8, Word32 Rs) {
    return Q6_P_combine_RR(Is8, Rs);
}

HEX_INLINE Word64 Q6_P_combine_II(Word32 Is8, Word32 IS8) {
    return Q6_P_combine_RR(Is8, IS8);
}

HEX_INLINE Word32 Q6_R_combine_RlRl(Word32 Rt, Word32 Rs) {
    return (Word32) (((UWord32) Rt << 16) | ((UWord32) Rs & 0xffff));
}

HEX_INLINE Word32 Q6_R_combine_RlRh(Word32 Rt, Word32 Rs) {
    return (Word32) (((UWord32) Rt << 16) | ((UWord32) Rs >> 16));
}

HEX_INLINE Word32 Q6_R_combine_RhRl(Word32 Rt, Word32 Rs) {
    return (Word32) (((UWord32) Rt & 0xffff0000) | ((UWord32) Rs & 0xffff));
}

HEX_INLINE Word32 Q6_R_combine_RhRh(Word32 Rt, Word32 Rs) {
    return (Word32) (((UWord32) Rt & 0xffff0000) | ((UWord32) Rs >> 16));
}

HEX_INLINE Word32 hex_saturate(Word64 v, Word64 low, Word64 high) {
    return (Word32) (v < low ? low : v > high ? high : v);
}

HEX_INLINE Word32 Q6_R_sat_P(Word64 Rss) {
    return hex_saturate(Rss, INT32_MIN, INT32_MAX);
}

HEX_INLINE Word32 Q6_R_sath_R(Word32 Rs) {
    return hex_saturate(Rs, INT16_MIN, INT16_MAX);
}

HEX_INLINE Word32 Q6_R_satuh_R(Word32 Rs) {
    return hex_saturate(Rs, 0, UINT16_MAX);
}

HEX_INLINE Word32 Q6_R_satb_R(Word32 Rs) {
    return hex_saturate(Rs, INT8_MIN, INT8_MAX);
}

HEX_INLINE Word32 Q6_R_satub_R(Word32 Rs) {
    return hex_saturate(Rs, 0, UINT8_MAX);
}

HEX_INLINE Word32 Q6_R_add_RR(Word32 Rs, Word32 Rt) {
    return (Word32) ((UWord32) Rs + (UWord32) Rt);
}

HEX_INLINE Word32 Q6_R_sub_RR(Word32 Rt, Word32 Rs) {
    return (Word32) ((UWord32) Rt - (UWord32) Rs);
}

HEX_INLINE Word32 Q6_R_add_RR_sat(Word32 Rs, Word32 Rt) {
    return Q6_R_sat_P((Word64) Rs + Rt);
}

HEX_INLINE Word32 Q6_R_sub_RR_sat(Word32 Rt, Word32 Rs) {
    return Q6_R_sat_P((Word64) Rt - Rs);
}

HEX_INLINE Word64 Q6_P_add_PP(Word64 Rss, Word64 Rtt) {
    return (Word64) ((UWord64) Rss + (UWord64) Rtt);
}

HEX_INLINE Word64 Q6_P_sub_PP(Word64 Rtt, Word64 Rss) {
    return (Word64) ((UWord64) Rtt - (UWord64) Rss);
}

HEX_INLINE Word32 Q6_R_abs_R(Word32 Rs) {
    return Rs < 0 ? Q6_R_sub_RR(0, Rs) : Rs;
}

HEX_INLINE Word32 Q6_R_abs_R_sat(Word32 Rs) {
    return Rs < 0 ? Q6_R_sub_RR_sat(0, Rs) : Rs;
}

HEX_INLINE Word32 Q6_R_neg_R_sat(Word32 Rs) {
    return Q6_R_sub_RR_sat(0, Rs);
}

HEX_INLINE Word32 Q6_R_max_RR(Word32 Rs, Word32 Rt) {
    return Rs > Rt ? Rs : Rt;
}

HEX_INLINE Word32 Q6_R_min_RR(Word32 Rt, Word32 Rs) {
    return Rs < Rt ? Rs : Rt;
}

HEX_INLINE UWord32 Q6_R_maxu_RR(Word32 Rs, Word32 Rt) {
    return (UWord32) Rs > (UWord32) Rt ? (UWord32) Rs : (UWord32) Rt;
}

HEX_INLINE UWord32 Q6_R_minu_RR(Word32 Rt, Word32 Rs) {
    return (UWord32) Rs < (UWord32) Rt ? (UWord32) Rs : (UWord32) Rt;
}

HEX_INLINE Word32 Q6_R_and_RR(Word32 Rs, Word32 Rt) {
    return Rs & Rt;
}

HEX_INLINE Word32 Q6_R_or_RR(Word32 Rs, Word32 Rt) {
    return Rs | Rt;
}

HEX_INLINE Word32 Q6_R_xor_RR(Word32 Rs, Word32 Rt) {
    return Rs ^ Rt;
}

HEX_INLINE Word32 Q6_R_swiz_R(Word32 Rs) {
    return (Word32) __builtin_bswap32((UWord32) Rs);
}

HEX_INLINE Word32 Q6_R_brev_R(Word32 Rs) {
    return (Word32) __builtin_bitreverse32((UWord32) Rs);
}

HEX_INLINE Word64 Q6_P_brev_P(Word64 Rss) {
    return (Word64) __builtin_bitreverse64((UWord64) Rss);
}

// Counts of leading and trailing bits: cl0 and ct0 count zeros, cl1 and ct1 ones, clb the longer leading run.
HEX_INLINE Word32 Q6_R_cl0_R(Word32 Rs) {
    return Rs ? __builtin_clz((UWord32) Rs) : 32;
}

HEX_INLINE Word32 Q6_R_cl1_R(Word32 Rs) {
    return Q6_R_cl0_R(~Rs);
}

HEX_INLINE Word32 Q6_R_clb_R(Word32 Rs) {
    return Q6_R_cl0_R(Rs < 0 ? ~Rs : Rs);
}

HEX_INLINE Word32 Q6_R_normamt_R(Word32 Rs) {
    return Rs ? Q6_R_clb_R(Rs) - 1 : 0;
}

HEX_INLINE Word32 Q6_R_ct0_R(Word32 Rs) {
    return Rs ? __builtin_ctz((UWord32) Rs) : 32;
}

HEX_INLINE Word32 Q6_R_ct1_R(Word32 Rs) {
    return Q6_R_ct0_R(~Rs);
}

HEX_INLINE Word32 Q6_R_cl0_P(Word64 Rss) {
    return Rss ? __builtin_clzll((UWord64) Rss) : 64;
}

HEX_INLINE Word32 Q6_R_cl1_P(Word64 Rss) {
    return Q6_R_cl0_P(~Rss);
}

HEX_INLINE Word32 Q6_R_clb_P(Word64 Rss) {
    return Q6_R_cl0_P(Rss < 0 ? ~Rss : Rss);
}

HEX_INLINE Word32 Q6_R_ct0_P(Word64 Rss) {
    return Rss ? __builtin_ctzll((UWord64) Rss) : 64;
}

HEX_INLINE Word32 Q6_R_ct1_P(Word64 Rss) {
    return Q6_R_ct0_P(~Rss);
}

HEX_INLINE Word32 Q6_R_popcount_P(Word64 Rss) {
    return __builtin_popcountll((UWord64) Rss);
}

HEX_INLINE Word32 Q6_R_parity_RR(Word32 Rs, Word32 Rt) {
    return __builtin_parity((UWord32) Rs & (UWord32) Rt);
}

HEX_INLINE Word32 Q6_R_parity_PP(Word64 Rss, Word64 Rtt) {
    return __builtin_parityll((UWord64) Rss & (UWord64) Rtt);
}

HEX_INLINE Word32 Q6_R_setbit_RI(Word32 Rs, Word32 Iu5) {
    return Rs | (Word32) (1u << Iu5);
}

HEX_INLINE Word32 Q6_R_clrbit_RI(Word32 Rs, Word32 Iu5) {
    return Rs & ~(Word32) (1u << Iu5);
}

HEX_INLINE Word32 Q6_R_togglebit_RI(Word32 Rs, Word32 Iu5) {
    return Rs ^ (Word32) (1u << Iu5);
}

// Shifts. An amount in a register is 7 signed bits, and shifts the other way when negative.
HEX_INLINE Word32 hex_shift_amount(Word32 Rt) {
    return (Word32) ((UWord32) Rt << 25) >> 25;
}

HEX_INLINE Word64 hex_shift_left(Word64 v, Word32 n) {
    return (Word64) ((UWord64) v << n);
}

HEX_INLINE Word32 Q6_R_asl_RI(Word32 Rs, Word32 Iu5) {
    return (Word32) ((UWord32) Rs << Iu5);
}

HEX_INLINE Word32 Q6_R_asr_RI(Word32 Rs, Word32 Iu5) {
    return Rs >> Iu5;
}

HEX_INLINE Word32 Q6_R_lsr_RI(Word32 Rs, Word32 Iu5) {
    return (Word32) ((UWord32) Rs >> Iu5);
}

HEX_INLINE Word32 Q6_R_asr_RI_rnd(Word32 Rs, Word32 Iu5) {
    return (Word32) ((((Word64) Rs >> Iu5) + 1) >> 1);
}

HEX_INLINE Word64 Q6_P_asl_PI(Word64 Rss, Word32 Iu6) {
    return hex_shift_left(Rss, Iu6);
}

HEX_INLINE Word64 Q6_P_asr_PI(Word64 Rss, Word32 Iu6) {
    return Rss >> Iu6;
}

HEX_INLINE Word64 Q6_P_lsr_PI(Word64 Rss, Word32 Iu6) {
    return (Word64) ((UWord64) Rss >> Iu6);
}

HEX_INLINE Word64 Q6_P_asl_PR(Word64 Rss, Word32 Rt) {
    Word32 n = hex_shift_amount(Rt);
    return n < 0 ? (Rss >> ~n) >> 1 : hex_shift_left(Rss, n);
}

HEX_INLINE Word64 Q6_P_asr_PR(Word64 Rss, Word32 Rt) {
    Word32 n = hex_shift_amount(Rt);
    return n < 0 ? hex_shift_left(hex_shift_left(Rss, ~n), 1) : Rss >> n;
}

HEX_INLINE Word64 Q6_P_lsr_PR(Word64 Rss, Word32 Rt) {
    Word32 n = hex_shift_amount(Rt);
    return n < 0 ? hex_shift_left(hex_shift_left(Rss, ~n), 1) : (Word64) ((UWord64) Rss >> n);
}

HEX_INLINE Word32 Q6_R_asl_RR(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_asl_PR(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_asr_RR(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_asr_PR(Rs, Rt);
}

HEX_INLINE Word32 Q6_R_lsr_RR(Word32 Rs, Word32 Rt) {
    return (Word32) Q6_P_lsr_PR((Word64) (UWord32) Rs, Rt);
}

// Bit fields: width, then the place of the lowest bit.
HEX_INLINE UWord32 hex_field_mask(Word32 width) {
    return (UWord32) ((1ull << width) - 1);
}

HEX_INLINE Word32 Q6_R_extractu_RII(Word32 Rs, Word32 Iu5, Word32 IU5) {
    return (Word32) (((UWord32) Rs >> IU5) & hex_field_mask(Iu5));
}

HEX_INLINE Word32 Q6_R_extract_RII(Word32 Rs, Word32 Iu5, Word32 IU5) {
    UWord32 field = (UWord32) Q6_R_extractu_RII(Rs, Iu5, IU5), sign = Iu5 ? 1u << (Iu5 - 1) : 0;
    return (Word32) ((field ^ sign) - sign);
}

HEX_INLINE Word32 Q6_R_insert_RII(Word32 Rx, Word32 Rs, Word32 Iu5, Word32 IU5) {
    UWord32 mask = hex_field_mask(Iu5);
    return (Word32) (((UWord32) Rx & ~(mask << IU5)) | (((UWord32) Rs & mask) << IU5));
}

// Multiplications: mpyi keeps the low word, mpy the high one, P the whole product.
HEX_INLINE Word32 Q6_R_mpyi_RR(Word32 Rs, Word32 Rt) {
    return (Word32) ((UWord32) Rs * (UWord32) Rt);
}

HEX_INLINE Word32 Q6_R_mpyiacc_RR(Word32 Rx, Word32 Rs, Word32 Rt) {
    return (Word32) ((UWord32) Rx + (UWord32) Rs * (UWord32) Rt);
}

HEX_INLINE Word64 Q6_P_mpy_RR(Word32 Rs, Word32 Rt) {
    return (Word64) Rs * Rt;
}

HEX_INLINE UWord64 Q6_P_mpyu_RR(Word32 Rs, Word32 Rt) {
    return (UWord64) (UWord32) Rs * (UWord32) Rt;
}

HEX_INLINE Word32 Q6_R_mpy_RR(Word32 Rs, Word32 Rt) {
    return (Word32) (((Word64) Rs * Rt) >> 32);
}

HEX_INLINE UWord32 Q6_R_mpyu_RR(Word32 Rs, Word32 Rt) {
    return (UWord32) (Q6_P_mpyu_RR(Rs, Rt) >> 32);
}

HEX_INLINE Word32 Q6_R_mpy_RR_rnd(Word32 Rs, Word32 Rt) {
    return (Word32) (((Word64) Rs * Rt + (1ll << 31)) >> 32);
}

// Replication of a byte or halfword across a register.
HEX_INLINE Word32 Q6_R_vsplatb_R(Word32 Rs) {
    return (Word32) (((UWord32) Rs & 0xff) * 0x01010101u);
}

HEX_INLINE Word64 Q6_P_vsplath_R(Word32 Rs) {
    return (Word64) (((UWord64) Rs & 0xffff) * 0x0001000100010001ull);
}

// The SDK's header brings the vector intrinsics along; so does this one, for sources that `hexnpu emu-cc` compiles.
#ifdef __hexagon__
#include "hvx_hexagon_protos.h"
#endif

#endif
