/* Packets in: the reading half of the dspqueue API and the statistics, the same on both sides. */
#include <string.h>

#include "AEEStdErr.h"
#include "queue.h"

#define WAKEUP_WAIT_US 1000u
#define WAKEUP_WAIT_MAX_US 2500u

/* Where a reader wants a packet; NULL: it does not. */
struct room {
    uint32_t max_buffers, max_message;
    struct dspqueue_buffer *buffers;
    uint8_t *message;
    bool peeks;
};

/* Copies the packet out. The ring's bytes may change while they are read, the sizes were checked and do not. */
static int copy_out(const struct ring_packet *packet, const struct room *room) {
    const struct packet *head = &packet->head;
    if ((room->buffers && head->n_buffers > room->max_buffers) ||
        (room->message && head->message_bytes > room->max_message)) {
        fr_farf(FR_ERROR, "dspqueue_read: room for %u buffers and %u bytes, but the packet has %u and %u",
                room->buffers ? room->max_buffers : 0, room->message ? room->max_message : 0, head->n_buffers,
                head->message_bytes);
        return AEE_EBADPARM;
    }
    if (room->buffers && head->n_buffers) {
        memcpy(room->buffers, packet->buffers, head->n_buffers * sizeof *room->buffers);
    }
    if (room->message && head->message_bytes) {
        memcpy(room->message, packet->message, head->message_bytes);
    }
    return AEE_SUCCESS;
}

/* An early wake-up is for us, not for the reader: how long its packet may take to come. */
static int copy_wakeup(const struct ring_packet *packet, uint32_t *wait_us) {
    uint32_t delay_us = 0;
    if (packet->head.n_buffers || (packet->head.message_bytes && packet->head.message_bytes != sizeof delay_us)) {
        return AEE_EBADITEM;
    }
    memcpy(&delay_us, packet->message, packet->head.message_bytes);
    *wait_us = !delay_us ? WAKEUP_WAIT_US : delay_us < WAKEUP_WAIT_MAX_US ? delay_us : WAKEUP_WAIT_MAX_US;
    return AEE_SUCCESS;
}

/* The next packet, or what announces it: then *wait_us is not 0. */
static int try_read(struct queue *queue, const struct room *room, struct packet *head, uint32_t *wait_us) {
    struct ring_packet packet;
    *wait_us = 0;
    pthread_mutex_lock(&queue->in_lock);
    int error = ring_look(&queue->in, &packet);
    if (!error) {
        *head = packet.head;
        if (!room->peeks) {
            error = head->flags & DSPQUEUE_PACKET_FLAG_WAKEUP ? copy_wakeup(&packet, wait_us) : copy_out(&packet, room);
            if (!error) {
                ring_take(&queue->in, &packet);
            }
        }
    }
    pthread_mutex_unlock(&queue->in_lock);
    return error == (int) AEE_EBADITEM ? queue_damaged(queue, error) : error;
}

/* Stays awake for a packet that was announced. */
static void await_announced(struct queue *queue, uint32_t wait_us, uint64_t deadline_ns) {
    struct bell *bell = &queue->in.state->packet_bell;
    uint64_t begin = bell_now_ns(), until = begin + wait_us * UINT64_C(1000);
    uint32_t seen = bell_rings(bell), waiting = 0, n = 0;
    ring_fill(&queue->in, false, &waiting, &n);
    bool came = waiting || bell_wait(bell, seen, until < deadline_ns ? until : deadline_ns);
    atomic_fetch_add(&queue->wakeup_wait_us, (bell_now_ns() - begin) / 1000);
    atomic_fetch_add(&queue->n_wakeup_misses, !came);
}

/* A wake-up is waited for once a call, so that one without a packet, and then another, do not hold it. */
static int read_until(struct queue *queue, const struct room *room, struct packet *head, uint64_t deadline_ns) {
    struct bell *bell = &queue->in.state->packet_bell;
    bool announced = false;
    for (;;) {
        uint32_t seen = bell_rings(bell), wait_us = 0;
        int stopped = queue_stopped(queue);
        int error = try_read(queue, room, head, &wait_us);
        if (!error && wait_us && !announced) {
            await_announced(queue, wait_us, deadline_ns == QUEUE_NO_WAIT ? BELL_FOREVER : deadline_ns);
            announced = true;
            continue;
        }
        if (!error && wait_us) {
            error = AEE_EWOULDBLOCK;
        }
        if (error == AEE_EWOULDBLOCK && stopped) {
            return stopped;
        }
        if (error != AEE_EWOULDBLOCK || deadline_ns == QUEUE_NO_WAIT) {
            return error;
        }
        if (wait_us ? bell_now_ns() >= deadline_ns : !bell_wait(bell, seen, deadline_ns)) {
            return AEE_EEXPIRED;
        }
    }
}

static int may_read(const struct queue *queue, uint64_t deadline_ns) {
    if (deadline_ns == QUEUE_NO_WAIT || (queue->end.n_parts < 2 && !queue->end.packet_callback)) {
        return AEE_SUCCESS;
    }
    fr_farf(FR_ERROR, "dspqueue: a queue %s has no blocking read and peek: use the _noblock forms",
            queue->end.n_parts ? "to several domains" : "with a packet callback");
    return AEE_EUNSUPPORTED;
}

static AEEResult read_from(dspqueue_t handle, const struct room *room, struct packet *head, uint64_t deadline_ns);

