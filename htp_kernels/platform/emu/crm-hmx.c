/* Which thread may use a matrix unit. */
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "HAP_compute_res.h"
#include "hap-internal.h"
#include "hmx.h"
#include "qurt_thread.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static struct unit {
    uint32_t n_shared;   /* threads that share it */
    qurt_thread_t owner; /* the one that has it alone, or 0 */
} units[EMU_MAX_ARENAS];
static _Thread_local uint32_t mine; /* the unit of this thread, counted from 1 */
static _Thread_local compute_res_hmx_type_t mine_is;

static bool is_free(const struct unit *u, compute_res_hmx_type_t type) {
    return !u->owner && (type == HAP_COMPUTE_RES_HMX_SHARED || !u->n_shared);
}

/* timeout_us NULL: waits as long as it takes. */
static int lock_unit(unsigned int context_id, compute_res_hmx_type_t type, const unsigned int *timeout_us) {
    uint32_t unit = emu_crm_unit(context_id);
    struct timespec until = {0};
    if (!unit || mine) {
        return DSP_ERROR(mine ? AEE_EALREADY : AEE_EBADSTATE);
    }
    if (timeout_us) {
        clock_gettime(CLOCK_REALTIME, &until);
        uint64_t ns = (uint64_t) until.tv_nsec + *timeout_us * 1000ull;
        until = (struct timespec){until.tv_sec + (time_t) (ns / 1000000000u), (long) (ns % 1000000000u)};
    }
    struct unit *u = &units[unit - 1];
    bool in_time = true;
    qurt_thread_t self = qurt_thread_get_id();
    pthread_mutex_lock(&lock);
    while (!is_free(u, type) && in_time) {
        in_time = !(timeout_us ? pthread_cond_timedwait(&freed, &lock, &until) : pthread_cond_wait(&freed, &lock));
    }
    bool got = is_free(u, type);
    if (got && type == HAP_COMPUTE_RES_HMX_SHARED) {
        u->n_shared++;
    } else if (got) {
        u->owner = self;
    }
    pthread_mutex_unlock(&lock);
    if (got) {
        mine = unit;
        mine_is = type;
        hmx_hold(unit);
    }
    return got ? AEE_SUCCESS : DSP_ERROR(AEE_EEXPIRED);
}

static int unlock_unit(compute_res_hmx_type_t type) {
    if (!mine || mine_is != type) {
        return DSP_ERROR(AEE_ENOTLOCKED);
    }
    struct unit *u = &units[mine - 1];
    mine = 0;
    hmx_hold(0);
    pthread_mutex_lock(&lock);
    if (type == HAP_COMPUTE_RES_HMX_SHARED) {
        u->n_shared--;
    } else {
        u->owner = 0;
    }
    pthread_cond_broadcast(&freed);
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

void emu_hmx_end_thread(void) {
    if (mine) {
        unlock_unit(mine_is);
    }
}

int HAP_compute_res_hmx_lock(unsigned int context_id) {
    return lock_unit(context_id, HAP_COMPUTE_RES_HMX_NON_SHARED, NULL);
}

/* The context may have been given back meanwhile: what counts is what the thread has. */
int HAP_compute_res_hmx_unlock(unsigned int context_id) {
    (void) context_id;
    return unlock_unit(HAP_COMPUTE_RES_HMX_NON_SHARED);
}

int HAP_compute_res_hmx_lock2(unsigned int context_id, compute_res_hmx_type_t type) {
    return lock_unit(context_id, type, NULL);
}

int HAP_compute_res_hmx_unlock2(unsigned int context_id, compute_res_hmx_type_t type) {
    (void) context_id;
    return unlock_unit(type);
}

/* Nobody is preempted here: the critical section has nothing to keep out. */
static void do_nothing(void *mutex) {
    (void) mutex;
}

int HAP_compute_res_hmx_lock3(unsigned int context_id, compute_res_hmx_type_t type, compute_res_hmx_mutex_t *mutex,
                              unsigned int timeout_us) {
    int result = lock_unit(context_id, type, &timeout_us);
    if (!result && mutex) {
        *mutex = (compute_res_hmx_mutex_t){NULL, do_nothing, do_nothing};
    }
    return result;
}

int HAP_compute_res_hmx_unlock3(unsigned int context_id, compute_res_hmx_type_t type, compute_res_hmx_mutex_t *mutex) {
    (void) mutex;
    return HAP_compute_res_hmx_unlock2(context_id, type);
}
