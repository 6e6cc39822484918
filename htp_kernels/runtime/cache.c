/*
 * Caches: NPU and CPU do not see each other's. A batch begins without stale lines of what the CPU may have written
 * and ends with all that its ops wrote in memory. Weights never change and are left alone; fences are maintained
 * where they are written. What one op wrote the next one sees, since DMA goes through the same L2.
 */
#include "context.h"

#define ALL_BYTES (4u << 20) /* from here on the whole cache costs less than its lines one by one */

struct extent {
    uintptr_t begin, end;
};

static void extend(const struct batch *batch, struct extent extents[HTP_MAX_BUFS], const struct htp_tensor *t) {
    if (t->flags & (HTP_TENSOR_WEIGHT | HTP_TENSOR_FENCE) || t->size == 0) {
        return;
    }
    struct extent *e = &extents[batch->tensors[t->index].bi];
    uintptr_t begin = (uintptr_t) t->data, end = begin + t->size;
    e->begin = e->end == 0 || begin < e->begin ? begin : e->begin;
    e->end = end > e->end ? end : e->end;
}

static void clean(struct htp_ctx *ctx, const struct batch *batch, const struct extent extents[HTP_MAX_BUFS],
                  qurt_mem_cache_op_t some, qurt_mem_cache_op_t all) {
    struct htp_tracer *tracer = ctx->profile.mode == HTP_PROFILE_TRACE ? &ctx->tracer : NULL;
    uint64_t bytes = 0;
    for (uint32_t b = 0; b < batch->request->n_bufs; b++) {
        bytes += extents[b].end - extents[b].begin;
    }
    if (bytes == 0) {
        return;
    }
    if (tracer) {
        htp_trace_event(tracer, 0, HTP_TR_L2FLUSH, 0);
    }
    if (bytes >= ALL_BYTES) {
        qurt_mem_cache_clean(0, 0, all, QURT_MEM_DCACHE);
    } else {
        for (uint32_t b = 0; b < batch->request->n_bufs; b++) {
            qurt_size_t size = (qurt_size_t) (extents[b].end - extents[b].begin);
            if (size) {
                qurt_mem_cache_clean(extents[b].begin, size, some, QURT_MEM_DCACHE);
            }
        }
    }
    if (tracer) {
        htp_trace_event(tracer, 0, HTP_TR_L2FLUSH, HTP_TRACE_STOP);
    }
}

void htp_cache_begin(struct htp_ctx *ctx, const struct batch *batch) {
    struct extent extents[HTP_MAX_BUFS] = {0};
    for (uint32_t i = 0; i < batch->request->n_tensors; i++) {
        extend(batch, extents, &ctx->tensors[i]);
    }
    clean(ctx, batch, extents, QURT_MEM_CACHE_FLUSH_INVALIDATE, QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL);
}

void htp_cache_end(struct htp_ctx *ctx, const struct batch *batch, uint32_t n_ops) {
    struct extent extents[HTP_MAX_BUFS] = {0};
    for (uint32_t i = 0; i < n_ops; i++) {
        for (uint32_t d = 0; d < HTP_MAX_DST; d++) {
            if (ctx->ops[i].dst[d]) {
                extend(batch, extents, ctx->ops[i].dst[d]);
            }
        }
    }
    clean(ctx, batch, extents, QURT_MEM_CACHE_FLUSH, QURT_MEM_CACHE_FLUSH_ALL);
}
