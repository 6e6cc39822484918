/*
 * ROPE: rotates pairs of a row by angles that grow with the row's position; F32.
 *
 * src0 [D, H, T, B], positions I32 [T], optional frequency factors F32 [n_dims / 2]. Pairs are neighbours (mode 0) or
 * n_dims / 2 apart (NeoX, mode 2); elements from n_dims on are copied. A tile is the heads of one token, so one row of
 * sines and cosines serves it. Angles follow ggml in float32: pair i turns by position * freq_base^(-2i / n_dims), each
 * the one before it times theta_scale; then the frequency factor, freq_scale and the YaRN blend.
 */
#include "htp-rows-pipe.h"
#include "hvx-math.h"
#include "hvx-sincos.h"

#define ROPE_MAX_DIMS 512u

enum rope_param { ROPE_N_DIMS = 1, ROPE_MODE = 2, ROPE_FREQ_SCALE = 6, ROPE_EXT_FACTOR = 7 };
enum rope_mode { ROPE_NORMAL = 0, ROPE_NEOX = 2 };
/* The plan's own words, floats by their bits: what would need pow and log. */
enum rope_karg {
    ROPE_KARG_THETA_SCALE = ROWS_KARGS, /* freq_base^(-2 / n_dims) */
    ROPE_KARG_RAMP_LOW,                 /* the pair where the YaRN blend begins, and where it ends */
    ROPE_KARG_RAMP_HIGH,
    ROPE_KARG_MAGNITUDE, /* what sines and cosines are multiplied by */
};

struct rope {
    struct rows_pipe pipe; /* first: `compute` gets its address */
    const int32_t *position;
    const float *factor; /* NULL = all 1 */
    uint32_t n_pairs;
    float theta_scale, freq_scale, ext_factor, ramp_low, ramp_high, magnitude;
};

/* Sines and cosines of a position, by pair; the last vector is filled up. */
struct rope_table {
    float sin[ROPE_MAX_DIMS / 2] __attribute__((aligned(HVX_BYTES)));
    float cos[ROPE_MAX_DIMS / 2] __attribute__((aligned(HVX_BYTES)));
};

static inline float rope_angle(const struct rope *p, float theta, uint32_t pair) {
    float own = p->factor ? theta / p->factor[pair] : theta;
    float scaled = p->freq_scale * own;
    if (p->ext_factor == 0.0f) {
        return scaled;
    }
    float width = p->ramp_high - p->ramp_low;
    float along = ((float) pair - p->ramp_low) / (width > 0.001f ? width : 0.001f);
    float keep = (1.0f - fminf(1.0f, fmaxf(0.0f, along))) * p->ext_factor;
    return scaled * (1.0f - keep) + own * keep;
}

static void rope_fill(const struct rope *p, int32_t position, struct rope_table *t) {
    float angle[HVX_F32] __attribute__((aligned(HVX_BYTES))) = {0};
    HVX_Vector magnitude = hvx_splat_sf(p->magnitude);
    float theta = (float) position;
    for (uint32_t first = 0; first < p->n_pairs; first += HVX_F32) {
        uint32_t n = hex_min(HVX_F32, p->n_pairs - first);
        for (uint32_t i = 0; i < n; i++) {
            angle[i] = rope_angle(p, theta, first + i);
            theta *= p->theta_scale;
        }
        hvx_sincos_row(angle, n, t->sin + first, t->cos + first);
        hvx_store(t->sin + first, hvx_mul_sf(hvx_load(t->sin + first), magnitude));
        hvx_store(t->cos + first, hvx_mul_sf(hvx_load(t->cos + first), magnitude));
    }
}

struct rope_pair {
    HVX_Vector first, second;
};

static inline struct rope_pair rope_turn(HVX_Vector x, HVX_Vector y, HVX_Vector sin, HVX_Vector cos) {
    return (struct rope_pair){
        .first = hvx_sub_sf(hvx_mul_sf(x, cos), hvx_mul_sf(y, sin)),
        .second = hvx_add_sf(hvx_mul_sf(x, sin), hvx_mul_sf(y, cos)),
    };
}

/* `turned` in the first n lanes, x in the others. */
static inline HVX_Vector rope_keep_tail(HVX_Vector turned, HVX_Vector x, uint32_t n) {
    return n < HVX_F32 ? Q6_V_vmux_QVV(Q6_Q_vsetq_R((int) (n * 4)), turned, x) : turned;
}

