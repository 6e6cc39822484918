/* GLU_SWIGLU, GLU_SWIGLU_OAI, GLU_GEGLU: dst = act(a) * b, F32. One input holds a and b side by side in each row
 * (swapped: b first), or there are two. */
#include "htp-opcodes.h"
#include "htp-rows-pipe.h"
#include "hvx-math.h"

struct glu {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    enum htp_opcode code;
    float alpha, limit;
};

struct glu_constants {
    HVX_Vector alpha, limit, minus_limit, one;
};

/* x, but at most `limit`; a NaN stays. Compares and min/max treat NaN as a number before v81, hence by hand. */
static inline HVX_Vector glu_at_most(HVX_Vector x, HVX_Vector limit) {
    HVX_VectorPred over = Q6_Q_and_QQn(Q6_Q_vcmp_gt_VsfVsf(x, limit), hvx_is_nan_sf(x));
    return Q6_V_vmux_QVV(over, limit, x);
}

static inline HVX_Vector glu_at_least(HVX_Vector x, HVX_Vector limit) {
    HVX_VectorPred under = Q6_Q_and_QQn(Q6_Q_vcmp_gt_VsfVsf(limit, x), hvx_is_nan_sf(x));
    return Q6_V_vmux_QVV(under, limit, x);
}

static inline __attribute__((always_inline)) HVX_Vector glu_f32(enum htp_opcode code, HVX_Vector a, HVX_Vector b,
                                                                const struct glu_constants *c) {
    if (code == HTP_OP_GLU_SWIGLU) {
        return hvx_mul_sf(hvx_silu_sf(a), b);
    }
    if (code == HTP_OP_GLU_GEGLU) {
        return hvx_mul_sf(hvx_gelu_sf(a), b);
    }
    HVX_Vector x = glu_at_most(a, c->limit);
    HVX_Vector y = glu_at_least(glu_at_most(b, c->limit), c->minus_limit);
    HVX_Vector gate = hvx_mul_sf(x, hvx_sigmoid_sf(hvx_mul_sf(x, c->alpha)));
    return hvx_mul_sf(gate, hvx_add_sf(y, c->one));
}

static inline __attribute__((always_inline)) void glu_tile(const struct glu *p, const struct rows_tile *t,
                                                           enum htp_opcode code) {
    struct glu_constants c = {
        .alpha = hvx_splat_sf(p->alpha),
        .limit = hvx_splat_sf(p->limit),
        .minus_limit = hvx_splat_sf(-p->limit),
        .one = hvx_splat_sf(1.0f),
    };
    for (uint32_t r = 0; r < t->n_rows; r++) {
        const uint8_t *a = t->src[0] + (size_t) r * t->src_pitch[0];
        const uint8_t *b = t->src[1] + (size_t) r * t->src_pitch[1];
        uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
        for (uint32_t i = 0; i < t->n_cols * 4; i += HVX_BYTES) {
            hvx_store(d + i, glu_f32(code, hvx_load(a + i), hvx_load(b + i), &c));
        }
    }
}

static void glu_compute(const struct rows_pipe *pipe, const struct rows_tile *t) {
    const struct glu *p = (const struct glu *) pipe;
    switch (p->code) {
        case HTP_OP_GLU_SWIGLU: glu_tile(p, t, HTP_OP_GLU_SWIGLU); break;
        case HTP_OP_GLU_SWIGLU_OAI: glu_tile(p, t, HTP_OP_GLU_SWIGLU_OAI); break;
        default: glu_tile(p, t, HTP_OP_GLU_GEGLU); break;
    }
}

static inline struct glu glu_init(const struct htp_op *op) {
    struct glu p = {
        .pipe = rows_init(op, 4),
        .code = (enum htp_opcode) op->opcode,
        .alpha = htp_param_f32(op, 2),
        .limit = htp_param_f32(op, 3),
    };
    bool split = !op->src[1];
    bool swapped = split && op->params[1];
    struct rows_view *a = rows_add(&p.pipe, op->src[0], 4);
    struct rows_view *b = rows_add(&p.pipe, split ? op->src[0] : op->src[1], 4);
    if (split) {
        a->n_cols = b->n_cols = p.pipe.ne[0];
        struct rows_view *second = swapped ? a : b;
        second->data += (size_t) p.pipe.ne[0] * 4;
    }
    p.pipe.elementwise = true;
    p.pipe.compute = glu_compute;
    return p;
}

/* Two inputs of dst's shape, or one with rows twice as long. */
static enum htp_status glu_check_src(struct htp_op *op) {
    bool split = !op->src[1];
    enum htp_status status = rows_check_same(op, "src0", op->src[0], HTP_F32, split ? 1 : 0);
    if (status != HTP_OK) {
        return status;
    }
    if (!split) {
        return rows_check_same(op, "src1", op->src[1], HTP_F32, 0);
    }
    if (op->src[0]->ne[0] != 2 * (uint64_t) op->dst[0]->ne[0]) {
        return htp_bad(op, "src0.ne", "%u columns, must be twice dst's %u", op->src[0]->ne[0], op->dst[0]->ne[0]);
    }
    return HTP_OK;
}

static enum htp_status glu_check(struct htp_op *op) {
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32);
    if (status == HTP_OK) {
        status = glu_check_src(op);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct glu p = glu_init(op);
    return rows_check(op, &p.pipe);
}

static enum htp_status glu_run(struct htp_op *op) {
    struct glu p = glu_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_glu = {.check = glu_check, .run = glu_run, .in_place = true};
