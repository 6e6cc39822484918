/*
 * SOFTMAX: y = softmax(x * scale + slope * mask) over each row, F32; mask F16 or F32 [columns, >= rows] repeating over
 * heads and batches, slope from ALiBi's max_bias (1 where that is 0), one sink a head that takes part in the sum only.
 * A row that is -inf throughout gives 0.
 */
#include "htp-rows-pipe.h"
#include "hvx-math.h"

/* ALiBi's constants come from the plan: head h has base0^(h + 1) below n_pow2, base1^(2 (h - n_pow2) + 1) from there. */
enum softmax_karg { SOFTMAX_KARG_N_POW2 = ROWS_KARGS, SOFTMAX_KARG_BASE0, SOFTMAX_KARG_BASE1 };

enum softmax_mask { SOFTMAX_NO_MASK, SOFTMAX_MASK_F16, SOFTMAX_MASK_F32 };

struct softmax {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    enum softmax_mask mask;
    bool sinks, alibi;
    float scale, base0, base1;
    uint32_t n_pow2;
};

#define SOFTMAX_MINUS_INF ((int32_t) 0xff800000u)

static inline float softmax_karg_f32(const struct htp_op *op, uint32_t i) {
    union {
        int32_t i;
        float f;
    } u = {.i = htp_karg(op, i)};
    return u.f;
}

static inline float softmax_slope(const struct softmax *p, uint32_t head) {
    uint32_t n = head < p->n_pow2 ? head + 1 : 2 * (head - p->n_pow2) + 1;
    float power = head < p->n_pow2 ? p->base0 : p->base1;
    float slope = 1.0f;
    for (; n; n >>= 1) {
        slope = n & 1 ? slope * power : slope;
        power *= power;
    }
    return slope;
}

/* `result`, but `value` where z is -inf: before v79 arithmetic does not take infinities for what they are. */
static inline HVX_Vector softmax_where_low(HVX_Vector z, HVX_Vector value, HVX_Vector result) {
#if __HVX_ARCH__ >= 79
    (void) z, (void) value;
    return result;
#else
    return Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(z, Q6_V_vsplat_R(SOFTMAX_MINUS_INF)), value, result);
#endif
}

/* Vector i of a mask's row, as F32. */
static inline HVX_Vector softmax_mask(enum softmax_mask kind, const uint8_t *mask, uint32_t i) {
    if (kind == SOFTMAX_MASK_F32) {
        return hvx_load(mask + (size_t) i * HVX_BYTES);
    }
    HVX_VectorPair two = hvx_hf_to_sf(hvx_load(mask + (size_t) (i / 2) * HVX_BYTES));
    HVX_Vector m = i & 1 ? Q6_V_hi_W(two) : Q6_V_lo_W(two);
#if __HVX_ARCH__ < 79
    /* Halves end at -65504; qfloat reads their -inf as -65536. */
    HVX_VectorPred low = Q6_Q_vcmp_gt_VsfVsf(hvx_splat_sf(-65520.0f), m);
    m = Q6_V_vmux_QVV(low, Q6_V_vsplat_R(SOFTMAX_MINUS_INF), m);
#endif
    return m;
}

/* z = x * scale + slope * mask into row r of dst, -inf behind the row's end; gives the maximum in every lane. */
static inline HVX_Vector softmax_scores(const struct softmax *p, const struct rows_tile *t, uint32_t r, HVX_Vector slope) {
    const uint8_t *x = t->src[0] + (size_t) r * t->src_pitch[0];
    const uint8_t *mask = p->mask ? t->src[1] + (size_t) r * t->src_pitch[1] : NULL;
    uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
    HVX_Vector scale = hvx_splat_sf(p->scale);
    HVX_Vector low = Q6_V_vsplat_R(SOFTMAX_MINUS_INF);
    HVX_Vector most = low;
    uint32_t n_vectors = hex_ceil_div(t->n_cols, HVX_F32);
    uint32_t tail = t->n_cols % HVX_F32;
    for (uint32_t i = 0; i < n_vectors; i++) {
        HVX_Vector z = hvx_mul_sf(hvx_load(x + (size_t) i * HVX_BYTES), scale);
        if (mask) {
            HVX_Vector m = softmax_mask(p->mask, mask, i);
            z = softmax_where_low(m, low, hvx_add_sf(z, hvx_mul_sf(m, slope)));
        }
        if (tail && i + 1 == n_vectors) {
            z = Q6_V_vmux_QVV(Q6_Q_vsetq_R((int32_t) tail * 4), z, low);
        }
        hvx_store(d + (size_t) i * HVX_BYTES, z);
        most = hvx_max_sf(most, z);
    }
    return hvx_reduce_max_sf(most);
}

/* e^(z - most), 0 for z = -inf. */
static inline HVX_Vector softmax_term(HVX_Vector z, HVX_Vector most) {
    return softmax_where_low(z, Q6_V_vzero(), hvx_exp_sf(hvx_sub_sf(z, most)));
}

