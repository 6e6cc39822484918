/* MUL_MAT, MUL_MAT_NX, MUL_MAT_ADD: what they take, and the pipeline of their threads. See matmul-shape.h. */
#include "htp-opcodes.h"
#include "matmul-flat.h"
#include "matmul-quant.h"
#include "matmul-shape.h"
#include "matmul-tile.h"

/* ---- check ---- */

static enum htp_status mm_tensors(struct htp_op *op, struct mm *mm) {
    bool is_nx = op->opcode == HTP_OP_MUL_MAT_NX;
    mm->x = op->src[is_nx ? 0 : 1];
    mm->w[0] = op->src[is_nx ? 1 : 0];
    mm->n_w = 1;
    while (is_nx && mm->n_w < HTP_MAX_DST && op->src[1 + mm->n_w]) {
        mm->w[mm->n_w] = op->src[1 + mm->n_w];
        mm->n_w++;
    }
    mm->addend = op->opcode == HTP_OP_MUL_MAT_ADD ? op->src[2] : NULL;
    if (!mm->x || !mm->w[0] || (op->opcode == HTP_OP_MUL_MAT_ADD && !mm->addend)) {
        return htp_bad(op, "src", "an input is missing");
    }
    for (uint32_t i = 0; i < mm->n_w; i++) {
        mm->dst[i] = op->dst[i];
        if (!mm->dst[i]) {
            return htp_bad(op, "dst", "%u weights need as many results", mm->n_w);
        }
    }
    mm->type = mm->w[0]->type;
    mm->k = mm->w[0]->ne[0];
    return HTP_OK;
}

static enum htp_status mm_check_weight(struct htp_op *op, const struct mm *mm, const struct htp_tensor *w) {
    if (w->type != mm->type || w->ne[0] != mm->k) {
        return htp_bad(op, "src.type", "weights differ in type (%u, %u) or K (%u, %u)", mm->type, w->type, mm->k,
                       w->ne[0]);
    }
    if (mm->kernel == MM_FLAT) {
        uint32_t size = w->type == HTP_F32 ? 4 : w->type == HTP_F16 ? 2 : 0;
        if (!size) {
            return htp_unsupported(op, "src.type", "flat weights are F16 or F32, not type %u", w->type);
        }
        return w->nb[0] == size ? HTP_OK : htp_bad(op, "src.nb[0]", "is %u, must be %u", w->nb[0], size);
    }
    if (!htp_tile_bytes(w->type) || w->ne[0] % HTP_TILE_K) {
        return htp_unsupported(op, "src.type", "type %u with K = %u is not tiled", w->type, w->ne[0]);
    }
    struct htp_tile_layout layout = htp_tile_layout(w->type, w->ne);
    for (uint32_t d = 0; d < HTP_MAX_DIMS; d++) {
        if (w->nb[d] != layout.nb[d]) {
            return htp_bad(op, "src.nb", "nb[%u] is %u, tiles have %llu", d, w->nb[d],
                           (unsigned long long) layout.nb[d]);
        }
    }
    return w->size >= layout.end ? HTP_OK : htp_bad(op, "src.size", "is %u, the tiles take %llu bytes", w->size,
                                                    (unsigned long long) layout.end);
}

static enum htp_status mm_check_result(struct htp_op *op, const struct mm *mm, uint32_t i) {
    const struct htp_tensor *w = mm->w[i], *dst = mm->dst[i], *x = mm->x;
    if (dst->type != HTP_F32 || dst->nb[0] != 4) {
        return htp_unsupported(op, "dst.type", "results are contiguous F32 rows");
    }
    if (dst->ne[0] != w->ne[1] || dst->ne[1] != x->ne[1] || dst->ne[2] != x->ne[2] || dst->ne[3] != x->ne[3]) {
        return htp_bad(op, "dst.ne", "is %u:%u:%u:%u, must be %u:%u:%u:%u", dst->ne[0], dst->ne[1], dst->ne[2],
                       dst->ne[3], w->ne[1], x->ne[1], x->ne[2], x->ne[3]);
    }
    for (uint32_t j = 0; j < mm->n_w; j++) {
        if (dst->data == mm->w[j]->data) {
            return htp_bad(op, "dst", "result %u is weight %u, which is still read", i, j);
        }
    }
    for (uint32_t d = 2; d < HTP_MAX_DIMS; d++) {
        if (w->ne[d] == 0 ? x->ne[d] != 0 : x->ne[d] % w->ne[d]) {
            return htp_bad(op, "src.ne", "ne[%u] of X is %u, no multiple of the weight's %u", d, x->ne[d], w->ne[d]);
        }
    }
    return HTP_OK;
}

