/*
 * Flash attention, the arithmetic, in float: scores and weighted sums as sums of scalar times vector, the running
 * softmax of a row, and the joining of partial results. Nothing here depends on how rows are grouped, so a row's bits
 * do not either.
 */
#pragma once

#include "hvx-base.h"
#include "hvx-fa-prep.h"
#include "hvx-math.h"

#define FA_MASKED 0xfc00u /* -inf as a half */
#define FA_GROUP 4u /* query rows that share one pass over a matrix */

/*
 * Numbers below every score. FA_MASKED_SF stands for -inf, which qfloat has not, and even times a small slope lies so
 * far below FA_NONE that exp(FA_MASKED_SF - FA_NONE) is 0: a row that sees nothing gets a sum of 0.
 */
#define FA_NONE -0x1p100f
#define FA_MASKED_SF -0x1p120f

/* Running softmax of a row. Each is a vector; max, scale and slope have the same number in all lanes. */
enum fa_stat {
    FA_MAX = 0,                /* greatest score so far, FA_NONE at the beginning */
    FA_SUM = HVX_BYTES,        /* 32 partial sums of exp(score - max) */
    FA_SCALE = 2 * HVX_BYTES,  /* what the sums until now are multiplied by, because the maximum grew */
    FA_SLOPE = 3 * HVX_BYTES,  /* of the mask (ALiBi) */
    FA_STAT_BYTES = 4 * HVX_BYTES,
};

/*
 * out[i][lanes] = (stats ? out[i] * scale[i] : 0) + sum over k of weight[i][k] * matrix[k][lanes], for up to 64 lanes.
 */
struct fa_product {
    const float *weight;   /* in ordinary memory: scalar loads */
    uint32_t weight_pitch; /* floats */
    const uint8_t *matrix; /* floats, or halves */
    uint32_t matrix_pitch;
    bool wide; /* floats */
    uint32_t n_terms;
    uint8_t *out;
    uint32_t out_pitch;
    const uint8_t *stats;
};

/* The counts and `wide` are constants where this is inlined. */
static inline __attribute__((always_inline)) void fa_product_of(const struct fa_product *p, uint32_t n_rows,
                                                                uint32_t n_vectors, bool wide) {
    HVX_Vector sum[FA_GROUP][2];
    for (uint32_t i = 0; i < n_rows; i++) {
        for (uint32_t v = 0; v < n_vectors; v++) {
            sum[i][v] = Q6_V_vzero();
            if (p->stats) {
                HVX_Vector scale = hvx_load(p->stats + i * FA_STAT_BYTES + FA_SCALE);
                sum[i][v] = hvx_mul_sf(hvx_load(p->out + (size_t) i * p->out_pitch + v * HVX_BYTES), scale);
            }
        }
    }
    const uint8_t *row = p->matrix;
    for (uint32_t k = 0; k < p->n_terms; k++, row += p->matrix_pitch) {
        HVX_Vector m[2];
        if (wide) {
            for (uint32_t v = 0; v < n_vectors; v++) {
                m[v] = hvx_load(row + v * HVX_BYTES);
            }
        } else {
            HVX_VectorPair w = hvx_hf_to_sf(hvx_load(row));
            m[0] = Q6_V_lo_W(w);
            m[1] = Q6_V_hi_W(w);
        }
        for (uint32_t i = 0; i < n_rows; i++) {
            HVX_Vector w = hvx_splat_sf(p->weight[i * p->weight_pitch + k]);
            for (uint32_t v = 0; v < n_vectors; v++) {
                sum[i][v] = hvx_fma_sf(sum[i][v], w, m[v]);
            }
        }
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        for (uint32_t v = 0; v < n_vectors; v++) {
            hvx_store(p->out + (size_t) i * p->out_pitch + v * HVX_BYTES, sum[i][v]);
        }
    }
}

