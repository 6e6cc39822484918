/* RMS_NORM: y = x / sqrt(mean(x^2) + eps) over each row; RMS_NORM_MUL: times a weight that repeats over the rows. F32. */
#include "htp-opcodes.h"
#include "htp-rows-pipe.h"
#include "hvx-math.h"

struct norm {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    float eps;
};

/* 1 / sqrt(mean(x^2) + eps) of a row, in every lane. */
static inline HVX_Vector norm_scale(const uint8_t *x, uint32_t n_cols, HVX_Vector by_n, HVX_Vector eps) {
    HVX_Vector sum = Q6_V_vzero();
    uint32_t n_bytes = n_cols * 4;
    uint32_t whole = n_bytes & ~(HVX_BYTES - 1);
    for (uint32_t i = 0; i < whole; i += HVX_BYTES) {
        HVX_Vector v = hvx_load(x + i);
        sum = hvx_add_sf(sum, hvx_mul_sf(v, v));
    }
    if (whole < n_bytes) {
        HVX_Vector v = Q6_V_vand_QV(Q6_Q_vsetq_R((int) (n_bytes - whole)), hvx_load(x + whole));
        sum = hvx_add_sf(sum, hvx_mul_sf(v, v));
    }
    HVX_Vector mean = hvx_mul_sf(hvx_reduce_sum_sf(sum), by_n);
    return hvx_rsqrt_sf(hvx_add_sf(mean, eps));
}

static inline __attribute__((always_inline)) void norm_tile(const struct norm *p, const struct rows_tile *t,
                                                            bool weighted) {
    HVX_Vector by_n = hvx_splat_sf(1.0f / (float) t->n_cols);
    HVX_Vector eps = hvx_splat_sf(p->eps);
    for (uint32_t r = 0; r < t->n_rows; r++) {
        const uint8_t *x = t->src[0] + (size_t) r * t->src_pitch[0];
        const uint8_t *w = weighted ? t->src[1] + (size_t) r * t->src_pitch[1] : x;
        uint8_t *d = t->dst + (size_t) r * t->dst_pitch;
        HVX_Vector scale = norm_scale(x, t->n_cols, by_n, eps);
        for (uint32_t i = 0; i < t->n_cols * 4; i += HVX_BYTES) {
            HVX_Vector y = hvx_mul_sf(hvx_load(x + i), scale);
            hvx_store(d + i, weighted ? hvx_mul_sf(y, hvx_load(w + i)) : y);
        }
    }
}

static void norm_plain(const struct rows_pipe *p, const struct rows_tile *t) {
    norm_tile((const struct norm *) p, t, false);
}

static void norm_weighted(const struct rows_pipe *p, const struct rows_tile *t) {
    norm_tile((const struct norm *) p, t, true);
}

static inline struct norm norm_init(const struct htp_op *op) {
    struct norm p = {.pipe = rows_init(op, 4), .eps = htp_param_f32(op, 0)};
    rows_add(&p.pipe, op->src[0], 4);
    if (op->opcode == HTP_OP_RMS_NORM_MUL) {
        rows_add(&p.pipe, op->src[1], 4);
    }
    p.pipe.compute = op->opcode == HTP_OP_RMS_NORM_MUL ? norm_weighted : norm_plain;
    return p;
}

static enum htp_status norm_check(struct htp_op *op) {
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], HTP_F32, 0);
    }
    if (status == HTP_OK && op->opcode == HTP_OP_RMS_NORM_MUL) {
        status = rows_check_repeat(op, "src1", op->src[1], HTP_F32);
        if (status == HTP_OK && op->src[1]->ne[0] != op->dst[0]->ne[0]) {
            return htp_bad(op, "src1.ne", "%u columns, must be dst's %u", op->src[1]->ne[0], op->dst[0]->ne[0]);
        }
    }
    if (status != HTP_OK) {
        return status;
    }
    struct norm p = norm_init(op);
    return rows_check(op, &p.pipe);
}

static enum htp_status norm_run(struct htp_op *op) {
    struct norm p = norm_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_norm = {.check = norm_check, .run = norm_run, .in_place = true};
