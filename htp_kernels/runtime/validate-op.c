/* The generic rules of one op, then its kernel's own: see the list at the top of htp-kernel.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "context.h"

static enum htp_status refuse(struct htp_op *op, enum htp_status status, const char *field, const char *format,
                              va_list args) {
    char name[24], text[HTP_DETAIL_BYTES];
    vsnprintf(text, sizeof text, format, args);
    snprintf(op->ctx->detail, sizeof op->ctx->detail, "op %u %s, %s: %s", op->index, htp_op_name(op->opcode, name),
             field, text);
    return status;
}

enum htp_status htp_bad(struct htp_op *op, const char *field, const char *format, ...) {
    va_list args;
    va_start(args, format);
    enum htp_status status = refuse(op, HTP_INVAL_PARAMS, field, format, args);
    va_end(args);
    return status;
}

enum htp_status htp_unsupported(struct htp_op *op, const char *field, const char *format, ...) {
    va_list args;
    va_start(args, format);
    enum htp_status status = refuse(op, HTP_NO_SUPPORT, field, format, args);
    va_end(args);
    return status;
}

enum htp_status htp_failed(struct htp_op *op, enum htp_status status, const char *format, ...) {
    char name[24], text[HTP_DETAIL_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(op->ctx->detail, sizeof op->ctx->detail, "op %u %s: %s", op->index, htp_op_name(op->opcode, name), text);
    return status;
}

static uint32_t region_offset(const struct htp_op *op, uint32_t region) {
    return (uint32_t) op->kparams[HTP_KP_REGIONS + 2 * region];
}

static bool region_per_thread(const struct htp_op *op, uint32_t region) {
    return region_offset(op, region) & HTP_REGION_PER_THREAD;
}

uint32_t htp_vtcm_bytes(const struct htp_op *op, uint32_t region) {
    return (uint32_t) op->kparams[HTP_KP_REGIONS + 2 * region + 1];
}

uint8_t *htp_vtcm(const struct htp_op *op, uint32_t region, uint32_t thread) {
    uint32_t copy = region_per_thread(op, region) ? thread * (htp_vtcm_bytes(op, region) + HTP_VTCM_GAP) : 0;
    return op->ctx->vtcm + (region_offset(op, region) & ~(uint32_t) HTP_REGION_PER_THREAD) + copy;
}

struct htp_extent htp_vtcm_extent(const struct htp_op *op, uint32_t region) {
    uint32_t copies = region_per_thread(op, region) ? (uint32_t) op->kparams[HTP_KP_N_THREADS] : 1;
    uint64_t begin = region_offset(op, region) & ~(uint32_t) HTP_REGION_PER_THREAD;
    return (struct htp_extent){begin, begin + copies * ((uint64_t) htp_vtcm_bytes(op, region) + HTP_VTCM_GAP), copies};
}

static enum htp_status check_region(struct htp_op *op, uint32_t i, uint32_t vtcm_bytes) {
    uint32_t bytes = htp_vtcm_bytes(op, i);
    if (bytes == 0) {
        return HTP_OK;
    }
    struct htp_extent mine = htp_vtcm_extent(op, i);
    if (mine.begin % HTP_VTCM_ALIGN || bytes % HTP_VTCM_ALIGN) {
        return htp_bad(op, "kernel_params", "VTCM region %u (offset %llu, %u bytes) is not made of %u-byte lines", i,
                       (unsigned long long) mine.begin, bytes, HTP_VTCM_ALIGN);
    }
    if (mine.end > vtcm_bytes) {
        return htp_bad(op, "kernel_params", "VTCM region %u ends at %llu, the op has %u bytes", i,
                       (unsigned long long) mine.end, vtcm_bytes);
    }
    for (uint32_t j = 0; j < i; j++) {
        struct htp_extent other = htp_vtcm_extent(op, j);
        if (htp_vtcm_bytes(op, j) && mine.begin < other.end && other.begin < mine.end) {
            return htp_bad(op, "kernel_params", "VTCM regions %u and %u overlap", j, i);
        }
    }
    return HTP_OK;
}

static enum htp_status check_kernel_params(struct htp_op *op) {
    const struct htp_config *config = &op->ctx->config;
    uint32_t n_threads = (uint32_t) op->kparams[HTP_KP_N_THREADS];
    uint32_t vtcm_bytes = (uint32_t) op->kparams[HTP_KP_VTCM_BYTES];
    if (n_threads == 0 || n_threads > config->n_threads) {
        return htp_bad(op, "kernel_params", "n_threads is %u, must be 1 to %u", n_threads, config->n_threads);
    }
    if (vtcm_bytes > config->vtcm_bytes) {
        htp_bad(op, "kernel_params", "needs %u bytes of VTCM, the session has %u", vtcm_bytes, config->vtcm_bytes);
        return HTP_VTCM_TOO_SMALL;
    }
    if (op->kparams[HTP_KP_BLOCK] < 0) {
        return htp_bad(op, "kernel_params", "block is %d, must not be negative", op->kparams[HTP_KP_BLOCK]);
    }
    enum htp_status status = HTP_OK;
    for (uint32_t i = 0; i < HTP_N_REGIONS && status == HTP_OK; i++) {
        status = check_region(op, i, vtcm_bytes);
    }
    return status;
}

/* The slots of src or dst; `need` of them, from the first, must be there. */
static enum htp_status take_slots(struct htp_op *op, const struct batch *batch, const uint16_t *slots, uint32_t n,
                                  uint32_t need, const char *what, const struct htp_tensor **out) {
    char field[16];
    for (uint32_t i = 0; i < n; i++) {
        out[i] = slots[i] == HTP_ABSENT ? NULL : &op->ctx->tensors[slots[i]];
        if (slots[i] == HTP_ABSENT ? i < need : slots[i] >= batch->request->n_tensors) {
            snprintf(field, sizeof field, "%s%u", what, i);
            return slots[i] == HTP_ABSENT
                       ? htp_bad(op, field, "is missing")
                       : htp_bad(op, field, "is tensor %u of %u", slots[i], batch->request->n_tensors);
        }
        bool wants = htp_takes_fence(op->opcode, *what == 'd', i);
        if (out[i] && wants != !!(out[i]->flags & HTP_TENSOR_FENCE)) {
            snprintf(field, sizeof field, "%s%u", what, i);
            return htp_bad(op, field, wants ? "must be a fence" : "is a fence, which only fence ops touch");
        }
    }
    return HTP_OK;
}