static inline __attribute__((always_inline)) void fa_product_by(const struct fa_product *p, uint32_t n_rows,
                                                                uint32_t n_vectors, bool wide) {
    switch (2 * n_rows + n_vectors) {
        case 3: fa_product_of(p, 1, 1, wide); break;
        case 4: fa_product_of(p, 1, 2, wide); break;
        case 5: fa_product_of(p, 2, 1, wide); break;
        case 6: fa_product_of(p, 2, 2, wide); break;
        case 7: fa_product_of(p, 3, 1, wide); break;
        case 8: fa_product_of(p, 3, 2, wide); break;
        case 9: fa_product_of(p, 4, 1, wide); break;
        default: fa_product_of(p, 4, 2, wide); break;
    }
}

static void fa_product_run(const struct fa_product *p, uint32_t n_rows, uint32_t n_vectors) {
    if (p->wide) {
        fa_product_by(p, n_rows, n_vectors, true);
    } else {
        fa_product_by(p, n_rows, n_vectors, false);
    }
}

/* Rows of VTCM into ordinary memory, whose elements can be loaded one by one. */
static inline void fa_fetch(float *to, uint32_t to_pitch, const uint8_t *from, uint32_t from_pitch, uint32_t n_rows,
                            uint32_t n) {
    for (uint32_t r = 0; r < n_rows; r++) {
        for (uint32_t i = 0; i < n; i += HVX_F32) {
            hvx_store(to + (size_t) r * to_pitch + i, hvx_load(from + (size_t) r * from_pitch + i * 4));
        }
    }
}

static inline void fa_stats_begin(uint8_t *stats, float slope) {
    hvx_store(stats + FA_MAX, hvx_splat_sf(FA_NONE));
    hvx_store(stats + FA_SUM, Q6_V_vzero());
    hvx_store(stats + FA_SLOPE, hvx_splat_sf(slope));
}

struct fa_softmax {
    float softcap; /* 0 = none; then the scores are softcap * tanh(score) */
    uint32_t n_cols;
    bool masked;
};

/* 64 halves of a mask as floats. */
static inline HVX_VectorPair fa_mask_to_sf(HVX_Vector halves) {
    HVX_VectorPair m = hvx_hf_to_sf(halves);
#if __HVX_ARCH__ < 79
    HVX_Vector ones = Q6_V_vsplat_R(-1), masked = hvx_splat_sf(FA_MASKED_SF);
    HVX_VectorPred is_inf = Q6_Q_vcmp_eq_VhVh(halves, hvx_splat_hf(FA_MASKED));
    HVX_VectorPair wide = Q6_Ww_vunpack_Vh(Q6_V_vmux_QVV(is_inf, ones, Q6_V_vzero()));
    HVX_Vector low = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(Q6_V_lo_W(wide), ones), masked, Q6_V_lo_W(m));
    HVX_Vector high = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(Q6_V_hi_W(wide), ones), masked, Q6_V_hi_W(m));
    m = Q6_W_vcombine_VV(high, low);
#endif
    return m;
}

