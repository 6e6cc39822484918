/* The session: what it holds, and how it runs a batch. */
#include <string.h>

#include "HAP_compute_res.h"
#include "HAP_perf.h"
#include "context.h"
#include "vtcm.h"

#define ACQUIRE_TIMEOUT_US 10000000u

static bool acquire_vtcm(struct htp_ctx *ctx) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, ctx->config.vtcm_bytes, 1);
    ctx->vtcm_context = HAP_compute_res_acquire(&attr, ACQUIRE_TIMEOUT_US);
    ctx->vtcm = ctx->vtcm_context ? HAP_compute_res_attr_get_vtcm_ptr(&attr) : NULL;
    return ctx->vtcm != NULL;
}

static void *zeroed(size_t bytes) {
    void *p = qurt_malloc((unsigned int) bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

static bool create_queues(struct htp_ctx *ctx) {
    for (uint32_t t = 0; t < ctx->config.n_threads; t++) {
        ctx->dma[t] = htp_dma_create();
        if (!ctx->dma[t]) {
            return false;
        }
    }
    return true;
}

struct htp_ctx *htp_session_open(const struct htp_config *config, char *why) {
    struct htp_ctx *ctx = zeroed(sizeof *ctx);
    if (!ctx) {
        strcpy(why, "out of memory");
        return NULL;
    }
    ctx->config = *config;
    ctx->maps.max_bytes = config->max_map_bytes;
    enum htp_status status = HTP_OK;
    ctx->tensors = qurt_malloc(HTP_MAX_TENSORS * (unsigned int) sizeof *ctx->tensors);
    ctx->ops = qurt_malloc(HTP_MAX_OPS * (unsigned int) sizeof *ctx->ops);
    if (!ctx->tensors || !ctx->ops || !create_queues(ctx)) {
        status = htp_refuse(ctx, HTP_INTERNAL_ERR, "out of memory for the session's tables");
    } else if (!acquire_vtcm(ctx)) {
        status = htp_refuse(ctx, HTP_VTCM_TOO_SMALL, "%u bytes of VTCM were not free within %u s", config->vtcm_bytes,
                            ACQUIRE_TIMEOUT_US / 1000000);
    } else if (!htp_pool_start(ctx)) {
        status = htp_refuse(ctx, HTP_INTERNAL_ERR, "cannot start %u threads", config->n_threads);
    }
    ctx->vtcm_touched = config->vtcm_bytes;
    if (status != HTP_OK) {
        memcpy(why, ctx->detail, sizeof ctx->detail);
        htp_session_close(ctx);
        return NULL;
    }
    return ctx;
}

void htp_session_close(struct htp_ctx *ctx) {
    if (ctx->pool.n_started) {
        htp_pool_stop(ctx);
    }
    if (ctx->vtcm_context) {
        HAP_compute_res_release(ctx->vtcm_context);
    }
    htp_unmap_all(ctx);
    for (uint32_t t = 0; t < ctx->config.n_threads; t++) {
        qurt_free(ctx->dma[t]);
    }
    qurt_free(ctx->tensors);
    qurt_free(ctx->ops);
    qurt_free(ctx);
}

struct dma_queue *htp_dma(const struct htp_op *op, uint32_t thread) {
    return op->ctx->dma[thread];
}

void htp_session_profile(struct htp_ctx *ctx, const struct htp_profile_set *set) {
    ctx->profile = *set;
    if (set->mode < HTP_PROFILE_TRACE) {
        for (uint32_t t = 0; t < ctx->config.n_threads; t++) {
            htp_dma_set_trace(ctx->dma[t], NULL, t);
        }
    }
}

void htp_session_stats(const struct htp_ctx *ctx, struct htp_stats *stats) {
    *stats = ctx->stats;
    for (uint32_t t = 0; t < ctx->config.n_threads; t++) {
        htp_dma_stats(ctx->dma[t], &stats->dma_transfers, &stats->dma_bytes);
    }
    stats->mapped_bytes = ctx->maps.bytes;
    for (uint32_t i = 0; i < MAX_MAPPINGS; i++) {
        stats->n_mappings += ctx->maps.slot[i].address != NULL;
    }
}

/* VTCM as the op finds it: its regions, of undefined content, and nothing else. */
static void prepare_vtcm(struct htp_ctx *ctx, const struct htp_op *op) {
    vtcm_op_begin(ctx->vtcm, ctx->vtcm_touched);
    for (uint32_t i = 0; i < HTP_N_REGIONS; i++) {
        uint32_t bytes = htp_vtcm_bytes(op, i);
        struct htp_extent extent = htp_vtcm_extent(op, i);
        for (uint32_t t = 0; bytes && t < extent.copies; t++) {
            vtcm_op_region(htp_vtcm(op, i, t), bytes);
        }
    }
    ctx->vtcm_touched = (uint32_t) op->kparams[HTP_KP_VTCM_BYTES];
}

static enum htp_status run_op(struct htp_ctx *ctx, struct htp_op *op) {
    if (op->empty) {
        return HTP_OK;
    }
    prepare_vtcm(ctx, op);
    enum htp_status status = htp_kernel_of(op->opcode)->run(op);
    if (atomic_exchange(&ctx->pool.leaked, 0) && status == HTP_OK) {
        htp_bad(op, "kernel", "a job returned with DMA transfers in flight");
        status = HTP_INTERNAL_ERR;
    }
    return status;
}

static void fill_profile(struct htp_ctx *ctx, struct htp_profile *profile, const struct htp_stats *before,
                         uint64_t start, uint64_t stop, uint64_t usecs) {
    profile->cycles_start = (uint32_t) start;
    profile->cycles_stop = (uint32_t) stop;
    profile->usecs = (uint32_t) usecs;
    if (ctx->profile.mode == HTP_PROFILE_PMU) {
        struct htp_stats after;
        htp_session_stats(ctx, &after);
        for (uint32_t i = 0; i < HTP_N_PMU; i++) {
            switch (ctx->profile.pmu[i]) {
            case HTP_PMU_DMA_TRANSFERS:
                profile->pmu[i] = (uint32_t) (after.dma_transfers - before->dma_transfers);
                break;
            case HTP_PMU_DMA_BYTES:
                profile->pmu[i] = (uint32_t) (after.dma_bytes - before->dma_bytes);
                break;
            case HTP_PMU_FENCE_CYCLES:
                profile->pmu[i] = (uint32_t) (after.fence_cycles - before->fence_cycles);
                break;
            default:
                break;
            }
        }
    }
}

static enum htp_status run_profiled(struct htp_ctx *ctx, struct htp_op *op, struct htp_profile *profile) {
    struct htp_stats before = {0};
    *profile = (struct htp_profile){.opcode = op->opcode};
    if (ctx->profile.mode == HTP_PROFILE_PMU) {
        htp_session_stats(ctx, &before);
    }
    uint64_t us = HAP_perf_get_time_us();
    uint64_t start = HAP_perf_get_pcycles();
    enum htp_status status = run_op(ctx, op);
    uint64_t stop = HAP_perf_get_pcycles();
    fill_profile(ctx, profile, &before, start, stop, HAP_perf_get_time_us() - us);
    return status;
}

static enum htp_status run_ops(struct htp_ctx *ctx, struct batch *batch, struct htp_response *response) {
    struct htp_profile *profiles = (struct htp_profile *) (response + 1);
    struct htp_progress *progress = ctx->config.progress;
    struct htp_tracer *tracer = ctx->profile.mode == HTP_PROFILE_TRACE ? &ctx->tracer : NULL;
    uint32_t n_ops = batch->request->n_ops;
    htp_cache_begin(ctx, batch);
    for (uint32_t i = 0; i < n_ops; i++) {
        struct htp_op *op = &ctx->ops[i];
        op->tracer = tracer;
        progress->op = i;
        progress->opcode = op->opcode;
        progress->busy = HTP_BUSY_OP;
        enum htp_status status;
        if (ctx->profile.mode == HTP_PROFILE_OFF) {
            status = run_op(ctx, op);
        } else {
            status = run_profiled(ctx, op, &profiles[i]);
            response->n_profiles = i + 1;
        }
        if (status != HTP_OK) {
            batch->failing_op = i;
            htp_cache_end(ctx, batch, i + 1);
            return status;
        }
        response->n_ops = i + 1;
    }
    batch->failing_op = n_ops;
    htp_cache_end(ctx, batch, n_ops);
    return HTP_OK;
}

static enum htp_status start_traces(struct htp_ctx *ctx, const struct htp_request *request) {
    if (!htp_trace_begin(ctx, ctx->profile.mode == HTP_PROFILE_TRACE ? request->n_traces : 0)) {
        return htp_refuse(ctx, HTP_INTERNAL_ERR, "out of memory for %u trace events a thread", request->n_traces);
    }
    for (uint32_t t = 0; t < ctx->config.n_threads && ctx->profile.mode == HTP_PROFILE_TRACE; t++) {
        htp_dma_set_trace(ctx->dma[t], &ctx->tracer, t);
    }
    return HTP_OK;
}

size_t htp_session_run(struct htp_ctx *ctx, const void *message, size_t bytes, void *out) {
    struct htp_response *response = out;
    struct htp_progress *progress = ctx->config.progress;
    struct batch batch = {0};
    memset(response, 0, sizeof *response);
    ctx->n_batches++;
    memset(ctx->detail, 0, sizeof ctx->detail); /* nothing of an earlier sentence goes out behind this batch's */
    if (bytes >= sizeof(struct htp_request)) {
        response->seq = ((const struct htp_request *) message)->seq;
    }
    progress->seq = response->seq;
    progress->busy = HTP_BUSY_BATCH;
    uint64_t us = HAP_perf_get_time_us();
    response->cycles_start = HAP_perf_get_pcycles();
    htp_trace_begin(ctx, 0);
    enum htp_status status = htp_validate(ctx, &batch, message, bytes);
    if (status == HTP_OK) {
        status = start_traces(ctx, batch.request);
    }
    if (status == HTP_OK) {
        status = run_ops(ctx, &batch, response);
    }
    response->cycles_stop = HAP_perf_get_pcycles();
    response->usecs = (uint32_t) (HAP_perf_get_time_us() - us);
    response->status = status;
    response->failing_op = batch.failing_op;
    ctx->stats.n_batches++;
    ctx->stats.n_ops += response->n_ops;
    ctx->stats.n_failed += status != HTP_OK;
    if (status != HTP_OK) {
        memcpy(response->detail, ctx->detail, sizeof response->detail);
    }
    progress->busy = HTP_IDLE;
    uint8_t *end = (uint8_t *) (response + 1) + response->n_profiles * sizeof(struct htp_profile);
    if (ctx->profile.mode == HTP_PROFILE_TRACE && batch.request) {
        end += htp_trace_collect(ctx, response, end);
    }
    return (size_t) (end - (uint8_t *) out);
}
