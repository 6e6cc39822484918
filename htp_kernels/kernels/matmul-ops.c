/* MUL_MAT, MUL_MAT_NX, MUL_MAT_ADD: the pipeline of their threads. See matmul-shape.h. */
#include "matmul-check.h"

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
    return job->out + t->index % job->mm->depth * job->mm->n_parts * job->mm->out_part;
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
    for (uint32_t part = 0; part < mm->n_parts; part++, to += dst->nb[2]) {
        dma_push(job->dma, to + (size_t) t->unit * mm->unit_rows * 4, mm_out_slot(job, t) + part * mm->out_part,
                 dst->nb[1], mm->out_pitch, mm_turn_rows(mm, t) * 4, t->n_cols);
    }
}

/* Fills the pipeline; pushes stand in the order of the pops in mm_stream. */
static struct mm_turn mm_prime(const struct mm_job *job) {
    struct mm_turn ahead = mm_first_turn(job);
    for (uint32_t i = 0; i < job->mm->depth; i++) {
        mm_push_inputs(job, &ahead);
        for (uint32_t part = 0; part < job->mm->n_parts; part++) {
            dma_push(job->dma, job->out, job->out, 0, 0, 0, 0);
        }
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

static void mm_pop_result(const struct mm_job *job) {
    for (uint32_t part = 0; part < job->mm->n_parts; part++) {
        dma_pop(job->dma);
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
        mm_pop_result(job); /* which was in this slot */
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
        mm_pop_result(job);
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

static enum htp_status mm_check(struct htp_op *op) {
    struct mm mm;
    return mm_build(op, &mm);
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
