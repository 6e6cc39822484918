/* Threads that wait at a queue, and what ends their wait, one case a run: queue_threads CASE. */
#include <pthread.h>

#include "queue_cases.h"

static void *answer(void *p) {
    struct pair *pair = p;
    for (int i = 0; i < 200; i++) {
        CHECK_IS(read_any(pair->dsp, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
        if (i % 50 == 0) {
            bell_wait(&(struct bell){0}, 0, bell_now_ns() + 2000000); /* the other falls asleep for good */
        }
        CHECK_IS(dspqueue_write(pair->dsp, 0, 0, NULL, 0, NULL, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
    }
    return NULL;
}

static void wake_ups(void) {
    struct pair p = pair_open(256, 256, none, none);
    pthread_t thread;
    pthread_create(&thread, NULL, answer, &p);
    for (int i = 0; i < 200; i++) {
        CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 0, NULL, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
        CHECK_IS(read_any(p.cpu, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
    }
    pthread_join(thread, NULL);
    pair_close(&p);
}

struct seen {
    _Atomic uint32_t packets, errors;
    _Atomic int error, inside;
    dspqueue_t queue;
};

static void on_packet(dspqueue_t queue, AEEResult error, void *context) {
    struct seen *seen = context;
    uint8_t message[64];
    CHECK(error == AEE_SUCCESS);
    atomic_store(&seen->inside, fake_close(queue));
    while ((error = dspqueue_read_noblock(queue, NULL, 0, NULL, NULL, sizeof message, NULL, message)) == AEE_SUCCESS) {
        atomic_fetch_add(&seen->packets, 1);
        AEEResult answered = dspqueue_write(queue, 0, 0, NULL, 0, NULL, DSPQUEUE_TIMEOUT_NONE);
        CHECK(answered == AEE_SUCCESS || answered == AEE_EINTERRUPTED);
    }
    CHECK(error == AEE_EWOULDBLOCK || error == AEE_EINTERRUPTED); /* the latter where the queue is being closed */
}

static void on_error(dspqueue_t queue, AEEResult error, void *context) {
    struct seen *seen = context;
    CHECK_IS(read_any_noblock(queue), error);
    atomic_store(&seen->error, error);
    atomic_fetch_add(&seen->errors, 1);
}

static void callbacks(void) {
    struct seen seen = {0};
    struct pair p = pair_open(256, 256, none, (struct callbacks){on_packet, on_error, &seen});
    for (uint32_t i = 1; i <= 500; i++) {
        CHECK_IS(dspqueue_write(p.cpu, 0, 0, NULL, 4, (const uint8_t *) &i, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
        CHECK_IS(read_any(p.cpu, DSPQUEUE_TIMEOUT_NONE), AEE_SUCCESS);
        CHECK(atomic_load(&seen.packets) == i);
    }
    CHECK(atomic_load(&seen.inside) == (int) AEE_ERPC);
    CHECK_IS(read_any(p.dsp, 0), AEE_EUNSUPPORTED);
    CHECK_IS(dspqueue_peek(p.dsp, NULL, NULL, NULL, 1000), AEE_EUNSUPPORTED);
    CHECK_IS(read_any_noblock(p.dsp), AEE_EWOULDBLOCK);
    uint32_t lines = atomic_load(&fake_farf_lines);
    pair_close(&p);
    CHECK(atomic_load(&seen.errors) == 0 && atomic_load(&fake_farf_lines) == lines);
}

/* Closed while its callback works. */
static void close_in_between(void) {
    for (int i = 0; i < 100; i++) {
        struct seen seen = {0};
        struct pair p = pair_open(256, 256, none, (struct callbacks){on_packet, on_error, &seen});
        write_text(p.cpu, "one");
        write_text(p.cpu, "two");
        for (int j = 0; j < i % 8 * 200; j++) {
            bell_now_ns();
        }
        CHECK_IS(fake_close(p.dsp), AEE_SUCCESS);
        CHECK(atomic_load(&seen.packets) <= 2 && atomic_load(&seen.errors) == 0);
        p.dsp = NULL;
        pair_close(&p);
    }
}

static void *read_for_good(void *p) {
    return (void *) (intptr_t) read_any(p, DSPQUEUE_TIMEOUT_NONE);
}

static void *peek_for_good(void *p) {
    return (void *) (intptr_t) dspqueue_peek(p, NULL, NULL, NULL, DSPQUEUE_TIMEOUT_NONE);
}

static void *write_for_good(void *p) {
    int error;
    while (!(error = dspqueue_write(p, 0, 0, NULL, 0, NULL, DSPQUEUE_TIMEOUT_NONE))) {
    }
    return (void *) (intptr_t) error;
}

static void join_with(pthread_t *threads, int n, int code) {
    for (int i = 0; i < n; i++) {
        void *got;
        pthread_join(threads[i], &got);
        CHECK((int) (intptr_t) got == code);
    }
}

static void start_waiting(pthread_t threads[4], struct pair *p) {
    pthread_create(&threads[0], NULL, read_for_good, p->cpu);
    pthread_create(&threads[1], NULL, peek_for_good, p->cpu);
    pthread_create(&threads[2], NULL, write_for_good, p->cpu);
    pthread_create(&threads[3], NULL, write_for_good, p->cpu);
    while (atomic_load(&p->memory->response.packet_bell.n_listeners) < 2 ||
           atomic_load(&p->memory->request.space_bell.n_listeners) < 2) {
        sched_yield();
    }
}

static void closing(void) {
    struct pair p = pair_open(256, 256, none, none);
    pthread_t threads[4];
    start_waiting(threads, &p);
    CHECK_IS(fake_close(p.cpu), AEE_SUCCESS);
    join_with(threads, 4, AEE_EINTERRUPTED);
    p.cpu = NULL;
    pair_close(&p);
}

static void death(void) {
    struct seen seen = {0};
    struct pair p = pair_open(256, 256, (struct callbacks){NULL, on_error, &seen}, none);
    pthread_t threads[4];
    start_waiting(threads, &p);
    queue_break(p.cpu, AEE_ECONNRESET);
    join_with(threads, 4, AEE_ECONNRESET);
    CHECK_IS(read_any_noblock(p.cpu), AEE_ECONNRESET);
    CHECK_IS(dspqueue_write_noblock(p.cpu, 0, 0, NULL, 0, NULL), AEE_ECONNRESET);
    while (!atomic_load(&seen.errors)) {
        sched_yield();
    }
    CHECK(atomic_load(&seen.error) == (int) AEE_ECONNRESET);
    /* What had been written before the end can still be read. */
    write_text(p.dsp, "last words");
    read_text(p.cpu, "last words");
    CHECK_IS(read_any(p.cpu, DSPQUEUE_TIMEOUT_NONE), AEE_ECONNRESET);
    pair_close(&p);
    CHECK(atomic_load(&seen.errors) == 1);
    queue_break(p.cpu, AEE_ECONNRESET); /* of a queue that is gone: nothing */
}

static _Atomic(dspqueue_t) some_queue;
static _Atomic bool done;

/* Uses whatever handle is there, open or not. */
static void *use_any(void *p) {
    (void) p;
    while (!atomic_load(&done)) {
        dspqueue_t queue = atomic_load(&some_queue);
        int wrote = dspqueue_write_noblock(queue, 0, 0, NULL, 0, NULL), read = read_any(queue, 20);
        CHECK(wrote == AEE_SUCCESS || wrote == AEE_EWOULDBLOCK || wrote == AEE_EBADPARM || wrote == AEE_EINTERRUPTED);
        CHECK(read == AEE_SUCCESS || read == AEE_EEXPIRED || read == AEE_EBADPARM || read == AEE_EINTERRUPTED);
    }
    return NULL;
}

static void *open_and_close(void *p) {
    (void) p;
    for (int i = 0; i < 500; i++) {
        struct pair pair = pair_open(256, 256, none, none);
        atomic_store(&some_queue, i % 2 ? pair.cpu : pair.dsp);
        int wrote = dspqueue_write_noblock(pair.cpu, 0, 0, NULL, 0, NULL);
        CHECK(wrote == AEE_SUCCESS || wrote == AEE_EWOULDBLOCK); /* others write, too */
        pair_close(&pair);
    }
    return NULL;
}

/* Queues come and go while others hold on to their handles: nothing is used after its end. */
static void churn(void) {
    pthread_t threads[4];
    fake_farf_silent = true;
    for (int i = 0; i < 4; i++) {
        pthread_create(&threads[i], NULL, i < 2 ? open_and_close : use_any, NULL);
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    atomic_store(&done, true);
    pthread_join(threads[2], NULL);
    pthread_join(threads[3], NULL);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"wake_ups", wake_ups}, {"callbacks", callbacks}, {"close_in_between", close_in_between}, {"closing", closing},
        {"death", death}, {"churn", churn}, {0},
    };
    return run_case(cases, argc, argv);
}