static void rope_row_normal(const struct rope_table *t, const float *x, float *y, uint32_t n_dims) {
    for (uint32_t i = 0; i < n_dims; i += 2 * HVX_F32) {
        uint32_t n = n_dims - i;
        HVX_Vector a = hvx_load(x + i);
        HVX_Vector b = n > HVX_F32 ? hvx_load(x + i + HVX_F32) : a; /* the row may end here */
        HVX_VectorPair in = Q6_W_vdeal_VVR(b, a, -4);
        struct rope_pair out =
            rope_turn(Q6_V_lo_W(in), Q6_V_hi_W(in), hvx_load(t->sin + i / 2), hvx_load(t->cos + i / 2));
        HVX_VectorPair mixed = Q6_W_vshuff_VVR(out.second, out.first, -4);
        hvx_store(y + i, rope_keep_tail(Q6_V_lo_W(mixed), a, n));
        if (n > HVX_F32) {
            hvx_store(y + i + HVX_F32, rope_keep_tail(Q6_V_hi_W(mixed), b, n - HVX_F32));
        }
    }
}

/* n_dims >= 64: the last vector of each half overlaps the one before it where a half is no whole number of vectors. */
static void rope_row_neox(const struct rope_table *t, const float *x, float *y, uint32_t n_dims) {
    uint32_t half = n_dims / 2;
    for (uint32_t step = 0; step < half; step += HVX_F32) {
        uint32_t i = hex_min(step, half - HVX_F32);
        struct rope_pair out =
            rope_turn(hvx_loadu(x + i), hvx_loadu(x + half + i), hvx_loadu(t->sin + i), hvx_loadu(t->cos + i));
        hvx_storeu(y + i, out.first);
        hvx_storeu(y + half + i, out.second);
    }
}

/* n_dims < 64: both halves lie in the row's first two vectors; the second is there only if the row has more than 32
 * elements. */
static void rope_row_neox_short(const struct rope_table *t, const float *x, float *y, uint32_t n_dims,
                                uint32_t n_cols) {
    int32_t half_bytes = (int32_t) n_dims * 2;
    HVX_Vector a = hvx_load(x);
    HVX_Vector b = n_cols > HVX_F32 ? hvx_load(x + HVX_F32) : a;
    HVX_Vector high = Q6_V_valign_VVR(b, a, half_bytes);
    struct rope_pair out = rope_turn(a, high, hvx_load(t->sin), hvx_load(t->cos));
    HVX_Vector second = Q6_V_vlalign_VVR(out.second, out.second, half_bytes); /* rotated up by half */
    HVX_Vector low = Q6_V_vmux_QVV(Q6_Q_vsetq_R(half_bytes), out.first, second);
    hvx_store(y, rope_keep_tail(low, a, n_dims));
    if (n_cols > HVX_F32) {
        hvx_store(y + HVX_F32, n_dims > HVX_F32 ? rope_keep_tail(second, b, n_dims - HVX_F32) : b);
    }
}

static void rope_copy_tail(const float *x, float *y, uint32_t n_dims, uint32_t n_cols) {
    for (uint32_t i = n_dims / HVX_F32 * HVX_F32; i < n_cols; i += HVX_F32) {
        hvx_store(y + i, hvx_load(x + i));
    }
}

static inline __attribute__((always_inline)) void rope_tile(const struct rows_pipe *pipe, const struct rows_tile *tile,
                                                            enum rope_mode mode) {
    const struct rope *p = (const struct rope *) pipe;
    uint32_t n_dims = 2 * p->n_pairs;
    struct rope_table table;
    rope_fill(p, p->position[tile->index[1]], &table);
    for (uint32_t r = 0; r < tile->n_rows; r++) {
        const float *x = (const float *) (tile->src[0] + (size_t) r * tile->src_pitch[0]);
        float *y = (float *) (tile->dst + (size_t) r * tile->dst_pitch);
        rope_copy_tail(x, y, n_dims, tile->n_cols);
        if (mode == ROPE_NORMAL) {
            rope_row_normal(&table, x, y, n_dims);
        } else if (n_dims >= 2 * HVX_F32) {
            rope_row_neox(&table, x, y, n_dims);
        } else {
            rope_row_neox_short(&table, x, y, n_dims, tile->n_cols);
        }
    }
}

