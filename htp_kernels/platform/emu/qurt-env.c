/* The processor as QuRT shows it: caches, vector contexts, event counters, naps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <time.h>

#include "HAP_perf.h"
#include "emu.h"
#include "hap-internal.h"
#include "qurt.h"

#define DEFAULT_CONTEXTS 4u
#define MAX_CONTEXTS 32u
#define EVENT_PACKETS 0x3u /* COMMITTED_PKT_ANY */

/* Host caches are coherent. */
int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type) {
    (void) addr, (void) size, (void) opcode, (void) type;
    atomic_thread_fence(memory_order_seq_cst);
    return QURT_EOK;
}

int qurt_mem_l2cache_line_lock(qurt_addr_t addr, qurt_size_t size) {
    return (addr | size) % 32 ? QURT_EALIGN : QURT_EOK;
}

int qurt_mem_l2cache_line_unlock(qurt_addr_t addr, qurt_size_t size) {
    return (addr | size) % 32 ? QURT_EALIGN : QURT_EOK;
}

void qurt_mem_barrier(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

void qurt_mem_syncht(void) {
    atomic_thread_fence(memory_order_seq_cst);
}

void *qurt_malloc(unsigned int size) {
    return emu_low_map(size, -1, 0);
}

void qurt_free(void *ptr) {
    if (ptr) {
        emu_low_unmap(ptr);
    }
}

int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt) {
    cpu_set_t set;
    uint32_t host = sched_getaffinity(0, sizeof set, &set) ? 1u : (uint32_t) CPU_COUNT(&set);
    mhwt->max_hthreads = emu_setting("HEXNPU_EMU_HVX", MAX_CONTEXTS, host);
    return QURT_EOK;
}

int qurt_sysenv_get_arch_version(qurt_arch_version_t *vers) {
    uint32_t arch = emu_arch();
    vers->arch_version = arch / 10 << 4 | arch % 10;
    return QURT_EOK;
}

/* Vector contexts. Whoever uses vectors without a lock gets a context all the same, as on the device. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static uint32_t n_locked;
static bool reserved;
static _Thread_local bool locked;

static uint32_t n_contexts(void) {
    return emu_setting("HEXNPU_EMU_HVX", MAX_CONTEXTS, DEFAULT_CONTEXTS);
}

int qurt_hvx_get_units(void) {
    return (int) (n_contexts() << 8);
}

int qurt_hvx_get_mode(void) {
    return QURT_HVX_MODE_128B;
}

static int lock_context(qurt_hvx_mode_t mode, bool wait) {
    if (mode != QURT_HVX_MODE_128B || !n_contexts()) {
        return QURT_EFAILED;
    }
    qurt_thread_get_id(); /* at the end of a thread that has an id its context is given back */
    pthread_mutex_lock(&lock);
    while (!locked && wait && n_locked >= n_contexts()) {
        pthread_cond_wait(&freed, &lock);
    }
    if (!locked && n_locked < n_contexts()) {
        n_locked++;
        locked = true;
    }
    pthread_mutex_unlock(&lock);
    return locked ? QURT_EOK : QURT_EFAILED;
}

int qurt_hvx_lock(qurt_hvx_mode_t lock_mode) {
    return lock_context(lock_mode, true);
}

int qurt_hvx_try_lock(qurt_hvx_mode_t lock_mode) {
    return lock_context(lock_mode, false);
}

/* Also for who has locked none: it gives up the context that using vectors gave it. */
int qurt_hvx_unlock(void) {
    if (locked) {
        pthread_mutex_lock(&lock);
        n_locked--;
        locked = false;
        pthread_cond_signal(&freed);
        pthread_mutex_unlock(&lock);
    }
    return QURT_EOK;
}

int qurt_hvx_get_lock_val(void) {
    return locked ? QURT_HVX_LOCKED : QURT_HVX_UNLOCKED;
}

int qurt_hvx_reserve(int num_units) {
    int all = (int) (2 * n_contexts());
    int wanted = num_units == QURT_HVX_RESERVE_ALL || num_units == QURT_HVX_RESERVE_ALL_AVAILABLE ? all : num_units;
    if (!all || wanted < 0 || wanted > all) {
        return QURT_HVX_RESERVE_NOT_SUPPORTED;
    }
    pthread_mutex_lock(&lock);
    bool again = reserved;
    reserved = true;
    pthread_mutex_unlock(&lock);
    return again ? QURT_HVX_RESERVE_ALREADY_MADE : wanted;
}

int qurt_hvx_cancel_reserve(void) {
    pthread_mutex_lock(&lock);
    bool made = reserved;
    reserved = false;
    pthread_mutex_unlock(&lock);
    return made ? 0 : QURT_HVX_RESERVE_CANCEL_ERR;
}

/* Event counters. Packets go with cycles; of all other events the emulator knows none. */
static struct {
    _Atomic uint32_t registers[QURT_PMUEVTCFG1 + 1];
    _Atomic uint64_t zero[2]; /* cycles when the counters 0 to 3 and 4 to 7 were cleared */
    _Atomic bool on;
} pmu;

static uint32_t event_of(int i) {
    uint32_t low = atomic_load(&pmu.registers[i < 4 ? QURT_PMUEVTCFG : QURT_PMUEVTCFG1]) >> i % 4 * 8 & 0xff;
    return low | (atomic_load(&pmu.registers[QURT_PMUCFG]) >> 2 * i & 3) << 8;
}

uint32_t emu_pmu_count(int i) {
    bool counts = atomic_load(&pmu.on) && event_of(i) == EVENT_PACKETS;
    return counts ? (uint32_t) (HAP_perf_get_pcycles() - atomic_load(&pmu.zero[i / 4])) : 0;
}

void qurt_pmu_set(int reg_id, unsigned int reg_value) {
    if (reg_id < 0 || reg_id > QURT_PMUEVTCFG1) {
        return;
    }
    atomic_store(&pmu.registers[reg_id], reg_value);
    if (reg_id == QURT_PMUEVTCFG || reg_id == QURT_PMUEVTCFG1) {
        atomic_store(&pmu.zero[reg_id == QURT_PMUEVTCFG1], HAP_perf_get_pcycles());
    }
}

unsigned int qurt_pmu_get(int reg_id) {
    switch (reg_id) {
    case QURT_PMUCFG:
    case QURT_PMUEVTCFG:
    case QURT_PMUEVTCFG1: return atomic_load(&pmu.registers[reg_id]);
    case QURT_PMUCNT0:
    case QURT_PMUCNT1:
    case QURT_PMUCNT2:
    case QURT_PMUCNT3: return emu_pmu_count(reg_id);
    case QURT_PMUCNT4:
    case QURT_PMUCNT5:
    case QURT_PMUCNT6:
    case QURT_PMUCNT7: return emu_pmu_count(reg_id - QURT_PMUCNT4 + 4);
    default: return 0;
    }
}

void qurt_pmu_enable(int enable) {
    atomic_store(&pmu.on, enable != 0);
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

int qurt_timer_sleep(unsigned long long duration_us) {
    qurt_sleep(duration_us);
    return QURT_EOK;
}
