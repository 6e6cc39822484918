/* ADD, SUB, MUL, DIV: dst = src0 op src1, src1 repeated over src0; F32, or F16 throughout. */
#include "htp-rows-pipe.h"
#include "hvx-math.h"

enum binary_code { BINARY_MUL = 0, BINARY_ADD = 1, BINARY_SUB = 2, BINARY_DIV = 3 }; /* the op codes of htp-ops.def */

static inline HVX_Vector binary_f32(enum binary_code code, HVX_Vector a, HVX_Vector b) {
    switch (code) {
        case BINARY_MUL: return hvx_mul_sf(a, b);
        case BINARY_ADD: return hvx_add_sf(a, b);
        case BINARY_SUB: return hvx_sub_sf(a, b);
        default: return hvx_div_sf(a, b);
    }
}

static inline HVX_Vector binary_div_f16(HVX_Vector a, HVX_Vector b) {
    HVX_VectorPair x = hvx_hf_to_sf(a);
    HVX_VectorPair y = hvx_hf_to_sf(b);
    return hvx_sf_to_hf(hvx_div_sf(Q6_V_lo_W(x), Q6_V_lo_W(y)), hvx_div_sf(Q6_V_hi_W(x), Q6_V_hi_W(y)));
}

static inline HVX_Vector binary_f16(enum binary_code code, HVX_Vector a, HVX_Vector b) {
    switch (code) {
        case BINARY_MUL: return hvx_mul_hf(a, b);
        case BINARY_ADD: return hvx_add_hf(a, b);
        case BINARY_SUB: return hvx_sub_hf(a, b);
        default: return binary_div_f16(a, b);
    }
}

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
                                                              enum binary_code code, bool half) {
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
    switch (p->code) {
        case BINARY_MUL: binary_tile(p, t, BINARY_MUL, false); break;
        case BINARY_ADD: binary_tile(p, t, BINARY_ADD, false); break;
        case BINARY_SUB: binary_tile(p, t, BINARY_SUB, false); break;
        default: binary_tile(p, t, BINARY_DIV, false); break;
    }
}

static void binary_compute_f16(const struct rows_pipe *p, const struct rows_tile *t) {
    switch (p->code) {
        case BINARY_MUL: binary_tile(p, t, BINARY_MUL, true); break;
        case BINARY_ADD: binary_tile(p, t, BINARY_ADD, true); break;
        case BINARY_SUB: binary_tile(p, t, BINARY_SUB, true); break;
        default: binary_tile(p, t, BINARY_DIV, true); break;
    }
}

static inline struct rows_pipe binary_pipe(const struct htp_op *op) {
    bool half = op->dst[0]->type == HTP_F16;
    struct rows_pipe p = rows_init(op, half ? 2 : 4);
    rows_add(&p, op->src[0], p.dst.elem_bytes);
    rows_add(&p, op->src[1], p.dst.elem_bytes);
    p.elementwise = true;
    p.compute = half ? binary_compute_f16 : binary_compute_f32;
    p.code = op->opcode;
    return p;
}

static enum htp_status binary_check(struct htp_op *op) {
    uint32_t type = op->dst[0] && op->dst[0]->type == HTP_F16 ? HTP_F16 : HTP_F32;
    uint32_t elem_bytes = type == HTP_F16 ? 2 : 4;
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], type, elem_bytes);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], type, elem_bytes, 0);
    }
    if (status == HTP_OK) {
        status = rows_check_repeat(op, "src1", op->src[1], type, elem_bytes);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct rows_pipe p = binary_pipe(op);
    if (p.ne[0] && (!p.src[1].n_cols || p.ne[0] % p.src[1].n_cols)) {
        return htp_bad(op, "src1.ne", "%u columns do not repeat into %u", p.src[1].n_cols, p.ne[0]);
    }
    return rows_check(op, &p);
}

static enum htp_status binary_run(struct htp_op *op) {
    struct rows_pipe p = binary_pipe(op);
    return rows_run(op, &p);
}

const struct htp_kernel htp_binary = {binary_check, binary_run};
