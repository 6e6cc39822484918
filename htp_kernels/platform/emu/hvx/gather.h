// Gather and scatter in VTCM. The region is [Rt, Rt + Mu]: an element that does not lie wholly in it (an offset past
// the end, or a negative one, which is a large unsigned one) is dropped, and a dropped or masked element of a gather
// leaves its place in the destination as it was. The region, and a gather's destination, must lie in VTCM that is held,
// or the process ends; VTCM is one page here, so no region in it crosses one. Addresses are 32 bits.
#ifndef HEXNPU_EMU_HVX_GATHER_H
#define HEXNPU_EMU_HVX_GATHER_H

#include <string.h>

#include "mem.h"
#include "vtcm-check.h"

// The sanitizers see element by element, but not the processor's own gathers and scatters.
#if defined(HVX_EMU_AVX512) && !__has_feature(thread_sanitizer) && !__has_feature(address_sanitizer)
#define HVX_EMU_GATHER512 1
typedef uint32_t hvx_zmm_u32 __attribute__((vector_size(64), may_alias));
#define HVX_FIRST_16(v) __builtin_shufflevector(v, v, HVX_EACH_8(HVX_INDEX, 0), HVX_EACH_8(HVX_INDEX, 8))
#define HVX_LAST_16(v) __builtin_shufflevector(v, v, HVX_EACH_8(HVX_INDEX, 16), HVX_EACH_8(HVX_INDEX, 24))

// 16 words at byte offsets from p; lanes of which `wanted` is clear are 0 and not read.
HVX_INLINE __m512i hvx_gather_16(hvx_zmm_u32 wanted, hvx_zmm_u32 offsets, const char *p) {
    __mmask16 lanes = _mm512_movepi32_mask((__m512i) wanted);
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, (__m512i) offsets, p, 1);
}

HVX_INLINE void hvx_scatter_16(hvx_zmm_u32 wanted, hvx_zmm_u32 offsets, hvx_zmm_u32 values, char *p) {
    _mm512_mask_i32scatter_epi32(p, _mm512_movepi32_mask((__m512i) wanted), (__m512i) offsets, (__m512i) values, 1);
}
#endif

// The region's first byte; `what` opens the sentence about a region that is not in VTCM.
HVX_INLINE char *hvx_region(Word32 Rt, Word32 Mu, unsigned size, const char *what) {
    uint32_t first = (uint32_t) Rt & ~(size - 1), last = (uint32_t) Mu | (size - 1);
    emu_vtcm_check(first, last + 1 ? last + 1 : last, what);
    return (char *) (uintptr_t) first;
}

HVX_INLINE const char *hvx_gather_from(const HVX_Vector *Rs, Word32 Rt, Word32 Mu, unsigned size) {
    emu_vtcm_check((uint32_t) (uintptr_t) Rs, 128, "the destination of a gather");
    return hvx_region(Rt, Mu, size, "the region of a gather");
}

HVX_INLINE char *hvx_scatter_to(Word32 Rt, Word32 Mu, unsigned size) {
    return hvx_region(Rt, Mu, size, "the region of a scatter");
}

// The highest offset at which a whole element fits. Mu names the last byte, and with it that byte's whole element.
HVX_INLINE uint32_t hvx_last_offset(Word32 Mu, unsigned size) {
    return ((uint32_t) Mu | (size - 1)) - (size - 1);
}

#define HVX_ALL HVX_Q(~Q6_V_vzero())

// The two offsets of a word's halfwords: even elements have theirs in the low vector of the pair. As one list of 64.
HVX_INLINE hvx_u32w hvx_pair_offsets(HVX_VectorPair Vvv) {
#define HVX_ALTERNATE(i) ((i) / 2 + 32 * ((i) & 1))
    return __builtin_shufflevector((hvx_u32w) Vvv, (hvx_u32w) Vvv, HVX_EACH_64(HVX_ALTERNATE, 0));
#undef HVX_ALTERNATE
}

HVX_INLINE void hvx_gather_words(HVX_Vector *Rs, HVX_VectorPred q, Word32 Rt, Word32 Mu, hvx_u32 offsets) {
    const char *from = hvx_gather_from(Rs, Rt, Mu, 4);
    hvx_u32 fits = (hvx_u32) (offsets <= hvx_last_offset(Mu, 4));
#ifdef HVX_EMU_GATHER512
    hvx_zmm_u32 low = (hvx_zmm_u32) hvx_gather_16(HVX_FIRST_16(fits), HVX_FIRST_16(offsets), from);
    hvx_zmm_u32 high = (hvx_zmm_u32) hvx_gather_16(HVX_LAST_16(fits), HVX_LAST_16(offsets), from);
    hvx_u32 got = __builtin_shufflevector(low, high, HVX_EACH_32(HVX_INDEX, 0));
#else
    hvx_u32 got = (hvx_u32) Q6_V_vzero(), wanted = (hvx_u32) q & fits;
    for (int i = 0; i < 32; i++) {
        uint32_t word = 0;
        if (wanted[i]) memcpy(&word, from + offsets[i], 4);
        got[i] = word;
    }
#endif
    hvx_store_masked(q & HVX_Q(fits), Rs, HVX_V(got));
}

