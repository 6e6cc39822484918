/* One session and its queue: queue_host CASE. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "queue_host.h"
#include "rpcmem.h"

static void echo(void) {
    struct session s = open_session(0, 0, none);
    SUCCEED(start(&s, 0, s.id, ECHO_THREADS, 1));
    for (uint32_t bytes = 0; bytes < 16000; bytes = bytes * 5 / 4 + 1) {
        static uint8_t sent[16000], got[16000];
        uint32_t flags = 0, n_buffers = 9, n = 0;
        memset(sent, (int) bytes | 0x80, bytes);
        SUCCEED(dspqueue_write(s.queue, 0, 0, NULL, bytes, sent, FOREVER));
        SUCCEED(dspqueue_read(s.queue, &flags, 0, &n_buffers, NULL, sizeof got, &n, got, FOREVER));
        CHECK(n == bytes && n_buffers == 0 && !memcmp(sent, got, n));
        if (bytes > 7000) {
            break; /* more than half of the answers' 16 KiB might not fit */
        }
    }
    end_echo(&s);
    close_session(&s);
}

static void buffers(void) {
    const int size = 1 << 20;
    struct session s = open_session(0, 0, none);
    uint8_t *memory = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, size), go = ECHO_INVERT, got_go = 0;
    int fd = rpcmem_to_fd(memory);
    struct dspqueue_buffer sent[2] = {{.fd = (uint32_t) fd}, {.fd = (uint32_t) fd}}, got[2];
    uint32_t n = 0;
    CHECK(memory && fd > 0);
    GIVES(dspqueue_write(s.queue, 0, 1, sent, 1, &go, FOREVER), AEE_ENOSUCHMAP);
    SUCCEED(fastrpc_mmap(s.domain, fd, memory, 0, (size_t) size, FASTRPC_MAP_FD));
    SUCCEED(start(&s, 0, s.id, ECHO_THREADS, 1));
    for (int i = 0; i < size; i++) {
        memory[i] = (uint8_t) (i * 7);
    }
    /* Two parts of it, of which the first is held. */
    sent[0].size = 1000, sent[0].flags = DSPQUEUE_BUFFER_FLAG_REF | DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER;
    sent[1].offset = 5000, sent[1].size = (uint32_t) size - 5000;
    SUCCEED(dspqueue_write(s.queue, 0, 2, sent, 1, &go, FOREVER));
    GIVES(fastrpc_munmap(s.domain, fd, memory, (size_t) size), AEE_EBADPARM);
    SUCCEED(dspqueue_read(s.queue, NULL, 2, &n, got, 1, NULL, &got_go, FOREVER));
    CHECK(n == 2 && got[0].ptr == memory && got[0].size == 1000 && got[0].flags == DSPQUEUE_BUFFER_FLAG_DEREF);
    CHECK(got[1].ptr == memory + 5000 && got[1].size == (uint32_t) size - 5000 && got_go == ECHO_INVERT);
    for (int i = 0; i < size; i++) {
        CHECK(memory[i] == (uint8_t) (i < 1000 || i >= 5000 ? ~(i * 7) : i * 7));
    }
    /* All of it; then what is not in it. */
    struct dspqueue_buffer whole = {.fd = (uint32_t) fd};
    SUCCEED(dspqueue_write(s.queue, 0, 1, &whole, 1, &go, FOREVER));
    SUCCEED(dspqueue_read(s.queue, NULL, 2, &n, got, 1, NULL, &got_go, FOREVER));
    CHECK(n == 1 && got[0].size == (uint32_t) size && memory[2] == 14 && memory[2000] == (uint8_t) ~(2000 * 7));
    whole.offset = 1, whole.size = (uint32_t) size;
    GIVES(dspqueue_write(s.queue, 0, 1, &whole, 1, &go, FOREVER), AEE_EBADPARM);
    CHECK(there(&s, ECHO_POINTER, 0) == 0);
    SUCCEED(fastrpc_munmap(s.domain, fd, memory, (size_t) size));
    whole.offset = 0;
    GIVES(dspqueue_write(s.queue, 0, 1, &whole, 1, &go, FOREVER), AEE_ENOSUCHMAP);
    rpcmem_free(memory);
    end_echo(&s);
    close_session(&s);
}

static _Atomic uint32_t n_packets;
static _Atomic int last_error;

