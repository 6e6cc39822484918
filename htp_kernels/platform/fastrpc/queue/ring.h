/*
 * One direction of a queue: packets in a circle of shared memory, one process writes and one reads.
 *
 * A packet is a header of 8 bytes, buffer references, the message, and padding to a multiple of 8. It is not split at
 * the end of the memory: it then stands at the beginning, and its header in both places. So packets of more than half
 * the ring may find no place even in an empty one, as on the device.
 *
 * Neither end trusts the other. An end keeps its own position to itself and takes every word of the shared memory once,
 * checks it, and uses what it checked: whatever stands there, nothing outside of the ring is touched.
 */
#pragma once

#include "bell.h"
#include "dspqueue.h"

#define RING_MAX_BYTES 16777216u
#define RING_MAX_BUFFERS 64u
#define RING_MAX_MESSAGE 65536u

/* In shared memory, a cache line for each writer of it. */
struct ring_state {
    _Alignas(64) _Atomic uint32_t written_to; /* the writer's position in bytes */
    _Atomic uint32_t n_written;               /* packets, counted before they can be read */
    struct bell packet_bell;                  /* rung by the writer */
    _Alignas(64) _Atomic uint32_t read_to;
    _Atomic uint32_t n_read;
    struct bell space_bell; /* rung by the reader */
};

/* One end of it, private to a process. */
struct ring {
    struct ring_state *state;
    uint8_t *data;
    uint32_t bytes;     /* a multiple of 8 */
    uint32_t position;  /* of this end */
    uint32_t n_packets; /* written or read by this end */
};

struct packet {
    uint32_t flags; /* enum dspqueue_packet_flags */
    uint32_t n_buffers;
    uint32_t message_bytes;
};

/* A packet as it lies in the ring. */
struct ring_packet {
    struct packet head;
    const uint8_t *buffers, *message;
    uint32_t next; /* the position behind it */
};

#pragma GCC visibility push(hidden)

/* All of them give a code of AEEStdErr.h. */

/* Continues where this end stood. AEE_EBADSTATE: that is no position. */
int ring_open(struct ring *ring, struct ring_state *state, uint8_t *data, uint32_t bytes, bool writer);

/* AEE_EBADPARM: longer than the ring. AEE_EWOULDBLOCK: no room now. AEE_EBADSTATE: the reader's position is none. */
int ring_write(struct ring *ring, const struct packet *head, const struct dspqueue_buffer *buffers,
               const uint8_t *message);

/* The next packet. AEE_EWOULDBLOCK: none there. AEE_EBADITEM: no packet can look like this. */
int ring_look(struct ring *ring, struct ring_packet *packet);

/* Gives the packet's room back. */
void ring_take(struct ring *ring, const struct ring_packet *packet);

/* Bytes and packets that wait in the ring, from either end. AEE_EBADSTATE: the other end's position is none. */
int ring_fill(const struct ring *ring, bool writer, uint32_t *bytes, uint32_t *n_packets);

#pragma GCC visibility pop
