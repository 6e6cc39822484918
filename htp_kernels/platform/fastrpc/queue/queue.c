/* Open queues: the table of them, the callbacks' threads, and how a queue ends. */
#include "queue.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "AEEStdErr.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue table[QUEUE_MAX];
static uint32_t n_opened; /* ever, for tickets that do not come again soon */

/* Whose callback this thread is in. queue_close() waits for it, so that it may call until it returns. */
static _Thread_local struct {
    const struct queue *queue;
    dspqueue_t handle;
} calling_back;

static uint32_t padded(uint32_t bytes) {
    return (bytes + 63) & ~63u;
}

uint64_t queue_memory_bytes(uint32_t request_bytes, uint32_t response_bytes) {
    return QUEUE_DATA + (uint64_t) padded(request_bytes) + padded(response_bytes);
}

struct queue *queue_enter(dspqueue_t handle) {
    uintptr_t ticket = (uintptr_t) handle;
    struct queue *queue = &table[ticket % QUEUE_MAX];
    atomic_fetch_add(&queue->n_users, 1);
    bool own = calling_back.queue == queue && calling_back.handle == handle;
    if (own || (ticket && atomic_load(&queue->ticket) == ticket)) {
        return queue;
    }
    queue_leave(queue);
    fr_farf(FR_ERROR, "dspqueue: %p is no open queue: it was closed, or never created or imported", (void *) handle);
    return NULL;
}

void queue_leave(struct queue *queue) {
    atomic_fetch_sub(&queue->n_users, 1);
    if (!atomic_load(&queue->ticket)) {
        syscall(SYS_futex, &queue->n_users, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0); /* queue_close() waits */
    }
}

dspqueue_t queue_handle(const struct queue *queue) {
    return (dspqueue_t) (uintptr_t) atomic_load(&queue->ticket);
}

int queue_stopped(const struct queue *queue) {
    return atomic_load(&queue->ticket) ? atomic_load(&queue->error) : AEE_EINTERRUPTED;
}

uint64_t queue_deadline_ns(uint32_t timeout_us) {
    return timeout_us == DSPQUEUE_TIMEOUT_NONE ? BELL_FOREVER : bell_now_ns() + timeout_us * UINT64_C(1000);
}

int queue_damaged(struct queue *queue, int error) {
    if (!atomic_exchange(&queue->told_of_damage, true)) {
        fr_farf(FR_ERROR, "dspqueue: the shared memory of queue %p is damaged: something else writes into it",
                (void *) queue_handle(queue));
    }
    return error;
}

static bool has_callbacks(const struct queue_end *end) {
    return end->memory && (end->packet_callback || end->error_callback);
}

/* A thread that only waits for the end of the DSP does not want to be woken by packets. */
static struct bell *bell_of_callbacks(struct queue *queue) {
    return queue->end.packet_callback ? &queue->in.state->packet_bell : &queue->alarm;
}

static bool has_packets(struct queue *queue) {
    struct ring_packet packet;
    pthread_mutex_lock(&queue->in_lock);
    bool answer = ring_look(&queue->in, &packet) != AEE_EWOULDBLOCK;
    pthread_mutex_unlock(&queue->in_lock);
    return answer;
}

static void run_callbacks(void *argument) {
    struct queue *queue = argument;
    const struct queue_end *end = &queue->end;
    struct bell *bell = bell_of_callbacks(queue);
    dspqueue_t handle = queue_handle(queue);
    uint32_t seen = bell_rings(bell);
    calling_back.queue = queue;
    calling_back.handle = handle;
    for (;;) {
        if (atomic_load(&queue->ticket) && end->packet_callback && has_packets(queue)) {
            end->packet_callback(handle, AEE_SUCCESS, end->context);
        }
        int stopped = queue_stopped(queue);
        if (stopped) {
            if (stopped != AEE_EINTERRUPTED && end->error_callback) {
                end->error_callback(handle, stopped, end->context);
            }
            return;
        }
        bell_wait(bell, seen, BELL_FOREVER);
        seen = bell_rings(bell);
    }
}

/* A slot for this end, and the ticket that it will have. */
static struct queue *take_slot(const struct queue_end *end, uint32_t *ticket) {
    struct queue *queue = NULL;
    uint32_t n_of_session = 0;
    pthread_mutex_lock(&table_lock);
    for (uint32_t i = 0; i < QUEUE_MAX; i++) {
        n_of_session += table[i].taken && table[i].end.pd == end->pd;
        if (!table[i].taken && !queue) {
            queue = &table[i];
        }
    }
    if (queue && n_of_session < QUEUE_MAX_OF_SESSION) {
        n_opened = n_opened % (UINT32_MAX / QUEUE_MAX) + 1; /* never 0 */
        *ticket = n_opened * QUEUE_MAX + (uint32_t) (queue - table);
        queue->taken = true;
        queue->end = *end;
    } else {
        queue = NULL;
    }
    pthread_mutex_unlock(&table_lock);
    return queue;
}

