/* QuRT mutexes; rmutexes may be locked again by the thread that holds them. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    unsigned int state;  /* 0 free, 1 held, 2 held and somebody waits */
    unsigned int holder; /* rmutex: thread id in the low half, depth above */
} qurt_mutex_t;

#define QURT_MUTEX_INIT {0, 0}

void qurt_mutex_init(qurt_mutex_t *lock);
void qurt_mutex_destroy(qurt_mutex_t *lock);
void qurt_mutex_lock(qurt_mutex_t *lock);
void qurt_mutex_unlock(qurt_mutex_t *lock);
int qurt_mutex_try_lock(qurt_mutex_t *lock); /* 0 = taken */

void qurt_rmutex_init(qurt_mutex_t *lock);
void qurt_rmutex_destroy(qurt_mutex_t *lock);
void qurt_rmutex_lock(qurt_mutex_t *lock);
void qurt_rmutex_unlock(qurt_mutex_t *lock);
int qurt_rmutex_try_lock(qurt_mutex_t *lock); /* 0 = taken */

#ifdef __cplusplus
}
#endif
