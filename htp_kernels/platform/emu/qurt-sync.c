/* What QuRT threads wait with, on futexes. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hap-internal.h"
#include "qurt.h"

#define NO_LIMIT UINT64_MAX

static long futex(void *word, int op, uint32_t value, const struct timespec *limit) {
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, limit, NULL, 0);
}

int qurt_futex_wait(void *lock, int val) {
    futex(lock, FUTEX_WAIT, (uint32_t) val, NULL);
    return QURT_EOK;
}

int qurt_futex_wake(void *lock, int n_to_wake) {
    return (int) futex(lock, FUTEX_WAKE, n_to_wake < 0 ? INT_MAX : (uint32_t) n_to_wake, NULL);
}

static uint64_t in_us(unsigned long long duration_us) {
    return emu_nanoseconds() + duration_us * 1000;
}

/* Sleeps while *word == val, until `deadline` of emu_nanoseconds() at most; false: it has passed. */
static bool wait_until(void *word, uint32_t val, uint64_t deadline) {
    if (deadline == NO_LIMIT) {
        futex(word, FUTEX_WAIT, val, NULL);
        return true;
    }
    uint64_t now = emu_nanoseconds();
    if (now >= deadline) {
        return false;
    }
    uint64_t left = deadline - now;
    struct timespec limit = {(time_t) (left / 1000000000u), (long) (left % 1000000000u)};
    futex(word, FUTEX_WAIT, val, &limit);
    return true;
}

/* The SDK's structures hold plain words; every access to them here is atomic. */
static _Atomic unsigned int *atom(unsigned int *word) {
    return (_Atomic unsigned int *) word;
}

static _Atomic unsigned long long *atom64(unsigned long long *word) {
    return (_Atomic unsigned long long *) word;
}

void qurt_mutex_init(qurt_mutex_t *lock) {
    *lock = (qurt_mutex_t) QURT_MUTEX_INIT;
}

void qurt_mutex_destroy(qurt_mutex_t *lock) {
    *lock = (qurt_mutex_t) QURT_MUTEX_INIT;
}

int qurt_mutex_try_lock(qurt_mutex_t *lock) {
    unsigned int seen = 0;
    return atomic_compare_exchange_strong(atom(&lock->state), &seen, 1) ? QURT_EOK : QURT_EFAILED;
}

void qurt_mutex_lock(qurt_mutex_t *lock) {
    if (qurt_mutex_try_lock(lock) == QURT_EOK) {
        return;
    }
    while (atomic_exchange(atom(&lock->state), 2) != 0) {
        qurt_futex_wait(&lock->state, 2);
    }
}

void qurt_mutex_unlock(qurt_mutex_t *lock) {
    if (atomic_exchange(atom(&lock->state), 0) == 2) {
        qurt_futex_wake(&lock->state, 1);
    }
}

void qurt_rmutex_init(qurt_mutex_t *lock) {
    qurt_mutex_init(lock);
}

void qurt_rmutex_destroy(qurt_mutex_t *lock) {
    qurt_mutex_destroy(lock);
}

/* Whether the caller holds it, in which case it holds it once more. */
static bool enter_again(qurt_mutex_t *lock) {
    bool mine = (atomic_load(atom(&lock->holder)) & 0xffff) == qurt_thread_get_id();
    if (mine) {
        atomic_fetch_add(atom(&lock->holder), 0x10000);
    }
    return mine;
}

void qurt_rmutex_lock(qurt_mutex_t *lock) {
    if (!enter_again(lock)) {
        qurt_mutex_lock(lock);
        atomic_store(atom(&lock->holder), 0x10000 | qurt_thread_get_id());
    }
}

int qurt_rmutex_try_lock(qurt_mutex_t *lock) {
    if (enter_again(lock)) {
        return QURT_EOK;
    }
    int result = qurt_mutex_try_lock(lock);
    if (result == QURT_EOK) {
        atomic_store(atom(&lock->holder), 0x10000 | qurt_thread_get_id());
    }
    return result;
}

