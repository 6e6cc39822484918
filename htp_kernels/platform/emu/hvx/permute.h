// Byte permutations: shuffles, deals, rotations, alignment, and the delta networks.
#ifndef HEXNPU_EMU_HVX_PERMUTE_H
#define HEXNPU_EMU_HVX_PERMUTE_H

#include "base.h"

// The 64-byte halves of vectors, for the paths that permute by index.
#if defined(HVX_EMU_AVX512)
HVX_INLINE __m512i hvx_zmm(HVX_Vector v, int half) {
    typedef int zmm_words __attribute__((vector_size(64)));
    zmm_words low = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    zmm_words high =
        __builtin_shufflevector(v, v, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
    return (__m512i) (half ? high : low);
}

HVX_INLINE HVX_Vector hvx_from_zmm(__m512i low, __m512i high) {
    typedef int zmm_words __attribute__((vector_size(64)));
    return __builtin_shufflevector((zmm_words) low, (zmm_words) high, HVX_EACH_32(HVX_INDEX, 0));
}
#endif

#if defined(HVX_EMU_AVX2)
// pshufb looks up 16 bytes and gives 0 where an index has its top bit: for each sixteenth of the table, indices outside
// it get that bit by a saturating addition, and the eight results are joined.
HVX_INLINE HVX_Vector hvx_permute_bytes_avx2(HVX_Vector v, hvx_u8 index) {
    union {
        HVX_Vector v;
        __m128i xmm[8];
        __m256i ymm[4];
    } table = {.v = v}, at = {.v = HVX_V(index & 127)}, out;
    for (int i = 0; i < 4; i++) {
        __m256i found = _mm256_setzero_si256();
        for (int piece = 0; piece < 8; piece++) {
            __m256i place = _mm256_xor_si256(at.ymm[i], _mm256_set1_epi8((char) (16 * piece)));
            place = _mm256_adds_epu8(place, _mm256_set1_epi8(0x70));
            found = _mm256_or_si256(found, _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table.xmm[piece]), place));
        }
        out.ymm[i] = found;
    }
    return out.v;
}
#endif

// out[i] = v[index[i] & 127].
HVX_INLINE HVX_Vector hvx_permute_bytes(HVX_Vector v, hvx_u8 index) {
#if defined(HVX_EMU_VBMI)
    __m512i low = hvx_zmm(v, 0), high = hvx_zmm(v, 1);
    return hvx_from_zmm(_mm512_permutex2var_epi8(low, hvx_zmm(HVX_V(index), 0), high),
                        _mm512_permutex2var_epi8(low, hvx_zmm(HVX_V(index), 1), high));
#elif defined(HVX_EMU_AVX2)
    return hvx_permute_bytes_avx2(v, index);
#else
    hvx_u8 table = (hvx_u8) v, out;
    for (int i = 0; i < 128; i++) {
        out[i] = table[index[i] & 127];
    }
    return HVX_V(out);
#endif
}

// out[i] = v[index[i] & 63] on halfwords.
HVX_INLINE hvx_u16 hvx_permute_halves(HVX_Vector v, hvx_u16 index) {
#if defined(HVX_EMU_AVX512)
    __m512i low = hvx_zmm(v, 0), high = hvx_zmm(v, 1);
    return (hvx_u16) hvx_from_zmm(_mm512_permutex2var_epi16(low, hvx_zmm(HVX_V(index), 0), high),
                                  _mm512_permutex2var_epi16(low, hvx_zmm(HVX_V(index), 1), high));
#elif defined(HVX_EMU_AVX2)
    hvx_u16 low_bytes = (index & 63) << 1;
    return (hvx_u16) hvx_permute_bytes(v, (hvx_u8) (low_bytes | (low_bytes << 8) | 0x100));
#else
    hvx_u16 table = (hvx_u16) v, out;
    for (int i = 0; i < 64; i++) {
        out[i] = table[index[i] & 63];
    }
    return out;
#endif
}