static void rope_normal(const struct rows_pipe *pipe, const struct rows_tile *tile) {
    rope_tile(pipe, tile, ROPE_NORMAL);
}

static void rope_neox(const struct rows_pipe *pipe, const struct rows_tile *tile) {
    rope_tile(pipe, tile, ROPE_NEOX);
}

static inline float rope_karg_f32(const struct htp_op *op, uint32_t i) {
    union {
        int32_t i;
        float f;
    } u = {.i = htp_karg(op, i)};
    return u.f;
}

static struct rope rope_init(const struct htp_op *op) {
    struct rope p = {
        .pipe = rows_init(op, 4),
        .position = (const int32_t *) op->src[1]->data,
        .factor = op->src[2] ? (const float *) op->src[2]->data : NULL,
        .n_pairs = (uint32_t) op->params[ROPE_N_DIMS] / 2,
        .theta_scale = rope_karg_f32(op, ROPE_KARG_THETA_SCALE),
        .freq_scale = htp_param_f32(op, ROPE_FREQ_SCALE),
        .ext_factor = htp_param_f32(op, ROPE_EXT_FACTOR),
        .ramp_low = rope_karg_f32(op, ROPE_KARG_RAMP_LOW),
        .ramp_high = rope_karg_f32(op, ROPE_KARG_RAMP_HIGH),
        .magnitude = rope_karg_f32(op, ROPE_KARG_MAGNITUDE),
    };
    rows_add(&p.pipe, op->src[0], 4);
    p.pipe.places = true;
    p.pipe.compute = op->params[ROPE_MODE] == ROPE_NEOX ? rope_neox : rope_normal;
    return p;
}

/* A row of numbers that is read where it lies. */
static enum htp_status rope_check_list(struct htp_op *op, const char *name, const struct htp_tensor *t, uint32_t type,
                                       uint32_t n) {
    if (t->type != type || t->nb[0] != 4) {
        return htp_unsupported(op, name, "is of type %u with nb[0] = %u, must be of type %u without gaps", t->type,
                               t->nb[0], type);
    }
    if (t->ne[0] < n || htp_nrows(t) != 1) {
        return htp_bad(op, name, "has %u numbers in %u rows, must be one row of %u", t->ne[0], htp_nrows(t), n);
    }
    return HTP_OK;
}

static enum htp_status rope_check_params(struct htp_op *op) {
    int32_t mode = op->params[ROPE_MODE];
    int32_t n_dims = op->params[ROPE_N_DIMS];
    if (mode != ROPE_NORMAL && mode != ROPE_NEOX) {
        return htp_unsupported(op, "params.mode", "is %d, must be 0 or 2", mode);
    }
    if (n_dims < 2 || n_dims % 2 || (uint32_t) n_dims > hex_min(ROPE_MAX_DIMS, op->dst[0]->ne[0])) {
        return htp_bad(op, "params.n_dims", "is %d, must be even and from 2 to %u", n_dims,
                       hex_min(ROPE_MAX_DIMS, op->dst[0]->ne[0]));
    }
    return HTP_OK;
}

static enum htp_status rope_check(struct htp_op *op) {
    if (!op->src[1]) {
        return htp_bad(op, "src1", "is missing");
    }
    enum htp_status status = rows_check_type(op, "dst", op->dst[0], HTP_F32);
    if (status == HTP_OK) {
        status = rows_check_same(op, "src0", op->src[0], HTP_F32, 0);
    }
    if (status != HTP_OK) {
        return status;
    }
    struct rope p = rope_init(op);
    if (rows_empty(&p.pipe)) {
        return HTP_OK;
    }
    status = rope_check_params(op);
    if (status == HTP_OK) {
        status = rope_check_list(op, "src1", op->src[1], HTP_I32, op->dst[0]->ne[2]);
    }
    if (status == HTP_OK && op->src[2]) {
        status = rope_check_list(op, "src2", op->src[2], HTP_F32, p.n_pairs);
    }
    return status == HTP_OK ? rows_check(op, &p.pipe) : status;
}

static enum htp_status rope_run(struct htp_op *op) {
    struct rope p = rope_init(op);
    return rows_run(op, &p.pipe);
}

const struct htp_kernel htp_rope = {.check = rope_check, .run = rope_run};
