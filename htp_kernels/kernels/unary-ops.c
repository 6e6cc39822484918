/* UNARY_SILU, UNARY_GELU, UNARY_SIGMOID, SCALE: dst = f(src0), F32. */
#include "htp-opcodes.h"
#include "htp-rows-pipe.h"
#include "hvx-math.h"

struct unary {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    enum htp_opcode code;
    float scale, bias;
};

static inline __attribute__((always_inline)) HVX_Vector unary_one(enum htp_opcode code, HVX_Vector x, HVX_Vector scale,
                                                                  HVX_Vector bias) {
    switch (code) {
        case HTP_OP_UNARY_SILU: return hvx_silu_sf(x);
        case HTP_OP_UNARY_GELU: return hvx_gelu_sf(x);
        case HTP_OP_UNARY_SIGMOID: return hvx_sigmoid_sf(x);
        default: return hvx_add_sf(hvx_mul_sf(x, scale), bias);
    }
}

static inline __attribute__((always_inline)) void unary_tile(const struct unary *p, const struct rows_tile *t,
                                                             enum htp_opcode code) {
    HVX_Vector scale = hvx_splat_sf(p->scale);
    HVX_Vector bias = hvx_splat_sf(p->bias);
    for (uint32_t r = 0; r < t->n_rows; r++) {
        const uint8_t *x = t->src[0] + (size_t) r * t->src_pitch[0];
        uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
        for (uint32_t i = 0; i < t->n_cols * 4; i += HVX_BYTES) {
            hvx_store(d + i, unary_one(code, hvx_load(x + i), scale, bias));
        }
    }
}

static void unary_compute(const struct rows_pipe *pipe, const struct rows_tile *t) {
    const struct unary *p = (const struct unary *) pipe;
    switch (p->code) {
        case HTP_OP_UNARY_SILU: unary_tile(p, t, HTP_OP_UNARY_SILU); break;
        case HTP_OP_UNARY_GELU: unary_tile(p, t, HTP_OP_UNARY_GELU); break;
        case HTP_OP_UNARY_SIGMOID: unary_tile(p, t, HTP_OP_UNARY_SIGMOID); break;
        default: unary_tile(p, t, HTP_OP_SCALE); break;
    }
}

static inline struct unary unary_init(const struct htp_op *op) {
    struct unary p = {
        .pipe = rows_init(op, 4),
        .code = (enum htp_opcode) op->opcode,
        .scale = htp_param_f32(op, 0),
        .bias = htp_param_f32(op, 1),
    };
    rows_add(&p.pipe, op->src[0], 4);
    p.pipe.elementwise = true;
    p.pipe.compute = unary_compute;
    return p;
}

static enum htp_status unary_check(struct htp_op *op) {
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], HTP_F32, 0);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct unary p = unary_init(op);
    return rows_check(op, &p.pipe);
}

static enum htp_status unary_run(struct htp_op *op) {
    struct unary p = unary_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_unary = {.check = unary_check, .run = unary_run, .in_place = true};
