/* QuRT barriers: the last of threads_total to arrive lets all go. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_BARRIER_OTHER 0
#define QURT_BARRIER_SERIAL_THREAD 1

typedef struct {
    unsigned int threads_total;
    unsigned int threads_left;
    unsigned int generation;
} qurt_barrier_t;

int qurt_barrier_init(qurt_barrier_t *barrier, unsigned int threads_total);
int qurt_barrier_destroy(qurt_barrier_t *barrier);
int qurt_barrier_wait(qurt_barrier_t *barrier);

#ifdef __cplusplus
}
#endif
