/* QuRT threads on host threads. Their stacks lie below 4 GiB, as code keeps addresses of locals in 32 bits. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "emu.h"
#include "hap-internal.h"
#include "qurt.h"

#define MAX_THREADS 256u
#define FOREIGN_PRIORITY 192 /* what FastRPC gives the threads of its calls */
#ifdef EMU_ASAN
#define STACK_EXTRA (1024u << 10)
#else
#define STACK_EXTRA (256u << 10)
#endif

enum state { FREE, RUNNING, ENDED };

struct thread {
    pthread_t host;
    void (*entry)(void *);
    void *arg;
    void *stack; /* a low block; NULL: the thread was not created here */
    int status;
    enum state state;
    unsigned short priority, detach_state;
    bool joining;
    char name[QURT_THREAD_ATTR_NAME_MAXLEN];
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key;
static struct thread threads[MAX_THREADS]; /* thread id = index + 1 */
static _Thread_local qurt_thread_t self;

void qurt_thread_attr_init(qurt_thread_attr_t *attr) {
    memset(attr, 0, sizeof *attr);
    attr->priority = QURT_THREAD_ATTR_PRIORITY_DEFAULT;
}

void qurt_thread_attr_set_name(qurt_thread_attr_t *attr, const char *name) {
    snprintf(attr->name, sizeof attr->name, "%s", name);
}

void qurt_thread_attr_set_priority(qurt_thread_attr_t *attr, unsigned short priority) {
    attr->priority = priority;
}

void qurt_thread_attr_set_stack_size(qurt_thread_attr_t *attr, unsigned int stack_size) {
    attr->stack_size = stack_size;
}

void qurt_thread_attr_set_stack_addr(qurt_thread_attr_t *attr, void *stack_addr) {
    attr->stack_addr = stack_addr;
}

void qurt_thread_attr_set_detachstate(qurt_thread_attr_t *attr, unsigned short detachstate) {
    attr->detach_state = detachstate;
}

void qurt_thread_attr_set_autostack(qurt_thread_attr_t *attr, unsigned short autostack) {
    attr->autostack = (unsigned char) autostack;
}

void qurt_thread_attr_set_bus_priority(qurt_thread_attr_t *attr, unsigned short bus_priority) {
    attr->bus_priority = (unsigned char) bus_priority;
}

/* Runs at the end of each thread that has an id. A thread's stack is in use until then: others take it back. */
static void end_thread(void *p) {
    struct thread *t = p;
    qurt_hvx_unlock();
    emu_hmx_end_thread();
    pthread_mutex_lock(&table_lock);
    t->state = t->stack ? ENDED : FREE;
    pthread_mutex_unlock(&table_lock);
}

static void make_key(void) {
    pthread_key_create(&end_key, end_thread);
}

/* The thread has ended and is joined by nobody else. The lock is held. */
static void reclaim(struct thread *t) {
    pthread_join(t->host, NULL);
    emu_low_unmap(t->stack);
    t->state = FREE;
}

/* A free entry. As on the device, who has ended need not be joined: its entry is kept as long as there is room. */
static struct thread *free_entry(void) {
    struct thread *spare = NULL;
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        struct thread *t = &threads[i];
        bool ended = t->state == ENDED && !t->joining;
        if (ended && t->detach_state == QURT_THREAD_ATTR_CREATE_DETACHED) {
            reclaim(t);
        }
        if (t->state == FREE) {
            return t;
        }
        if (ended && t->detach_state == QURT_THREAD_ATTR_CREATE_LEGACY && !spare) {
            spare = t;
        }
    }
    if (spare) {
        reclaim(spare);
    }
    return spare;
}

static qurt_thread_t id_of(const struct thread *t) {
    return (qurt_thread_t) (t - threads) + 1;
}

/* The calling thread gets an id if it was not created here, for as long as it lives. */
static struct thread *me(void) {
    if (!self) {
        pthread_once(&once, make_key);
        pthread_mutex_lock(&table_lock);
        struct thread *t = free_entry();
        if (!t) {
            emu_die("more than %u threads", MAX_THREADS);
        }
        *t = (struct thread){.host = pthread_self(), .state = RUNNING, .priority = FOREIGN_PRIORITY};
        self = id_of(t);
        pthread_mutex_unlock(&table_lock);
        pthread_setspecific(end_key, t);
    }
    return &threads[self - 1];
}

