/* Counting semaphores. qurt_sem_init() starts with 1. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    unsigned long long raw; /* the count, and above it who waits */
} qurt_sem_t;

void qurt_sem_init(qurt_sem_t *sem);
void qurt_sem_init_val(qurt_sem_t *sem, unsigned short val);
void qurt_sem_destroy(qurt_sem_t *sem);
int qurt_sem_up(qurt_sem_t *sem);
int qurt_sem_add(qurt_sem_t *sem, unsigned int amount);
int qurt_sem_down(qurt_sem_t *sem);
int qurt_sem_try_down(qurt_sem_t *sem);                                 /* 0 = taken */
int qurt_sem_down_timed(qurt_sem_t *sem, unsigned long int duration_us); /* QURT_ETIMEDOUT */
unsigned short qurt_sem_get_val(qurt_sem_t *sem);

#ifdef __cplusplus
}
#endif
