// Single precision: arithmetic, min and max, sign. Host IEEE arithmetic, rounding to nearest even; a NaN result is
// some quiet NaN where the device always gives 0x7fffffff.
#ifndef HEXNPU_EMU_HVX_SF_H
#define HEXNPU_EMU_HVX_SF_H

#include "float.h"

HVX_INLINE HVX_Vector Q6_Vsf_vadd_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_f32) Vu + (hvx_f32) Vv);
}

HVX_INLINE HVX_Vector Q6_Vsf_vsub_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_f32) Vu - (hvx_f32) Vv);
}

HVX_INLINE HVX_Vector Q6_Vsf_vmpy_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    return HVX_V((hvx_f32) Vu * (hvx_f32) Vv);
}

HVX_INLINE HVX_Vector Q6_Vsf_vfneg_Vsf(HVX_Vector Vu) {
    return HVX_V((hvx_u32) Vu ^ 0x80000000u);
}

HVX_INLINE HVX_Vector Q6_Vsf_vabs_Vsf(HVX_Vector Vu) {
    return HVX_V((hvx_u32) Vu & 0x7fffffffu);
}

HVX_INLINE HVX_Vector Q6_Vw_vfmv_Vw(HVX_Vector Vu) {
    return Vu;
}

// IEEE maximum and minimum: NaN when either is NaN, +0 above -0.
HVX_INLINE HVX_Vector Q6_Vsf_vfmax_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector larger = hvx_pick(hvx_sf_after(Vu, Vv), Vu, Vv);
    return hvx_pick(hvx_sf_unordered(Vu, Vv), Q6_V_vsplat_R(0x7fffffff), larger);
}

HVX_INLINE HVX_Vector Q6_Vsf_vfmin_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
    HVX_Vector smaller = hvx_pick(hvx_sf_after(Vu, Vv), Vv, Vu);
    return hvx_pick(hvx_sf_unordered(Vu, Vv), Q6_V_vsplat_R(0x7fffffff), smaller);
}

// Before v81 +NaN counts as the greatest and -NaN as the least number; from v81 on a NaN wins.
HVX_INLINE HVX_Vector Q6_Vsf_vmax_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
#if __HVX_ARCH__ >= 81
    return Q6_Vsf_vfmax_VsfVsf(Vu, Vv);
#else
    return hvx_pick(hvx_sf_after(Vu, Vv), Vu, Vv);
#endif
}

HVX_INLINE HVX_Vector Q6_Vsf_vmin_VsfVsf(HVX_Vector Vu, HVX_Vector Vv) {
#if __HVX_ARCH__ >= 81
    return Q6_Vsf_vfmin_VsfVsf(Vu, Vv);
#else
    return hvx_pick(hvx_sf_after(Vu, Vv), Vv, Vu);
#endif
}

#endif