static void *run_thread(void *p) {
    struct thread *t = p;
    self = id_of(t);
    pthread_setspecific(end_key, t);
    if (t->name[0]) {
        pthread_setname_np(pthread_self(), t->name);
    }
    t->entry(t->arg);
    return NULL;
}

/* The stack is not at stack_addr: a frame of the host is larger than the device's. */
static bool start(struct thread *t, size_t stack_bytes) {
    pthread_attr_t attr;
    t->stack = emu_low_map(stack_bytes, -1, 0);
    if (!t->stack) {
        return false;
    }
    pthread_attr_init(&attr);
    pthread_attr_setstack(&attr, t->stack, stack_bytes);
    bool started = !pthread_create(&t->host, &attr, run_thread, t);
    pthread_attr_destroy(&attr);
    if (!started) {
        emu_low_unmap(t->stack);
    }
    return started;
}

int qurt_thread_create(qurt_thread_t *thread_id, qurt_thread_attr_t *attr, void (*entry)(void *), void *arg) {
    pthread_once(&once, make_key);
    pthread_mutex_lock(&table_lock);
    struct thread *t = free_entry();
    if (t) {
        *t = (struct thread){.entry = entry,
                             .arg = arg,
                             .state = RUNNING,
                             .priority = attr->priority,
                             .detach_state = attr->detach_state};
        memcpy(t->name, attr->name, sizeof t->name);
        if (!start(t, ((2ull * attr->stack_size + 4095) & ~4095ull) + STACK_EXTRA)) {
            t->state = FREE;
            t = NULL;
        }
    }
    *thread_id = t ? id_of(t) : 0;
    pthread_mutex_unlock(&table_lock);
    return t ? QURT_EOK : QURT_EFAILED;
}

/* The thread of that id, or NULL. The lock is held. */
static struct thread *find(unsigned int tid) {
    bool there = tid && tid <= MAX_THREADS && threads[tid - 1].state != FREE;
    return there ? &threads[tid - 1] : NULL;
}

int qurt_thread_join(unsigned int tid, int *status) {
    pthread_mutex_lock(&table_lock);
    struct thread *t = find(tid);
    bool mine = t && t->stack && !t->joining && tid != self && t->detach_state != QURT_THREAD_ATTR_CREATE_DETACHED;
    if (mine) {
        t->joining = true;
    }
    pthread_mutex_unlock(&table_lock);
    if (!mine) {
        return QURT_ENOTHREAD;
    }
    pthread_join(t->host, NULL);
    pthread_mutex_lock(&table_lock);
    if (status) {
        *status = t->status;
    }
    emu_low_unmap(t->stack);
    t->state = FREE;
    pthread_mutex_unlock(&table_lock);
    return QURT_EOK;
}

int qurt_thread_detach(unsigned int tid) {
    pthread_mutex_lock(&table_lock);
    struct thread *t = find(tid);
    bool can = t && t->stack && !t->joining;
    if (can) {
        t->detach_state = QURT_THREAD_ATTR_CREATE_DETACHED;
    }
    pthread_mutex_unlock(&table_lock);
    return can ? QURT_EOK : QURT_ENOTHREAD;
}

void qurt_thread_exit(int status) {
    if (!me()->stack) { /* whoever waits for the call that it works on would wait for ever */
        emu_die("qurt_thread_exit() on a thread that qurt_thread_create() did not make");
    }
    me()->status = status;
    pthread_exit(NULL);
}

qurt_thread_t qurt_thread_get_id(void) {
    return id_of(me());
}

void qurt_thread_get_name(char *name, unsigned char max_len) {
    snprintf(name, max_len, "%s", me()->name);
}

int qurt_thread_get_priority(qurt_thread_t threadid) {
    pthread_mutex_lock(&table_lock);
    const struct thread *t = find(threadid);
    int priority = t ? t->priority : -1;
    pthread_mutex_unlock(&table_lock);
    return priority;
}

int qurt_thread_set_priority(qurt_thread_t threadid, unsigned short newprio) {
    pthread_mutex_lock(&table_lock);
    struct thread *t = find(threadid);
    if (t) {
        t->priority = newprio;
    }
    pthread_mutex_unlock(&table_lock);
    return t ? 0 : -1;
}
