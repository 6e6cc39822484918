// Gather and scatter in VTCM. The region is [Rt, Rt + Mu]: an element that does not lie wholly in it (an offset past the
// end, or a negative one, which is a large unsigned one) is dropped, and a dropped or masked element of a gather leaves
// its place in the destination as it was. Addresses are 32 bits: all memory of the NPU lies below 4 GiB.
#ifndef HEXNPU_EMU_HVX_GATHER_H
#define HEXNPU_EMU_HVX_GATHER_H

#include "logic.h"

HVX_INLINE char *hvx_region(Word32 Rt, unsigned size) {
    return (char *) (uintptr_t) ((uint32_t) Rt & ~(size - 1));
}

// The region's last byte, rounded up to a whole element.
HVX_INLINE int hvx_in_region(uint32_t offset, Word32 Mu, unsigned size) {
    uint32_t last = (uint32_t) Mu | (size - 1);
    return offset <= last && last - offset >= size - 1;
}

// All bits of the predicate at one element: bytes are masked one by one.
HVX_INLINE void hvx_copy_masked(char *to, const char *from, const char *mask, unsigned size) {
    for (unsigned i = 0; i < size; i++) {
        if (mask[i]) to[i] = from[i];
    }
}

#define HVX_ALL HVX_Q(~Q6_V_vzero())

// Halfword offsets, word offsets, and word offsets for halfwords (even elements in the low vector of the pair).
HVX_INLINE void hvx_gather_w(HVX_Vector *Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    char *from = hvx_region(Rt, 4), *to = (char *) ((uintptr_t) Rs & ~(uintptr_t) 127);
    for (int i = 0; i < 32; i++) {
        uint32_t offset = (uint32_t) Vv[i];
        if (hvx_in_region(offset, Mu, 4)) hvx_copy_masked(to + 4 * i, from + offset, (const char *) &Qs + 4 * i, 4);
    }
}

HVX_INLINE void hvx_gather_h(HVX_Vector *Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    char *from = hvx_region(Rt, 2), *to = (char *) ((uintptr_t) Rs & ~(uintptr_t) 127);
    hvx_u16 offsets = (hvx_u16) Vv;
    for (int i = 0; i < 64; i++) {
        uint32_t offset = offsets[i];
        if (hvx_in_region(offset, Mu, 2)) hvx_copy_masked(to + 2 * i, from + offset, (const char *) &Qs + 2 * i, 2);
    }
}

HVX_INLINE void hvx_gather_hw(HVX_Vector *Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv) {
    char *from = hvx_region(Rt, 2), *to = (char *) ((uintptr_t) Rs & ~(uintptr_t) 127);
    for (int i = 0; i < 64; i++) {
        uint32_t offset = (uint32_t) Vvv[(i >> 1) + 32 * (i & 1)];
        if (hvx_in_region(offset, Mu, 2)) hvx_copy_masked(to + 2 * i, from + offset, (const char *) &Qs + 2 * i, 2);
    }
}

HVX_INLINE void hvx_scatter_w(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 4);
    for (int i = 0; i < 32; i++) {
        uint32_t offset = (uint32_t) Vv[i];
        if (hvx_in_region(offset, Mu, 4)) {
            hvx_copy_masked(to + offset, (const char *) &Vw + 4 * i, (const char *) &Qs + 4 * i, 4);
        }
    }
}

HVX_INLINE void hvx_scatter_h(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 2);
    hvx_u16 offsets = (hvx_u16) Vv;
    for (int i = 0; i < 64; i++) {
        uint32_t offset = offsets[i];
        if (hvx_in_region(offset, Mu, 2)) {
            hvx_copy_masked(to + offset, (const char *) &Vw + 2 * i, (const char *) &Qs + 2 * i, 2);
        }
    }
}

