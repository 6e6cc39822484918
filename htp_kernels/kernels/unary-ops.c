/* UNARY_SILU, UNARY_GELU, UNARY_SIGMOID, SCALE: dst = f(src0), F32. */
#include "htp-rows-pipe.h"
#include "hvx-math.h"

enum unary_code { UNARY_SILU = 11, UNARY_GELU = 12, UNARY_SIGMOID = 13, UNARY_SCALE = 32 }; /* htp-ops.def */

struct unary_constants {
    HVX_Vector scale, bias;
};

static inline __attribute__((always_inline)) HVX_Vector unary_f32(enum unary_code code, HVX_Vector x,
                                                                  const struct unary_constants *c) {
    switch (code) {
        case UNARY_SILU: return hvx_silu_sf(x);
        case UNARY_GELU: return hvx_gelu_sf(x);
        case UNARY_SIGMOID: return hvx_sigmoid_sf(x);
        default: return hvx_add_sf(hvx_mul_sf(x, c->scale), c->bias);
    }
}

static inline __attribute__((always_inline)) void unary_tile(const struct rows_pipe *p, const struct rows_tile *t,
                                                             enum unary_code code) {
    struct unary_constants c = {hvx_splat_sf(p->f[0]), hvx_splat_sf(p->f[1])};
    for (uint32_t r = 0; r < t->n_rows; r++) {
        const uint8_t *x = t->src[0] + (size_t) r * t->src_pitch[0];
        uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
        for (uint32_t i = 0; i < t->n_cols * 4; i += HVX_BYTES) {
            hvx_store(d + i, unary_f32(code, hvx_load(x + i), &c));
        }
    }
}

static void unary_compute(const struct rows_pipe *p, const struct rows_tile *t) {
    switch (p->code) {
        case UNARY_SILU: unary_tile(p, t, UNARY_SILU); break;
        case UNARY_GELU: unary_tile(p, t, UNARY_GELU); break;
        case UNARY_SIGMOID: unary_tile(p, t, UNARY_SIGMOID); break;
        default: unary_tile(p, t, UNARY_SCALE); break;
    }
}

static inline struct rows_pipe unary_pipe(const struct htp_op *op) {
    struct rows_pipe p = rows_init(op, 4);
    rows_add(&p, op->src[0], 4);
    p.elementwise = true;
    p.compute = unary_compute;
    p.code = op->opcode;
    p.f[0] = htp_param_f32(op, 0);
    p.f[1] = htp_param_f32(op, 1);
    return p;
}

static enum htp_status unary_check(struct htp_op *op) {
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32, 4);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], HTP_F32, 4, 0);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct rows_pipe p = unary_pipe(op);
    return rows_check(op, &p);
}

static enum htp_status unary_run(struct htp_op *op) {
    struct rows_pipe p = unary_pipe(op);
    return rows_run(op, &p);
}

const struct htp_kernel htp_unary = {unary_check, unary_run};
