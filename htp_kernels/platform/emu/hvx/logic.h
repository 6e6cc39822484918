// Bitwise logic on vectors, and between vectors, predicates and scalars.
#ifndef HEXNPU_EMU_HVX_LOGIC_H
#define HEXNPU_EMU_HVX_LOGIC_H

#include "base.h"

HVX_INLINE HVX_Vector Q6_V_vand_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return Vu & Vv;
}

HVX_INLINE HVX_Vector Q6_V_vor_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return Vu | Vv;
}

HVX_INLINE HVX_Vector Q6_V_vxor_VV(HVX_Vector Vu, HVX_Vector Vv) {
    return Vu ^ Vv;
}

HVX_INLINE HVX_Vector Q6_V_vnot_V(HVX_Vector Vu) {
    return ~Vu;
}

// Predicate to vector: byte i takes byte i % 4 of the scalar where its bit is set.

HVX_INLINE HVX_Vector Q6_V_vand_QR(HVX_VectorPred Qu, Word32 Rt) {
    return HVX_V(Qu) & Q6_V_vsplat_R(Rt);
}

HVX_INLINE HVX_Vector Q6_V_vand_QnR(HVX_VectorPred Qu, Word32 Rt) {
    return ~HVX_V(Qu) & Q6_V_vsplat_R(Rt);
}

HVX_INLINE HVX_Vector Q6_V_vandor_VQR(HVX_Vector Vx, HVX_VectorPred Qu, Word32 Rt) {
    return Vx | Q6_V_vand_QR(Qu, Rt);
}

HVX_INLINE HVX_Vector Q6_V_vandor_VQnR(HVX_Vector Vx, HVX_VectorPred Qu, Word32 Rt) {
    return Vx | Q6_V_vand_QnR(Qu, Rt);
}

HVX_INLINE HVX_Vector Q6_V_vand_QV(HVX_VectorPred Qv, HVX_Vector Vu) {
    return HVX_V(Qv) & Vu;
}

HVX_INLINE HVX_Vector Q6_V_vand_QnV(HVX_VectorPred Qv, HVX_Vector Vu) {
    return ~HVX_V(Qv) & Vu;
}

// Vector to predicate: bit i is set where byte i shares a bit with byte i % 4 of the scalar.

HVX_INLINE HVX_VectorPred Q6_Q_vand_VR(HVX_Vector Vu, Word32 Rt) {
    return HVX_Q((hvx_u8) (Vu & Q6_V_vsplat_R(Rt)) != 0);
}

HVX_INLINE HVX_VectorPred Q6_Q_vandor_QVR(HVX_VectorPred Qx, HVX_Vector Vu, Word32 Rt) {
    return Qx | Q6_Q_vand_VR(Vu, Rt);
}

// Between predicates.

HVX_INLINE HVX_VectorPred Q6_Q_and_QQ(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return Qs & Qt;
}

HVX_INLINE HVX_VectorPred Q6_Q_and_QQn(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return Qs & ~Qt;
}

HVX_INLINE HVX_VectorPred Q6_Q_or_QQ(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return Qs | Qt;
}

HVX_INLINE HVX_VectorPred Q6_Q_or_QQn(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return Qs | ~Qt;
}

HVX_INLINE HVX_VectorPred Q6_Q_xor_QQ(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return Qs ^ Qt;
}

HVX_INLINE HVX_VectorPred Q6_Q_not_Q(HVX_VectorPred Qs) {
    return ~Qs;
}

#define HVX_BYTE_NUMBERS ((hvx_i8){HVX_EACH_128(HVX_INDEX, 0)})

// The first R bits. R = 128 empties vsetq, R = 0 and R = 128 fill vsetq2.
HVX_INLINE HVX_VectorPred Q6_Q_vsetq_R(Word32 Rt) {
    return HVX_Q(HVX_BYTE_NUMBERS < (int8_t) (Rt & 127));
}

HVX_INLINE HVX_VectorPred Q6_Q_vsetq2_R(Word32 Rt) {
    return HVX_Q(HVX_BYTE_NUMBERS <= (int8_t) (((uint32_t) Rt - 1) & 127));
}

// Predicates of wide lanes narrowed and interleaved, Qs's to the odd places.
HVX_INLINE HVX_VectorPred Q6_Qb_vshuffe_QhQh(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return HVX_Q(((hvx_u16) Qs << 8) | ((hvx_u16) Qt & 0xff));
}

HVX_INLINE HVX_VectorPred Q6_Qh_vshuffe_QwQw(HVX_VectorPred Qs, HVX_VectorPred Qt) {
    return HVX_Q(((hvx_u32) Qs << 16) | ((hvx_u32) Qt & 0xffff));
}

HVX_INLINE HVX_VectorPair Q6_W_vswap_QVV(HVX_VectorPred Qt, HVX_Vector Vu, HVX_Vector Vv) {
    return Q6_W_vcombine_VV(Q6_V_vmux_QVV(Qt, Vv, Vu), Q6_V_vmux_QVV(Qt, Vu, Vv));
}

// prefixsum: how many bits of the predicate are set up to and including a lane's last byte.
HVX_INLINE hvx_u8 hvx_shift_up_bytes(hvx_u8 v, int n) {
    hvx_u8 out;
    for (int i = 0; i < 128; i++) {
        out[i] = i < n ? 0 : v[i - n];
    }
    return out;
}

HVX_INLINE HVX_Vector Q6_Vb_prefixsum_Q(HVX_VectorPred Qv) {
    hvx_u8 sum = (hvx_u8) Qv & 1;
    for (int n = 1; n < 128; n *= 2) {
        sum += hvx_shift_up_bytes(sum, n);
    }
    return HVX_V(sum);
}

HVX_INLINE HVX_Vector Q6_Vh_prefixsum_Q(HVX_VectorPred Qv) {
    return HVX_V((hvx_u16) Q6_Vb_prefixsum_Q(Qv) >> 8);
}

HVX_INLINE HVX_Vector Q6_Vw_prefixsum_Q(HVX_VectorPred Qv) {
    return HVX_V((hvx_u32) Q6_Vb_prefixsum_Q(Qv) >> 24);
}

#endif