static inline void softmax_row(const struct softmax *p, const struct rows_tile *t, uint32_t r, HVX_Vector slope,
                               HVX_Vector sink) {
    uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
    size_t n_bytes = (size_t) hex_round_up(t->n_cols, HVX_F32) * 4;
    HVX_Vector zero = Q6_V_vzero();
    HVX_Vector most = hvx_max_sf(softmax_scores(p, t, r, slope), sink);
    /* Nothing above -inf: any finite maximum makes every term 0. */
    most = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(most, Q6_V_vsplat_R(SOFTMAX_MINUS_INF)), zero, most);
    HVX_Vector sum = zero;
    for (size_t i = 0; i < n_bytes; i += HVX_BYTES) {
        HVX_Vector e = softmax_term(hvx_load(d + i), most);
        hvx_store(d + i, e);
        sum = hvx_add_sf(sum, e);
    }
    sum = hvx_add_sf(hvx_reduce_sum_sf(sum), softmax_term(sink, most));
    HVX_Vector by_sum = Q6_V_vmux_QVV(Q6_Q_vcmp_eq_VwVw(sum, zero), zero, hvx_recip_sf(sum));
    for (size_t i = 0; i < n_bytes; i += HVX_BYTES) {
        hvx_store(d + i, hvx_mul_sf(hvx_load(d + i), by_sum));
    }
}

static void softmax_compute(const struct rows_pipe *pipe, const struct rows_tile *t) {
    const struct softmax *p = (const struct softmax *) pipe;
    HVX_Vector slope = hvx_splat_sf(p->alibi ? softmax_slope(p, t->index[1]) : 1.0f);
    HVX_Vector sink = Q6_V_vsplat_R(SOFTMAX_MINUS_INF);
    uint32_t s = pipe->n_src - 1;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        if (p->sinks) {
            sink = hvx_splat_sf(hvx_first_sf(hvx_load(t->src[s] + (size_t) r * t->src_pitch[s])));
        }
        softmax_row(p, t, r, slope, sink);
    }
}

/* Sources: x, mask if there is one, sinks if there are: one element a head, that is a row of one column in dimension 2. */
static inline struct softmax softmax_init(const struct htp_op *op) {
    struct softmax p = {
        .pipe = rows_init(op, 4),
        .sinks = op->src[2] != NULL,
        .alibi = htp_param_f32(op, 1) > 0.0f,
        .scale = htp_param_f32(op, 0),
        .base0 = softmax_karg_f32(op, SOFTMAX_KARG_BASE0),
        .base1 = softmax_karg_f32(op, SOFTMAX_KARG_BASE1),
        .n_pow2 = (uint32_t) htp_karg(op, SOFTMAX_KARG_N_POW2),
    };
    rows_add(&p.pipe, op->src[0], 4);
    if (op->src[1]) {
        p.mask = op->src[1]->type == HTP_F16 ? SOFTMAX_MASK_F16 : SOFTMAX_MASK_F32;
        rows_add(&p.pipe, op->src[1], p.mask == SOFTMAX_MASK_F16 ? 2 : 4);
    }
    if (op->src[2]) {
        struct rows_view *sinks = rows_add(&p.pipe, op->src[2], 4);
        sinks->n_cols = 1;
        sinks->stride[1] = p.pipe.ne[2] > 1 ? 4 : 0;
    }
    p.pipe.places = p.alibi;
    p.pipe.compute = softmax_compute;
    return p;
}

/* [columns, >= rows, repeats, repeats] */
static enum htp_status softmax_check_mask(struct htp_op *op) {
    const struct htp_tensor *mask = op->src[1];
    const struct htp_tensor *dst = op->dst[0];
    enum htp_status status = rows_check_type(op, "src1", mask, mask->type == HTP_F16 ? HTP_F16 : HTP_F32);
    if (status != HTP_OK) {
        return status;
    }
    if (mask->ne[0] != dst->ne[0] || mask->ne[1] < dst->ne[1]) {
        return htp_bad(op, "src1.ne", "is %u x %u, dst has %u x %u", mask->ne[0], mask->ne[1], dst->ne[0], dst->ne[1]);
    }
    for (uint32_t d = 2; d < HTP_MAX_DIMS; d++) {
        if (dst->ne[d] && (mask->ne[d] == 0 || dst->ne[d] % mask->ne[d])) {
            return htp_bad(op, "src1.ne", "ne[%u] is %u and does not repeat into %u", d, mask->ne[d], dst->ne[d]);
        }
    }
    return HTP_OK;
}

static enum htp_status softmax_check_sinks(struct htp_op *op) {
    const struct htp_tensor *sinks = op->src[2];
    enum htp_status status = rows_check_type(op, "src2", sinks, HTP_F32);
    if (status == HTP_OK && (sinks->ne[0] != op->dst[0]->ne[2] || htp_nrows(sinks) != 1)) {
        return htp_bad(op, "src2.ne", "%u sinks, must be dst's %u heads", sinks->ne[0], op->dst[0]->ne[2]);
    }
    return status;
}

static enum htp_status softmax_check(struct htp_op *op) {
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], HTP_F32, 0);
    }
    if (status == HTP_OK && op->src[1]) {
        status = softmax_check_mask(op);
    }
    if (status == HTP_OK && op->src[2]) {
        status = softmax_check_sinks(op);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct softmax p = softmax_init(op);
    return rows_check(op, &p.pipe);
}

static enum htp_status softmax_run(struct htp_op *op) {
    struct softmax p = softmax_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_softmax = {.check = softmax_check, .run = softmax_run, .in_place = true};
