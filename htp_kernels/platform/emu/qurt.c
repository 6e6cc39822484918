/* QuRT on host threads and futexes. */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emu.h"
#include "qurt.h"

#define MAX_THREADS 64u
#define HVX_CONTEXTS 4

struct thread {
    pthread_t host;
    void (*entry)(void *);
    void *arg;
    int status;
    bool used;
    char name[QURT_THREAD_ATTR_NAME_MAXLEN];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread threads[MAX_THREADS]; /* thread id = index + 1 */
static _Thread_local qurt_thread_t self;

void qurt_thread_attr_init(qurt_thread_attr_t *attr) {
    memset(attr, 0, sizeof *attr);
}

void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name) {
    snprintf(attr->name, sizeof attr->name, "%s", name);
}

void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority) {
    attr->priority = priority;
}

void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size) {
    attr->stack_size = stack_size;
}

void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr) {
    attr->stack_addr = stack_addr;
}

static void *run_thread(void *p) {
    struct thread *t = p;
    self = (qurt_thread_t) (t - threads) + 1;
    if (t->name[0]) {
        pthread_setname_np(pthread_self(), t->name);
    }
    t->entry(t->arg);
    return NULL;
}

/* The host chooses the stack: a host frame is larger than the device's. */
int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entry)(void *), void *arg) {
    pthread_mutex_lock(&table_lock);
    uint32_t i = 0;
    while (i < MAX_THREADS && threads[i].used) {
        i++;
    }
    if (i < MAX_THREADS) {
        threads[i] = (struct thread){.entry = entry, .arg = arg, .used = true};
        memcpy(threads[i].name, attr->name, sizeof threads[i].name);
        if (pthread_create(&threads[i].host, NULL, run_thread, &threads[i])) {
            threads[i].used = false;
            i = MAX_THREADS;
        }
    }
    pthread_mutex_unlock(&table_lock);
    *thread_id = i < MAX_THREADS ? i + 1 : 0;
    return i < MAX_THREADS ? QURT_EOK : QURT_EFAILED;
}

int qurt_thread_join(unsigned int tid, int *status) {
    if (tid == 0 || tid > MAX_THREADS || !threads[tid - 1].used) {
        return QURT_ENOTHREAD;
    }
    pthread_join(threads[tid - 1].host, NULL);
    *status = threads[tid - 1].status;
    pthread_mutex_lock(&table_lock);
    threads[tid - 1].used = false;
    pthread_mutex_unlock(&table_lock);
    return QURT_EOK;
}

void qurt_thread_exit(int status) {
    if (self) {
        threads[self - 1].status = status;
    }
    pthread_exit(NULL);
}

qurt_thread_t qurt_thread_get_id(void) {
    return self;
}

static long futex(void *word, int op, uint32_t value) {
    return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

int qurt_futex_wait(void *lock, int val) {
    futex(lock, FUTEX_WAIT, (uint32_t) val);
    return QURT_EOK;
}

int qurt_futex_wake(void *lock, int n_to_wake) {
    return (int) futex(lock, FUTEX_WAKE, n_to_wake < 0 ? INT_MAX : (uint32_t) n_to_wake);
}

/* The SDK's structures hold plain words; every access to them here is atomic. */
static _Atomic unsigned int *atom(unsigned int *word) {
    return (_Atomic unsigned int *) word;
}

void qurt_mutex_init(qurt_mutex_t *lock) {
    lock->state = 0;
}

void qurt_mutex_destroy(qurt_mutex_t *lock) {
    lock->state = 0;
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

/* Host caches are coherent. */
int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type) {
    (void) addr, (void) size, (void) opcode, (void) type;
    atomic_thread_fence(memory_order_seq_cst);
    return QURT_EOK;
}

int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt) {
    cpu_set_t set;
    mhwt->max_hthreads = sched_getaffinity(0, sizeof set, &set) ? 1u : (unsigned int) CPU_COUNT(&set);
    return QURT_EOK;
}

int qurt_hvx_get_units(void) {
    return HVX_CONTEXTS << 8 | 2 * HVX_CONTEXTS;
}

/* Linux lets a nap end 50 us late unless it is told not to, which would be most of a short one. */
void qurt_sleep(unsigned long long duration_us) {
    static _Thread_local bool punctual;
    if (duration_us == 0) {
        sched_yield();
        return;
    }
    if (!punctual) {
        punctual = !prctl(PR_SET_TIMERSLACK, 1);
    }
    struct timespec nap = {(time_t) (duration_us / 1000000), (long) (duration_us % 1000000) * 1000};
    nanosleep(&nap, NULL);
}
