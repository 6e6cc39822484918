// Stores under a predicate: only bytes whose bit is set are written (Qn: clear). As the hardware does, they ignore the
// low seven bits of the address. Plain loads and stores are dereferences of HVX_Vector * (aligned) and HVX_UVector *
// (any address); kernels wrap them so that ThreadSanitizer is told, see HEX_READ_RANGE in hexagon_types.h.
#ifndef HEXNPU_EMU_HVX_MEM_H
#define HEXNPU_EMU_HVX_MEM_H

#include "base.h"

HVX_INLINE void hvx_store_masked(HVX_VectorPred q, HVX_Vector *p, HVX_Vector v) {
    char *line = (char *) ((uintptr_t) p & ~(uintptr_t) 127);
#if defined(HVX_EMU_AVX512) && !__has_feature(thread_sanitizer)
    typedef signed char zmm_bytes __attribute__((vector_size(64)));
    zmm_bytes low = __builtin_shufflevector(q, q, HVX_EACH_64(HVX_INDEX, 0));
    zmm_bytes high = __builtin_shufflevector(q, q, HVX_EACH_64(HVX_INDEX, 64));
    zmm_bytes v0 = __builtin_shufflevector((hvx_i8) v, (hvx_i8) v, HVX_EACH_64(HVX_INDEX, 0));
    zmm_bytes v1 = __builtin_shufflevector((hvx_i8) v, (hvx_i8) v, HVX_EACH_64(HVX_INDEX, 64));
    _mm512_mask_storeu_epi8(line, _mm512_movepi8_mask((__m512i) low), (__m512i) v0);
    _mm512_mask_storeu_epi8(line + 64, _mm512_movepi8_mask((__m512i) high), (__m512i) v1);
#else
    for (int i = 0; i < 128; i++) {
        if (q[i]) line[i] = ((hvx_i8) v)[i];
    }
#endif
}

HVX_INLINE void Q6_vmem_QRIV(HVX_VectorPred Qv, HVX_Vector* Rt, HVX_Vector Vs) {
    hvx_store_masked(Qv, Rt, Vs);
}

HVX_INLINE void Q6_vmem_QRIV_nt(HVX_VectorPred Qv, HVX_Vector* Rt, HVX_Vector Vs) {
    hvx_store_masked(Qv, Rt, Vs);
}

HVX_INLINE void Q6_vmem_QnRIV(HVX_VectorPred Qv, HVX_Vector* Rt, HVX_Vector Vs) {
    hvx_store_masked(~Qv, Rt, Vs);
}

HVX_INLINE void Q6_vmem_QnRIV_nt(HVX_VectorPred Qv, HVX_Vector* Rt, HVX_Vector Vs) {
    hvx_store_masked(~Qv, Rt, Vs);
}

#endif
