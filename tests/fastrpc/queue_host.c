/* Host programs of the queue tests: queue_host CASE. Public names only; the DSP's part is queue_echo_skel.c. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "AEEStdErr.h"
#include "dspqueue.h"
#include "queue_echo.h"
#include "remote.h"
#include "rpcmem.h"

#define FOREVER DSPQUEUE_TIMEOUT_NONE
#define SUCCEED(call) GIVES(call, AEE_SUCCESS)
#define GIVES(call, code)                                                                                              \
    do {                                                                                                               \
        unsigned got_ = (unsigned) (call);                                                                             \
        if (got_ != (unsigned) (code)) {                                                                               \
            printf("%s:%d: %s gives 0x%x, not %s\n", __FILE__, __LINE__, #call, got_, #code);                          \
            fflush(stdout);                                                                                            \
            _Exit(3);                                                                                                  \
        }                                                                                                              \
    } while (0)
#define CHECK(x)                                                                                                       \
    do {                                                                                                               \
        if (!(x)) {                                                                                                    \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #x);                                                             \
            fflush(stdout);                                                                                            \
            _Exit(3);                                                                                                  \
        }                                                                                                              \
    } while (0)

struct session {
    int domain;
    remote_handle64 handle;
    dspqueue_t queue;
    uint64_t id;
};

struct callbacks {
    dspqueue_callback_t packet, error;
    void *context;
};

static int start(struct session *s, uint32_t number, uint64_t id, uint32_t kind, uint32_t n_threads) {
    struct echo_start in = {id, number, kind, n_threads};
    remote_arg arg = {.buf = {&in, sizeof in}};
    return remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_START, 1, 0), &arg);
}

static int stop(struct session *s, uint32_t number) {
    remote_arg arg = {.buf = {&number, sizeof number}};
    return remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_STOP, 1, 0), &arg);
}

/* What a dspqueue function gives there. */
static int there(struct session *s, uint32_t what, uint32_t argument) {
    struct echo_call in = {0, what, argument};
    int32_t result = -1;
    remote_arg args[2] = {{.buf = {&in, sizeof in}}, {.buf = {&result, sizeof result}}};
    SUCCEED(remote_handle64_invoke(s->handle, REMOTE_SCALARS_MAKE(ECHO_CALL, 1, 1), args));
    return result;
}

static struct session open_library(int domain, uint32_t session) {
    struct remote_rpc_control_unsigned_module allow = {.domain = domain, .enable = 1};
    remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &allow, sizeof allow);
    char uri[256];
    const char *name = domain == CDSP_DOMAIN_ID ? "cdsp" : "cdsp1";
    struct session s = {.domain = domain + 8 * (int) session};
    snprintf(uri, sizeof uri, ECHO_URI "&_dom=%s&_session=%u", name, session);
    SUCCEED(remote_handle64_open(uri, &s.handle));
    return s;
}

static struct session open_session(uint32_t bytes, uint32_t session, struct callbacks here) {
    struct session s = open_library(CDSP_DOMAIN_ID, session);
    SUCCEED(dspqueue_create(s.domain, 0, bytes, bytes, here.packet, here.error, here.context, &s.queue));
    SUCCEED(dspqueue_export(s.queue, &s.id));
    return s;
}

static void close_session(struct session *s) {
    SUCCEED(dspqueue_close(s->queue));
    SUCCEED(remote_handle64_close(s->handle));
}

static void end_echo(struct session *s) {
    uint8_t end = ECHO_END, got = 0;
    SUCCEED(dspqueue_write(s->queue, 0, 0, NULL, 1, &end, FOREVER));
    SUCCEED(dspqueue_read(s->queue, NULL, 0, NULL, NULL, 1, NULL, &got, FOREVER));
    SUCCEED(stop(s, 0));
}

static const struct callbacks none;

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

#define PER_SESSION 2500u

struct stress {
    struct session session;
    _Atomic uint32_t n_read;
    _Atomic uint8_t came[PER_SESSION];
};

struct part {
    struct stress *stress;
    uint32_t index;
};

static void *write_part(void *p) {
    const struct part *part = p;
    unsigned random = part->index + 1;
    for (uint32_t i = part->index; i < PER_SESSION; i += 2) {
        uint8_t message[3000];
        uint32_t bytes = 8 + (uint32_t) rand_r(&random) % 2900;
        memset(message, (int) (i | 0x80), bytes); /* no command */
        memcpy(message + 4, &i, sizeof i);
        SUCCEED(dspqueue_write(part->stress->session.queue, 0, 0, NULL, bytes, message, FOREVER));
    }
    return NULL;
}

static void *read_part(void *p) {
    struct stress *s = ((struct part *) p)->stress;
    while (atomic_fetch_add(&s->n_read, 1) < PER_SESSION) {
        uint8_t message[3000];
        uint32_t bytes = 0, i;
        SUCCEED(dspqueue_read(s->session.queue, NULL, 0, NULL, NULL, sizeof message, &bytes, message, FOREVER));
        memcpy(&i, message + 4, sizeof i);
        CHECK(bytes >= 8 && i < PER_SESSION && atomic_fetch_add(&s->came[i], 1) == 0);
        for (uint32_t j = 8; j < bytes; j++) {
            CHECK(message[j] == (uint8_t) (i | 0x80));
        }
    }
    return NULL;
}