static void give_slot_back(struct queue *queue) {
    pthread_mutex_lock(&table_lock);
    queue->taken = false;
    pthread_mutex_unlock(&table_lock);
}

static int open_rings(struct queue *queue) {
    const struct queue_end *end = &queue->end;
    struct queue_memory *memory = end->memory;
    uint8_t *requests = (uint8_t *) memory + QUEUE_DATA, *responses = requests + padded(end->request_bytes);
    struct ring *request = end->is_dsp ? &queue->in : &queue->out;
    struct ring *response = end->is_dsp ? &queue->out : &queue->in;
    int error = ring_open(request, &memory->request, requests, end->request_bytes, !end->is_dsp);
    return error ? error : ring_open(response, &memory->response, responses, end->response_bytes, end->is_dsp);
}

int queue_open(const struct queue_end *end, dspqueue_t *handle) {
    uint32_t ticket = 0;
    struct queue *queue = take_slot(end, &ticket);
    if (!queue) {
        fr_farf(FR_ERROR, "dspqueue: a session has %u queues at most (all sessions %u): close some",
                QUEUE_MAX_OF_SESSION, QUEUE_MAX);
        return AEE_EBADPARM;
    }
    queue->told_of_size = false;
    atomic_store(&queue->told_of_damage, false);
    atomic_store(&queue->error, 0);
    atomic_store(&queue->wakeup_wait_us, 0);
    atomic_store(&queue->n_wakeup_misses, 0);
    int error = end->memory ? open_rings(queue) : AEE_SUCCESS;
    if (error) {
        give_slot_back(queue);
        return error;
    }
    pthread_mutex_init(&queue->in_lock, NULL);
    pthread_mutex_init(&queue->out_lock, NULL);
    atomic_store(&queue->ticket, ticket);
    *handle = (dspqueue_t) (uintptr_t) ticket; /* before a callback could look for it */
    error = has_callbacks(end) ? side_start_thread(&queue->thread, run_callbacks, queue) : AEE_SUCCESS;
    if (error) {
        atomic_store(&queue->ticket, 0);
        give_slot_back(queue);
        *handle = NULL;
    }
    return error;
}

/* Wakes whatever waits in this process; what waits in the other finds nothing new. */
static void ring_all(struct queue *queue) {
    bell_ring(&queue->alarm);
    if (queue->end.memory) {
        bell_ring(&queue->in.state->packet_bell);
        bell_ring(&queue->out.state->space_bell);
    }
}

void queue_break(dspqueue_t handle, int error) {
    struct queue *queue = &table[(uintptr_t) handle % QUEUE_MAX];
    atomic_fetch_add(&queue->n_users, 1);
    if (atomic_load(&queue->ticket) == (uintptr_t) handle) {
        atomic_store(&queue->error, error);
        ring_all(queue);
    }
    queue_leave(queue);
}

/* Decides that this call, of all, closes the queue. */
static int claim_end(struct queue *queue, dspqueue_t handle, int (*may_close)(const struct queue_end *end)) {
    if (calling_back.queue == queue) {
        fr_farf(FR_ERROR, "dspqueue_close: %p cannot be closed from its own callback", (void *) handle);
        return AEE_ERPC;
    }
    pthread_mutex_lock(&table_lock);
    int error = atomic_load(&queue->ticket) == (uintptr_t) handle ? AEE_SUCCESS : AEE_EBADPARM;
    if (!error && may_close) {
        error = may_close(&queue->end);
    }
    if (!error) {
        atomic_store(&queue->ticket, 0);
    }
    pthread_mutex_unlock(&table_lock);
    return error;
}

int queue_close(dspqueue_t handle, int (*may_close)(const struct queue_end *end), struct queue_end *closed) {
    struct queue *queue = queue_enter(handle);
    if (!queue) {
        return AEE_EBADPARM;
    }
    int error = claim_end(queue, handle, may_close);
    if (error) {
        queue_leave(queue);
        return error;
    }
    ring_all(queue);
    uint32_t n;
    while ((n = atomic_load(&queue->n_users)) != 1) {
        syscall(SYS_futex, &queue->n_users, FUTEX_WAIT_PRIVATE, n, NULL, NULL, 0);
    }
    if (has_callbacks(&queue->end)) {
        side_join_thread(queue->thread);
    }
    pthread_mutex_destroy(&queue->in_lock);
    pthread_mutex_destroy(&queue->out_lock);
    *closed = queue->end;
    queue_leave(queue);
    give_slot_back(queue);
    return AEE_SUCCESS;
}
