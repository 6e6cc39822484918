/* QuRT as third-party code uses it: threads, semaphores, signals, conditions, HVX contexts, counters. */
#include <stdatomic.h>

#include "emu.h"
#include "HAP_mem.h"
#include "HAP_perf.h"
#include "qurt.h"
#include "rules.h"

#define N_THREADS 4u

static qurt_thread_t start(const char *name, unsigned short priority, unsigned int stack, void (*entry)(void *),
                           void *arg) {
    qurt_thread_attr_t attr;
    qurt_thread_t id = 0;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_name(&attr, name);
    qurt_thread_attr_set_priority(&attr, priority);
    qurt_thread_attr_set_stack_size(&attr, stack);
    NEED(qurt_thread_create(&id, &attr, entry, arg) == QURT_EOK && id);
    return id;
}

static void join(qurt_thread_t id) {
    int status = -1;
    NEED(qurt_thread_join(id, &status) == QURT_EOK && status == 0);
}

/* Threads */

static uint32_t use_stack(uint32_t depth) {
    volatile uint8_t frame[1024];
    frame[0] = (uint8_t) depth;
    return depth ? use_stack(depth - 1) + frame[0] : frame[0];
}

static void look_around(void *p) {
    qurt_thread_t *id = p;
    char name[QURT_THREAD_ATTR_NAME_MAXLEN];
    NEED((uintptr_t) name < 1ull << 32 && (uintptr_t) __builtin_frame_address(0) < 1ull << 32);
    NEED(HAP_mem_available_stack() >= 4096 + (240 << 10));
    qurt_thread_get_name(name, sizeof name);
    NEED(!strcmp(name, "looker"));
    *id = qurt_thread_get_id();
    NEED(qurt_thread_get_priority(*id) == 77);
    NEED(qurt_thread_set_priority(*id, 78) == 0 && qurt_thread_get_priority(*id) == 78);
    use_stack(100);
}

static void threads(void) {
    qurt_thread_t seen = 0, id = start("looker", 77, 4096, look_around, &seen);
    join(id);
    NEED(seen == id && qurt_thread_get_priority(id) == -1);
    qurt_thread_t me = qurt_thread_get_id();
    NEED(me && me == qurt_thread_get_id() && qurt_thread_get_priority(me) > 0);
    NEED(qurt_thread_join(me, NULL) == QURT_ENOTHREAD);
}

static void count_up(void *p) {
    atomic_fetch_add((_Atomic uint32_t *) p, 1);
}

/* Nobody joins them, more than there is room for at once. */
static void nobody_joins(void) {
    static _Atomic uint32_t n;
    qurt_thread_t last = 0;
    for (uint32_t i = 0; i < 700; i++) {
        qurt_thread_attr_t attr;
        qurt_thread_attr_init(&attr);
        if (i % 2) {
            qurt_thread_attr_set_detachstate(&attr, QURT_THREAD_ATTR_CREATE_DETACHED);
        }
        while (qurt_thread_create(&last, &attr, count_up, &n) != QURT_EOK) {
            qurt_sleep(0);
        }
        NEED(!(i % 2) || qurt_thread_join(last, NULL) == QURT_ENOTHREAD);
    }
    while (atomic_load(&n) < 700) {
        qurt_sleep(0);
    }
}

/* Semaphores: tokens go round, none is lost. */

struct ring {
    qurt_sem_t sems[N_THREADS];
    uint32_t sum, next;
};

static void pass_on(void *p) {
    struct ring *r = p;
    uint32_t me = __atomic_fetch_add(&r->next, 1, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < 2000; i++) {
        qurt_sem_down(&r->sems[me]);
        r->sum++; /* one token: one thread at a time */
        qurt_sem_up(&r->sems[(me + 1) % N_THREADS]);
    }
}

static void semaphores(void) {
    struct ring r = {0};
    qurt_thread_t ids[N_THREADS];
    for (uint32_t i = 0; i < N_THREADS; i++) {
        qurt_sem_init_val(&r.sems[i], i == 2);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        ids[i] = start("ring", 100, 4096, pass_on, &r);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        join(ids[i]);
    }
    NEED(r.sum == N_THREADS * 2000 && qurt_sem_get_val(&r.sems[2]) == 1);
    qurt_sem_t s;
    qurt_sem_init(&s);
    NEED(qurt_sem_try_down(&s) == 0 && qurt_sem_try_down(&s) != 0);
    uint64_t before = HAP_perf_get_time_us();
    NEED(qurt_sem_down_timed(&s, 3000) == QURT_ETIMEDOUT && HAP_perf_get_time_us() - before >= 3000);
    qurt_sem_add(&s, 2);
    NEED(qurt_sem_down_timed(&s, 3000) == QURT_EOK && qurt_sem_down(&s) == 0 && qurt_sem_get_val(&s) == 0);
}

