/* QuRT threads. Priorities go from 1, the most urgent, to 254. */
#pragma once

#include <string.h>

#include "qurt_timer.h"
#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_THREAD_ATTR_NAME_MAXLEN 16
#define QURT_THREAD_ATTR_PRIORITY_DEFAULT 254
#define QURT_THREAD_ATTR_CREATE_LEGACY 0U
#define QURT_THREAD_ATTR_CREATE_JOINABLE 1U
#define QURT_THREAD_ATTR_CREATE_DETACHED 2U
#define QURT_THREAD_AUTOSTACK_DISABLED 0
#define QURT_THREAD_AUTOSTACK_ENABLED 1
#define QURT_THREAD_BUS_PRIO_DISABLED 0
#define QURT_THREAD_BUS_PRIO_ENABLED 1

typedef unsigned int qurt_thread_t;

typedef struct _qurt_thread_attr {
    char name[QURT_THREAD_ATTR_NAME_MAXLEN];
    unsigned short priority;
    unsigned short detach_state;
    unsigned char autostack;
    unsigned char bus_priority;
    unsigned int stack_size;
    void *stack_addr;
} qurt_thread_attr_t;

void qurt_thread_attr_init(qurt_thread_attr_t *attr);
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name);
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority);
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size);
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr);
void qurt_thread_attr_set_detachstate(qurt_thread_attr_t *attr, unsigned short detachstate);
void qurt_thread_attr_set_autostack(qurt_thread_attr_t *attr, unsigned short autostack);
void qurt_thread_attr_set_bus_priority(qurt_thread_attr_t *attr, unsigned short bus_priority);

int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entry)(void *), void *arg);
int qurt_thread_join(unsigned int tid, int *status);
int qurt_thread_detach(unsigned int tid);
void qurt_thread_exit(int status) __attribute__((noreturn));
qurt_thread_t qurt_thread_get_id(void);
void qurt_thread_get_name(char *name, unsigned char max_len);
int qurt_thread_get_priority(qurt_thread_t threadid); /* -1: no such thread */
int qurt_thread_set_priority(qurt_thread_t threadid, unsigned short newprio);

#ifdef __cplusplus
}
#endif