// The 128 bytes from byte `shift` (0 to 128) of Vv and Vu in a row, Vv first.
HVX_INLINE HVX_Vector hvx_window(HVX_Vector Vu, HVX_Vector Vv, int shift) {
#if defined(HVX_EMU_VBMI)
    // Any 64 bytes of the row lie in two neighbouring 64-byte pieces: one two-source permute each.
    __m512i piece[4] = {hvx_zmm(Vv, 0), hvx_zmm(Vv, 1), hvx_zmm(Vu, 0), hvx_zmm(Vu, 1)};
    __m512i a = shift >= 128 ? piece[2] : shift >= 64 ? piece[1] : piece[0];
    __m512i b = shift >= 128 ? piece[3] : shift >= 64 ? piece[2] : piece[1];
    __m512i c = shift >= 64 ? piece[3] : piece[2];
    typedef uint8_t zmm_bytes __attribute__((vector_size(64)));
    __m512i index = (__m512i) ((zmm_bytes){HVX_EACH_64(HVX_INDEX, 0)} + (uint8_t) (shift & 63));
    return hvx_from_zmm(_mm512_permutex2var_epi8(a, index, b), _mm512_permutex2var_epi8(b, index, c));
#else
    struct {
        HVX_Vector v[2];
    } row = {{Vv, Vu}};
    return HVX_V(*(const HVX_UVector *) ((const char *) &row + shift));
#endif
}

HVX_INLINE HVX_Vector Q6_V_valign_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return hvx_window(Vu, Vv, Rt & 127);
}

HVX_INLINE HVX_Vector Q6_V_vlalign_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    return hvx_window(Vu, Vv, 128 - (Rt & 127));
}

HVX_INLINE HVX_Vector Q6_V_valign_VVI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return hvx_window(Vu, Vv, Iu3);
}

HVX_INLINE HVX_Vector Q6_V_vlalign_VVI(HVX_Vector Vu, HVX_Vector Vv, Word32 Iu3) {
    return hvx_window(Vu, Vv, 128 - Iu3);
}

HVX_INLINE HVX_Vector Q6_V_vror_VR(HVX_Vector Vu, Word32 Rt) {
    return hvx_window(Vu, Vu, Rt & 127);
}

// vshuff and vdeal of two vectors. Every set bit of R swaps, for that offset, the bytes of the high vector without the
// bit with the bytes of the low vector that have it: a 2x2 transpose of blocks of that size.
#define HVX_SWAP_LOW(i, n) (((i) & (n)) ? 128 + (i) - (n) : (i))
#define HVX_SWAP_HIGH(i, n) (((i) & (n)) ? 128 + (i) : (i) + (n))
#define HVX_SWAP_LOW_1(i) HVX_SWAP_LOW(i, 1)
#define HVX_SWAP_LOW_2(i) HVX_SWAP_LOW(i, 2)
#define HVX_SWAP_LOW_4(i) HVX_SWAP_LOW(i, 4)
#define HVX_SWAP_LOW_8(i) HVX_SWAP_LOW(i, 8)
#define HVX_SWAP_LOW_16(i) HVX_SWAP_LOW(i, 16)
#define HVX_SWAP_LOW_32(i) HVX_SWAP_LOW(i, 32)
#define HVX_SWAP_LOW_64(i) HVX_SWAP_LOW(i, 64)
#define HVX_SWAP_HIGH_1(i) HVX_SWAP_HIGH(i, 1)
#define HVX_SWAP_HIGH_2(i) HVX_SWAP_HIGH(i, 2)
#define HVX_SWAP_HIGH_4(i) HVX_SWAP_HIGH(i, 4)
#define HVX_SWAP_HIGH_8(i) HVX_SWAP_HIGH(i, 8)
#define HVX_SWAP_HIGH_16(i) HVX_SWAP_HIGH(i, 16)
#define HVX_SWAP_HIGH_32(i) HVX_SWAP_HIGH(i, 32)
#define HVX_SWAP_HIGH_64(i) HVX_SWAP_HIGH(i, 64)

