/*
 * What a kernel sees of the runtime: the op with its tensors resolved to addresses, threads, a DMA queue a thread,
 * the VTCM regions of its plan, and trace events.
 *
 * A kernel file defines one `const struct htp_kernel htp_FAMILY`. `check` runs first, with every generic rule already
 * checked (indices, bounds, alignment, types known, VTCM regions inside the budget and apart): it proves that this
 * kernel can compute exactly this op, shapes, types, strides and region sizes, and says which field cannot be taken
 * through htp_bad(). `run` may then rely on it. All checks of a batch run before its first op does.
 *
 * What the runtime has proved before `check`: src[0] and dst[0] are there (and src[1], src[2] where the op cannot be
 * without: binary ops, MUL_MAT*, RMS_NORM_MUL, ROPE, *_ROWS: 2; MUL_MAT_ADD, FLASH_ATTN_EXT: 3; other slots may be
 * NULL); nb[0] is the type's block size; ne[0] is whole blocks; data and every nb that is walked (ne > 1) are multiples
 * of the type's alignment; the elements lie within the buffer and number less than 2^31; no two elements of a dst share
 * memory; a dst is no weight and overlaps no other dst, and no src except one of exactly the same type, place, shape
 * and strides; n_threads is within the session's; regions are apart and within vtcm_bytes. ne may be 0: an op whose
 * dsts are all empty is checked but not run; a src may be empty where dst is not. A fence is a src or dst only where
 * htp_takes_fence() of the op table says so: I32, one line of HTP_FENCE_BYTES. `run` may call htp_bad() too (an index
 * of a row is only known then), but never from a job: collect there, report after htp_run().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htp-wire.h"

/* kernel_params, the same for every family: */
enum htp_kparam {
    HTP_KP_KERNEL = 0,     /* variant; families number their own */
    HTP_KP_N_THREADS = 1,  /* threads the op runs on */
    HTP_KP_VTCM_BYTES = 2, /* VTCM the op may touch, from offset 0 */
    HTP_KP_BLOCK = 3,      /* rows (or columns) per pipeline step */
    HTP_KP_ARGS = 4,       /* 12 integers of the family's own */
    HTP_KP_REGIONS = 16,   /* 8 x (offset, bytes): offset a multiple of 128; its bit 0 set = one region per thread */
};
#define HTP_N_KARGS 12
#define HTP_N_REGIONS 8
#define HTP_REGION_PER_THREAD 1
#define HTP_VTCM_GAP 128 /* free bytes behind each region: thread t's copy begins at offset + t * (bytes + gap) */

struct htp_tensor {
    uint8_t *data;
    uint32_t type;
    uint32_t flags;
    uint32_t size; /* bytes from data that belong to the tensor */
    uint32_t index;
    uint32_t ne[HTP_MAX_DIMS];
    uint32_t nb[HTP_MAX_DIMS];
};

struct htp_ctx; /* the session; runtime/ only */
struct htp_tracer;
struct dma_queue;

struct htp_op {
    struct htp_ctx *ctx;
    struct htp_tracer *tracer; /* NULL unless the profile mode is 3 */
    uint32_t index;            /* in the batch */
    uint32_t opcode;
    uint32_t flags;
    bool empty;                                /* no dst has an element: checked, not run */
    const int32_t *params;                     /* HTP_N_PARAMS; floats by their bits */
    const int32_t *kparams;                    /* HTP_N_KPARAMS */
    const struct htp_tensor *src[HTP_MAX_SRC]; /* NULL = absent */
    const struct htp_tensor *dst[HTP_MAX_DST];
};

struct htp_kernel {
    enum htp_status (*check)(struct htp_op *op);
    enum htp_status (*run)(struct htp_op *op);
    bool in_place; /* a dst may be the very view of a src; otherwise they never share memory */
};

/* Records why the op is refused ("src1.ne[0]: is 3, must be 1 or 64") and gives INVAL_PARAMS (or htp_unsupported:
 * NO_SUPPORT). */