static enum htp_status mm_check_addend(struct htp_op *op, const struct mm *mm) {
    const struct htp_tensor *a = mm->addend, *dst = mm->dst[0];
    if (!a) {
        return HTP_OK;
    }
    if (a->type != HTP_F32 || a->nb[0] != 4) {
        return htp_unsupported(op, "src2.type", "addends are contiguous F32 rows");
    }
    bool is_row = a->ne[1] == 1 && a->ne[2] == 1 && a->ne[3] == 1;
    bool is_full = a->ne[1] == dst->ne[1] && a->ne[2] == dst->ne[2] && a->ne[3] == dst->ne[3];
    if (a->ne[0] != dst->ne[0] || !(is_row || is_full)) {
        return htp_bad(op, "src2.ne", "is %u:%u:%u:%u, must be one row of %u or the result's shape", a->ne[0], a->ne[1],
                       a->ne[2], a->ne[3], dst->ne[0]);
    }
    return HTP_OK;
}

/* What follows from tensors and plan. Sizes that could overflow are proved by mm_check_plan before they are used. */
static void mm_derive(struct htp_op *op, struct mm *mm) {
    const struct htp_tensor *x = mm->x;
    bool flat = mm->kernel == MM_FLAT;
    mm->per_step = (uint32_t) op->kparams[HTP_KP_BLOCK];
    mm->chunk = (uint32_t) htp_karg(op, MM_KARG_CHUNK);
    mm->block_cols = (uint32_t) htp_karg(op, MM_KARG_BLOCK_COLS);
    mm->segment = (uint32_t) htp_karg(op, MM_KARG_SEGMENT);
    mm->depth = (uint32_t) htp_karg(op, MM_KARG_DEPTH);
    bool one = mm_has_one_plane(mm);
    mm->n_planes = one ? 1 : x->ne[2] * x->ne[3];
    mm->n_cols = one ? x->ne[1] * x->ne[2] * x->ne[3] : x->ne[1];
    mm->unit_rows = flat ? MM_FLAT_ROWS : HTP_TILE_ROWS;
    for (uint32_t i = 0; i < mm->n_w; i++) {
        mm->n_units[i] = hex_ceil_div(mm->w[i]->ne[1], mm->unit_rows);
        mm->all_units += mm->n_units[i];
    }
    mm->w_row = flat ? mm->k * mm->w[0]->nb[0] : mm->w[0]->nb[1];
    mm->w_pitch = flat ? hex_round_up(mm->w_row, HVX_BYTES) : mm->w_row;
    mm->unit_bytes = flat ? MM_FLAT_ROWS * mm->w_pitch : mm->w_row;
    mm->prepare = flat ? mm_prepare_flat : mm_prepare_tiled;
    mm->compute = mm->type == HTP_F16         ? mm_flat_f16
                  : mm->type == HTP_F32       ? mm_flat_f32
                  : mm->type == HTP_TILE_Q4_0 ? mm_tile_q4_0
                  : mm->type == HTP_TILE_Q4_1 ? mm_tile_q4_1
                                              : mm_tile_q8_0;
    if (mm->segment) {
        mm->n_segments = hex_ceil_div(mm->k, mm->segment);
        mm->record_bytes = mm_record_bytes(mm->kernel, mm->segment);
        mm->act_pitch = (uint32_t) mm_column_bytes(mm->kernel, mm->segment, mm->n_segments);
    }
    mm->out_pitch = mm->per_step * mm->unit_rows * 4 + (flat ? MM_OUT_SLACK : 0);
    mm->add_pitch = mm->addend && htp_nrows(mm->addend) > 1 ? mm->out_pitch : 0;
}

