/*
 * Infinity and NaN in a column of X must reach its results. IEEE arithmetic carries them there; qfloat (before v79)
 * does not, so there every K segment of a column is marked: a vector of NaN bits where it has any, of zeros where not.
 */
#pragma once

#include "hvx-math.h"
#include "matmul-shape.h"

/* Greatest magnitude of the lanes so far, as an integer; starts at zero. */
static inline HVX_Vector mm_mark_magnitudes(HVX_Vector greatest, HVX_Vector magnitude) {
#if __HVX_ARCH__ >= 79
    (void) magnitude;
    return greatest;
#else
    return Q6_Vw_vmax_VwVw(greatest, magnitude);
#endif
}

static inline void mm_store_mark(const struct mm *mm, uint8_t *act, uint32_t segment, HVX_Vector greatest) {
#if __HVX_ARCH__ >= 79
    (void) mm, (void) act, (void) segment, (void) greatest;
#else
    for (int bytes = 64; bytes >= 4; bytes /= 2) {
        greatest = Q6_Vw_vmax_VwVw(greatest, Q6_V_vror_VR(greatest, bytes));
    }
    HVX_VectorPred special = Q6_Q_vcmp_gt_VwVw(greatest, Q6_V_vsplat_R(0x7f7fffff));
    uint8_t *marks = act + mm->n_segments * mm->record_bytes;
    hvx_store(marks + segment * HVX_BYTES, Q6_V_vand_QV(special, Q6_V_vsplat_R(0x7fc00000)));
#endif
}

/* Results of the column whose activations are at `act`. */
static inline HVX_Vector mm_with_mark(const struct mm *mm, const uint8_t *act, HVX_Vector v) {
#if __HVX_ARCH__ >= 79
    (void) mm, (void) act;
#else
    const uint8_t *marks = act + mm->n_segments * mm->record_bytes;
    for (uint32_t s = 0; s < mm->n_segments; s++) {
        v = Q6_V_vor_VV(v, hvx_load(marks + s * HVX_BYTES));
    }
#endif
    return v;
}