enum htp_status htp_bad(struct htp_op *op, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum htp_status htp_unsupported(struct htp_op *op, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for `run`, with a status of its own and no field. */
enum htp_status htp_failed(struct htp_op *op, enum htp_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Runs job(op, arg, thread, n_threads) on the n_threads threads of the op's plan and returns when all are done. */
typedef void (*htp_job)(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads);
void htp_run(struct htp_op *op, htp_job job, void *arg);
/* All threads of the running job meet here: what one wrote before it, the others see after it. */
void htp_barrier(struct htp_op *op);

/* Region `region` of the op's plan: the shared one, or the one of `thread` where it is per thread. */
uint8_t *htp_vtcm(const struct htp_op *op, uint32_t region, uint32_t thread);
/* Its bytes (of one thread's where it is per thread); 0 where the plan has none. */
uint32_t htp_vtcm_bytes(const struct htp_op *op, uint32_t region);

/*
 * The DMA queue of a thread, a strict FIFO. dma_push moves n_rows rows of row_bytes; n_rows = 0 pushes a transfer that
 * is already done. dma_pop waits for the oldest transfer and forgets it. Nothing is promised about a transfer before
 * its pop. At most DMA_QUEUE_DEPTH transfers are in flight; a kernel pops all it pushes before its job returns.
 * src_stride = 0 is not a broadcast: push the row once and read it again.
 */
#define DMA_QUEUE_DEPTH 64
struct dma_queue *htp_dma(const struct htp_op *op, uint32_t thread);
void dma_push(struct dma_queue *q, void *dst, const void *src, uint32_t dst_stride, uint32_t src_stride,
              uint32_t row_bytes, uint32_t n_rows);
void dma_pop(struct dma_queue *q);

/*
 * Fences: how the sessions of a group (its ranks) wait for each other. A fence is a slot of HTP_FENCE_BYTES in shared
 * memory that one rank writes and the others read; its sequence number only grows, modulo 2^32. What the rank stored or
 * moved by DMA before htp_fence_release(), its peers see after htp_fence_wait(). The wait is bounded: a fence that does
 * not get there in time, holds what no rank writes, or carries a rank's failure ends it with a status, and the op's own
 * fence (htp_fence_fail) should pass that on. The runtime has proved that a fence stands where one belongs
 * (htp_takes_fence()) and nowhere else.
 */
void htp_fence_release(const struct htp_tensor *fence, uint32_t seq);
void htp_fence_fail(const struct htp_tensor *fence, uint32_t seq, enum htp_status status);
/* Until src[slot], the fence of `rank`, shows seq or later. `info` tells the op's waits apart in the trace. Thread 0
 * only. */
enum htp_status htp_fence_wait(struct htp_op *op, uint32_t slot, uint32_t rank, uint32_t seq, uint32_t info);

/* A trace event, recorded in profile mode 3; otherwise one predicted branch. info = block index, 15 bits. dma_pop()
 * records its waits itself. */
void htp_trace_event(struct htp_tracer *tracer, uint32_t thread, enum htp_trace_id id, uint32_t info);

static inline void htp_trace_start(const struct htp_op *op, uint32_t thread, enum htp_trace_id id, uint32_t info) {
    if (__builtin_expect(op->tracer != NULL, 0)) {
        htp_trace_event(op->tracer, thread, id, info & 0x7fff);
    }
}

static inline void htp_trace_stop(const struct htp_op *op, uint32_t thread, enum htp_trace_id id, uint32_t info) {
    if (__builtin_expect(op->tracer != NULL, 0)) {
        htp_trace_event(op->tracer, thread, id, (info & 0x7fff) | HTP_TRACE_STOP);
    }
}

static inline float htp_param_f32(const struct htp_op *op, uint32_t i) {
    union {
        int32_t i;
        float f;
    } u = {.i = op->params[i]};
    return u.f;
}

static inline int32_t htp_karg(const struct htp_op *op, uint32_t i) {
    return op->kparams[HTP_KP_ARGS + i];
}

/* Rows of a tensor: everything above ne[0]. */
static inline uint32_t htp_nrows(const struct htp_tensor *t) {
    return t->ne[1] * t->ne[2] * t->ne[3];
}