static enum htp_status mm_check_plan(struct htp_op *op, const struct mm *mm) {
    const uint32_t limit = 1u << 20;
    uint64_t elements = (uint64_t) mm->x->ne[1] * mm->x->ne[2];
    elements = elements > UINT32_MAX ? elements : elements * mm->x->ne[3];
    if (elements > UINT32_MAX || !mm->k || mm->k > (1u << 24) || mm->all_units > (1u << 26)) {
        return htp_unsupported(op, "src.ne", "K = %u, %llu columns: out of range", mm->k,
                               (unsigned long long) elements);
    }
    if (!mm->per_step || !mm->chunk || !mm->block_cols || !mm->segment || mm->segment % 128 || !mm->depth ||
        mm->depth > MM_MAX_DEPTH || mm->per_step > limit || mm->chunk > limit || mm->block_cols > limit ||
        mm->segment > limit) {
        return htp_bad(op, "kernel_params", "per step %u, columns %u/%u, segment %u, depth %u: out of range",
                       mm->per_step, mm->chunk, mm->block_cols, mm->segment, mm->depth);
    }
    uint64_t pitch = mm->out_pitch, depth = mm->depth; /* per_step is at most 2^20, unit_rows 32 */
    uint64_t unit = mm->unit_bytes; /* K is at most 2^24 */
    const uint64_t need[] = {
        [MM_R_ACT] = mm->chunk * mm_column_bytes(mm->kernel, mm->segment, mm->n_segments),
        [MM_R_STAGE] = mm_stage_bytes(mm->segment),
        [MM_R_WEIGHT] = depth * mm->per_step * unit,
        [MM_R_OUT] = depth * mm->block_cols * pitch,
        [MM_R_ADDEND] = !mm->addend ? 0 : depth * pitch * (mm->add_pitch ? mm->block_cols : 1),
    };
    for (uint32_t r = 0; r <= MM_R_ADDEND; r++) {
        if (htp_vtcm_bytes(op, r) < need[r]) {
            return htp_bad(op, "kernel_params", "VTCM region %u has %u bytes, needs %llu", r, htp_vtcm_bytes(op, r),
                           (unsigned long long) need[r]);
        }
    }
    return HTP_OK;
}

static enum htp_status mm_build(struct htp_op *op, struct mm *mm) {
    *mm = (struct mm){.kernel = (uint32_t) op->kparams[HTP_KP_KERNEL]};
    if (mm->kernel != MM_FLAT && mm->kernel != MM_TILED) {
        return htp_bad(op, "kernel_params", "kernel %u is unknown", mm->kernel);
    }
    enum htp_status status = mm_tensors(op, mm);
    if (status == HTP_OK && (mm->x->type != HTP_F32 || mm->x->nb[0] != 4 || mm->x->ne[0] != mm->k)) {
        status = htp_unsupported(op, "src.type", "X must be F32 rows of K = %u", mm->k);
    }
    for (uint32_t i = 0; status == HTP_OK && i < mm->n_w; i++) {
        status = mm_check_weight(op, mm, mm->w[i]);
        if (status == HTP_OK) {
            status = mm_check_result(op, mm, i);
        }
    }
    if (status == HTP_OK) {
        status = mm_check_addend(op, mm);
    }
    if (status == HTP_OK) {
        mm_derive(op, mm);
        status = mm_check_plan(op, mm);
    }
    return status;
}

static enum htp_status mm_check(struct htp_op *op) {
    struct mm mm;
    return mm_build(op, &mm);
}

/* ---- run ---- */