static void on_packet(dspqueue_t queue, AEEResult error, void *context) {
    uint32_t value = 0;
    CHECK(context == &n_packets && !error);
    while (!(error = dspqueue_read_noblock(queue, NULL, 0, NULL, NULL, 4, NULL, (uint8_t *) &value))) {
        CHECK(value == atomic_load(&n_packets));
        atomic_fetch_add(&n_packets, 1);
    }
    GIVES(error, AEE_EWOULDBLOCK);
}

static void on_error(dspqueue_t queue, AEEResult error, void *context) {
    (void) context;
    GIVES(dspqueue_write_noblock(queue, 0, 0, NULL, 0, NULL), error);
    atomic_store(&last_error, error);
}

static void callbacks(void) {
    struct session s = open_session(1024, 0, (struct callbacks){on_packet, on_error, &n_packets});
    SUCCEED(start(&s, 0, s.id, ECHO_CALLBACK, 0));
    for (uint32_t i = 0; i < 2000; i++) {
        SUCCEED(dspqueue_write(s.queue, 0, 0, NULL, 4, (const uint8_t *) &i, FOREVER));
    }
    while (atomic_load(&n_packets) < 2000) {
        sched_yield();
    }
    GIVES(dspqueue_read(s.queue, NULL, 0, NULL, NULL, 0, NULL, NULL, FOREVER), AEE_EUNSUPPORTED);
    GIVES(there(&s, ECHO_READ, 100), DSP_AEE_EOFFSET + AEE_EUNSUPPORTED);
    CHECK(there(&s, ECHO_POINTER, 0) == 0);
    SUCCEED(stop(&s, 0));
    close_session(&s);
    CHECK(!atomic_load(&last_error));
}

static void codes(void) {
    struct session s = open_session(256, 0, none);
    dspqueue_t other;
    uint64_t id;
    uint8_t message[300] = {0};
    GIVES(dspqueue_create(770, 0, 0, 0, NULL, NULL, NULL, &other), AEE_EBADPARM);
    GIVES(dspqueue_create(ADSP_DOMAIN_ID, 0, 0, 0, NULL, NULL, NULL, &other), AEE_EUNSUPPORTED);
    GIVES(dspqueue_create(s.domain, 1, 0, 0, NULL, NULL, NULL, &other), AEE_EBADPARM);
    GIVES(dspqueue_create(s.domain, 0, 16777217, 0, NULL, NULL, NULL, &other), AEE_EBADPARM);
    GIVES(dspqueue_create(s.domain, 0, 0, 0, NULL, NULL, NULL, NULL), AEE_EBADPARM);
    GIVES(dspqueue_import(s.id, NULL, NULL, NULL, &other), AEE_EUNSUPPORTED);
    GIVES(dspqueue_write_noblock(s.queue, 0, 0, NULL, 300, message), AEE_EBADPARM);
    GIVES(start(&s, 1, s.id + 1000, ECHO_NOBODY, 0), DSP_AEE_EOFFSET + AEE_EBADPARM);
    SUCCEED(start(&s, 0, s.id, ECHO_NOBODY, 0));
    GIVES(there(&s, ECHO_IMPORT_AGAIN, 0), DSP_AEE_EOFFSET + AEE_EITEMBUSY);
    GIVES(there(&s, ECHO_CREATE, 0), DSP_AEE_EOFFSET + AEE_EUNSUPPORTED);
    GIVES(there(&s, ECHO_READ, 0), DSP_AEE_EOFFSET + AEE_EEXPIRED);
    GIVES(there(&s, ECHO_PEEK, 1000), DSP_AEE_EOFFSET + AEE_EEXPIRED);
    while (!(there(&s, ECHO_WRITE, 1000))) {
    }
    GIVES(there(&s, ECHO_WRITE, 1000), DSP_AEE_EOFFSET + AEE_EEXPIRED);
    GIVES(dspqueue_close(s.queue), AEE_ERPC);
    SUCCEED(dspqueue_read(s.queue, NULL, 0, NULL, NULL, 0, NULL, NULL, 0)); /* it is none the worse */
    SUCCEED(stop(&s, 0));
    /* Imported again, it goes on where it was. */
    SUCCEED(dspqueue_write(s.queue, 0, 0, NULL, 0, NULL, 0));
    SUCCEED(start(&s, 0, s.id, ECHO_NOBODY, 0));
    SUCCEED(there(&s, ECHO_PEEK, 0));
    SUCCEED(there(&s, ECHO_READ, 0));
    SUCCEED(stop(&s, 0));
    SUCCEED(dspqueue_close(s.queue));
    GIVES(dspqueue_close(s.queue), AEE_EBADPARM);
    GIVES(dspqueue_export(s.queue, &id), AEE_EBADPARM);
    GIVES(start(&s, 0, s.id, ECHO_NOBODY, 0), DSP_AEE_EOFFSET + AEE_EBADPARM);
    SUCCEED(remote_handle64_close(s.handle));
}