// `offset` is a literal, because shuffle indices must be.
#define HVX_SWAP_BLOCKS(low, high, offset) \
    do { \
        hvx_u8 low_ = (low), high_ = (high); \
        (low) = __builtin_shufflevector(low_, high_, HVX_EACH_128(HVX_SWAP_LOW_##offset, 0)); \
        (high) = __builtin_shufflevector(low_, high_, HVX_EACH_128(HVX_SWAP_HIGH_##offset, 0)); \
    } while (0)

HVX_INLINE HVX_VectorPair hvx_shuff_stages(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_u8 low = (hvx_u8) Vv, high = (hvx_u8) Vu;
    if (Rt & 1) HVX_SWAP_BLOCKS(low, high, 1);
    if (Rt & 2) HVX_SWAP_BLOCKS(low, high, 2);
    if (Rt & 4) HVX_SWAP_BLOCKS(low, high, 4);
    if (Rt & 8) HVX_SWAP_BLOCKS(low, high, 8);
    if (Rt & 16) HVX_SWAP_BLOCKS(low, high, 16);
    if (Rt & 32) HVX_SWAP_BLOCKS(low, high, 32);
    if (Rt & 64) HVX_SWAP_BLOCKS(low, high, 64);
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_deal_stages(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    hvx_u8 low = (hvx_u8) Vv, high = (hvx_u8) Vu;
    if (Rt & 64) HVX_SWAP_BLOCKS(low, high, 64);
    if (Rt & 32) HVX_SWAP_BLOCKS(low, high, 32);
    if (Rt & 16) HVX_SWAP_BLOCKS(low, high, 16);
    if (Rt & 8) HVX_SWAP_BLOCKS(low, high, 8);
    if (Rt & 4) HVX_SWAP_BLOCKS(low, high, 4);
    if (Rt & 2) HVX_SWAP_BLOCKS(low, high, 2);
    if (Rt & 1) HVX_SWAP_BLOCKS(low, high, 1);
    return HVX_PAIR(low, high);
}

// All bits from the element size up: the complete interleaving of the two vectors, one shuffle per result.

#define HVX_ZIP_128(i) (((i) & 1) * 128 + ((i) >> 1))
#define HVX_ZIP_64(i) (((i) & 1) * 64 + ((i) >> 1))
#define HVX_ZIP_32(i) (((i) & 1) * 32 + ((i) >> 1))
#define HVX_STEP_2(i) (2 * (i))
#define HVX_STEP_2_FROM_1(i) (2 * (i) + 1)

HVX_INLINE HVX_VectorPair hvx_zip_b(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 low = __builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_ZIP_128, 0));
    hvx_u8 high = __builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_ZIP_128, 128));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_unzip_b(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 low = __builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_STEP_2, 0));
    hvx_u8 high = __builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_STEP_2_FROM_1, 0));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_zip_h(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 low = __builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_ZIP_64, 0));
    hvx_u16 high = __builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_ZIP_64, 64));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_unzip_h(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u16 low = __builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_STEP_2, 0));
    hvx_u16 high = __builtin_shufflevector((hvx_u16) Vv, (hvx_u16) Vu, HVX_EACH_64(HVX_STEP_2_FROM_1, 0));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_zip_w(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u32 low = __builtin_shufflevector((hvx_u32) Vv, (hvx_u32) Vu, HVX_EACH_32(HVX_ZIP_32, 0));
    hvx_u32 high = __builtin_shufflevector((hvx_u32) Vv, (hvx_u32) Vu, HVX_EACH_32(HVX_ZIP_32, 32));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair hvx_unzip_w(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u32 low = __builtin_shufflevector((hvx_u32) Vv, (hvx_u32) Vu, HVX_EACH_32(HVX_STEP_2, 0));
    hvx_u32 high = __builtin_shufflevector((hvx_u32) Vv, (hvx_u32) Vu, HVX_EACH_32(HVX_STEP_2_FROM_1, 0));
    return HVX_PAIR(low, high);
}

HVX_INLINE HVX_VectorPair Q6_W_vshuff_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    switch (Rt & 127) {
    case 127: return hvx_zip_b(Vu, Vv);
    case 126: return hvx_zip_h(Vu, Vv);
    case 124: return hvx_zip_w(Vu, Vv);
    default: return hvx_shuff_stages(Vu, Vv, Rt);
    }
}

HVX_INLINE HVX_VectorPair Q6_W_vdeal_VVR(HVX_Vector Vu, HVX_Vector Vv, Word32 Rt) {
    switch (Rt & 127) {
    case 127: return hvx_unzip_b(Vu, Vv);
    case 126: return hvx_unzip_h(Vu, Vv);
    case 124: return hvx_unzip_w(Vu, Vv);
    default: return hvx_deal_stages(Vu, Vv, Rt);
    }
}

// One vector: shuff interleaves its halves, deal undoes that.

#define HVX_SHUFF_128(i) (((i) & 1) * 64 + ((i) >> 1))
#define HVX_DEAL_128(i) ((i) < 64 ? 2 * (i) : 2 * (i) - 127)

HVX_INLINE HVX_Vector Q6_Vb_vshuff_Vb(HVX_Vector Vu) {
    return HVX_V(__builtin_shufflevector((hvx_u8) Vu, (hvx_u8) Vu, HVX_EACH_128(HVX_SHUFF_128, 0)));
}

HVX_INLINE HVX_Vector Q6_Vb_vdeal_Vb(HVX_Vector Vu) {
    return HVX_V(__builtin_shufflevector((hvx_u8) Vu, (hvx_u8) Vu, HVX_EACH_128(HVX_DEAL_128, 0)));
}

