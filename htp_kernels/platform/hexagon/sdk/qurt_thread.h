/* QuRT threads. */
#pragma once

#define QURT_EOK 0
#define QURT_EINVALID 4
#define QURT_EFAILED 12
#define QURT_ENOTHREAD QURT_EFAILED

#define QURT_THREAD_ATTR_NAME_MAXLEN 16

typedef unsigned int qurt_thread_t;

typedef struct {
    char name[QURT_THREAD_ATTR_NAME_MAXLEN];
    unsigned short priority;
    unsigned int stack_size;
    void *stack_addr;
} qurt_thread_attr_t;

void qurt_thread_attr_init(qurt_thread_attr_t *attr);
void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name);
void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority);
void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size);
void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr);

int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entry)(void *), void *arg);
int qurt_thread_join(unsigned int tid, int *status);
void qurt_thread_exit(int status) __attribute__((noreturn));
qurt_thread_t qurt_thread_get_id(void);