static void *read_for_good(void *p) {
    return (void *) (intptr_t) dspqueue_read(p, NULL, 0, NULL, NULL, 0, NULL, NULL, FOREVER);
}

static void *write_for_good(void *p) {
    int error;
    while (!(error = dspqueue_write(p, 0, 0, NULL, 0, NULL, FOREVER))) {
    }
    return (void *) (intptr_t) error;
}

/* The DSP's process ends while threads wait: each comes back, and the callback is called. */
static void dies_by(uint8_t what) {
    struct session s = open_session(256, 0, (struct callbacks){NULL, on_error, NULL});
    dspqueue_t second;
    pthread_t threads[2];
    void *got;
    SUCCEED(dspqueue_create(s.domain, 0, 256, 256, NULL, NULL, NULL, &second));
    SUCCEED(start(&s, 0, s.id, ECHO_THREADS, 1));
    pthread_create(&threads[0], NULL, read_for_good, s.queue);
    pthread_create(&threads[1], NULL, write_for_good, second);
    SUCCEED(dspqueue_write(s.queue, 0, 0, NULL, 1, &what, FOREVER));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &got);
        GIVES((intptr_t) got, AEE_ECONNRESET);
    }
    while (!atomic_load(&last_error)) {
        sched_yield();
    }
    GIVES(atomic_load(&last_error), AEE_ECONNRESET);
    GIVES(dspqueue_read_noblock(s.queue, NULL, 0, NULL, NULL, 0, NULL, NULL), AEE_ECONNRESET);
    struct dspqueue_buffer unmapped = {.fd = 12345};
    GIVES(dspqueue_write_noblock(s.queue, 0, 1, &unmapped, 1, &what), AEE_ECONNRESET);
    SUCCEED(dspqueue_close(second));
    SUCCEED(dspqueue_close(s.queue)); /* though it was open there */
    remote_handle64_close(s.handle);
    /* The next session has nothing to do with it. */
    atomic_store(&last_error, 0);
    echo();
}

static void crash(void) {
    dies_by(ECHO_CRASH);
}

static void abortion(void) {
    dies_by(ECHO_ABORT);
}

static void early_wakeup(void) {
    struct session s = open_session(0, 0, none);
    uint8_t what = ECHO_ANNOUNCE, got = 0;
    uint64_t waited = 0;
    SUCCEED(start(&s, 0, s.id, ECHO_THREADS, 1));
    for (int i = 0; i < 20 && !waited; i++) {
        SUCCEED(dspqueue_write(s.queue, 0, 0, NULL, 1, &what, FOREVER));
        SUCCEED(dspqueue_read(s.queue, NULL, 0, NULL, NULL, 1, NULL, &got, FOREVER));
        SUCCEED(dspqueue_get_stat(s.queue, DSPQUEUE_STAT_EARLY_WAKEUP_WAIT_TIME, &waited));
    }
    CHECK(waited > 0);
    end_echo(&s);
    close_session(&s);
}

/* For the test that kills this program: says so, and waits with an open queue. */
static void client_that_dies(void) {
    struct session s = open_session(0, 0, none);
    SUCCEED(start(&s, 0, s.id, ECHO_THREADS, 2));
    printf("ready\n");
    fflush(stdout);
    read_for_good(s.queue);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"echo", echo}, {"buffers", buffers}, {"callbacks", callbacks}, {"codes", codes}, {"crash", crash},
        {"abort", abortion}, {"early_wakeup", early_wakeup}, {"client_that_dies", client_that_dies}, {0},
    };
    return run_case(cases, argc, argv);
}