void qurt_rmutex_unlock(qurt_mutex_t *lock) {
    unsigned int holder = atomic_load(atom(&lock->holder));
    if (holder >= 0x20000) {
        atomic_store(atom(&lock->holder), holder - 0x10000);
    } else {
        atomic_store(atom(&lock->holder), 0);
        qurt_mutex_unlock(lock);
    }
}

int qurt_barrier_init(qurt_barrier_t *barrier, unsigned int threads_total) {
    *barrier = (qurt_barrier_t){threads_total, threads_total, 0};
    return threads_total ? QURT_EOK : QURT_EINVALID;
}

int qurt_barrier_destroy(qurt_barrier_t *barrier) {
    (void) barrier;
    return QURT_EOK;
}

int qurt_barrier_wait(qurt_barrier_t *barrier) {
    unsigned int generation = atomic_load(atom(&barrier->generation));
    if (atomic_fetch_sub(atom(&barrier->threads_left), 1) == 1) {
        atomic_store(atom(&barrier->threads_left), barrier->threads_total);
        atomic_fetch_add(atom(&barrier->generation), 1);
        qurt_futex_wake(&barrier->generation, -1);
        return QURT_BARRIER_SERIAL_THREAD;
    }
    while (atomic_load(atom(&barrier->generation)) == generation) {
        qurt_futex_wait(&barrier->generation, (int) generation);
    }
    return QURT_BARRIER_OTHER;
}

/* Semaphores and signals: the low half is what is waited for, the high half counts who waits. One word, so that who
 * changes it and wakes need not look again: the object may be gone by then. */
#define ONE_WAITER (1ull << 32)

static void *low_half(unsigned long long *raw) {
    return raw; /* little-endian */
}

void qurt_sem_init(qurt_sem_t *sem) {
    qurt_sem_init_val(sem, 1);
}

void qurt_sem_init_val(qurt_sem_t *sem, unsigned short val) {
    sem->raw = val;
}

void qurt_sem_destroy(qurt_sem_t *sem) {
    sem->raw = 0;
}

int qurt_sem_add(qurt_sem_t *sem, unsigned int amount) {
    if (atomic_fetch_add(atom64(&sem->raw), amount) >= ONE_WAITER) {
        qurt_futex_wake(low_half(&sem->raw), (int) amount);
    }
    return QURT_EOK;
}

int qurt_sem_up(qurt_sem_t *sem) {
    return qurt_sem_add(sem, 1);
}

int qurt_sem_try_down(qurt_sem_t *sem) {
    unsigned long long seen = atomic_load(atom64(&sem->raw));
    while ((uint32_t) seen) {
        if (atomic_compare_exchange_weak(atom64(&sem->raw), &seen, seen - 1)) {
            return QURT_EOK;
        }
    }
    return QURT_EFAILED;
}

static int down_until(qurt_sem_t *sem, uint64_t deadline) {
    while (qurt_sem_try_down(sem) != QURT_EOK) {
        atomic_fetch_add(atom64(&sem->raw), ONE_WAITER);
        bool in_time = wait_until(low_half(&sem->raw), 0, deadline);
        atomic_fetch_sub(atom64(&sem->raw), ONE_WAITER);
        if (!in_time) {
            return QURT_ETIMEDOUT;
        }
    }
    return QURT_EOK;
}

int qurt_sem_down(qurt_sem_t *sem) {
    return down_until(sem, NO_LIMIT);
}

int qurt_sem_down_timed(qurt_sem_t *sem, unsigned long int duration_us) {
    return down_until(sem, in_us(duration_us));
}

unsigned short qurt_sem_get_val(qurt_sem_t *sem) {
    return (unsigned short) atomic_load(atom64(&sem->raw));
}

void qurt_signal_init(qurt_signal_t *signal) {
    signal->raw = 0;
}