/* A semaphore that is gone when its waiter goes on: whoever raised it must not touch it any more. */
static void raise(void *p) {
    qurt_sem_up(p);
}

static void short_lived_semaphores(void) {
    for (uint32_t i = 0; i < 300; i++) {
        qurt_sem_t *s = malloc(sizeof *s);
        qurt_sem_init_val(s, 0);
        qurt_thread_t id = start("raise", 100, 4096, raise, s);
        qurt_sem_down(s);
        free(s);
        join(id);
    }
}

/* Signals */

struct pair {
    qurt_signal_t there, back;
};

static void answer(void *p) {
    struct pair *s = p;
    for (uint32_t i = 0; i < 1000; i++) {
        NEED((qurt_signal_wait_all(&s->there, 0x80000001u) & 0x80000001u) == 0x80000001u);
        qurt_signal_clear(&s->there, 0x80000001u);
        qurt_signal_set(&s->back, 4);
    }
}

static void signals(void) {
    struct pair s;
    unsigned int set = 0;
    qurt_signal_init(&s.there);
    qurt_signal_init(&s.back);
    qurt_thread_t id = start("answer", 100, 4096, answer, &s);
    for (uint32_t i = 0; i < 1000; i++) {
        qurt_signal_set(&s.there, 1);
        qurt_signal_set(&s.there, 0x80000000u);
        NEED(qurt_signal_wait_any(&s.back, 6) == 4);
        qurt_signal_clear(&s.back, 4);
    }
    join(id);
    NEED(qurt_anysignal_set(&s.back, 3) == 0 && qurt_anysignal_set(&s.back, 8) == 3);
    NEED(qurt_anysignal_clear(&s.back, 1) == 11 && qurt_signal_get(&s.back) == 10);
    NEED(qurt_signal_wait_timed(&s.back, 1, QURT_SIGNAL_ATTR_WAIT_ANY, &set, 2000) == QURT_ETIMEDOUT && set == 10);
    NEED(qurt_signal_wait_timed(&s.back, 2, QURT_SIGNAL_ATTR_WAIT_ANY, &set, 2000) == QURT_EOK && set == 10);
    NEED(qurt_signal_wait_cancellable(&s.back, 8, QURT_SIGNAL_ATTR_WAIT_ALL, &set) == QURT_EOK && set == 10);
    qurt_allsignal_wait(&s.back, 10);
    NEED(qurt_allsignal_get(&s.back) == 0);
}

/* Conditions and rmutexes: a queue of one. */

struct slot {
    qurt_mutex_t lock;
    qurt_cond_t changed;
    uint32_t value, taken;
    void (*lock_it)(qurt_mutex_t *), (*unlock_it)(qurt_mutex_t *);
};

static void take_all(void *p) {
    struct slot *s = p;
    for (uint32_t i = 1; i <= 1000; i++) {
        s->lock_it(&s->lock);
        while (s->value == 0) {
            qurt_cond_wait(&s->changed, &s->lock);
        }
        NEED(s->value == i);
        s->value = 0;
        s->taken++;
        qurt_cond_broadcast(&s->changed);
        s->unlock_it(&s->lock);
    }
}

static void fill(struct slot *s) {
    qurt_cond_init(&s->changed);
    qurt_thread_t id = start("take", 100, 4096, take_all, s);
    for (uint32_t i = 1; i <= 1000; i++) {
        s->lock_it(&s->lock);
        while (s->value) {
            qurt_cond_wait(&s->changed, &s->lock);
        }
        s->value = i;
        qurt_cond_signal(&s->changed);
        s->unlock_it(&s->lock);
    }
    join(id);
    NEED(s->taken == 1000);
}

static void try_it(void *p) {
    NEED(qurt_rmutex_try_lock(p) != 0);
}

static void conditions(void) {
    struct slot plain = {.lock_it = qurt_mutex_lock, .unlock_it = qurt_mutex_unlock};
    qurt_mutex_init(&plain.lock);
    fill(&plain);
    struct slot again = {.lock_it = qurt_rmutex_lock, .unlock_it = qurt_rmutex_unlock};
    qurt_rmutex_init(&again.lock);
    fill(&again);
    qurt_rmutex_lock(&again.lock);
    qurt_rmutex_lock(&again.lock);
    NEED(qurt_rmutex_try_lock(&again.lock) == 0);
    qurt_rmutex_unlock(&again.lock);
    qurt_rmutex_unlock(&again.lock);
    join(start("try", 100, 4096, try_it, &again.lock));
    qurt_rmutex_unlock(&again.lock);
    NEED(qurt_mutex_try_lock(&again.lock) == 0);
}