/* Two elements of a dst must not share memory: taken by rising stride, each dimension steps over the one before. */
static bool overlaps_itself(const struct htp_tensor *t) {
    uint32_t order[3] = {1, 2, 3};
    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < 2 - i; j++) {
            if (t->nb[order[j]] > t->nb[order[j + 1]]) {
                uint32_t swap = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swap;
            }
        }
    }
    /* size = row bytes + the steps of all dimensions; validated, so no product overflows. */
    uint64_t extent = t->size;
    for (uint32_t d = 1; d < HTP_MAX_DIMS; d++) {
        extent -= (t->ne[d] - 1ull) * t->nb[d] * (t->ne[d] > 1);
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t d = order[i];
        if (t->ne[d] > 1) {
            if (t->nb[d] < extent) {
                return true;
            }
            extent += (t->ne[d] - 1ull) * t->nb[d];
        }
    }
    return false;
}

/* By handle and offset, not by address: one buffer may be mapped twice. */
static bool share_memory(const struct batch *batch, const struct htp_tensor *a, const struct htp_tensor *b) {
    const struct htp_wire_tensor *x = &batch->tensors[a->index], *y = &batch->tensors[b->index];
    return batch->bufs[x->bi].fd == batch->bufs[y->bi].fd && x->data < y->data + y->size && y->data < x->data + x->size;
}

static bool same_view(const struct batch *batch, const struct htp_tensor *a, const struct htp_tensor *b) {
    return batch->tensors[a->index].data == batch->tensors[b->index].data && a->type == b->type
           && !memcmp(a->ne, b->ne, sizeof a->ne) && !memcmp(a->nb, b->nb, sizeof a->nb);
}

static bool is_empty(const struct htp_tensor *t) {
    return !t->ne[0] || !t->ne[1] || !t->ne[2] || !t->ne[3];
}

static enum htp_status check_dst(struct htp_op *op, const struct batch *batch, uint32_t i) {
    const struct htp_tensor *t = op->dst[i];
    char field[16];
    snprintf(field, sizeof field, "dst%u", i);
    if (t->flags & HTP_TENSOR_WEIGHT) {
        return htp_bad(op, field, "is a weight, which ops do not write");
    }
    if (t->type >= HTP_TILE_F32) {
        return htp_unsupported(op, field, "has type %u; no op writes a tile layout", t->type);
    }
    if (is_empty(t)) {
        return HTP_OK;
    }
    if (overlaps_itself(t)) {
        return htp_bad(op, field, "has strides by which its rows share memory");
    }
    for (uint32_t j = 0; j < i; j++) {
        if (op->dst[j] && share_memory(batch, t, op->dst[j])) {
            return htp_bad(op, field, "shares memory with dst%u", j);
        }
    }
    const struct htp_kernel *kernel = htp_kernel_of(op->opcode);
    for (uint32_t j = 0; j < HTP_MAX_SRC; j++) {
        if (op->src[j] && share_memory(batch, t, op->src[j])) {
            if (!kernel->in_place) {
                return htp_bad(op, field, "shares memory with src%u, and this op does not work in place", j);
            }
            if (!same_view(batch, t, op->src[j])) {
                return htp_bad(op, field, "shares memory with src%u, but is not the same view", j);
            }
        }
    }
    return HTP_OK;
}

static enum htp_status check_tensors(struct htp_op *op, const struct batch *batch, const struct htp_wire_op *wire) {
    enum htp_status status = take_slots(op, batch, wire->src, HTP_MAX_SRC, htp_n_src(op->opcode), "src", op->src);
    if (status == HTP_OK) {
        status = take_slots(op, batch, wire->dst, HTP_MAX_DST, 1, "dst", op->dst);
    }
    op->empty = true;
    for (uint32_t i = 0; i < HTP_MAX_DST && status == HTP_OK; i++) {
        if (op->dst[i]) {
            status = check_dst(op, batch, i);
            op->empty = op->empty && is_empty(op->dst[i]);
        }
    }
    return status;
}

enum htp_status htp_validate_op(struct htp_ctx *ctx, const struct batch *batch, uint32_t index) {
    const struct htp_wire_op *wire = &batch->ops[index];
    struct htp_op *op = &ctx->ops[index];
    op->ctx = ctx;
    op->tracer = NULL;
    op->index = index;
    op->opcode = wire->opcode;
    op->flags = wire->flags;
    op->params = wire->params;
    op->kparams = wire->kernel_params;
    const struct htp_kernel *kernel = htp_kernel_of(wire->opcode);
    if (!htp_is_op(wire->opcode)) {
        return htp_bad(op, "opcode", "is not in htp-ops.def");
    }
    if (!kernel) {
        return htp_unsupported(op, "opcode", "this server has no kernel for it");
    }
    enum htp_status status = check_tensors(op, batch, wire);
    if (status == HTP_OK) {
        status = check_kernel_params(op);
    }
    return status == HTP_OK ? kernel->check(op) : status;
}
