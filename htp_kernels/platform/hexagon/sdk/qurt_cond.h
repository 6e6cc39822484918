/* Condition variables: waiting gives the mutex up and takes it again. A waiter may also wake for no reason. */
#pragma once

#include "qurt_mutex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    unsigned int sequence; /* of signals */
} qurt_cond_t;

void qurt_cond_init(qurt_cond_t *cond);
void qurt_cond_destroy(qurt_cond_t *cond);
void qurt_cond_wait(qurt_cond_t *cond, qurt_mutex_t *mutex);
void qurt_cond_signal(qurt_cond_t *cond);
void qurt_cond_broadcast(qurt_cond_t *cond);

#ifdef __cplusplus
}
#endif
