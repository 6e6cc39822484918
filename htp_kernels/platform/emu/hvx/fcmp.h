// Float compares into predicates, and their forms that and, or or xor into a predicate.
//
// Before v81 a NaN compares as the number past infinity on its sign's side; from v81 on it is unordered and every
// comparison with it is false. -0 equals +0 everywhere.
#ifndef HEXNPU_EMU_HVX_FCMP_H
#define HEXNPU_EMU_HVX_FCMP_H

#include "float.h"

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
#if __HVX_ARCH__ >= 81
    return HVX_Q((hvx_f32) Vu > (hvx_f32) Vv);
#else
    hvx_u32 not_zeros = (hvx_u32) ((Vu | Vv) & 0x7fffffff);
    return HVX_Q(hvx_sf_after(Vu, Vv) & HVX_V(Vu != Vv) & HVX_V(not_zeros != 0));
#endif
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 u = (hvx_i16) Vu, v = (hvx_i16) Vv;
    HVX_Vector greater = hvx_hf_after(Vu, Vv) & HVX_V(u != v) & HVX_V(((u | v) & 0x7fff) != 0);
#if __HVX_ARCH__ >= 81
    greater &= ~hvx_hf_unordered(Vu, Vv);
#endif
    return HVX_Q(greater);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VbfVbf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i32 even = hvx_bf_even(Vu) > hvx_bf_even(Vv), odd = hvx_bf_odd(Vu) > hvx_bf_odd(Vv);
    return HVX_Q(hvx_join_h((hvx_u32) even, (hvx_u32) odd));
}

#if __HVX_ARCH__ >= 81
HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eq_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_f32) Vu == (hvx_f32) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eq_VhfVhf(HVX_Vector Vu, HVX_Vector Vv) {
    hvx_i16 u = (hvx_i16) Vu, v = (hvx_i16) Vv;
    return HVX_Q(HVX_V((u == v) | (((u | v) & 0x7fff) == 0)) & ~hvx_hf_unordered(Vu, Vv));
}
#endif

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VhfVhf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VhfVhf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VhfVhf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVbfVbf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VbfVbf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVbfVbf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VbfVbf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVbfVbf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VbfVbf(Vu, Vv);
}

#if __HVX_ARCH__ >= 81
HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqand_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_eq_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqor_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_eq_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqxacc_QVsfVsf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_eq_VsfVsf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqand_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_eq_VhfVhf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqor_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_eq_VhfVhf(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqxacc_QVhfVhf(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_eq_VhfVhf(Vu, Vv);
}
#endif

#endif
