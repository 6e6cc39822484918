/* QuRT, the compute resource manager and the runtime's thread pool on the emulator; argv[1] names the case. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../htp_kernels/platform/emu/emu.h"
#include "../../htp_kernels/runtime/context.h"
#include "HAP_compute_res.h"
#include "HAP_mem.h"
#include "HAP_perf.h"

#define N_THREADS 4u

static void need(int truth, const char *what) {
    if (!truth) {
        printf("wrong: %s\n", what);
        exit(1);
    }
}

#define NEED(truth) need(truth, #truth)

static void run_threads(void (*entry)(void *), void *arg) {
    qurt_thread_t ids[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS; i++) {
        qurt_thread_attr_t attr;
        qurt_thread_attr_init(&attr);
        qurt_thread_attr_set_name(&attr, "rules");
        NEED(qurt_thread_create(&ids[i], &attr, entry, arg) == QURT_EOK && ids[i] != 0);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        int status = -1;
        NEED(qurt_thread_join(ids[i], &status) == QURT_EOK && status == 0);
        NEED(qurt_thread_join(ids[i], &status) != QURT_EOK);
    }
}

struct counted {
    qurt_mutex_t lock;
    uint32_t count;
};

static void count(void *p) {
    struct counted *c = p;
    for (uint32_t i = 0; i < 5000; i++) {
        qurt_mutex_lock(&c->lock);
        c->count++;
        qurt_mutex_unlock(&c->lock);
    }
}

static void mutex(void) {
    struct counted c = {0};
    qurt_mutex_init(&c.lock);
    run_threads(count, &c);
    NEED(c.count == N_THREADS * 5000);
    NEED(qurt_mutex_try_lock(&c.lock) == 0 && qurt_mutex_try_lock(&c.lock) != 0);
}

struct rounds {
    qurt_barrier_t barrier;
    uint32_t done[64];
    _Atomic uint32_t next, serial;
};

static void march(void *p) {
    struct rounds *r = p;
    uint32_t me = atomic_fetch_add(&r->next, 1);
    for (uint32_t i = 0; i < 500; i++) {
        r->done[16 * me] = i + 1;
        atomic_fetch_add(&r->serial, qurt_barrier_wait(&r->barrier) == QURT_BARRIER_SERIAL_THREAD);
        for (uint32_t t = 0; t < N_THREADS; t++) {
            NEED(r->done[16 * t] == i + 1);
        }
        qurt_barrier_wait(&r->barrier);
    }
}

static void barrier(void) {
    struct rounds r = {0};
    qurt_barrier_init(&r.barrier, N_THREADS);
    run_threads(march, &r);
    NEED(r.serial == 500);
}

static void leave(void *p) {
    (void) p;
    qurt_thread_exit(7);
}

static void thread_exit(void) {
    qurt_thread_attr_t attr;
    qurt_thread_t id;
    int status = 0;
    qurt_thread_attr_init(&attr);
    qurt_thread_create(&id, &attr, leave, NULL);
    NEED(qurt_thread_join(id, &status) == QURT_EOK && status == 7);
    NEED(qurt_thread_join(0, &status) != QURT_EOK && qurt_thread_join(9999, &status) != QURT_EOK);
}

static void futex(void) {
    uint32_t word = 3;
    qurt_futex_wait(&word, 4); /* another value: returns at once */
    NEED(qurt_futex_wake(&word, 1) == 0);
}

static unsigned int acquire(uint32_t bytes, unsigned int timeout_us, uint8_t **vtcm) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, bytes, 1);
    unsigned int id = HAP_compute_res_acquire(&attr, timeout_us);
    *vtcm = HAP_compute_res_attr_get_vtcm_ptr(&attr);
    return id;
}

static void vtcm(void) {
    uint8_t *p = NULL, *q = NULL;
    unsigned int total = 0, free_bytes = 0;
    emu_vtcm_set_bytes(2 << 20);
    NEED(acquire(3 << 20, 0, &p) == 0 && p == NULL);
    unsigned int id = acquire(2 << 20, 0, &p);
    NEED(id != 0 && (uintptr_t) p % 4096 == 0 && (uintptr_t) p + (2 << 20) <= 1ull << 32);
    for (uint32_t i = 0; i < 2 << 20; i++) {
        NEED(p[i] == 0xff);
    }
    memset(p, 1, 2 << 20);
    NEED(acquire(1 << 20, 1000, &q) == 0); /* held: a status after the timeout */
    NEED(HAP_compute_res_query_VTCM(0, &total, NULL, &free_bytes, NULL) == 0 && total == 2 << 20 && free_bytes == 0);
    NEED(HAP_compute_res_release(id) == 0 && HAP_compute_res_release(id) != 0);
    NEED(acquire(2 << 20, 0, &p) != 0 && p[0] == 0xff && p[(2 << 20) - 1] == 0xff); /* poisoned again */
}

static void overrun_vtcm(void) {
    uint8_t *p = NULL;
    emu_vtcm_set_bytes(2 << 20);
    acquire(2 << 20, 0, &p);
    p[2 << 20] = 0;
}

static void overrun_heap(void) {
    uint8_t *p = qurt_malloc(4096);
    p[4096] = 0;
}