/* The processor, with HEXNPU_EMU_HVX=2 and HEXNPU_EMU_ARCH=75 */

static void want_context(void *p) {
    NEED(qurt_hvx_get_lock_val() == QURT_HVX_UNLOCKED && qurt_hvx_try_lock(QURT_HVX_MODE_128B) != QURT_EOK);
    qurt_sem_up(p);
    NEED(qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK); /* when the other gave one up */
    NEED(qurt_hvx_unlock() == QURT_EOK);
}

static void hold_context(void *p) {
    qurt_sem_t *sems = p;
    NEED(qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK);
    qurt_sem_up(&sems[0]);
    qurt_sem_down(&sems[1]);
    qurt_hvx_unlock();
}

static void lock_and_end(void *p) {
    (void) p;
    NEED(qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK);
}

static void processor(void) {
    qurt_sysenv_max_hthreads_t hardware;
    qurt_arch_version_t arch;
    qurt_sem_t sems[2];
    NEED(qurt_sysenv_get_max_hw_threads(&hardware) == QURT_EOK && hardware.max_hthreads == 2);
    NEED(qurt_sysenv_get_arch_version(&arch) == QURT_EOK && (arch.arch_version & 0xff) == 0x75);
    NEED(qurt_hvx_get_units() == 0x200 && qurt_hvx_get_mode() == QURT_HVX_MODE_128B);
    NEED(qurt_hvx_lock(QURT_HVX_MODE_64B) != QURT_EOK && qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK);
    NEED(qurt_hvx_get_lock_val() == QURT_HVX_LOCKED && qurt_hvx_lock(QURT_HVX_MODE_128B) == QURT_EOK);
    join(start("end", 100, 4096, lock_and_end, NULL)); /* a thread that ends gives its context up */
    qurt_sem_init_val(&sems[0], 0);
    qurt_sem_init_val(&sems[1], 0);
    qurt_thread_t holder = start("hold", 100, 4096, hold_context, sems);
    qurt_sem_down(&sems[0]);
    qurt_thread_t waiter = start("want", 100, 4096, want_context, &sems[0]);
    qurt_sem_down(&sems[0]);
    qurt_hvx_unlock();
    join(waiter);
    qurt_sem_up(&sems[1]);
    join(holder);
    NEED(qurt_hvx_reserve(9) == QURT_HVX_RESERVE_NOT_SUPPORTED && qurt_hvx_reserve(2) == 2);
    NEED(qurt_hvx_reserve(2) == QURT_HVX_RESERVE_ALREADY_MADE && qurt_hvx_cancel_reserve() == 0);
    NEED(qurt_hvx_cancel_reserve() == QURT_HVX_RESERVE_CANCEL_ERR);
    NEED(qurt_mem_l2cache_line_lock(64, 32) == QURT_EOK && qurt_mem_l2cache_line_lock(64, 33) == QURT_EALIGN);
    NEED(qurt_timer_timetick_to_us(QURT_TIMER_TIMETICK_FROM_US(1000)) == 1000);
}

/* Counters 1 and 5 count packets (event 3); 0x103 is another event. */
static void counters(void) {
    qurt_pmu_set(QURT_PMUCFG, 1);
    qurt_pmu_set(QURT_PMUEVTCFG, 0x0303);
    qurt_pmu_set(QURT_PMUEVTCFG1, 0x0300);
    NEED(qurt_pmu_get(QURT_PMUCNT1) == 0 && qurt_pmu_get(QURT_PMUEVTCFG) == 0x0303);
    qurt_pmu_enable(1);
    uint32_t first = qurt_pmu_get(QURT_PMUCNT1);
    qurt_timer_sleep(1000);
    NEED(qurt_pmu_get(QURT_PMUCNT1) - first >= 1000 && qurt_pmu_get(QURT_PMUCNT5) >= 1000);
    NEED(qurt_pmu_get(QURT_PMUCNT0) == 0 && qurt_pmu_get(QURT_PMUCNT4) == 0 && emu_pmu_count(5) >= 1000);
    qurt_pmu_enable(0);
    NEED(qurt_pmu_get(QURT_PMUCNT1) == 0);
}

int main(int argc, char **argv) {
    static const struct named cases[] = {
        {"threads", threads},
        {"nobody_joins", nobody_joins},
        {"semaphores", semaphores},
        {"short_lived_semaphores", short_lived_semaphores},
        {"signals", signals},
        {"conditions", conditions},
        {"processor", processor},
        {"counters", counters},
    };
    emu_low_reserve_heap();
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
