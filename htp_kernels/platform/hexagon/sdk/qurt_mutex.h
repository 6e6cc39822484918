/* QuRT mutexes. */
#pragma once

typedef struct {
    unsigned int state; /* 0 free, 1 held, 2 held and somebody waits */
} qurt_mutex_t;

void qurt_mutex_init(qurt_mutex_t *lock);
void qurt_mutex_destroy(qurt_mutex_t *lock);
void qurt_mutex_lock(qurt_mutex_t *lock);
void qurt_mutex_unlock(qurt_mutex_t *lock);
int qurt_mutex_try_lock(qurt_mutex_t *lock); /* 0 = taken */
