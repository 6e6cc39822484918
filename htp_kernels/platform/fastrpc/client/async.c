/* Calls that do not wait: a thread each, which makes an ordinary call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "internal.h"

struct job {
    struct job *next;
    fastrpc_async_jobid id;
    uint64_t handle;
    uint32_t scalars;
    remote_arg args[FR_MAX_ARGS];
    fastrpc_async_descriptor_t how;
    bool done;
    int result;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct job *jobs;
static fastrpc_async_jobid last_id;

static void start(void) {
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&finished, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* The lock is held. */
static struct job *find(fastrpc_async_jobid id) {
    struct job *j = jobs;
    while (j && j->id != id) {
        j = j->next;
    }
    return j;
}

static void take_out(struct job *job) {
    struct job **at = &jobs;
    while (*at != job) {
        at = &(*at)->next;
    }
    *at = job->next;
}

static void *work(void *p) {
    struct job *job = p;
    int result = remote_handle64_invoke(job->handle, job->scalars, job->args);
    fastrpc_async_descriptor_t how = job->how;
    pthread_mutex_lock(&lock);
    job->result = result;
    job->done = true;
    if (how.type == FASTRPC_ASYNC_NO_SYNC) { /* nobody asks, nobody releases it */
        take_out(job);
        free(job);
    }
    pthread_cond_broadcast(&finished);
    pthread_mutex_unlock(&lock);
    if (how.type == FASTRPC_ASYNC_CALLBACK) {
        how.cb.fn(how.jobid, how.cb.context, result);
    }
    return NULL;
}

static int begin(struct job *job, fastrpc_async_jobid *id) {
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&lock);
    *id = job->id = job->how.jobid = ++last_id; /* before the callback can need it */
    job->next = jobs;
    jobs = job;
    pthread_mutex_unlock(&lock);
    int wrong = pthread_create(&thread, &detached, work, job);
    pthread_attr_destroy(&detached);
    if (wrong) {
        pthread_mutex_lock(&lock);
        take_out(job);
        pthread_mutex_unlock(&lock);
        free(job);
    }
    return wrong ? AEE_ENOMEMORY : AEE_SUCCESS;
}

FR_EXPORT int remote_handle64_invoke_async(remote_handle64 h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars,
                                           remote_arg *pra) {
    uint32_t n = REMOTE_SCALARS_LENGTH(dwScalars);
    if (!desc || (!pra && n) || desc->type > FASTRPC_ASYNC_POLL ||
        (desc->type == FASTRPC_ASYNC_CALLBACK && !desc->cb.fn)) {
        return fail(AEE_EBADPARM, __func__, "the descriptor at %p, or %u arguments at %p", (void *) desc, n,
                    (void *) pra);
    }
    pthread_once(&once, start);
    struct job *job = calloc(1, sizeof *job);
    if (!job) {
        return AEE_ENOMEMORY;
    }
    job->handle = h;
    job->scalars = dwScalars;
    job->how = *desc;
    if (n) {
        memcpy(job->args, pra, n * sizeof pra[0]);
    }
    return begin(job, &desc->jobid);
}

FR_EXPORT int remote_handle_invoke_async(remote_handle h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars,
                                         remote_arg *pra) {
    return remote_handle64_invoke_async(h, desc, dwScalars, pra);
}

/* Until the job is done or the time is over; NULL: no such job. The lock is held. */
static struct job *wait_done(fastrpc_async_jobid id, int timeout_us) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t) until.tv_nsec + (uint64_t) (timeout_us > 0 ? timeout_us : 0) * 1000u;
    until.tv_sec += (time_t) (ns / 1000000000u);
    until.tv_nsec = (long) (ns % 1000000000u);
    struct job *job = find(id);
    while (job && !job->done && timeout_us) {
        if (timeout_us < 0) {
            pthread_cond_wait(&finished, &lock);
        } else if (pthread_cond_timedwait(&finished, &lock, &until) == ETIMEDOUT) {
            return find(id);
        }
        job = find(id);
    }
    return job;
}

FR_EXPORT int fastrpc_async_get_status(fastrpc_async_jobid jobid, int timeout_us, int *result) {
    if (!result) {
        return fail(AEE_EBADPARM, __func__, "where the result goes is NULL");
    }
    pthread_once(&once, start);
    pthread_mutex_lock(&lock);
    struct job *job = wait_done(jobid, timeout_us);
    int aee = job ? job->done ? AEE_SUCCESS : AEE_EBUSY : AEE_EBADPARM;
    if (!aee) {
        *result = job->result;
    }
    pthread_mutex_unlock(&lock);
    return aee == AEE_EBADPARM ? fail(aee, __func__, "there is no job %llu", (unsigned long long) jobid) : aee;
}

FR_EXPORT int fastrpc_release_async_job(fastrpc_async_jobid jobid) {
    pthread_mutex_lock(&lock);
    struct job *job = find(jobid);
    int aee = job ? job->done ? AEE_SUCCESS : AEE_EBUSY : AEE_EBADPARM;
    if (!aee) {
        take_out(job);
        free(job);
    }
    pthread_mutex_unlock(&lock);
    return aee == AEE_EBADPARM ? fail(aee, __func__, "there is no job %llu", (unsigned long long) jobid) : aee;
}
