/* A DSP library that answers packets: by threads that read, or from a packet callback. */
#include "queue_echo.h"

#include <stdlib.h>
#include <string.h>

#include "AEEStdErr.h"
#include "HAP_farf.h"
#include "dspqueue.h"
#include "qurt.h"
#include "remote.h"

#define MAX_QUEUES 8
#define MAX_THREADS 4

static struct echo {
    dspqueue_t queue;
    uint64_t id;
    uint32_t n_threads;
    qurt_thread_t threads[MAX_THREADS];
} echoes[MAX_QUEUES];

static uint32_t pointers; /* or of all buffers' addresses, above bit 32 */

/* One packet, that was read already; false: it was the last. */
static int answer(dspqueue_t queue, struct dspqueue_buffer *buffers, uint32_t n, uint8_t *message, uint32_t bytes) {
    char what = bytes == 1 ? (char) message[0] : 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *p = buffers[i].ptr;
        pointers |= (uint32_t) ((uintptr_t) p >> 32);
        for (uint32_t j = 0; what == ECHO_INVERT && j < buffers[i].size; j++) {
            p[j] = (uint8_t) ~p[j];
        }
        buffers[i].flags = buffers[i].flags & DSPQUEUE_BUFFER_FLAG_REF ? DSPQUEUE_BUFFER_FLAG_DEREF
                                                                       : DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER;
    }
    if (what == ECHO_CRASH) {
        *(volatile int *) 8 = 1;
    } else if (what == ECHO_ABORT) {
        abort();
    } else if (what == ECHO_ANNOUNCE) {
        dspqueue_write_early_wakeup_noblock(queue, 2000, 0);
        qurt_sleep(300);
    }
    int error = dspqueue_write(queue, 0, n, buffers, bytes, message, DSPQUEUE_TIMEOUT_NONE);
    if (error) {
        FARF(ERROR, "dspqueue_write gives 0x%x", (unsigned) error);
    }
    return what != ECHO_END && !error;
}

static void read_and_answer(void *p) {
    struct echo *e = p;
    uint8_t *message = malloc(65536);
    struct dspqueue_buffer buffers[64];
    uint32_t flags, n, bytes;
    int error, goes_on = 1;
    while (goes_on) {
        error = dspqueue_read(e->queue, &flags, 64, &n, buffers, 65536, &bytes, message, DSPQUEUE_TIMEOUT_NONE);
        if (error) {
            FARF(ERROR, "dspqueue_read gives 0x%x", (unsigned) error);
        }
        goes_on = !error && answer(e->queue, buffers, n, message, bytes);
    }
    free(message);
}

static void on_packet(dspqueue_t queue, AEEResult error, void *context) {
    static uint8_t message[65536]; /* there is one callback at a time */
    struct dspqueue_buffer buffers[64];
    uint32_t flags, n, bytes;
    pointers |= (uint32_t) ((uintptr_t) buffers >> 32) | (uint32_t) ((uintptr_t) context >> 32);
    while (!error) {
        error = dspqueue_read_noblock(queue, &flags, 64, &n, buffers, sizeof message, &bytes, message);
        if (!error) {
            answer(queue, buffers, n, message, bytes);
        }
    }
    if (error != AEE_EWOULDBLOCK) {
        FARF(ERROR, "dspqueue_read_noblock gives 0x%x", (unsigned) error);
    }
}

static void on_error(dspqueue_t queue, AEEResult error, void *context) {
    (void) queue, (void) context;
    FARF(ERROR, "error callback: 0x%x", (unsigned) error);
}

static int start(const struct echo_start *in) {
    struct echo *e = &echoes[in->number];
    int calls_back = in->kind == ECHO_CALLBACK;
    dspqueue_callback_t packet = calls_back ? on_packet : NULL, broken = calls_back ? on_error : NULL;
    int error = dspqueue_import(in->queue_id, packet, broken, e, &e->queue);
    e->id = in->queue_id;
    e->n_threads = in->kind == ECHO_THREADS && !error ? in->n_threads : 0;
    for (uint32_t i = 0; i < e->n_threads; i++) {
        qurt_thread_attr_t attr;
        qurt_thread_attr_init(&attr);
        qurt_thread_attr_set_stack_size(&attr, 65536);
        if (qurt_thread_create(&e->threads[i], &attr, read_and_answer, e) != QURT_EOK) {
            return AEE_EFAILED;
        }
    }
    return error;
}

static int stop(uint32_t number) {
    struct echo *e = &echoes[number];
    for (uint32_t i = 0; i < e->n_threads; i++) {
        int status;
        qurt_thread_join(e->threads[i], &status);
    }
    return dspqueue_close(e->queue);
}

static int call(const struct echo_call *in) {
    struct echo *e = &echoes[in->number];
    dspqueue_t other;
    switch (in->what) {
    case ECHO_WRITE: return dspqueue_write(e->queue, 0, 0, NULL, 4, (const uint8_t *) &in->argument, in->argument);
    case ECHO_READ: return dspqueue_read(e->queue, NULL, 0, NULL, NULL, 0, NULL, NULL, in->argument);
    case ECHO_PEEK: return dspqueue_peek(e->queue, NULL, NULL, NULL, in->argument);
    case ECHO_IMPORT_AGAIN: return dspqueue_import(e->id + in->argument, NULL, NULL, NULL, &other);
    case ECHO_CREATE: return dspqueue_create(3, 0, 0, 0, NULL, NULL, NULL, &other);
    default: return (int) (pointers | (uint32_t) ((uintptr_t) e->queue >> 32));
    }
}

int queue_echo_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg *a) {
    (void) h;
    switch (REMOTE_SCALARS_METHOD(sc)) {
    case ECHO_OPEN: a[2].h64 = 1; return 0;
    case ECHO_CLOSE: return 0;
    case ECHO_START: return start(a[0].buf.pv);
    case ECHO_STOP: return stop(*(uint32_t *) a[0].buf.pv);
    case ECHO_CALL: *(int32_t *) a[1].buf.pv = call(a[0].buf.pv); return 0;
    default: return AEE_EUNSUPPORTED;
    }
}
