/*
 * Rows of one type to another, in VTCM. `to` and `from` begin at vector boundaries; what is read or written behind
 * the end of a row ends with its last vector (F32, F16) or CONVERT_SLACK bytes behind it (blocks). Halves are exact
 * on every arch. From v79 on quantized types are those of ggml's reference bit for bit; before, qfloat's products
 * differ from it by an ulp.
 */
#pragma once

#include "htp-wire.h"
#include "hvx-base.h"
#include "hvx-math.h"

#define CONVERT_SLACK 256u
#define CONVERT_ALIGN 256u /* a row may be cut at multiples of this many elements: whole blocks of every type */

typedef void (*hvx_convert)(uint8_t *to, const uint8_t *from, uint32_t n);

/* Bytes of n elements, whole blocks, of a type that rows are converted from or to; 0 for any other type. */
static inline uint32_t convert_row_bytes(uint32_t type, uint32_t n) {
    switch (type) {
    case HTP_F32:
    case HTP_I32:
        return n * 4;
    case HTP_F16:
        return n * 2;
    case HTP_I64:
        return n * 8;
    case HTP_Q4_0:
        return n / 32 * 18;
    case HTP_Q4_1:
        return n / 32 * 20;
    case HTP_Q8_0:
        return n / 32 * 34;
    case HTP_Q6_K:
        return n / 256 * 210;
    default:
        return 0;
    }
}

/* What a buffer for n elements must have. */
static inline uint32_t convert_buffer_bytes(uint32_t type, uint32_t n) {
    return hex_round_up(convert_row_bytes(type, n), HVX_BYTES) + CONVERT_SLACK;
}

#if __HVX_ARCH__ >= 79
static inline HVX_VectorPair convert_hf_sf(HVX_Vector v) {
    return hvx_hf_to_sf(v);
}

static inline HVX_Vector convert_sf_hf(HVX_Vector lo, HVX_Vector hi) {
    return hvx_sf_to_hf(lo, hi);
}
#else
/* A half in each word to a float, in integers: qfloat does not keep every number as it is. */
static inline HVX_Vector convert_word_sf(HVX_Vector x) {
    HVX_Vector m = Q6_V_vand_VV(x, Q6_V_vsplat_R(0x7fff));
    HVX_Vector sign = Q6_Vw_vasl_VwR(Q6_V_vand_VV(x, Q6_V_vsplat_R(0x8000)), 16);
    HVX_Vector normal = Q6_Vw_vadd_VwVw(Q6_Vw_vasl_VwR(m, 13), Q6_V_vsplat_R(112 << 23));
    HVX_Vector special = Q6_Vw_vadd_VwVw(normal, Q6_V_vsplat_R(112 << 23)); /* infinity and NaN */
    HVX_Vector small = Q6_Vw_vsub_VwVw(Q6_Vsf_equals_Vw(m), Q6_V_vsplat_R(24 << 23));
    HVX_Vector r = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(m, Q6_V_vsplat_R(0x7bff)), special, normal);
    r = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x400), m), small, r);
    r = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(m, Q6_V_vzero()), m, r);
    return Q6_V_vor_VV(r, sign);
}

static inline HVX_VectorPair convert_hf_sf(HVX_Vector v) {
    HVX_VectorPair w = Q6_Wuw_vunpack_Vuh(v);
    return Q6_W_vcombine_VV(convert_word_sf(Q6_V_hi_W(w)), convert_word_sf(Q6_V_lo_W(w)));
}

/* A float to a half in the low halfword, nearest even. */
static inline HVX_Vector convert_sf_word(HVX_Vector v) {
    HVX_Vector one = Q6_V_vsplat_R(1), a = hvx_abs_sf(v);
    HVX_Vector odd = Q6_V_vand_VV(Q6_Vuw_vlsr_VuwR(a, 13), one);
    HVX_Vector rounding = Q6_Vw_vadd_VwVw(odd, Q6_V_vsplat_R(0xfff - (112 << 23)));
    HVX_Vector normal = Q6_Vuw_vlsr_VuwR(Q6_Vw_vadd_VwVw(a, rounding), 13);
    normal = Q6_Vw_vmin_VwVw(normal, Q6_V_vsplat_R(0x7c00));
    normal = Q6_V_vmux_QVV(hvx_is_nan_sf(v), Q6_V_vsplat_R(0x7e00), normal);
    /* Below 2^-14: the significand with its leading one, shifted right by 126 - exponent. */
    HVX_Vector m = Q6_V_vor_VV(Q6_V_vand_VV(a, Q6_V_vsplat_R(0x7fffff)), Q6_V_vsplat_R(0x800000));
    HVX_Vector shift = Q6_Vw_vsub_VwVw(Q6_V_vsplat_R(126), Q6_Vuw_vlsr_VuwR(a, 23));
    shift = Q6_Vw_vmax_VwVw(Q6_Vw_vmin_VwVw(shift, Q6_V_vsplat_R(25)), one);
    HVX_Vector q = Q6_Vw_vlsr_VwVw(m, shift);
    HVX_Vector half = Q6_Vw_vasl_VwVw(one, Q6_Vw_vsub_VwVw(shift, one));
    HVX_Vector rest = Q6_Vw_vsub_VwVw(m, Q6_Vw_vasl_VwVw(q, shift));
    HVX_Vector up = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(rest, half), Q6_V_vand_VV(q, one), Q6_V_vzero());
    up = Q6_V_vmux_QVV(Q6_Q_vcmp_gt_VwVw(rest, half), one, up);
    HVX_VectorPred is_small = Q6_Q_vcmp_gt_VwVw(Q6_V_vsplat_R(0x38800000), a);
    HVX_Vector r = Q6_V_vmux_QVV(is_small, Q6_Vw_vadd_VwVw(q, up), normal);
    return Q6_V_vor_VV(r, Q6_Vuw_vlsr_VuwR(hvx_sign_sf(v), 16));
}

