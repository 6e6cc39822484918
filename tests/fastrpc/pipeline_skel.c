/*
 * A DSP library as kernels are written: threads that stream a shared buffer through VTCM by user DMA, tile by tile with
 * two places each, and change it in HVX registers. Public names only.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "AEEStdErr.h"
#include "HAP_compute_res.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_power.h"
#include "hexagon_protos.h"
#include "hexagon_types.h"
#include "hvx_hexagon_protos.h"
#include "pipeline.h"
#include "qurt.h"
#include "remote.h"

#define STACK_BYTES 16384
#define DONE (1u << 31)

/* A one-dimensional transfer: next, length and flags, source, destination. Other sources declare next as a pointer. */
#ifdef POINTER_NEXT
typedef struct {
    void *next;
    uint32_t word, src, dst;
} descriptor;
#else
typedef struct __attribute__((aligned(16))) {
    uint32_t next, word, src, dst;
} descriptor;
#endif

typedef struct {
    uint32_t buffer, vtcm, first, end; /* addresses; tiles [first, end) */
    uint8_t value;
} work;

static void transfer(descriptor *d, uint32_t src, uint32_t dst) {
    d->next = 0;
    d->word = TILE_BYTES;
    d->src = src;
    d->dst = dst;
    Q6_dccleana_A(d);
}

static void wait_for(const descriptor *d) {
    while (!(*(const volatile uint32_t *) &d->word & DONE)) {
        Q6_R_dmpoll();
    }
}

static void compute(uint32_t tile, uint8_t value) {
    HVX_Vector *v = (HVX_Vector *) tile;
    HVX_Vector add = Q6_Vb_vsplat_R(value);
    for (int i = 0; i < TILE_BYTES / 128; i++) {
        v[i] = Q6_Vub_vadd_VubVub_sat(v[i], add);
    }
}

static void run(void *p) {
    const work *w = (const work *) p;
    descriptor *heap = (descriptor *) memalign(64, 4 * sizeof *heap), *in = heap, *out = heap + 2;
    descriptor *tail = &in[0];
    transfer(&in[0], w->buffer + w->first * TILE_BYTES, w->vtcm);
    Q6_dmstart_A(&in[0]);
    for (uint32_t i = w->first, n = 0; i < w->end; i++, n++) {
        uint32_t at = n % 2, tile = w->vtcm + at * TILE_BYTES;
        if (i + 1 < w->end) {
            if (n > 0) {
                wait_for(&out[1 - at]); /* what was there before is back */
            }
            transfer(&in[1 - at], w->buffer + (i + 1) * TILE_BYTES, w->vtcm + (1 - at) * TILE_BYTES);
            Q6_dmlink_AA(tail, &in[1 - at]);
            tail = &in[1 - at];
        }
        wait_for(&in[at]);
        compute(tile, w->value);
        transfer(&out[at], tile, w->buffer + i * TILE_BYTES);
        Q6_dmlink_AA(tail, &out[at]);
        tail = &out[at];
    }
    Q6_R_dmwait();
    free(heap);
}

static int on_threads(uint32_t buffer, uint32_t vtcm, const struct pipeline_job *job) {
    static uint8_t stacks[PIPELINE_THREADS][STACK_BYTES] __attribute__((aligned(128)));
    qurt_thread_t threads[PIPELINE_THREADS];
    work works[PIPELINE_THREADS];
    uint32_t n_tiles = job->bytes / TILE_BYTES, each = (n_tiles + PIPELINE_THREADS - 1) / PIPELINE_THREADS, n = 0;
    for (uint32_t i = 0; i < PIPELINE_THREADS && i * each < n_tiles; i++) {
        uint32_t end = (i + 1) * each < n_tiles ? (i + 1) * each : n_tiles;
        works[i] = (work){buffer, vtcm + i * 2 * TILE_BYTES, i * each, end, job->value};
        qurt_thread_attr_t attr;
        qurt_thread_attr_init(&attr);
        qurt_thread_attr_set_name(&attr, "pipeline");
        qurt_thread_attr_set_stack_addr(&attr, stacks[i]);
        qurt_thread_attr_set_stack_size(&attr, STACK_BYTES);
        qurt_thread_attr_set_priority(&attr, 100);
        if (qurt_thread_create(&threads[i], &attr, run, &works[i]) != QURT_EOK) {
            break;
        }
        n++;
    }
    for (uint32_t i = 0; i < n; i++) {
        int status;
        qurt_thread_join(threads[i], &status);
    }
    return n * each >= n_tiles ? AEE_SUCCESS : AEE_ENOMEMORY;
}

static int with_vtcm(uint32_t buffer, const struct pipeline_job *job) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, PIPELINE_THREADS * 2 * TILE_BYTES, 1);
    unsigned int context = HAP_compute_res_acquire(&attr, 1000000);
    if (!context) {
        return AEE_ERESOURCENOTFOUND;
    }
    int aee = on_threads(buffer, (uint32_t) HAP_compute_res_attr_get_vtcm_ptr(&attr), job);
    HAP_compute_res_release(context);
    return aee;
}

static int run_job(const struct pipeline_job *job) {
    void *p = HAP_mmap(NULL, (int) job->bytes, HAP_PROT_READ | HAP_PROT_WRITE, 0, job->fd, 0);
    if (p == (void *) -1) {
        return AEE_ENOSUCHMAP;
    }
    int aee = with_vtcm((uint32_t) p, job);
    HAP_munmap(p, (int) job->bytes);
    return aee;
}

static int power_up(void) {
    HAP_power_request_t request;
    memset(&request, 0, sizeof request);
    request.type = HAP_power_set_HVX;
    request.hvx.power_up = TRUE;
    return HAP_power_set((void *) &request, &request);
}

int pipeline_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg *a) {
    (void) h;
    struct pipeline_job job;
    switch (REMOTE_SCALARS_METHOD(sc)) {
    case 0: a[2].h64 = 1; return power_up();
    case 1: return AEE_SUCCESS;
    case PIPELINE_RUN: memcpy(&job, a[0].buf.pv, sizeof job); return run_job(&job);
    default: return AEE_EUNSUPPORTED;
    }
}