static int read_parts(struct queue *queue, const struct room *room, struct packet *head, uint64_t deadline_ns) {
    int error = AEE_EWOULDBLOCK;
    for (uint32_t i = 0; i < queue->end.n_parts && error == AEE_EWOULDBLOCK; i++) {
        error = read_from(queue->end.parts[i], room, head, deadline_ns);
    }
    return error;
}

static AEEResult read_from(dspqueue_t handle, const struct room *room, struct packet *head, uint64_t deadline_ns) {
    struct queue *queue = queue_enter(handle);
    if (!queue) {
        return AEE_EBADPARM;
    }
    int error = may_read(queue, deadline_ns);
    if (!error && queue->end.n_parts) {
        error = read_parts(queue, room, head, deadline_ns);
    } else if (!error) {
        error = read_until(queue, room, head, deadline_ns);
        if (!error && !room->peeks) {
            atomic_fetch_add(&fr_counters()->packets, 1);
            error = room->buffers ? queue_find_buffers(queue, room->buffers, head->n_buffers, AEE_EBADITEM) : error;
        }
    }
    queue_leave(queue);
    return error;
}

static AEEResult read_into(dspqueue_t queue, const struct room *room, uint32_t *flags, uint32_t *num_buffers,
                           uint32_t *message_length, uint64_t deadline_ns) {
    struct packet head;
    AEEResult error = read_from(queue, room, &head, deadline_ns);
    if (error) {
        return error;
    }
    if (flags) {
        *flags = head.flags;
    }
    if (num_buffers) {
        *num_buffers = head.n_buffers;
    }
    if (message_length) {
        *message_length = head.message_bytes;
    }
    return AEE_SUCCESS;
}

QUEUE_API AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers,
                                          uint32_t *num_buffers, struct dspqueue_buffer *buffers,
                                          uint32_t max_message_length, uint32_t *message_length, uint8_t *message) {
    const struct room room = {max_buffers, max_message_length, buffers, message, false};
    return read_into(queue, &room, flags, num_buffers, message_length, QUEUE_NO_WAIT);
}

QUEUE_API AEEResult dspqueue_read(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *num_buffers,
                                  struct dspqueue_buffer *buffers, uint32_t max_message_length,
                                  uint32_t *message_length, uint8_t *message, uint32_t timeout_us) {
    const struct room room = {max_buffers, max_message_length, buffers, message, false};
    return read_into(queue, &room, flags, num_buffers, message_length, queue_deadline_ns(timeout_us));
}

QUEUE_API AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers,
                                          uint32_t *message_length) {
    const struct room room = {.peeks = true};
    return read_into(queue, &room, flags, num_buffers, message_length, QUEUE_NO_WAIT);
}

QUEUE_API AEEResult dspqueue_peek(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers, uint32_t *message_length,
                                  uint32_t timeout_us) {
    const struct room room = {.peeks = true};
    return read_into(queue, &room, flags, num_buffers, message_length, queue_deadline_ns(timeout_us));
}

/* Packets or bytes that wait in one direction. */
static int fill(struct queue *queue, bool out, bool packets, uint64_t *value) {
    uint32_t bytes = 0, n = 0;
    pthread_mutex_t *lock = out ? &queue->out_lock : &queue->in_lock;
    pthread_mutex_lock(lock);
    int error = ring_fill(out ? &queue->out : &queue->in, out, &bytes, &n);
    pthread_mutex_unlock(lock);
    *value = packets ? n : bytes;
    return error ? queue_damaged(queue, error) : AEE_SUCCESS;
}

static AEEResult statistic(struct queue *queue, enum dspqueue_stat stat, uint64_t *value) {
    switch (stat) {
    case DSPQUEUE_STAT_READ_QUEUE_PACKETS:
        return fill(queue, false, true, value);
    case DSPQUEUE_STAT_READ_QUEUE_BYTES:
        return fill(queue, false, false, value);
    case DSPQUEUE_STAT_WRITE_QUEUE_PACKETS:
        return fill(queue, true, true, value);
    case DSPQUEUE_STAT_WRITE_QUEUE_BYTES:
        return fill(queue, true, false, value);
    case DSPQUEUE_STAT_EARLY_WAKEUP_WAIT_TIME:
        *value = atomic_exchange(&queue->wakeup_wait_us, 0);
        return AEE_SUCCESS;
    case DSPQUEUE_STAT_EARLY_WAKEUP_MISSES:
        *value = atomic_exchange(&queue->n_wakeup_misses, 0);
        return AEE_SUCCESS;
    case DSPQUEUE_STAT_SIGNALING_PERF:
        *value = DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING;
        return AEE_SUCCESS;
    default:
        fr_farf(FR_ERROR, "dspqueue_get_stat: there is no statistic %d", (int) stat);
        return AEE_EBADPARM;
    }
}

QUEUE_API AEEResult dspqueue_get_stat(dspqueue_t handle, enum dspqueue_stat stat, uint64_t *value) {
    struct queue *queue = queue_enter(handle);
    if (!queue) {
        return AEE_EBADPARM;
    }
    AEEResult error = AEE_EBADPARM;
    if (queue->end.n_parts > 1) {
        fr_farf(FR_ERROR, "dspqueue_get_stat: a queue to several domains has no statistics");
        error = AEE_EUNSUPPORTED;
    } else if (value) {
        error = queue->end.n_parts ? dspqueue_get_stat(queue->end.parts[0], stat, value)
                                   : statistic(queue, stat, value);
    }
    queue_leave(queue);
    return error;
}