/* Random sizes; two threads write, two answer there, two read: in so many sessions at once. */
static void stress(uint32_t n_sessions) {
    static struct stress all[4];
    static struct part parts[4][4];
    pthread_t threads[16];
    for (uint32_t i = 0; i < n_sessions; i++) {
        all[i].session = open_session(8192, i, none);
        SUCCEED(start(&all[i].session, 0, all[i].session.id, ECHO_THREADS, 2));
    }
    for (uint32_t i = 0; i < 4 * n_sessions; i++) {
        parts[i / 4][i % 4] = (struct part){&all[i / 4], i % 2};
        pthread_create(&threads[i], NULL, i % 4 < 2 ? write_part : read_part, &parts[i / 4][i % 4]);
    }
    for (uint32_t i = 0; i < 4 * n_sessions; i++) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = 0; i < n_sessions; i++) {
        uint8_t end[2] = {ECHO_END, 0};
        for (int j = 0; j < 2; j++) {
            SUCCEED(dspqueue_write(all[i].session.queue, 0, 0, NULL, 1, end, FOREVER));
            SUCCEED(dspqueue_read(all[i].session.queue, NULL, 0, NULL, NULL, 1, NULL, end, FOREVER));
        }
        SUCCEED(stop(&all[i].session, 0));
        close_session(&all[i].session);
    }
}

static void two_sessions(void) {
    stress(2);
}

static void four_sessions(void) {
    stress(4);
}

static int n_files(void) {
    int n = 0;
    for (int fd = 0; fd < 1024; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }
    return n;
}

/* More often than either end could do it if a queue left anything. */
static void again(void) {
    struct session s = open_session(0, 0, none);
    int before = n_files();
    for (int i = 0; i < 1500; i++) {
        struct session other = s;
        SUCCEED(dspqueue_create(s.domain, 0, 4096, 1 << 20, NULL, NULL, NULL, &other.queue));
        SUCCEED(dspqueue_export(other.queue, &other.id));
        SUCCEED(start(&other, 0, other.id, ECHO_THREADS, 1));
        end_echo(&other);
        SUCCEED(dspqueue_close(other.queue));
    }
    CHECK(n_files() == before);
    close_session(&s);
}

/* HEXNPU_EMU_NPUS=2: one queue to both. */
static void multi(void) {
    uint32_t domains[2] = {CDSP_DOMAIN_ID, CDSP1_DOMAIN_ID};
    fastrpc_context_create context = {.effec_domain_ids = domains, .num_domain_ids = 2};
    uint64_t ids[2], value;
    SUCCEED(remote_session_control(FASTRPC_CONTEXT_CREATE, &context, sizeof context));
    dspqueue_request_payload request = {.id = DSPQUEUE_CREATE};
    request.create = (dspqueue_create_req){.ctx = context.ctx, .ids = ids, .num_ids = 1};
    GIVES(dspqueue_request(&request), AEE_EBADPARM);
    request.create.num_ids = 2;
    SUCCEED(dspqueue_request(&request));
    dspqueue_t queue = request.create.queue;
    struct session both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = open_library((int) domains[i], 0);
        SUCCEED(start(&both[i], 0, ids[i], ECHO_THREADS, 1));
    }
    GIVES(dspqueue_export(queue, &value), AEE_EUNSUPPORTED);
    GIVES(dspqueue_get_stat(queue, DSPQUEUE_STAT_READ_QUEUE_BYTES, &value), AEE_EUNSUPPORTED);
    GIVES(dspqueue_read(queue, NULL, 0, NULL, NULL, 0, NULL, NULL, 0), AEE_EUNSUPPORTED);
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t message = i == 255 ? ECHO_END : i, got = 0;
        SUCCEED(dspqueue_write(queue, 0, 0, NULL, i == 255 ? 1 : 4, (const uint8_t *) &message, FOREVER));
        for (int n = 0; n < 2;) { /* an answer of each */
            int error = dspqueue_read_noblock(queue, NULL, 0, NULL, NULL, 4, NULL, (uint8_t *) &got);
            CHECK(error == AEE_EWOULDBLOCK || (!error && got == message));
            n += !error;
        }
    }
    for (int i = 0; i < 2; i++) {
        SUCCEED(stop(&both[i], 0));
        SUCCEED(remote_handle64_close(both[i].handle));
    }
    fastrpc_context_destroy end = {.ctx = context.ctx};
    SUCCEED(dspqueue_close(queue));
    SUCCEED(remote_session_control(FASTRPC_CONTEXT_DESTROY, &end, sizeof end));
    GIVES(remote_session_control(FASTRPC_CONTEXT_DESTROY, &end, sizeof end), AEE_EBADPARM);
    GIVES(dspqueue_request(&request), AEE_EBADPARM);
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
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"echo", echo}, {"buffers", buffers}, {"callbacks", callbacks}, {"codes", codes}, {"crash", crash},
        {"abort", abortion}, {"early_wakeup", early_wakeup}, {"two_sessions", two_sessions},
        {"four_sessions", four_sessions}, {"again", again}, {"multi", multi}, {"client_that_dies", client_that_dies},
    };
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return 2;
}
