/* Many messages, sessions, NPUs and queues: queue_many CASE. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "queue_host.h"

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

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"two_sessions", two_sessions}, {"four_sessions", four_sessions}, {"again", again}, {"multi", multi}, {0},
    };
    return run_case(cases, argc, argv);
}
