/* The session's insides, shared by the files of runtime/. */
#pragma once

#include <stdatomic.h>

#include "htp-kernel.h"
#include "htp-runtime.h"
#include "qurt.h"

#define MAX_MAPPINGS 64u

struct mapping {
    uint8_t *address; /* NULL = free */
    uint64_t base, size;
    uint64_t last_batch; /* the number of the batch that used it last */
    uint32_t handle;
};

struct maps {
    struct mapping slot[MAX_MAPPINGS];
    uint64_t max_bytes, bytes;
};

struct trace_ring {
    struct htp_trace_event *events;
    uint32_t used, room, capacity;
};

struct htp_tracer {
    struct trace_ring ring[HTP_TRACE_SLOTS];
};

/* A word that threads wait at until it changes. */
struct gate {
    _Atomic uint32_t word, asleep, spins;
};

struct pool;

struct pool_thread {
    struct pool *pool;
    uint32_t index;
};

/* Threads wait at `start`, run the job, and the last opens `done`; thread 0 is the caller of htp_run(). */
struct pool {
    struct htp_ctx *ctx;
    qurt_thread_t threads[HTP_MAX_THREADS];
    struct pool_thread self[HTP_MAX_THREADS];
    uint32_t n_started, max_spins;
    struct gate start, done, barrier;
    _Atomic uint32_t n_left, barrier_left;
    _Atomic uint32_t leaked; /* a job returned with transfers in flight */
    htp_job job;
    void *arg;
    struct htp_op *op;
    uint32_t n_job;
};

struct htp_ctx {
    struct htp_config config;
    struct maps maps;
    struct pool pool;
    struct dma_queue *dma[HTP_MAX_THREADS];
    unsigned int vtcm_context;
    uint8_t *vtcm;
    uint32_t vtcm_touched; /* bytes that ops could write since they were last poisoned */
    struct htp_profile_set profile;
    struct htp_tracer tracer;
    struct htp_stats stats;
    uint64_t n_batches;
    struct htp_tensor *tensors; /* HTP_MAX_TENSORS */
    struct htp_op *ops;         /* HTP_MAX_OPS */
    char detail[HTP_DETAIL_BYTES];
};

/* The batch as found in the message. */
struct batch {
    const struct htp_request *request;
    const struct htp_buf *bufs;
    const struct htp_wire_tensor *tensors;
    const struct htp_wire_op *ops;
    uint8_t *address[HTP_MAX_BUFS];
    uint32_t failing_op;
};

/* validate.c: fills ctx->tensors and ctx->ops from the message, or says in ctx->detail what is wrong. */
enum htp_status htp_validate(struct htp_ctx *ctx, struct batch *batch, const void *message, size_t bytes);
/* validate-op.c */
enum htp_status htp_validate_op(struct htp_ctx *ctx, const struct batch *batch, uint32_t index);
/* A sentence into ctx->detail; gives `status`. */
enum htp_status htp_refuse(struct htp_ctx *ctx, enum htp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Where a VTCM region begins and ends with all its copies and their gaps. */
struct htp_extent {
    uint64_t begin, end;
    uint32_t copies;
};
struct htp_extent htp_vtcm_extent(const struct htp_op *op, uint32_t region);
#define HTP_VTCM_ALIGN 128u

/* ops.c: NULL for an op that this version does not take. */
const struct htp_kernel *htp_kernel_of(uint32_t opcode);
/* Sources and destinations an op cannot be without. */
uint32_t htp_n_src(uint32_t opcode);
/* Whether src (or dst) `slot` of an op is a fence. */
bool htp_takes_fence(uint32_t opcode, bool is_dst, uint32_t slot);
bool htp_is_op(uint32_t opcode);

/* maps.c */
enum htp_status htp_map(struct htp_ctx *ctx, const struct htp_buf *buf, uint32_t index, uint8_t **address);
void htp_unmap_all(struct htp_ctx *ctx);

/* cache.c: at the beginning of a batch, and behind its first n_ops ops. */
void htp_cache_begin(struct htp_ctx *ctx, const struct batch *batch);
void htp_cache_end(struct htp_ctx *ctx, const struct batch *batch, uint32_t n_ops);

/* threads.c: a moment's rest in a poll loop, longer with every turn. */
void htp_pause(uint32_t turn);
bool htp_pool_start(struct htp_ctx *ctx);
void htp_pool_stop(struct htp_ctx *ctx);

/* trace.c: empties the rings; false where there is no memory for n_traces events a thread. */
bool htp_trace_begin(struct htp_ctx *ctx, uint32_t n_traces);
size_t htp_trace_collect(struct htp_ctx *ctx, struct htp_response *response, uint8_t *out);

/* dma-queue.c */
struct dma_queue *htp_dma_create(void);
void htp_dma_set_trace(struct dma_queue *q, struct htp_tracer *tracer, uint32_t thread);
/* Transfers that were pushed and not popped; waits for them and forgets them. */
uint32_t htp_dma_drain(struct dma_queue *q);
void htp_dma_stats(const struct dma_queue *q, uint64_t *transfers, uint64_t *bytes);