/* A thread's work on one chunk of columns. */
struct mm_job {
    const struct mm *mm;
    struct dma_queue *dma;
    uint32_t i2, i3;             /* plane */
    uint32_t first_col, n_cols;  /* chunk */
    uint32_t first_unit, end_unit;
    uint8_t *act, *stage, *weight, *out, *addend; /* VTCM */
};

/* One turn of the pipeline: n units of weight w (from `unit` on) times a block of columns. */
struct mm_turn {
    uint32_t index;  /* of the turn */
    uint32_t step;   /* of the weights in their ring; the turns of a step differ in columns */
    uint32_t next;   /* unit among those of all weights where the next step begins */
    uint32_t w, unit, n;
    uint32_t col, n_cols; /* of the chunk */
    bool valid;
};

static void mm_enter_step(const struct mm_job *job, struct mm_turn *t, uint32_t at) {
    const struct mm *mm = job->mm;
    t->valid = at < job->end_unit;
    if (!t->valid) {
        return;
    }
    t->w = 0;
    t->unit = at;
    while (t->unit >= mm->n_units[t->w]) {
        t->unit -= mm->n_units[t->w++];
    }
    t->n = hex_min(mm->per_step, hex_min(mm->n_units[t->w] - t->unit, job->end_unit - at));
    t->next = at + t->n;
    t->col = 0;
    t->n_cols = hex_min(mm->block_cols, job->n_cols);
}

static struct mm_turn mm_first_turn(const struct mm_job *job) {
    struct mm_turn t = {0};
    mm_enter_step(job, &t, job->first_unit);
    return t;
}

static void mm_next_turn(const struct mm_job *job, struct mm_turn *t) {
    t->index++;
    t->col += t->n_cols;
    if (t->col < job->n_cols) {
        t->n_cols = hex_min(job->mm->block_cols, job->n_cols - t->col);
    } else {
        t->step++;
        mm_enter_step(job, t, t->next);
    }
}

static uint8_t *mm_weight_slot(const struct mm_job *job, const struct mm_turn *t) {
    return job->weight + t->step % job->mm->depth * job->mm->per_step * job->mm->unit_bytes;
}

static uint8_t *mm_out_slot(const struct mm_job *job, const struct mm_turn *t) {
    return job->out + t->index % job->mm->depth * job->mm->block_cols * job->mm->out_pitch;
}

static uint8_t *mm_addend_slot(const struct mm_job *job, const struct mm_turn *t) {
    uint32_t n_rows = job->mm->add_pitch ? job->mm->block_cols : 1;
    return job->addend + t->index % job->mm->depth * n_rows * job->mm->out_pitch;
}

/* Floats of a turn's rows: the last unit may be partial. */
static uint32_t mm_turn_rows(const struct mm *mm, const struct mm_turn *t) {
    return hex_min(t->n * mm->unit_rows, mm->w[t->w]->ne[1] - t->unit * mm->unit_rows);
}

static void mm_push_weights(const struct mm_job *job, const struct mm_turn *t) {
    const struct mm *mm = job->mm;
    const struct htp_tensor *w = mm->w[t->w];
    uint32_t n = mm->kernel == MM_FLAT ? mm_turn_rows(mm, t) : t->n;
    uint32_t row = mm->kernel == MM_FLAT ? t->unit * MM_FLAT_ROWS : t->unit;
    const uint8_t *plane = mm_plane(w, job->i2 / (mm->x->ne[2] / w->ne[2]), job->i3 / (mm->x->ne[3] / w->ne[3]));
    dma_push(job->dma, mm_weight_slot(job, t), plane + (size_t) row * w->nb[1], mm->w_pitch, w->nb[1], mm->w_row, n);
}