// The halves at `offsets`, all of which are wanted or not read. Where the processor gathers, it does so by words: the
// word that begins with a half, or, where that would leave the region, one that ends with it.
HVX_INLINE hvx_u16 hvx_gather_64(hvx_u32w wanted, hvx_u32w offsets, const char *from, uint32_t last) {
#ifdef HVX_EMU_GATHER512
    if (last >= 2) {
        hvx_u32w begin = __builtin_elementwise_min(offsets, (hvx_u32w){0} + (last - 2));
        hvx_zmm_u32 part[4];
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++) {
            part[i] = (hvx_zmm_u32) hvx_gather_16(((hvx_zmm_u32 *) &wanted)[i], ((hvx_zmm_u32 *) &begin)[i], from);
        }
        hvx_u32w words;
        memcpy(&words, part, sizeof words);
        return __builtin_convertvector(words >> ((offsets - begin) * 8 & 31), hvx_u16);
    }
#endif
    (void) last;
    uint32_t at[64], want[64];
    uint16_t got[64];
    memcpy(at, &offsets, sizeof at);
    memcpy(want, &wanted, sizeof want);
    for (int i = 0; i < 64; i++) {
        got[i] = 0;
        if (want[i]) memcpy(&got[i], from + at[i], 2);
    }
    hvx_u16 result;
    memcpy(&result, got, sizeof result);
    return result;
}

HVX_INLINE void hvx_gather_halves(HVX_Vector *Rs, HVX_VectorPred q, Word32 Rt, Word32 Mu, hvx_u32w offsets) {
    const char *from = hvx_gather_from(Rs, Rt, Mu, 2);
    uint32_t last = hvx_last_offset(Mu, 2);
    hvx_u32w fits = (hvx_u32w) (offsets <= last);
    hvx_u16 got = hvx_gather_64(fits, offsets, from, last);
    hvx_store_masked(q & HVX_Q(__builtin_convertvector(fits, hvx_u16)), Rs, HVX_V(got));
}

// Bytes of an element are masked one by one.
HVX_INLINE void hvx_scatter_element(char *to, const char *from, const char *mask, int size) {
    for (int i = 0; i < size; i++) {
        if (mask[i]) to[i] = from[i];
    }
}

// Whether every element is wanted wholly or not at all.
HVX_INLINE int hvx_masks_words(HVX_VectorPred q) {
    hvx_i32 whole = ((hvx_i32) q == -1) | ((hvx_i32) q == 0);
    return __builtin_reduce_and(whole) != 0;
}

HVX_INLINE int hvx_masks_halves(HVX_VectorPred q) {
    hvx_i16 whole = ((hvx_i16) q == -1) | ((hvx_i16) q == 0);
    return __builtin_reduce_and(whole) != 0;
}

HVX_INLINE void hvx_scatter_words(HVX_VectorPred q, Word32 Rt, Word32 Mu, hvx_u32 offsets, HVX_Vector Vw) {
    char *to = hvx_scatter_to(Rt, Mu, 4);
    q &= HVX_Q(offsets <= hvx_last_offset(Mu, 4));
#ifdef HVX_EMU_GATHER512
    if (hvx_masks_words(q)) {
        hvx_u32 wanted = (hvx_u32) q, values = (hvx_u32) Vw;
        hvx_scatter_16(HVX_FIRST_16(wanted), HVX_FIRST_16(offsets), HVX_FIRST_16(values), to);
        hvx_scatter_16(HVX_LAST_16(wanted), HVX_LAST_16(offsets), HVX_LAST_16(values), to);
        return;
    }
#endif
    for (int i = 0; i < 32; i++) {
        hvx_scatter_element(to + offsets[i], (const char *) &Vw + 4 * i, (const char *) &q + 4 * i, 4);
    }
}

