/*
 * The NPU's end: one thread a session, which takes requests from the queue and drives the runtime. Opened, started and
 * stopped through FastRPC (htp_npu.idl), on the device as under the emulator's stand-in.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "AEEStdErr.h"
#include "HAP_farf.h"
#include "dspqueue.h"
#include "htp-npu.h"
#include "../../runtime/htp-runtime.h"
#include "htp_npu.h"
#include "qurt.h"

#define STACK_BYTES (128u << 10)
#define MAX_REFS (1u + HTP_MAX_BUFS)

struct npu {
    dspqueue_t queue;
    qurt_thread_t thread;
};

/* Reads a request; its memory is NULL where it came without, or with one that is too small. */
static AEEResult receive(struct npu *npu, struct htp_npu_message *m, struct dspqueue_buffer *ref,
                         struct htp_npu_memory **memory) {
    struct dspqueue_buffer refs[MAX_REFS];
    uint32_t flags = 0, n_refs = 0, bytes = 0;
    *m = (struct htp_npu_message){0};
    AEEResult error = dspqueue_read(npu->queue, &flags, MAX_REFS, &n_refs, refs, sizeof *m, &bytes, (uint8_t *) m,
                                    DSPQUEUE_TIMEOUT_NONE);
    bool whole = !error && bytes == sizeof *m && n_refs > 0 && refs[0].size >= sizeof **memory;
    *memory = whole ? refs[0].ptr : NULL;
    *ref = refs[0];
    return error;
}

static void answer(struct npu *npu, const struct htp_npu_message *m, struct dspqueue_buffer ref) {
    ref.flags = DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER | DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT;
    AEEResult error = dspqueue_write(npu->queue, 0, 1, &ref, sizeof *m, (const uint8_t *) m, DSPQUEUE_TIMEOUT_NONE);
    if (error) {
        FARF(ERROR, "cannot answer request %u: dspqueue_write gives 0x%x", m->request, (unsigned) error);
    }
}

static void npu_main(void *p) {
    struct npu *npu = p;
    struct htp_ctx *ctx = NULL;
    struct htp_npu_memory *memory;
    struct htp_npu_message m = {0};
    struct dspqueue_buffer ref;
    AEEResult error = AEE_SUCCESS;
    bool stop = false;
    while (!stop && !(error = receive(npu, &m, &ref, &memory))) {
        if (memory) {
            stop = m.request == HTP_NPU_STOP;
            htp_serve(&ctx, &m, memory);
            answer(npu, &m, ref);
        } else {
            FARF(ERROR, "request %u without the session's memory: ignored", m.request);
        }
    }
    if (error) {
        FARF(ERROR, "the session's queue gives 0x%x; it ends", (unsigned) error);
    }
    if (ctx) {
        htp_session_close(ctx);
    }
}

int htp_npu_open(const char *uri, remote_handle64 *handle) {
    (void) uri;
    struct npu *npu = calloc(1, sizeof *npu);
    *handle = (remote_handle64) (uintptr_t) npu;
    return npu ? AEE_SUCCESS : AEE_ENOMEMORY;
}

int htp_npu_start(remote_handle64 handle, uint64_t queue) {
    struct npu *npu = (struct npu *) (uintptr_t) handle;
    qurt_thread_attr_t attr;
    if (npu->queue) {
        return AEE_EBADSTATE;
    }
    AEEResult error = dspqueue_import(queue, NULL, NULL, npu, &npu->queue);
    if (error) {
        npu->queue = NULL;
        FARF(ERROR, "queue %llu cannot be imported: 0x%x", (unsigned long long) queue, (unsigned) error);
        return error;
    }
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_name(&attr, "htp-npu");
    qurt_thread_attr_set_stack_size(&attr, STACK_BYTES);
    if (qurt_thread_create(&npu->thread, &attr, npu_main, npu) != QURT_EOK) {
        dspqueue_close(npu->queue);
        npu->queue = NULL;
        return AEE_ENOMEMORY;
    }
    return AEE_SUCCESS;
}

/* After HTP_NPU_STOP, at which the thread ends. */
int htp_npu_stop(remote_handle64 handle) {
    struct npu *npu = (struct npu *) (uintptr_t) handle;
    int status;
    if (!npu->queue) {
        return AEE_EBADSTATE;
    }
    qurt_thread_join(npu->thread, &status);
    AEEResult error = dspqueue_close(npu->queue);
    npu->queue = NULL;
    return error;
}

int htp_npu_close(remote_handle64 handle) {
    free((struct npu *) (uintptr_t) handle);
    return AEE_SUCCESS;
}