static inline HVX_Vector convert_sf_hf(HVX_Vector lo, HVX_Vector hi) {
    return Q6_Vh_vpacke_VwVw(convert_sf_word(hi), convert_sf_word(lo));
}
#endif

static inline void convert_f16_f32(uint8_t *to, const uint8_t *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i += HVX_F16) {
        HVX_VectorPair w = convert_hf_sf(hvx_load(from + (size_t) i * 2));
        hvx_store(to + (size_t) i * 4, Q6_V_lo_W(w));
        if (n - i > HVX_F32) {
            hvx_store(to + (size_t) i * 4 + HVX_BYTES, Q6_V_hi_W(w));
        }
    }
}

static inline void convert_f32_f16(uint8_t *to, const uint8_t *from, uint32_t n) {
    for (uint32_t i = 0; i < n; i += HVX_F16) {
        const uint8_t *x = from + (size_t) i * 4;
        HVX_Vector lo = hvx_load(x), hi = n - i > HVX_F32 ? hvx_load(x + HVX_BYTES) : Q6_V_vzero();
        hvx_store(to + (size_t) i * 2, convert_sf_hf(lo, hi));
    }
}

/* The half at p as a float in every lane. */
static inline HVX_Vector convert_half_at(const uint8_t *p) {
    uint32_t word = (uint32_t) Q6_R_vextract_VR(hvx_loadu(p), 0);
    return Q6_V_lo_W(convert_hf_sf(hvx_splat_hf((uint16_t) word)));
}

/* The low 32 signed bytes as floats. */
static inline HVX_Vector convert_bytes(HVX_Vector v) {
    return hvx_w_to_sf(Q6_V_lo_W(Q6_Ww_vunpack_Vh(Q6_V_lo_W(Q6_Wh_vunpack_Vb(v)))));
}

/* 16 bytes of nibbles: the low ones are elements 0..15, the high ones 16..31. */
static inline HVX_Vector convert_nibbles(HVX_Vector v) {
    HVX_Vector high = Q6_V_vror_VR(Q6_Vub_vlsr_VubR(v, 4), 128 - 16);
    return Q6_V_vmux_QVV(Q6_Q_vsetq_R(16), Q6_V_vand_VV(v, Q6_Vb_vsplat_R(15)), high);
}

static inline void convert_q8_0_f32(uint8_t *to, const uint8_t *from, uint32_t n) {
    for (; n; n -= 32, from += 34, to += HVX_BYTES) {
        hvx_store(to, hvx_mul_sf(convert_bytes(hvx_loadu(from + 2)), convert_half_at(from)));
    }
}

static inline void convert_q4_0_f32(uint8_t *to, const uint8_t *from, uint32_t n) {
    HVX_Vector eight = Q6_Vb_vsplat_R(8);
    for (; n; n -= 32, from += 18, to += HVX_BYTES) {
        HVX_Vector q = Q6_Vb_vsub_VbVb(convert_nibbles(hvx_loadu(from + 2)), eight);
        hvx_store(to, hvx_mul_sf(convert_bytes(q), convert_half_at(from)));
    }
}

static inline void convert_q4_1_f32(uint8_t *to, const uint8_t *from, uint32_t n) {
    for (; n; n -= 32, from += 20, to += HVX_BYTES) {
        HVX_Vector q = convert_bytes(convert_nibbles(hvx_loadu(from + 4)));
        hvx_store(to, hvx_fma_sf(convert_half_at(from + 2), q, convert_half_at(from)));
    }
}

