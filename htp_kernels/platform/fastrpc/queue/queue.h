/*
 * What both ends of a queue share: struct queue behind a dspqueue_t, and the border to the side that it is built for
 * (queue-client.c in libcdsprpc.so, queue-pd.c in htp-pd).
 *
 * A dspqueue_t is a ticket, not an address: a closed or invented one is recognised, and fits into the DSP's 32 bits.
 */
#pragma once

#include <pthread.h>

#include "../shared.h"
#include "ring.h"

#define QUEUE_API __attribute__((visibility("default")))

#define QUEUE_MAX 1024u          /* of a process */
#define QUEUE_MAX_OF_SESSION 64u /* as on the device */
#define QUEUE_DATA 4096u /* where the rings' bytes begin in the shared memory */

/* Who has the DSP's end. */
enum queue_holder { HOLDER_NONE, HOLDER_DSP, HOLDER_CLOSED };

/* The beginning of a queue's shared memory. */
struct queue_memory {
    uint32_t request_bytes, response_bytes;
    _Atomic uint32_t holder;
    struct ring_state request, response;
};

_Static_assert(sizeof(struct queue_memory) <= QUEUE_DATA, "the rings' bytes come behind it");

/* What an end is made of; where it comes from is its side's business. */
struct queue_end {
    struct queue_memory *memory;
    uint32_t request_bytes, response_bytes; /* as checked: those in the memory may change */
    bool is_dsp;
    dspqueue_callback_t packet_callback, error_callback;
    void *context;
    struct pd *pd;
    uint64_t region, bytes; /* of the memory */
    /* A queue to several domains has no memory, but a queue for each. */
    uint32_t n_parts;
    dspqueue_t *parts;
};

struct queue {
    _Atomic uint32_t ticket;  /* while open; 0: closed or closing */
    _Atomic uint32_t n_users; /* calls inside */
    _Atomic int error;        /* the other end is gone: what calls give from now on */
    bool taken;
    struct queue_end end;
    struct ring in, out;
    pthread_mutex_t in_lock, out_lock;
    bool told_of_size; /* under out_lock */
    _Atomic bool told_of_damage;
    _Atomic uint64_t wakeup_wait_us, n_wakeup_misses;
    uint64_t thread; /* of the callbacks */
    struct bell alarm;
};

#pragma GCC visibility push(hidden)

/* Bytes of shared memory for rings of such sizes. */
uint64_t queue_memory_bytes(uint32_t request_bytes, uint32_t response_bytes);

/* An open queue from then on; a code of AEEStdErr.h otherwise. The end is copied. */
int queue_open(const struct queue_end *end, dspqueue_t *handle);

/* Cancels every call that waits, comes back when the last has left, and gives the end back to its side. `may_close` is
 * asked before anything else (under a lock: the answer decides), NULL stands for yes. */
int queue_close(dspqueue_t handle, int (*may_close)(const struct queue_end *end), struct queue_end *closed);

/* Every call to an open queue stands between these two. NULL: it is not open, and that has been said. */
struct queue *queue_enter(dspqueue_t handle);
void queue_leave(struct queue *queue);
dspqueue_t queue_handle(const struct queue *queue);

/* The other end is gone: calls fail with `error`, and the error callback gets it. */
void queue_break(dspqueue_t handle, int error);
/* What a call that would wait gives instead; 0: let it wait. */
int queue_stopped(const struct queue *queue);

#define QUEUE_NO_WAIT 0u /* as a deadline */
uint64_t queue_deadline_ns(uint32_t timeout_us);

/* Says once that the memory is damaged, as damage stays; gives `error`. */
int queue_damaged(struct queue *queue, int error);

/* Fills in address and size of a packet's buffers, and does their REF and DEREF: all, or none. `bad_bounds` is the code
 * for bytes outside of a buffer. */
int queue_find_buffers(struct queue *queue, struct dspqueue_buffer *buffers, uint32_t n, int bad_bounds);
void queue_undo_buffers(struct queue *queue, const struct dspqueue_buffer *buffers, uint32_t n);

/* Of the side. A reference's REF or DEREF happens when it is found, and is taken back where the packet fails. */
int side_find_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer, void **address, uint64_t *size);
void side_undo_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer);
int side_start_thread(uint64_t *thread, void (*entry)(void *), void *argument);
void side_join_thread(uint64_t thread);

#pragma GCC visibility pop
