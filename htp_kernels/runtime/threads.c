/* The session's HVX threads: waiting for work they spin a little, then sleep. */
#include "HAP_farf.h"
#include "context.h"

#define MAX_SPINS 1500u   /* some tens of microseconds: ops follow each other faster than that */
#define MIN_SPINS 100u    /* a few microseconds: what two shares of an op differ by */
#define CROWDED_SPINS 16u /* at most, where processors are fewer than threads: let the others run */
#define FENCE_SPINS 200u   /* some microseconds: what ranks of a group are apart at best */
#define FENCE_YIELDS 1000u /* then the rank that is waited for may have this processor, and at last anybody */
#define NAP_US 1u
#define N_JOB_BITS 8u /* low bits of the start gate's word: threads of the job; above: a counter */
#define STACK_BYTES (64u << 10)
#define PRIORITY 128

static void pause_thread(void) {
#if defined(__hexagon__)
    __asm__ volatile("pause(#255)");
#elif defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void htp_pause(uint32_t turn) {
    if (turn < FENCE_SPINS) {
        pause_thread();
    } else {
        qurt_sleep(turn < FENCE_SPINS + FENCE_YIELDS ? 0 : NAP_US);
    }
}

static void set_spins(struct gate *gate, uint32_t spins, uint32_t max_spins) {
    uint32_t least = spins > MIN_SPINS ? spins : MIN_SPINS;
    atomic_store_explicit(&gate->spins, least < max_spins ? least : max_spins, memory_order_relaxed);
}

/*
 * Returns the gate's word once it is no longer `old`. How long it spins before it sleeps follows what came of it:
 * spinning for somebody who waits for this very processor only delays him.
 */
static uint32_t gate_wait(struct gate *gate, uint32_t old, uint32_t max_spins) {
    uint32_t now = atomic_load_explicit(&gate->word, memory_order_acquire);
    uint32_t spins = atomic_load_explicit(&gate->spins, memory_order_relaxed);
    for (uint32_t i = 0; now == old && i < spins; i++) {
        pause_thread();
        now = atomic_load_explicit(&gate->word, memory_order_acquire);
    }
    if (now != old) {
        set_spins(gate, 2 * spins, max_spins);
        return now;
    }
    set_spins(gate, spins / 2, max_spins);
    atomic_fetch_add(&gate->asleep, 1);
    while ((now = atomic_load(&gate->word)) == old) {
        qurt_futex_wait(&gate->word, (int) old);
    }
    atomic_fetch_sub(&gate->asleep, 1);
    return now;
}

static void gate_open(struct gate *gate, uint32_t word) {
    atomic_store(&gate->word, word);
    if (atomic_load(&gate->asleep)) {
        qurt_futex_wake(&gate->word, -1);
    }
}

static void run_job(struct pool *pool, uint32_t thread) {
    pool->job(pool->op, pool->arg, thread, pool->n_job);
    if (htp_dma_drain(pool->ctx->dma[thread])) {
        atomic_store(&pool->leaked, 1);
    }
}

static void worker(void *p) {
    struct pool_thread *self = p;
    struct pool *pool = self->pool;
    uint32_t seen = 0;
    for (;;) {
        seen = gate_wait(&pool->start, seen, pool->max_spins);
        uint32_t n_job = seen & ((1u << N_JOB_BITS) - 1);
        if (n_job == 0) {
            return; /* the session closes */
        }
        if (self->index < n_job) {
            run_job(pool, self->index);
            if (atomic_fetch_sub(&pool->n_left, 1) == 1) {
                gate_open(&pool->done, atomic_load(&pool->done.word) + 1);
            }
        }
    }
}

static void start_all(struct pool *pool, uint32_t n_job) {
    uint32_t counter = atomic_load(&pool->start.word) >> N_JOB_BITS;
    gate_open(&pool->start, (counter + 1) << N_JOB_BITS | n_job);
}

void htp_run(struct htp_op *op, htp_job job, void *arg) {
    struct pool *pool = &op->ctx->pool;
    uint32_t n_job = (uint32_t) op->kparams[HTP_KP_N_THREADS];
    pool->op = op;
    pool->job = job;
    pool->arg = arg;
    pool->n_job = n_job;
    if (n_job > 1) {
        uint32_t done = atomic_load(&pool->done.word);
        atomic_store(&pool->n_left, n_job - 1);
        atomic_store(&pool->barrier_left, n_job);
        start_all(pool, n_job);
        run_job(pool, 0);
        gate_wait(&pool->done, done, pool->max_spins);
    } else {
        run_job(pool, 0);
    }
}

void htp_barrier(struct htp_op *op) {
    struct pool *pool = &op->ctx->pool;
    if (pool->n_job == 1) {
        return;
    }
    uint32_t word = atomic_load(&pool->barrier.word);
    if (atomic_fetch_sub(&pool->barrier_left, 1) == 1) {
        atomic_store(&pool->barrier_left, pool->n_job);
        gate_open(&pool->barrier, word + 1);
    } else {
        gate_wait(&pool->barrier, word, pool->max_spins);
    }
}

bool htp_pool_start(struct htp_ctx *ctx) {
    struct pool *pool = &ctx->pool;
    qurt_sysenv_max_hthreads_t hardware = {1};
    qurt_sysenv_get_max_hw_threads(&hardware);
    pool->ctx = ctx;
    pool->max_spins = hardware.max_hthreads < ctx->config.n_threads ? CROWDED_SPINS : MAX_SPINS;
    pool->start.spins = pool->done.spins = pool->barrier.spins = pool->max_spins;
    pool->n_started = 1; /* thread 0 is the caller */
    for (uint32_t t = 1; t < ctx->config.n_threads; t++) {
        qurt_thread_attr_t attr;
        qurt_thread_attr_init(&attr);
        qurt_thread_attr_set_name(&attr, "htp-worker");
        qurt_thread_attr_set_stack_size(&attr, STACK_BYTES);
        qurt_thread_attr_set_priority(&attr, PRIORITY);
        pool->self[t] = (struct pool_thread){pool, t};
        if (qurt_thread_create(&pool->threads[t], &attr, worker, &pool->self[t]) != QURT_EOK) {
            htp_pool_stop(ctx);
            return false;
        }
        pool->n_started++;
    }
    return true;
}

void htp_pool_stop(struct htp_ctx *ctx) {
    struct pool *pool = &ctx->pool;
    start_all(pool, 0);
    for (uint32_t t = 1; t < pool->n_started; t++) {
        int status = 0;
        qurt_thread_join(pool->threads[t], &status);
    }
    pool->n_started = 0;
}