/*
 * A Q6_K block of 256: 128 bytes of low nibbles, 64 of high bit pairs, 16 scales of 16 elements, the half scale of
 * all. Element 128 g + 32 t + i takes nibble t / 2 of byte 64 g + 32 (t % 2) + i and bit pair t of byte 32 g + i.
 */
static inline void convert_q6_k_f32(uint8_t *to, const uint8_t *from, uint32_t n) {
    HVX_Vector mask_low = Q6_Vb_vsplat_R(15), mask_high = Q6_Vb_vsplat_R(0x30), offset = Q6_Vb_vsplat_R(32);
    HVX_VectorPred first_half = Q6_Q_vsetq_R(64);
    for (; n; n -= 256, from += 210) {
        HVX_Vector scales = hvx_mul_sf(convert_bytes(hvx_loadu(from + 192)), convert_half_at(from + 208));
        for (int run = 0; run < 8; run++, to += HVX_BYTES) {
            int g = run / 4, t = run % 4;
            HVX_Vector low = Q6_Vub_vlsr_VubR(hvx_loadu(from + 64 * g + 32 * (t % 2)), t / 2 * 4);
            HVX_Vector high = hvx_loadu(from + 128 + 32 * g);
            /* Bit pair t to bits 5..4. */
            high = t < 2 ? Q6_Vh_vasl_VhR(high, 4 - 2 * t) : Q6_Vub_vlsr_VubR(high, 2 * t - 4);
            HVX_Vector q = Q6_V_vor_VV(Q6_V_vand_VV(low, mask_low), Q6_V_vand_VV(high, mask_high));
            HVX_Vector a = Q6_V_vsplat_R(Q6_R_vextract_VR(scales, 8 * run));
            HVX_Vector b = Q6_V_vsplat_R(Q6_R_vextract_VR(scales, 8 * run + 4));
            HVX_Vector x = convert_bytes(Q6_Vb_vsub_VbVb(q, offset));
            hvx_store(to, hvx_mul_sf(x, Q6_V_vmux_QVV(first_half, a, b)));
        }
    }
}

/* Floats to integers, nearest, ties away from zero: (trunc(2 |x|) + 1) / 2, with the sign put back. */
static inline HVX_Vector convert_round(HVX_Vector v) {
    HVX_Vector twice = Q6_Vw_vadd_VwVw(hvx_abs_sf(v), Q6_V_vsplat_R(1 << 23));
    HVX_Vector n = Q6_Vw_vasr_VwR(Q6_Vw_vadd_VwVw(Q6_Vw_equals_Vsf(twice), Q6_V_vsplat_R(1)), 1);
    HVX_Vector minus = Q6_Vw_vasr_VwR(v, 31);
    return Q6_Vw_vsub_VwVw(Q6_V_vxor_VV(n, minus), minus);
}

/*
 * d = amax / 127, q = round(x * (1 / d)), both divisions rounded as IEEE says: on the scalar core, twice a block. A
 * block's 34 bytes are the beginning of a whole vector; what it writes too much the next block overwrites.
 */
static inline void convert_f32_q8_0(uint8_t *to, const uint8_t *from, uint32_t n) {
    const float least = 2.9387362e-39f; /* below, 1 / d is infinite and d is 0 as a half */
    HVX_VectorPred scale_bytes = Q6_Q_vsetq_R(2);
    for (; n; n -= 32, from += HVX_BYTES, to += 34) {
        HVX_Vector x = hvx_load(from);
        float d = hvx_reduce_max_sf_scalar(hvx_abs_sf(x)) / 127.0f;
        HVX_Vector scale = hvx_splat_sf(d);
        HVX_Vector q = convert_round(hvx_mul_sf(x, hvx_splat_sf(d >= least ? 1.0f / d : 0.0f)));
        HVX_Vector halves = Q6_Vh_vpack_VwVw_sat(q, q);
        HVX_Vector bytes = Q6_V_vror_VR(Q6_Vb_vpack_VhVh_sat(halves, halves), 128 - 2);
        hvx_storeu(to, Q6_V_vmux_QVV(scale_bytes, convert_sf_hf(scale, scale), bytes));
    }
}

/* NULL where a row is not converted so. */
static inline hvx_convert convert_of(uint32_t to, uint32_t from) {
    if (to == HTP_F32) {
        switch (from) {
        case HTP_F16:
            return convert_f16_f32;
        case HTP_Q4_0:
            return convert_q4_0_f32;
        case HTP_Q4_1:
            return convert_q4_1_f32;
        case HTP_Q8_0:
            return convert_q8_0_f32;
        case HTP_Q6_K:
            return convert_q6_k_f32;
        default:
            return NULL;
        }
    }
    if (from == HTP_F32) {
        return to == HTP_F16 ? convert_f32_f16 : to == HTP_Q8_0 ? convert_f32_q8_0 : NULL;
    }
    return NULL;
}