static void mm_push_inputs(const struct mm_job *job, const struct mm_turn *t) {
    const struct mm *mm = job->mm;
    if (!t->valid) {
        return;
    }
    if (t->col == 0) {
        mm_push_weights(job, t);
    }
    if (mm->addend) {
        bool row = !mm->add_pitch;
        const uint8_t *from = row ? mm->addend->data : mm_plane(mm->addend, job->i2, job->i3);
        from += row ? 0 : (size_t) (job->first_col + t->col) * mm->addend->nb[1];
        from += (size_t) t->unit * mm->unit_rows * 4;
        dma_push(job->dma, mm_addend_slot(job, t), from, mm->out_pitch, mm->addend->nb[1], mm_turn_rows(mm, t) * 4,
                 row ? 1 : t->n_cols);
    }
}

static void mm_push_result(const struct mm_job *job, const struct mm_turn *t) {
    const struct mm *mm = job->mm;
    const struct htp_tensor *dst = mm->dst[t->w];
    uint8_t *to = (uint8_t *) mm_plane(dst, job->i2, job->i3) + (size_t) (job->first_col + t->col) * dst->nb[1];
    dma_push(job->dma, to + (size_t) t->unit * mm->unit_rows * 4, mm_out_slot(job, t), dst->nb[1], mm->out_pitch,
             mm_turn_rows(mm, t) * 4, t->n_cols);
}

/* Fills the pipeline; pushes stand in the order of the pops in mm_stream. */
static struct mm_turn mm_prime(const struct mm_job *job) {
    struct mm_turn ahead = mm_first_turn(job);
    for (uint32_t i = 0; i < job->mm->depth; i++) {
        mm_push_inputs(job, &ahead);
        dma_push(job->dma, job->out, job->out, 0, 0, 0, 0);
        if (ahead.valid) {
            mm_next_turn(job, &ahead);
        }
    }
    return ahead;
}

static void mm_compute_turn(const struct mm_job *job, const struct mm_turn *t) {
    const struct mm *mm = job->mm;
    const uint8_t *w = mm_weight_slot(job, t), *act = job->act + (size_t) t->col * mm->act_pitch;
    const uint8_t *add = mm->addend ? mm_addend_slot(job, t) : NULL;
    uint8_t *out = mm_out_slot(job, t);
    for (uint32_t u = 0; u < t->n; u++) {
        mm->compute(mm, w, act, t->n_cols, out, add);
        w += mm->unit_bytes;
        out += mm->unit_rows * 4;
        if (add) {
            add += mm->unit_rows * 4;
        }
    }
}

static void mm_stream(struct htp_op *op, const struct mm_job *job, struct mm_turn ahead, uint32_t thread) {
    for (struct mm_turn t = mm_first_turn(job); t.valid; mm_next_turn(job, &t)) {
        if (t.col == 0) {
            dma_pop(job->dma);
        }
        if (job->mm->addend) {
            dma_pop(job->dma);
        }
        dma_pop(job->dma); /* the result that was in this slot */
        htp_trace_start(op, thread, HTP_TR_HVX_COMP, t.index);
        mm_compute_turn(job, &t);
        htp_trace_stop(op, thread, HTP_TR_HVX_COMP, t.index);
        mm_push_inputs(job, &ahead);
        if (ahead.valid) {
            mm_next_turn(job, &ahead);
        }
        mm_push_result(job, &t);
    }
    for (uint32_t i = 0; i < job->mm->depth; i++) {
        dma_pop(job->dma);
    }
}

/* Item `i` of a chunk's activations: segment i % n_segments of column i / n_segments. */
static void mm_push_item(const struct mm_job *job, uint32_t i, uint32_t slot) {
    const struct mm *mm = job->mm;
    uint32_t segment = i % mm->n_segments, n = hex_min(mm->segment, mm->k - segment * mm->segment);
    const uint8_t *from = mm_plane(mm->x, job->i2, job->i3);
    from += (size_t) (job->first_col + i / mm->n_segments) * mm->x->nb[1] + (size_t) segment * mm->segment * 4;
    dma_push(job->dma, job->stage + slot * mm->segment * 4, from, n * 4, n * 4, n * 4, 1);
}

