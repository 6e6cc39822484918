/* The DMA queue of a thread: a strict FIFO of transfers over the user DMA engine, which takes descriptors of limited
 * size. */
#include <stdlib.h>
#include <string.h>

#include "HAP_farf.h"
#include "context.h"
#include "hexagon_protos.h"

#define RING 128u /* descriptors; a power of two */
#define MAX_1D 0xffffffu
#if __HVX_ARCH__ < 75
#define MAX_2D 0xffffu /* type 0: 16 bits for sizes and strides */
#define MAX_ROWS 0xffffu
#else
#define MAX_2D 0xffffffu /* type 9: 24 bits */
#define MAX_ROWS 0xffffu
#endif
#define W1_2D (1u << 24)
#define W1_DONE (1u << 31)
#define TYPE_WIDE 9u

/* The bits are described in platform/emu/dma.c. */
struct descriptor {
    uint32_t next, w1, src, dst, type, w5, w6, w7;
};

struct dma_queue {
    struct descriptor ring[RING];
    uint32_t end[DMA_QUEUE_DEPTH]; /* descriptors pushed up to the end of each transfer */
    uint32_t pushed, popped;       /* transfers */
    uint32_t issued, retired;      /* descriptors */
    struct descriptor *tail;
    struct htp_tracer *tracer;
    uint32_t thread;
    uint64_t transfers, bytes;
};

struct dma_queue *htp_dma_create(void) {
    struct dma_queue *q = qurt_malloc(sizeof *q);
    if (q) {
        memset(q, 0, sizeof *q);
    }
    return q;
}

void htp_dma_set_trace(struct dma_queue *q, struct htp_tracer *tracer, uint32_t thread) {
    q->tracer = tracer;
    q->thread = thread;
}

void htp_dma_stats(const struct dma_queue *q, uint64_t *transfers, uint64_t *bytes) {
    *transfers += q->transfers;
    *bytes += q->bytes;
}

static uint32_t address(const void *p) {
    if ((uint64_t) (uintptr_t) p >> 32) {
        FARF(FATAL, "DMA of %p: only buffers, VTCM and qurt_malloc memory have 32-bit addresses", p);
        abort();
    }
    return (uint32_t) (uintptr_t) p;
}

static bool is_done(const struct descriptor *d) {
    return *(const volatile uint32_t *) &d->w1 & W1_DONE;
}

/* Waits until the first `upto` descriptors are done. */
static void retire(struct dma_queue *q, uint32_t upto) {
    while (q->retired != upto) {
        const struct descriptor *d = &q->ring[q->retired % RING];
        while (!is_done(d)) {
            if (Q6_R_dmpoll() == 0 && !is_done(d)) {
                FARF(FATAL, "a DMA transfer is popped by another thread than the one that pushed it");
                abort();
            }
        }
        q->retired++;
    }
}

static struct descriptor *next_descriptor(struct dma_queue *q) {
    if (q->issued - q->retired == RING) {
        retire(q, q->retired + 1);
    }
    return &q->ring[q->issued % RING];
}

static void issue(struct dma_queue *q, struct descriptor *d) {
    q->issued++;
    Q6_dmlink_AA(q->tail, d);
    q->tail = d;
}

static void push_1d(struct dma_queue *q, uint32_t dst, uint32_t src, uint64_t bytes) {
    while (bytes) {
        uint32_t part = bytes < MAX_1D ? (uint32_t) bytes : MAX_1D & ~127u;
        struct descriptor *d = next_descriptor(q);
        *d = (struct descriptor){.w1 = part, .src = src, .dst = dst};
        issue(q, d);
        bytes -= part, src += part, dst += part;
    }
}

static void push_2d(struct dma_queue *q, uint32_t dst, uint32_t src, uint32_t dst_stride, uint32_t src_stride,
                    uint32_t row_bytes, uint32_t n_rows) {
    while (n_rows) {
        uint32_t part = n_rows < MAX_ROWS ? n_rows : MAX_ROWS;
        struct descriptor *d = next_descriptor(q);
        *d = (struct descriptor){.w1 = W1_2D, .src = src, .dst = dst};
#if __HVX_ARCH__ < 75
        d->w5 = row_bytes | part << 16;
        d->w6 = src_stride | dst_stride << 16;
#else
        d->w1 |= dst_stride;
        d->type = TYPE_WIDE;
        d->w5 = row_bytes | part << 24;
        d->w6 = part >> 8 | src_stride << 8;
#endif
        issue(q, d);
        n_rows -= part, src += part * src_stride, dst += part * dst_stride;
    }
}

static void push(struct dma_queue *q, uint32_t dst, uint32_t src, uint32_t dst_stride, uint32_t src_stride,
                 uint32_t row_bytes, uint32_t n_rows) {
    if (n_rows == 1 || (dst_stride == row_bytes && src_stride == row_bytes)) {
        push_1d(q, dst, src, (uint64_t) row_bytes * n_rows);
    } else if (row_bytes <= MAX_2D && dst_stride <= MAX_2D && src_stride <= MAX_2D && dst_stride && src_stride) {
        push_2d(q, dst, src, dst_stride, src_stride, row_bytes, n_rows);
    } else {
        for (uint32_t r = 0; r < n_rows; r++) {
            push_1d(q, dst + r * dst_stride, src + r * src_stride, row_bytes);
        }
    }
}

void dma_push(struct dma_queue *q, void *dst, const void *src, uint32_t dst_stride, uint32_t src_stride,
              uint32_t row_bytes, uint32_t n_rows) {
    if (q->pushed - q->popped == DMA_QUEUE_DEPTH) {
        FARF(FATAL, "a kernel has more than %u DMA transfers in flight", DMA_QUEUE_DEPTH);
        abort();
    }
    if (n_rows && row_bytes) {
        push(q, address(dst), address(src), dst_stride, src_stride, row_bytes, n_rows);
        q->transfers++;
        q->bytes += (uint64_t) row_bytes * n_rows;
    }
    q->end[q->pushed++ % DMA_QUEUE_DEPTH] = q->issued;
}

void dma_pop(struct dma_queue *q) {
    if (q->pushed == q->popped) {
        FARF(FATAL, "a kernel pops a DMA transfer that it never pushed");
        abort();
    }
    uint32_t end = q->end[q->popped++ % DMA_QUEUE_DEPTH];
    if ((int32_t) (end - q->retired) <= 0) {
        return;
    }
    if (__builtin_expect(q->tracer != NULL, 0)) {
        htp_trace_event(q->tracer, q->thread, HTP_TR_DMA, q->popped & 0x7fff);
        retire(q, end);
        htp_trace_event(q->tracer, q->thread, HTP_TR_DMA, (q->popped & 0x7fff) | HTP_TRACE_STOP);
    } else {
        retire(q, end);
    }
}

uint32_t htp_dma_drain(struct dma_queue *q) {
    uint32_t left = q->pushed - q->popped;
    while (q->pushed != q->popped) {
        dma_pop(q);
    }
    return left;
}