HVX_INLINE void hvx_scatter_hw(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 2);
    for (int i = 0; i < 64; i++) {
        uint32_t offset = (uint32_t) Vvv[(i >> 1) + 32 * (i & 1)];
        if (hvx_in_region(offset, Mu, 2)) {
            hvx_copy_masked(to + offset, (const char *) &Vw + 2 * i, (const char *) &Qs + 2 * i, 2);
        }
    }
}

HVX_INLINE void Q6_vgather_ARMVw(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_w(Rs, HVX_ALL, Rt, Mu, Vv);
}

HVX_INLINE void Q6_vscatter_RMVwV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_w(HVX_ALL, Rt, Mu, Vv, Vw);
}

HVX_INLINE void Q6_vgather_ARMVh(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_h(Rs, HVX_ALL, Rt, Mu, Vv);
}

HVX_INLINE void Q6_vscatter_RMVhV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_h(HVX_ALL, Rt, Mu, Vv, Vw);
}

HVX_INLINE void Q6_vgather_ARMWw(HVX_Vector* Rs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv) {
    hvx_gather_hw(Rs, HVX_ALL, Rt, Mu, Vvv);
}

HVX_INLINE void Q6_vscatter_RMWwV(Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    hvx_scatter_hw(HVX_ALL, Rt, Mu, Vvv, Vw);
}

HVX_INLINE void Q6_vgather_AQRMVw(HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_w(Rs, Qs, Rt, Mu, Vv);
}

HVX_INLINE void Q6_vscatter_QRMVwV(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_w(Qs, Rt, Mu, Vv, Vw);
}

HVX_INLINE void Q6_vgather_AQRMVh(HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv) {
    hvx_gather_h(Rs, Qs, Rt, Mu, Vv);
}

HVX_INLINE void Q6_vscatter_QRMVhV(HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    hvx_scatter_h(Qs, Rt, Mu, Vv, Vw);
}

HVX_INLINE void Q6_vgather_AQRMWw(
    HVX_Vector* Rs, HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv) {
    hvx_gather_hw(Rs, Qs, Rt, Mu, Vvv);
}

HVX_INLINE void Q6_vscatter_QRMWwV(
    HVX_VectorPred Qs, Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    hvx_scatter_hw(Qs, Rt, Mu, Vvv, Vw);
}

// Accumulating: offsets are aligned down to the element first.

HVX_INLINE void Q6_vscatteracc_RMVwV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 4);
    for (int i = 0; i < 32; i++) {
        uint32_t offset = (uint32_t) Vv[i] & ~3u;
        if (hvx_in_region(offset, Mu, 4)) {
            uint32_t *word = (uint32_t *) (to + offset);
            *word = (uint32_t) (*word + (uint32_t) Vw[i]);
        }
    }
}

HVX_INLINE void Q6_vscatteracc_RMVhV(Word32 Rt, Word32 Mu, HVX_Vector Vv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 2);
    hvx_u16 offsets = (hvx_u16) Vv;
    hvx_u16 values = (hvx_u16) Vw;
    for (int i = 0; i < 64; i++) {
        uint32_t offset = offsets[i] & ~1u;
        if (hvx_in_region(offset, Mu, 2)) {
            uint16_t *word = (uint16_t *) (to + offset);
            *word = (uint16_t) (*word + values[i]);
        }
    }
}

HVX_INLINE void Q6_vscatteracc_RMWwV(Word32 Rt, Word32 Mu, HVX_VectorPair Vvv, HVX_Vector Vw) {
    char *to = hvx_region(Rt, 2);
    hvx_u16 values = (hvx_u16) Vw;
    for (int i = 0; i < 64; i++) {
        uint32_t offset = (uint32_t) Vvv[(i >> 1) + 32 * (i & 1)] & ~1u;
        if (hvx_in_region(offset, Mu, 2)) {
            uint16_t *word = (uint16_t *) (to + offset);
            *word = (uint16_t) (*word + values[i]);
        }
    }
}

#endif