static void heap(void) {
    void *blocks[64];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 64; i++) {
            blocks[i] = qurt_malloc(1000 * i + 1);
            NEED(blocks[i] && (uintptr_t) blocks[i] < 1ull << 32 && emu_low_contains((uintptr_t) blocks[i], 1000 * i + 1));
            NEED(!emu_low_contains((uintptr_t) blocks[i], 1000 * i + 2));
            memset(blocks[i], 5, 1000 * i + 1);
        }
        for (uint32_t i = 0; i < 64; i++) {
            qurt_free(blocks[(i * 37) % 64]);
        }
    }
    NEED(!emu_low_contains((uintptr_t) blocks[3], 1) && qurt_malloc(0xffffffff) == NULL);
    NEED(HAP_mmap2(NULL, 4096, HAP_PROT_READ, 0, 5, 0) == HAP_MAP_FAILED); /* nobody has buffers here */
}

static void clocks(void) {
    uint64_t cycles = HAP_perf_get_pcycles(), ticks = HAP_perf_get_qtimer_count(), us = HAP_perf_get_time_us();
    qurt_sleep(2000);
    uint64_t passed = HAP_perf_get_time_us() - us;
    uint64_t by_timer = HAP_perf_qtimer_count_to_us(HAP_perf_get_qtimer_count() - ticks);
    uint64_t by_cycles = (HAP_perf_get_pcycles() - cycles) / (EMU_CLOCK_KHZ / 1000);
    NEED(passed >= 2000);
    NEED(by_timer + 2 >= passed && by_cycles + 2 >= by_timer); /* each stands inside the next */
}

/* The runtime's pool */

struct job {
    uint32_t ran[HTP_MAX_THREADS];
    uint32_t first[HTP_MAX_THREADS * 16];
    uint32_t n;
};

static void work(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    struct job *job = arg;
    NEED(n_threads == job->n && thread < n_threads);
    for (uint32_t round = 1; round <= 3; round++) {
        job->first[16 * thread] = round;
        htp_barrier(op);
        for (uint32_t t = 0; t < n_threads; t++) {
            NEED(job->first[16 * t] == round); /* without a lock: the barrier publishes it */
        }
        htp_barrier(op);
    }
    job->ran[thread]++;
}

static struct htp_ctx *open_session(uint32_t n_threads) {
    static struct htp_progress progress;
    char why[HTP_DETAIL_BYTES] = "";
    struct htp_config config = {
        .n_threads = n_threads, .vtcm_bytes = 2 << 20, .max_map_bytes = 1 << 30, .progress = &progress};
    emu_vtcm_set_bytes(2 << 20);
    struct htp_ctx *ctx = htp_session_open(&config, why);
    need(ctx != NULL, why);
    return ctx;
}

static void pool(void) {
    struct htp_ctx *ctx = open_session(6);
    int32_t kparams[HTP_N_KPARAMS] = {0};
    struct htp_op op = {.ctx = ctx, .kparams = kparams};
    for (uint32_t i = 0; i < 1500; i++) {
        struct job job = {.n = i % 6 + 1};
        kparams[HTP_KP_N_THREADS] = (int32_t) job.n;
        htp_run(&op, work, &job);
        for (uint32_t t = 0; t < HTP_MAX_THREADS; t++) {
            NEED(job.ran[t] == (t < job.n));
        }
    }
    htp_session_close(ctx);
}

static void race(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    (void) op, (void) thread, (void) n_threads;
    ++*(uint32_t *) arg; /* the mistake that the tsan build must see */
}

static void seeded_race(void) {
    struct htp_ctx *ctx = open_session(4);
    int32_t kparams[HTP_N_KPARAMS] = {[HTP_KP_N_THREADS] = 4};
    struct htp_op op = {.ctx = ctx, .kparams = kparams};
    uint32_t word = 0;
    for (uint32_t i = 0; i < 200; i++) {
        htp_run(&op, race, &word);
    }
    htp_session_close(ctx);
}

static void leak(struct htp_op *op, void *arg, uint32_t thread, uint32_t n_threads) {
    (void) n_threads;
    uint8_t *p = arg;
    dma_push(htp_dma(op, thread), p + 64, p, 8, 8, 8, 1);
}

static void forgotten_transfer(void) {
    struct htp_ctx *ctx = open_session(2);
    int32_t kparams[HTP_N_KPARAMS] = {[HTP_KP_N_THREADS] = 1};
    struct htp_op op = {.ctx = ctx, .kparams = kparams};
    uint8_t *p = qurt_malloc(128);
    NEED(!ctx->pool.leaked);
    htp_run(&op, leak, p);
    NEED(ctx->pool.leaked);
    htp_session_close(ctx);
}

struct named {
    const char *name;
    void (*run)(void);
};

static const struct named cases[] = {
    {"mutex", mutex}, {"barrier", barrier}, {"thread_exit", thread_exit}, {"futex", futex}, {"vtcm", vtcm},
    {"overrun_vtcm", overrun_vtcm}, {"overrun_heap", overrun_heap}, {"heap", heap}, {"clocks", clocks}, {"pool", pool},
    {"seeded_race", seeded_race}, {"forgotten_transfer", forgotten_transfer},
};

int main(int argc, char **argv) {
    for (uint32_t i = 0; argc == 2 && i < sizeof cases / sizeof cases[0]; i++) {
        if (!strcmp(argv[1], cases[i].name)) {
            cases[i].run();
            return 0;
        }
    }
    return 3;
}
