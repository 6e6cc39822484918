// Compares into predicates: all bits of a lane are set or clear together. Plain, and joined to a predicate.
#ifndef HEXNPU_EMU_HVX_CMP_H
#define HEXNPU_EMU_HVX_CMP_H

#include "base.h"

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eq_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i8) Vu == (hvx_i8) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqand_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_eq_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqor_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_eq_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqxacc_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_eq_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eq_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i16) Vu == (hvx_i16) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqand_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_eq_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqor_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_eq_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqxacc_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_eq_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eq_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i32) Vu == (hvx_i32) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqand_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_eq_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqor_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_eq_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_eqxacc_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_eq_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VbVb(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i8) Vu > (hvx_i8) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVbVb(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VbVb(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VubVub(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_u8) Vu > (hvx_u8) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVubVub(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VubVub(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVubVub(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VubVub(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVubVub(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VubVub(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VhVh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i16) Vu > (hvx_i16) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVhVh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VhVh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VuhVuh(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_u16) Vu > (hvx_u16) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVuhVuh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VuhVuh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVuhVuh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VuhVuh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVuhVuh(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VuhVuh(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VwVw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_i32) Vu > (hvx_i32) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVwVw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VwVw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gt_VuwVuw(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_Q((hvx_u32) Vu > (hvx_u32) Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtand_QVuwVuw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx & Q6_Q_vcmp_gt_VuwVuw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtor_QVuwVuw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx | Q6_Q_vcmp_gt_VuwVuw(Vu, Vv);
}

HVX_INLINE HVX_VectorPred Q6_Q_vcmp_gtxacc_QVuwVuw(HVX_VectorPred Qx, HVX_Vector Vu, HVX_Vector Vv) {
    return Qx ^ Q6_Q_vcmp_gt_VuwVuw(Vu, Vv);
}

#endif
