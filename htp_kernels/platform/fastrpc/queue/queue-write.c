/* Packets out: the writing half of the dspqueue API, the same on both sides. */
#include <string.h>

#include "AEEStdErr.h"
#include "queue.h"

static AEEResult write_to(dspqueue_t handle, uint32_t flags, uint32_t n_buffers, const struct dspqueue_buffer *buffers,
                          uint32_t message_bytes, const uint8_t *message, uint64_t deadline_ns);

/* Packets are not split at the ring's end. The device would keep the writer waiting here for good, and so do we. */
static void warn_of_size(struct queue *queue, const struct packet *head) {
    uint32_t waiting = 0, n = 0;
    if (!queue->told_of_size && !ring_fill(&queue->out, true, &waiting, &n) && waiting == 0) {
        queue->told_of_size = true;
        fr_farf(FR_ERROR,
                "dspqueue: a packet of %u buffers and %u bytes finds no room in an empty queue of %u bytes at position "
                "%u, and never will: create queues of twice the longest packet",
                head->n_buffers, head->message_bytes, queue->out.bytes, queue->out.position);
    }
}

static int try_write(struct queue *queue, const struct packet *head, const struct dspqueue_buffer *buffers,
                     const uint8_t *message) {
    pthread_mutex_lock(&queue->out_lock);
    int error = ring_write(&queue->out, head, buffers, message);
    if (error == AEE_EWOULDBLOCK) {
        warn_of_size(queue, head);
    }
    pthread_mutex_unlock(&queue->out_lock);
    if (error == (int) AEE_EBADPARM) {
        fr_farf(FR_ERROR, "dspqueue_write: a packet of %u buffers and %u bytes is longer than the queue (%u bytes)",
                head->n_buffers, head->message_bytes, queue->out.bytes);
    }
    return error == (int) AEE_EBADSTATE ? queue_damaged(queue, error) : error;
}

static int write_until(struct queue *queue, const struct packet *head, const struct dspqueue_buffer *buffers,
                       const uint8_t *message, uint64_t deadline_ns) {
    struct bell *bell = &queue->out.state->space_bell;
    for (;;) {
        uint32_t seen = bell_rings(bell);
        int error = queue_stopped(queue);
        if (!error) {
            error = try_write(queue, head, buffers, message);
        }
        if (error != AEE_EWOULDBLOCK || deadline_ns == QUEUE_NO_WAIT) {
            return error;
        }
        if (!bell_wait(bell, seen, deadline_ns)) {
            return AEE_EEXPIRED;
        }
    }
}

static int write_packet(struct queue *queue, const struct packet *head, const struct dspqueue_buffer *buffers,
                        const uint8_t *message, uint64_t deadline_ns) {
    struct dspqueue_buffer resolved[RING_MAX_BUFFERS], sent[RING_MAX_BUFFERS];
    uint32_t n = head->n_buffers;
    if (n) {
        memcpy(resolved, buffers, n * sizeof *buffers);
    }
    int error = queue_stopped(queue); /* mappings ended with the DSP's process: that is not what is wrong */
    error = error ? error : queue_find_buffers(queue, resolved, n, AEE_EBADPARM);
    if (error) {
        return error;
    }
    for (uint32_t i = 0; i < n; i++) {
        sent[i] = resolved[i];
        sent[i].address = 0; /* means nothing to the reader */
    }
    error = write_until(queue, head, sent, message, deadline_ns);
    if (error) {
        queue_undo_buffers(queue, resolved, n);
    }
    return error;
}

/* What no packet may be, whatever the queue. */
static bool is_packet(uint32_t flags, uint32_t n_buffers, const struct dspqueue_buffer *buffers,
                      uint32_t message_bytes, const uint8_t *message) {
    if (n_buffers > RING_MAX_BUFFERS || message_bytes > RING_MAX_MESSAGE || (n_buffers && !buffers) ||
        (message_bytes && !message)) {
        fr_farf(FR_ERROR, "dspqueue_write: %u buffers (%u at most) at %p, a message of %u bytes (%u at most) at %p",
                n_buffers, RING_MAX_BUFFERS, (const void *) buffers, message_bytes, RING_MAX_MESSAGE,
                (const void *) message);
        return false;
    }
    if (flags & DSPQUEUE_PACKET_FLAG_WAKEUP && (n_buffers || (message_bytes && message_bytes != sizeof(uint32_t)))) {
        fr_farf(FR_ERROR, "dspqueue_write: an early wake-up carries no more than a delay of 4 bytes");
        return false;
    }
    return true;
}

/* Some domains may have the packet when another fails, and it cannot be taken back. */
static int write_parts(struct queue *queue, uint32_t flags, uint32_t n_buffers, const struct dspqueue_buffer *buffers,
                       uint32_t message_bytes, const uint8_t *message, uint64_t deadline_ns) {
    int error = AEE_SUCCESS;
    pthread_mutex_lock(&queue->out_lock); /* every domain sees the packets in one order */
    for (uint32_t i = 0; i < queue->end.n_parts && !error; i++) {
        error = write_to(queue->end.parts[i], flags, n_buffers, buffers, message_bytes, message, deadline_ns);
    }
    pthread_mutex_unlock(&queue->out_lock);
    return error ? AEE_EBADSTATE : AEE_SUCCESS;
}

static AEEResult write_to(dspqueue_t handle, uint32_t flags, uint32_t n_buffers, const struct dspqueue_buffer *buffers,
                          uint32_t message_bytes, const uint8_t *message, uint64_t deadline_ns) {
    struct queue *queue = is_packet(flags, n_buffers, buffers, message_bytes, message) ? queue_enter(handle) : NULL;
    if (!queue) {
        return AEE_EBADPARM;
    }
    flags &= ~(uint32_t) (DSPQUEUE_PACKET_FLAG_BUFFERS | DSPQUEUE_PACKET_FLAG_MESSAGE);
    flags |= DSPQUEUE_PACKET_FLAG_USER_READY | (n_buffers ? DSPQUEUE_PACKET_FLAG_BUFFERS : 0) |
             (message_bytes ? DSPQUEUE_PACKET_FLAG_MESSAGE : 0);
    struct packet head = {.flags = flags, .n_buffers = n_buffers, .message_bytes = message_bytes};
    int error = queue->end.n_parts
                    ? write_parts(queue, flags, n_buffers, buffers, message_bytes, message, deadline_ns)
                    : write_packet(queue, &head, buffers, message, deadline_ns);
    queue_leave(queue);
    return error;
}

QUEUE_API AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                           struct dspqueue_buffer *buffers, uint32_t message_length,
                                           const uint8_t *message) {
    return write_to(queue, flags, num_buffers, buffers, message_length, message, QUEUE_NO_WAIT);
}

QUEUE_API AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                   struct dspqueue_buffer *buffers, uint32_t message_length, const uint8_t *message,
                                   uint32_t timeout_us) {
    return write_to(queue, flags, num_buffers, buffers, message_length, message, queue_deadline_ns(timeout_us));
}

QUEUE_API AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay,
                                                        uint32_t packet_flags) {
    uint32_t bytes = wakeup_delay ? sizeof wakeup_delay : 0;
    return write_to(queue, packet_flags | DSPQUEUE_PACKET_FLAG_WAKEUP, 0, NULL, bytes, (const uint8_t *) &wakeup_delay,
                    QUEUE_NO_WAIT);
}
