/*
 * Sums of floats that hardly depend on their order: carried as hi + lo, where lo sums what the additions to hi rounded
 * away. From v79 on; qfloat has no exact differences, so that before lo stays zero.
 */
#pragma once

#include "hvx-arith.h"

/* (*hi, *lo) += x */
static inline void hvx_pair_add(HVX_Vector *hi, HVX_Vector *lo, HVX_Vector x) {
    HVX_Vector sum = hvx_add_sf(*hi, x);
#if __HVX_ARCH__ >= 79
    /* Knuth's two-sum: what of x arrived, what of hi stayed, and what both lost. */
    HVX_Vector arrived = hvx_sub_sf(sum, *hi), stayed = hvx_sub_sf(sum, arrived);
    *lo = hvx_add_sf(*lo, hvx_add_sf(hvx_sub_sf(*hi, stayed), hvx_sub_sf(x, arrived)));
#else
    (void) lo;
#endif
    *hi = sum;
}

/* The float nearest to hi + lo. Where hi is infinity or NaN, lo is NaN and does not count. */
static inline HVX_Vector hvx_pair_value(HVX_Vector hi, HVX_Vector lo) {
#if __HVX_ARCH__ >= 79
    return Q6_V_vmux_QVV(hvx_is_nan_sf(lo), hi, hvx_add_sf(hi, lo));
#else
    (void) lo;
    return hi;
#endif
}