/* This thread's share of the chunk's activations. The weights' first transfers are pushed behind the last of X. */
static struct mm_turn mm_prepare_share(const struct mm_job *job, uint32_t thread, uint32_t n_threads) {
    const struct mm *mm = job->mm;
    struct hex_range share = hex_share(job->n_cols * mm->n_segments, thread, n_threads);
    uint8_t *scratch = job->stage + 2 * 4 * mm->segment;
    struct mm_turn ahead = {0};
    for (uint32_t i = share.first; i < share.end && i < share.first + 2; i++) {
        mm_push_item(job, i, (i - share.first) % 2);
    }
    if (share.end - share.first <= 2) {
        ahead = mm_prime(job);
    }
    for (uint32_t i = share.first; i < share.end; i++) {
        uint32_t slot = (i - share.first) % 2, segment = i % mm->n_segments;
        dma_pop(job->dma);
        mm->prepare(mm, job->stage + slot * mm->segment * 4, job->act + (size_t) (i / mm->n_segments) * mm->act_pitch,
                    segment, hex_min(mm->segment, mm->k - segment * mm->segment), scratch);
        if (i + 2 < share.end) {
            mm_push_item(job, i + 2, slot);
            if (i + 3 == share.end) {
                ahead = mm_prime(job);
            }
        }
    }
    return ahead;
}

/* Whether a result is written where X is still read by a thread that is late. */
static bool mm_in_place(const struct mm *mm) {
    bool found = false;
    for (uint32_t i = 0; i < mm->n_w; i++) {
        found = found || mm->dst[i]->data == mm->x->data;
    }
    return found;
}

static void mm_thread(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    const struct mm *mm = arg;
    struct hex_range units = hex_share(mm->all_units, thread, n_threads);
    struct mm_job job = {
        .mm = mm,
        .dma = htp_dma(op, thread),
        .first_unit = units.first,
        .end_unit = units.end,
        .stage = htp_vtcm(op, MM_R_STAGE, thread),
        .weight = htp_vtcm(op, MM_R_WEIGHT, thread),
        .out = htp_vtcm(op, MM_R_OUT, thread),
        .addend = htp_vtcm(op, MM_R_ADDEND, thread),
        .act = htp_vtcm(op, MM_R_ACT, thread),
    };
    /* Few activations: each thread has its own copy and prepares all of it, which costs less than to meet. */
    bool shared = !(op->kparams[HTP_KP_REGIONS + 2 * MM_R_ACT] & HTP_REGION_PER_THREAD);
    uint32_t n_chunks = hex_ceil_div(mm->n_cols, mm->chunk);
    for (uint32_t i = 0; i < mm->n_planes * n_chunks; i++) {
        uint32_t plane = i / n_chunks;
        job.i2 = plane % mm->x->ne[2];
        job.i3 = plane / mm->x->ne[2];
        job.first_col = i % n_chunks * mm->chunk;
        job.n_cols = hex_min(mm->chunk, mm->n_cols - job.first_col);
        if (i && shared) {
            htp_barrier(op); /* all are done with the activations of the chunk before */
        }
        enum htp_trace_id id = mm->kernel == MM_FLAT ? HTP_TR_HVX_A_PREP : HTP_TR_HVX_A_QUANT;
        htp_trace_start(op, thread, id, i);
        struct mm_turn ahead = mm_prepare_share(&job, shared ? thread : 0, shared ? n_threads : 1);
        htp_trace_stop(op, thread, id, i);
        if (shared || mm_in_place(mm)) {
            htp_barrier(op);
        }
        mm_stream(op, &job, ahead, thread);
    }
}

static enum htp_status mm_run(struct htp_op *op) {
    struct mm mm;
    enum htp_status status = mm_build(op, &mm);
    if (status == HTP_OK && mm.n_cols && mm.n_planes && mm.all_units) {
        htp_run(op, mm_thread, &mm);
    }
    return status;
}

const struct htp_kernel htp_matmul = {.check = mm_check, .run = mm_run, .in_place = true};
