// The fp16 intrinsics of the matrix unit under their SDK names, over hmx.c. An intrinsic that is missing here does not
// compile: the other operand types and the forms of convolutions are not emulated.
#ifndef HEXNPU_EMU_HMX_HEXAGON_PROTOS_H
#define HEXNPU_EMU_HMX_HEXAGON_PROTOS_H

#include "hexagon_types.h"
#include "hmx.h"

#define HMX_INLINE static inline __attribute__((always_inline, unused))

HMX_INLINE void Q6_mxclracc_hf(void) {
    hmx_clear();
}

HMX_INLINE void Q6_mxswapacc_hf(void) {
    hmx_swap();
}

HMX_INLINE void Q6_bias_mxmem2_A(const void *Rs) {
    hmx_bias((uint32_t) (uintptr_t) Rs);
}

HMX_INLINE void Q6_bias_mxmem_A(const void *Rs) {
    hmx_bias_low((uint32_t) (uintptr_t) Rs);
}

// The operands of one packet: activations, then weights.
HMX_INLINE void Q6_activation_hf_mxmem_RR(UWord32 Rs, Word32 Rt) {
    hmx_activation(Rs, (uint32_t) Rt, 0);
}

HMX_INLINE void Q6_activation_hf_mxmem_RR_deep(UWord32 Rs, Word32 Rt) {
    hmx_activation(Rs, (uint32_t) Rt, HMX_DEEP);
}

HMX_INLINE void Q6_weight_hf_mxmem_RR(UWord32 Rs, Word32 Rt) {
    hmx_weight(Rs, (uint32_t) Rt, 0);
}

HMX_INLINE void Q6_weight_hf_mxmem_RR_deep(UWord32 Rs, Word32 Rt) {
    hmx_weight(Rs, (uint32_t) Rt, HMX_WEIGHT_DEEP);
}

HMX_INLINE void Q6_mxmem_AR_after_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, 0);
}

HMX_INLINE void Q6_mxmem_AR_after_retain_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, HMX_RETAIN);
}

HMX_INLINE void Q6_mxmem_AR_after_pos_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, HMX_POS);
}

HMX_INLINE void Q6_mxmem_AR_after_retain_pos_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, HMX_RETAIN | HMX_POS);
}

HMX_INLINE void Q6_mxmem_AR_before_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, HMX_BEFORE);
}

HMX_INLINE void Q6_mxmem_AR_before_retain_hf(void *Rs, Word32 Rt) {
    hmx_store((uint32_t) (uintptr_t) Rs, (uint32_t) Rt, HMX_BEFORE | HMX_RETAIN);
}

#endif