#define HVX_SHUFF_64(i) (((i) & 1) * 32 + ((i) >> 1))
#define HVX_DEAL_64(i) ((i) < 32 ? 2 * (i) : 2 * (i) - 63)

HVX_INLINE HVX_Vector Q6_Vh_vshuff_Vh(HVX_Vector Vu) {
    return HVX_V(__builtin_shufflevector((hvx_u16) Vu, (hvx_u16) Vu, HVX_EACH_64(HVX_SHUFF_64, 0)));
}

HVX_INLINE HVX_Vector Q6_Vh_vdeal_Vh(HVX_Vector Vu) {
    return HVX_V(__builtin_shufflevector((hvx_u16) Vu, (hvx_u16) Vu, HVX_EACH_64(HVX_DEAL_64, 0)));
}

// Even bytes of even halfwords, then of odd halfwords, of Vv and then of Vu.
#define HVX_DEALE(i) (4 * ((i) & 31) + 2 * (((i) >> 5) & 1) + 128 * ((i) >> 6))

HVX_INLINE HVX_Vector Q6_Vb_vdeale_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V(__builtin_shufflevector((hvx_u8) Vv, (hvx_u8) Vu, HVX_EACH_128(HVX_DEALE, 0)));
}

// Even or odd sub-lanes of both vectors, in place: Vv to the even places, Vu to the odd ones.

HVX_INLINE HVX_Vector Q6_Vb_vshuffe_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b((hvx_u16) Vv, (hvx_u16) Vu);
}

HVX_INLINE HVX_Vector Q6_Vb_vshuffo_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_b((hvx_u16) Vv >> 8, (hvx_u16) Vu >> 8);
}

HVX_INLINE HVX_Vector Q6_Vh_vshuffe_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h((hvx_u32) Vv, (hvx_u32) Vu);
}

HVX_INLINE HVX_Vector Q6_Vh_vshuffo_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return hvx_join_h((hvx_u32) Vv >> 16, (hvx_u32) Vu >> 16);
}

HVX_INLINE HVX_VectorPair Q6_Wb_vshuffoe_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(Q6_Vb_vshuffe_VbVb(Vu, Vv), Q6_Vb_vshuffo_VbVb(Vu, Vv));
}

HVX_INLINE HVX_VectorPair Q6_Wh_vshuffoe_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_PAIR(Q6_Vh_vshuffe_VhVh(Vu, Vv), Q6_Vh_vshuffo_VhVh(Vu, Vv));
}

// The delta networks. Where a result byte comes from depends on the control alone: walk back from the last stage, at
// each stage looking up the control byte of the place reached. The data then takes one permute, and the walk is
// hoisted out of a loop that reuses its control.
#define HVX_LANES ((hvx_u8){HVX_EACH_128(HVX_INDEX, 0)})

HVX_INLINE hvx_u8 hvx_delta_step(hvx_u8 place, HVX_Vector control, uint8_t offset) {
    return place ^ ((hvx_u8) hvx_permute_bytes(control, place) & offset);
}

HVX_INLINE HVX_Vector Q6_V_vdelta_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 place = HVX_LANES ^ ((hvx_u8) Vv & 1);
    place = hvx_delta_step(place, Vv, 2);
    place = hvx_delta_step(place, Vv, 4);
    place = hvx_delta_step(place, Vv, 8);
    place = hvx_delta_step(place, Vv, 16);
    place = hvx_delta_step(place, Vv, 32);
    place = hvx_delta_step(place, Vv, 64);
    return hvx_permute_bytes(Vu, place);
}

HVX_INLINE HVX_Vector Q6_V_vrdelta_VV(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_u8 place = HVX_LANES ^ ((hvx_u8) Vv & 64);
    place = hvx_delta_step(place, Vv, 32);
    place = hvx_delta_step(place, Vv, 16);
    place = hvx_delta_step(place, Vv, 8);
    place = hvx_delta_step(place, Vv, 4);
    place = hvx_delta_step(place, Vv, 2);
    place = hvx_delta_step(place, Vv, 1);
    return hvx_permute_bytes(Vu, place);
}

// One word.

HVX_INLINE Word32 Q6_R_vextract_VR(HVX_Vector Vu, Word32 Rs) {
    return Vu[((uint32_t) Rs & 127) >> 2];
}

HVX_INLINE HVX_Vector Q6_Vw_vinsert_VwR(HVX_Vector Vx, Word32 Rt) {
    Vx[0] = Rt;
    return Vx;
}

#endif
