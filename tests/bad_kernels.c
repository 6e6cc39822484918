/*
 * A kernel that makes one mistake, chosen by kernel_params: linked in place of every family (test_bad_kernels.py adds a
 * line FAMILY(name); for each), to prove that the emulator and the server catch it. Region 0 is shared, of 256 bytes.
 */
#include <stdlib.h>

#include "../kernels/hvx-base.h"
#include "htp-kernel.h"

enum mistake {
    NONE = 0,
    READ_UNWRITTEN_VTCM,
    WRITE_BEHIND_REGION,
    WRITE_BEHIND_BUFFER,
    READ_BEFORE_POP,
    FORGET_A_TRANSFER,
    MISALIGNED_LOAD,
    NULL_POINTER,
    RACE,
    ABORT,
    SPIN,
};

static uint32_t shared_word;

static void race(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    (void) op, (void) thread, (void) n_threads;
    ++*(uint32_t *) arg;
}

static void push(struct dma_queue *q, void *to, const void *from) {
    dma_push(q, to, from, HVX_BYTES, HVX_BYTES, HVX_BYTES, 1);
}

static void copy(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    (void) n_threads;
    struct dma_queue *q = htp_dma(op, thread);
    uint8_t *vtcm = htp_vtcm(op, 0, thread);
    enum mistake mistake = *(enum mistake *) arg;
    if (mistake != READ_UNWRITTEN_VTCM) {
        push(q, vtcm, op->src[0]->data);
        if (mistake != READ_BEFORE_POP) {
            dma_pop(q);
        }
    }
    push(q, op->dst[0]->data, vtcm);
    if (mistake == READ_BEFORE_POP) {
        dma_pop(q);
    }
    if (mistake != FORGET_A_TRANSFER) {
        dma_pop(q);
    }
}

static enum htp_status bad_check(struct htp_op *op) {
    return op->kparams[HTP_KP_KERNEL] > SPIN ? htp_bad(op, "kernel_params", "no such mistake") : HTP_OK;
}

static enum htp_status bad_run(struct htp_op *op) {
    enum mistake mistake = (enum mistake) op->kparams[HTP_KP_KERNEL];
    volatile uint8_t *vtcm = htp_vtcm(op, 0, 0);
    volatile uint8_t *nowhere = NULL;
    switch (mistake) {
    case WRITE_BEHIND_REGION:
        vtcm[htp_vtcm_bytes(op, 0)] = 1;
        break;
    case WRITE_BEHIND_BUFFER:
        op->dst[0]->data[op->dst[0]->size] = 1;
        break;
    case MISALIGNED_LOAD:
        hvx_store(op->dst[0]->data, hvx_load(op->src[0]->data + 4));
        break;
    case NULL_POINTER:
        *nowhere = 1;
        break;
    case RACE:
        for (uint32_t i = 0; i < 100; i++) {
            htp_run(op, race, &shared_word);
        }
        break;
    case ABORT:
        abort();
    case SPIN:
        for (;;) {
            vtcm[0]++;
        }
    default:
        htp_run(op, copy, &mistake);
        break;
    }
    return HTP_OK;
}

#define FAMILY(name) const struct htp_kernel htp_##name = {.check = bad_check, .run = bad_run}