HVX_INLINE void hvx_scatter_halves(HVX_VectorPred q, Word32 Rt, Word32 Mu, hvx_u32w offsets, HVX_Vector Vw) {
    char *to = hvx_scatter_to(Rt, Mu, 2);
    q &= HVX_Q(__builtin_convertvector(offsets <= hvx_last_offset(Mu, 2), hvx_u16));
    if (hvx_masks_halves(q)) {
        uint32_t at[64];
        uint16_t values[64], wanted[64];
        memcpy(at, &offsets, sizeof at);
        memcpy(values, &Vw, sizeof values);
        memcpy(wanted, &q, sizeof wanted);
        for (int i = 0; i < 64; i++) {
            if (wanted[i]) memcpy(to + at[i], &values[i], 2);
        }
        return;
    }
    for (int i = 0; i < 64; i++) {
        hvx_scatter_element(to + offsets[i], (const char *) &Vw + 2 * i, (const char *) &q + 2 * i, 2);
    }
}

// Accumulation in order of elements, so that elements at one place all count.
HVX_INLINE void hvx_scatter_add_words(Word32 Rt, Word32 Mu, hvx_u32 offsets, hvx_u32 values) {
    char *to = hvx_scatter_to(Rt, Mu, 4);
    hvx_u32 places = offsets & ~3u, fits = (hvx_u32) (places <= hvx_last_offset(Mu, 4));
    for (int i = 0; i < 32; i++) {
        if (fits[i]) *(uint32_t *) (to + places[i]) += values[i];
    }
}

HVX_INLINE void hvx_scatter_add_halves(Word32 Rt, Word32 Mu, hvx_u32w offsets, hvx_u16 values) {
    char *to = hvx_scatter_to(Rt, Mu, 2);
    hvx_u32w places = offsets & ~1u, fits = (hvx_u32w) (places <= hvx_last_offset(Mu, 2));
    for (int i = 0; i < 64; i++) {
        uint16_t *half = (uint16_t *) (to + places[i]);
        if (fits[i]) *half = (uint16_t) (*half + values[i]);
    }
}

HVX_INLINE void Q6_vgather_ARMVw(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_words(Rs, HVX_ALL, Rt, Mu, (hvx_u32) Vv);
}

HVX_INLINE void Q6_vscatter_RMVwV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_words(HVX_ALL, Rt, Mu, (hvx_u32) Vv, Vw);
}

HVX_INLINE void Q6_vgather_ARMVh(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_halves(Rs, HVX_ALL, Rt, Mu, __builtin_convertvector((hvx_u16) Vv, hvx_u32w));
}

HVX_INLINE void Q6_vscatter_RMVhV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_halves(HVX_ALL, Rt, Mu, __builtin_convertvector((hvx_u16) Vv, hvx_u32w), Vw);
}

HVX_INLINE void Q6_vgather_ARMWw(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv) {
    hvx_gather_halves(Rs, HVX_ALL, Rt, Mu, hvx_pair_offsets(Vvv));
}

HVX_INLINE void Q6_vscatter_RMWwV(Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    hvx_scatter_halves(HVX_ALL, Rt, Mu, hvx_pair_offsets(Vvv), Vw);
}

HVX_INLINE void Q6_vgather_AQRMVw(HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_words(Rs, Qs, Rt, Mu, (hvx_u32) Vv);
}

HVX_INLINE void Q6_vscatter_QRMVwV(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_words(Qs, Rt, Mu, (hvx_u32) Vv, Vw);
}

HVX_INLINE void Q6_vgather_AQRMVh(HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_halves(Rs, Qs, Rt, Mu, __builtin_convertvector((hvx_u16) Vv, hvx_u32w));
}

HVX_INLINE void Q6_vscatter_QRMVhV(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_halves(Qs, Rt, Mu, __builtin_convertvector((hvx_u16) Vv, hvx_u32w), Vw);
}

HVX_INLINE void Q6_vgather_AQRMWw(HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv) {
    hvx_gather_halves(Rs, Qs, Rt, Mu, hvx_pair_offsets(Vvv));
}

HVX_INLINE void Q6_vscatter_QRMWwV(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    hvx_scatter_halves(Qs, Rt, Mu, hvx_pair_offsets(Vvv), Vw);
}

// Accumulating: offsets are aligned down to the element first.
HVX_INLINE void Q6_vscatteracc_RMVwV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_add_words(Rt, Mu, (hvx_u32) Vv, (hvx_u32) Vw);
}

HVX_INLINE void Q6_vscatteracc_RMVhV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_add_halves(Rt, Mu, __builtin_convertvector((hvx_u16) Vv, hvx_u32w), (hvx_u16) Vw);
}

HVX_INLINE void Q6_vscatteracc_RMWwV(Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    hvx_scatter_add_halves(Rt, Mu, hvx_pair_offsets(Vvv), (hvx_u16) Vw);
}

#endif
