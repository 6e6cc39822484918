/* From an op to its struct mm: what the matmul ops take, and the proof that nothing is smaller than the plan says. */
#pragma once

#include "htp-opcodes.h"
#include "matmul-flat.h"
#include "matmul-quant.h"
#include "matmul-shape.h"
#include "matmul-tile.h"

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

static enum htp_status mm_params(struct htp_op *op, struct mm *mm) {
    uint32_t section = (uint32_t) op->params[MM_PARAM_SECTION], pair = (uint32_t) op->params[MM_PARAM_PAIR];
    if (section % HTP_TILE_K || pair > 1 || (pair && (!section || op->opcode != HTP_OP_MUL_MAT))) {
        return htp_bad(op, "params", "sections of %u, pair %u: sections are whole tiles, a pair is MUL_MAT's", section,
                       pair);
    }
    if (pair && (mm->kernel == MM_FLAT || mm->x->ne[2] != 1 || mm->x->ne[3] != 1)) {
        return htp_unsupported(op, "params", "pairs are of one matrix and tiled weights");
    }
    mm->section = section / HTP_TILE_K;
    mm->n_parts = 1 + pair;
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
    uint32_t ne2 = x->ne[2] * mm->n_parts;
    if (dst->ne[0] != w->ne[1] || dst->ne[1] != x->ne[1] || dst->ne[2] != ne2 || dst->ne[3] != x->ne[3]) {
        return htp_bad(op, "dst.ne", "is %u:%u:%u:%u, must be %u:%u:%u:%u", dst->ne[0], dst->ne[1], dst->ne[2],
                       dst->ne[3], w->ne[1], x->ne[1], ne2, x->ne[3]);
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
    bool one = mm->n_parts == 2 || mm_has_one_plane(mm);
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
    mm->out_part = mm->block_cols * mm->out_pitch;
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
        [MM_R_OUT] = depth * mm->block_cols * pitch * mm->n_parts,
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
    if (status == HTP_OK) {
        status = mm_params(op, mm);
    }
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
