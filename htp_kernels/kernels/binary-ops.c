/* ADD, SUB, MUL, DIV: dst = src0 op src1, src1 repeated over src0; F32, or F16 throughout. */
#include "htp-opcodes.h"
#include "htp-rows-pipe.h"
#include "hvx-math.h"

static inline HVX_Vector binary_f32(enum htp_opcode code, HVX_Vector a, HVX_Vector b) {
    switch (code) {
        case HTP_OP_MUL: return hvx_mul_sf(a, b);
        case HTP_OP_ADD: return hvx_add_sf(a, b);
        case HTP_OP_SUB: return hvx_sub_sf(a, b);
        default: return hvx_div_sf(a, b);
    }
}

static inline HVX_Vector binary_div_f16(HVX_Vector a, HVX_Vector b) {
    HVX_VectorPair x = hvx_hf_to_sf(a);
    HVX_VectorPair y = hvx_hf_to_sf(b);
    return hvx_sf_to_hf(hvx_div_sf(Q6_V_lo_W(x), Q6_V_lo_W(y)), hvx_div_sf(Q6_V_hi_W(x), Q6_V_hi_W(y)));
}

static inline HVX_Vector binary_f16(enum htp_opcode code, HVX_Vector a, HVX_Vector b) {
    switch (code) {
        case HTP_OP_MUL: return hvx_mul_hf(a, b);
        case HTP_OP_ADD: return hvx_add_hf(a, b);
        case HTP_OP_SUB: return hvx_sub_hf(a, b);
        default: return binary_div_f16(a, b);
    }
}

struct binary {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    enum htp_opcode code;
};

/* src1's rows as wide as the walk's, once after they were loaded. */
static inline void binary_widen(const struct rows_pipe *p, const struct rows_tile *t) {
    uint32_t have = p->src[1].n_cols;
    if (have == p->ne[0] || !t->src_fresh[1]) {
        return;
    }
    uint32_t n_rows = t->src_pitch[1] ? t->n_rows : 1;
    for (uint32_t r = 0; r < n_rows; r++) {
        rows_repeat(t->src[1] + (size_t) r * t->src_pitch[1], p->src[1].elem_bytes, have, t->n_cols);
    }
}

static inline __attribute__((always_inline)) void binary_tile(const struct rows_pipe *p, const struct rows_tile *t,
                                                              enum htp_opcode code, bool half) {
    binary_widen(p, t);
    uint32_t n_bytes = t->n_cols * p->dst.elem_bytes;
    for (uint32_t r = 0; r < t->n_rows; r++) {
        const uint8_t *a = t->src[0] + (size_t) r * t->src_pitch[0];
        const uint8_t *b = t->src[1] + (size_t) r * t->src_pitch[1];
        uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
        for (uint32_t i = 0; i < n_bytes; i += HVX_BYTES) {
            HVX_Vector x = hvx_load(a + i);
            HVX_Vector y = hvx_load(b + i);
            hvx_store(d + i, half ? binary_f16(code, x, y) : binary_f32(code, x, y));
        }
    }
}

static void binary_compute_f32(const struct rows_pipe *p, const struct rows_tile *t) {
    switch (((const struct binary *) p)->code) {
        case HTP_OP_MUL: binary_tile(p, t, HTP_OP_MUL, false); break;
        case HTP_OP_ADD: binary_tile(p, t, HTP_OP_ADD, false); break;
        case HTP_OP_SUB: binary_tile(p, t, HTP_OP_SUB, false); break;
        default: binary_tile(p, t, HTP_OP_DIV, false); break;
    }
}

static void binary_compute_f16(const struct rows_pipe *p, const struct rows_tile *t) {
    switch (((const struct binary *) p)->code) {
        case HTP_OP_MUL: binary_tile(p, t, HTP_OP_MUL, true); break;
        case HTP_OP_ADD: binary_tile(p, t, HTP_OP_ADD, true); break;
        case HTP_OP_SUB: binary_tile(p, t, HTP_OP_SUB, true); break;
        default: binary_tile(p, t, HTP_OP_DIV, true); break;
    }
}

static inline struct binary binary_init(const struct htp_op *op) {
    bool half = op->dst[0]->type == HTP_F16;
    struct binary p = {.pipe = rows_init(op, half ? 2 : 4), .code = (enum htp_opcode) op->opcode};
    rows_add(&p.pipe, op->src[0], half ? 2 : 4);
    rows_add(&p.pipe, op->src[1], half ? 2 : 4);
    p.pipe.elementwise = true;
    p.pipe.compute = half ? binary_compute_f16 : binary_compute_f32;
    return p;
}

static enum htp_status binary_check(struct htp_op *op) {
    uint32_t type = op->dst[0]->type == HTP_F16 ? HTP_F16 : HTP_F32;
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], type);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], type, 0);
    }
    if (status == HTP_OK) {
        status = rows_check_repeat(op, "src1", op->src[1], type);
    }
    if (status != HTP_OK) {
        return status;
    }
    uint32_t n_cols = op->dst[0]->ne[0];
    uint32_t n_have = op->src[1]->ne[0];
    if (n_cols && (n_have == 0 || n_cols % n_have)) {
        return htp_bad(op, "src1.ne", "%u columns do not repeat into %u", n_have, n_cols);
    }
    struct binary p = binary_init(op);
    return rows_check(op, &p.pipe);
}

static enum htp_status binary_run(struct htp_op *op) {
    struct binary p = binary_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_binary = {.check = binary_check, .run = binary_run, .in_place = true};