/* A row's scores become their exponentials, columns from n_cols on 0; `mask` halves are added to the scores. */
static inline void fa_softmax_row(const struct fa_softmax *p, uint8_t *scores, const uint8_t *mask, uint8_t *stats) {
    uint32_t n_vectors = hex_ceil_div(p->n_cols, HVX_F32);
    HVX_Vector masked = hvx_splat_sf(FA_MASKED_SF);
    HVX_Vector s[2] = {hvx_load(scores), n_vectors > 1 ? hvx_load(scores + HVX_BYTES) : masked};
    if (p->softcap != 0.0f) {
        for (uint32_t v = 0; v < n_vectors; v++) {
            s[v] = hvx_mul_sf(hvx_tanh_sf(s[v]), hvx_splat_sf(p->softcap));
        }
    }
    if (p->masked) {
        HVX_VectorPair m = fa_mask_to_sf(hvx_load(mask));
        HVX_Vector slope = hvx_load(stats + FA_SLOPE);
        s[0] = hvx_fma_sf(s[0], slope, Q6_V_lo_W(m));
        s[1] = hvx_fma_sf(s[1], slope, Q6_V_hi_W(m));
    }
    uint32_t tail = p->n_cols % HVX_F32;
    if (tail) {
        s[n_vectors - 1] = Q6_V_vmux_QVV(Q6_Q_vsetq_R((int) (tail * 4)), s[n_vectors - 1], masked);
    }
    s[1] = n_vectors > 1 ? s[1] : masked;

    HVX_Vector old_max = hvx_load(stats + FA_MAX);
    HVX_Vector max = hvx_max_sf(old_max, hvx_reduce_max_sf(hvx_max_sf(s[0], s[1])));
    HVX_Vector scale = hvx_exp_sf(hvx_sub_sf(old_max, max));
    HVX_Vector sum = hvx_mul_sf(hvx_load(stats + FA_SUM), scale);
    for (uint32_t v = 0; v < n_vectors; v++) {
        HVX_Vector e = hvx_exp_sf(hvx_sub_sf(s[v], max));
        hvx_store(scores + v * HVX_BYTES, e);
        sum = hvx_add_sf(sum, e);
    }
    hvx_store(stats + FA_MAX, max);
    hvx_store(stats + FA_SUM, sum);
    hvx_store(stats + FA_SCALE, scale);
}

/* What a row's accumulator is multiplied by in the end; a sink is one more score that has no value. 0 for a row without
 * any. */
static inline HVX_Vector fa_final_scale(HVX_Vector max, HVX_Vector sum, const float *sink) {
    HVX_Vector total = hvx_reduce_sum_sf(sum);
    HVX_Vector own = hvx_splat_sf(1.0f);
    if (sink) {
        HVX_Vector s = hvx_splat_sf(*sink);
        HVX_Vector top = hvx_max_sf(max, s);
        own = hvx_exp_sf(hvx_sub_sf(max, top));
        total = hvx_add_sf(hvx_mul_sf(total, own), hvx_exp_sf(hvx_sub_sf(s, top)));
    }
    HVX_VectorPred none = Q6_Q_vcmp_eq_VwVw(max, hvx_splat_sf(FA_NONE));
    return Q6_V_vmux_QVV(none, Q6_V_vzero(), hvx_mul_sf(own, hvx_recip_sf(total)));
}

static inline void fa_scale_row(uint8_t *row, uint32_t n_bytes, HVX_Vector scale) {
    for (uint32_t i = 0; i < n_bytes; i += HVX_BYTES) {
        hvx_store(row + i, hvx_mul_sf(hvx_load(row + i), scale));
    }
}

/*
 * A partial result of a row: max, sum, then the accumulator. fa_join adds up n of them, `step` bytes apart, in order.
 */
#define FA_PARTIAL_HEAD (2 * HVX_BYTES)

static inline void fa_join(const uint8_t *parts, size_t step, uint32_t n, const float *sink, uint8_t *out,
                           uint32_t n_bytes) {
    HVX_Vector max = hvx_load(parts);
    for (uint32_t c = 1; c < n; c++) {
        max = hvx_max_sf(max, hvx_load(parts + c * step));
    }
    HVX_Vector sum = Q6_V_vzero();
    for (uint32_t i = 0; i < n_bytes; i += HVX_BYTES) {
        hvx_store(out + i, Q6_V_vzero());
    }
    for (uint32_t c = 0; c < n; c++) {
        const uint8_t *part = parts + c * step;
        HVX_Vector scale = hvx_exp_sf(hvx_sub_sf(hvx_load(part), max));
        sum = hvx_fma_sf(sum, scale, hvx_load(part + HVX_BYTES));
        for (uint32_t i = 0; i < n_bytes; i += HVX_BYTES) {
            hvx_store(out + i, hvx_fma_sf(hvx_load(out + i), scale, hvx_load(part + FA_PARTIAL_HEAD + i)));
        }
    }
    fa_scale_row(out, n_bytes, fa_final_scale(max, sum, sink));
}