void qurt_signal_destroy(qurt_signal_t *signal) {
    signal->raw = 0;
}

unsigned int qurt_anysignal_set(qurt_anysignal_t *signal, unsigned int mask) {
    unsigned long long before = atomic_fetch_or(atom64(&signal->raw), mask);
    if (before >= ONE_WAITER) {
        qurt_futex_wake(low_half(&signal->raw), -1);
    }
    return (unsigned int) before;
}

unsigned int qurt_anysignal_clear(qurt_anysignal_t *signal, unsigned int mask) {
    return (unsigned int) atomic_fetch_and(atom64(&signal->raw), ~(unsigned long long) mask);
}

void qurt_signal_set(qurt_signal_t *signal, unsigned int mask) {
    qurt_anysignal_set(signal, mask);
}

void qurt_signal_clear(qurt_signal_t *signal, unsigned int mask) {
    qurt_anysignal_clear(signal, mask);
}

unsigned int qurt_signal_get(qurt_signal_t *signal) {
    return (unsigned int) atomic_load(atom64(&signal->raw));
}

/* Waits for any or all bits of mask; what is set then, or at the deadline, goes to *set. */
static int signal_until(qurt_signal_t *signal, unsigned int mask, unsigned int attribute, unsigned int *set,
                        uint64_t deadline) {
    for (;;) {
        *set = qurt_signal_get(signal);
        if (attribute == QURT_SIGNAL_ATTR_WAIT_ALL ? (*set & mask) == mask : (*set & mask) != 0) {
            return QURT_EOK;
        }
        atomic_fetch_add(atom64(&signal->raw), ONE_WAITER);
        bool in_time = wait_until(low_half(&signal->raw), *set, deadline);
        atomic_fetch_sub(atom64(&signal->raw), ONE_WAITER);
        if (!in_time) {
            return QURT_ETIMEDOUT;
        }
    }
}

unsigned int qurt_signal_wait(qurt_signal_t *signal, unsigned int mask, unsigned int attribute) {
    unsigned int set = 0;
    signal_until(signal, mask, attribute, &set, NO_LIMIT);
    return set;
}

int qurt_signal_wait_timed(qurt_signal_t *signal, unsigned int mask, unsigned int attribute, unsigned int *signals,
                           unsigned long long int duration_us) {
    return signal_until(signal, mask, attribute, signals, in_us(duration_us));
}

int qurt_signal_wait_cancellable(qurt_signal_t *signal, unsigned int mask, unsigned int attribute,
                                 unsigned int *return_mask) {
    return signal_until(signal, mask, attribute, return_mask, NO_LIMIT);
}

void qurt_allsignal_wait(qurt_allsignal_t *signal, unsigned int mask) {
    qurt_signal_wait(signal, mask, QURT_SIGNAL_ATTR_WAIT_ALL);
    qurt_signal_clear(signal, mask);
}

void qurt_cond_init(qurt_cond_t *cond) {
    cond->sequence = 0;
}

void qurt_cond_destroy(qurt_cond_t *cond) {
    cond->sequence = 0;
}

void qurt_cond_wait(qurt_cond_t *cond, qurt_mutex_t *mutex) {
    unsigned int sequence = atomic_load(atom(&cond->sequence));
    unsigned int holder = atomic_exchange(atom(&mutex->holder), 0); /* of an rmutex: given up whole */
    qurt_mutex_unlock(mutex);
    qurt_futex_wait(&cond->sequence, (int) sequence);
    qurt_mutex_lock(mutex);
    atomic_store(atom(&mutex->holder), holder);
}

void qurt_cond_signal(qurt_cond_t *cond) {
    atomic_fetch_add(atom(&cond->sequence), 1);
    qurt_futex_wake(&cond->sequence, 1);
}

void qurt_cond_broadcast(qurt_cond_t *cond) {
    atomic_fetch_add(atom(&cond->sequence), 1);
    qurt_futex_wake(&cond->sequence, -1);
}
