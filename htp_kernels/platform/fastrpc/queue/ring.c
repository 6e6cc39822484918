/* Packets in a circle of shared memory that nobody is trusted with. */
#include "ring.h"

#include <string.h>

#include "AEEStdErr.h"

#define HEADER_BYTES 8u
#define BUFFER_BYTES ((uint32_t) sizeof(struct dspqueue_buffer))

union header {
    struct {
        uint32_t bytes; /* without the padding */
        uint16_t flags;
        uint8_t n_buffers;
        uint8_t number; /* of the packet */
    };
    uint64_t word;
};

_Static_assert(sizeof(union header) == HEADER_BYTES && sizeof(struct dspqueue_buffer) == 24, "layout of a packet");

static bool is_position(const struct ring *ring, uint32_t position) {
    return position < ring->bytes && position % 8 == 0;
}

static uint32_t padded(uint32_t bytes) {
    return (bytes + 7) & ~7u;
}

/* Bytes from one position to another, going forward. */
static uint32_t distance(const struct ring *ring, uint32_t from, uint32_t to) {
    return to >= from ? to - from : ring->bytes - from + to;
}

static uint32_t behind(const struct ring *ring, uint32_t at, uint32_t bytes) {
    return at + bytes == ring->bytes ? 0 : at + bytes;
}

int ring_open(struct ring *ring, struct ring_state *state, uint8_t *data, uint32_t bytes, bool writer) {
    *ring = (struct ring){
        .state = state,
        .data = data,
        .bytes = bytes,
        .position = atomic_load(writer ? &state->written_to : &state->read_to),
        .n_packets = atomic_load(writer ? &state->n_written : &state->n_read),
    };
    return is_position(ring, ring->position) ? AEE_SUCCESS : AEE_EBADSTATE;
}

/* Where a packet of so many bytes goes, with the reader at `read_to`; the positions are equal only in an empty ring. */
static int find_room(const struct ring *ring, uint32_t read_to, uint32_t bytes, uint32_t *at) {
    uint32_t from = ring->position, to_end = ring->bytes - from;
    uint32_t room = ring->bytes - 8 - distance(ring, read_to, from);
    if (room >= bytes && to_end >= bytes) {
        *at = from;
        return AEE_SUCCESS;
    }
    *at = 0;
    return to_end < bytes && room >= to_end + bytes ? AEE_SUCCESS : AEE_EWOULDBLOCK;
}

static void put_header(struct ring *ring, uint32_t at, union header header) {
    atomic_store_explicit((_Atomic uint64_t *) (void *) (ring->data + at), header.word, memory_order_relaxed);
}

int ring_write(struct ring *ring, const struct packet *head, const struct dspqueue_buffer *buffers,
               const uint8_t *message) {
    uint32_t references = head->n_buffers * BUFFER_BYTES, at;
    union header header = {.bytes = HEADER_BYTES + references + head->message_bytes,
                           .flags = (uint16_t) head->flags,
                           .n_buffers = (uint8_t) head->n_buffers,
                           .number = (uint8_t) ring->n_packets};
    uint32_t whole = padded(header.bytes);
    if (whole > ring->bytes - 8) {
        return AEE_EBADPARM;
    }
    uint32_t read_to = atomic_load_explicit(&ring->state->read_to, memory_order_acquire);
    int error = is_position(ring, read_to) ? find_room(ring, read_to, whole, &at) : AEE_EBADSTATE;
    if (error) {
        return error;
    }
    put_header(ring, ring->position, header);
    put_header(ring, at, header);
    if (references) {
        memcpy(ring->data + at + HEADER_BYTES, buffers, references);
    }
    if (head->message_bytes) {
        memcpy(ring->data + at + HEADER_BYTES + references, message, head->message_bytes);
    }
    ring->position = behind(ring, at, whole);
    ring->n_packets++;
    atomic_store_explicit(&ring->state->n_written, ring->n_packets, memory_order_relaxed);
    atomic_store_explicit(&ring->state->written_to, ring->position, memory_order_release);
    bell_ring(&ring->state->packet_bell);
    return AEE_SUCCESS;
}

/* Takes a header apart; false: nobody writes such a packet. */
static bool parse(const struct ring *ring, union header header, struct packet *head) {
    head->flags = header.flags;
    head->n_buffers = header.flags & DSPQUEUE_PACKET_FLAG_BUFFERS ? header.n_buffers : 0;
    uint32_t least = HEADER_BYTES + head->n_buffers * BUFFER_BYTES;
    if (!(header.flags & DSPQUEUE_PACKET_FLAG_USER_READY) || header.number != (uint8_t) ring->n_packets ||
        head->n_buffers > RING_MAX_BUFFERS || header.bytes < least || header.bytes - least > RING_MAX_MESSAGE) {
        return false;
    }
    head->message_bytes = header.bytes - least;
    return header.flags & DSPQUEUE_PACKET_FLAG_MESSAGE ? head->message_bytes > 0 : head->message_bytes == 0;
}

int ring_look(struct ring *ring, struct ring_packet *packet) {
    uint32_t written_to = atomic_load_explicit(&ring->state->written_to, memory_order_acquire);
    uint32_t at = ring->position, to_end = ring->bytes - at;
    if (!is_position(ring, written_to)) {
        return AEE_EBADITEM;
    }
    uint32_t waiting = distance(ring, at, written_to);
    if (!waiting) {
        return AEE_EWOULDBLOCK;
    }
    _Atomic uint64_t *word = (_Atomic uint64_t *) (void *) (ring->data + at);
    union header header = {.word = atomic_load_explicit(word, memory_order_relaxed)};
    if (!parse(ring, header, &packet->head)) {
        return AEE_EBADITEM;
    }
    uint32_t whole = padded(header.bytes), skipped = whole > to_end ? to_end : 0;
    if (waiting < skipped + whole) {
        return AEE_EBADITEM;
    }
    at = skipped ? 0 : at;
    packet->buffers = ring->data + at + HEADER_BYTES;
    packet->message = packet->buffers + packet->head.n_buffers * BUFFER_BYTES;
    packet->next = behind(ring, at, whole);
    return AEE_SUCCESS;
}

void ring_take(struct ring *ring, const struct ring_packet *packet) {
    ring->position = packet->next;
    ring->n_packets++;
    atomic_store_explicit(&ring->state->n_read, ring->n_packets, memory_order_relaxed);
    atomic_store_explicit(&ring->state->read_to, ring->position, memory_order_release);
    bell_ring(&ring->state->space_bell);
}

int ring_fill(const struct ring *ring, bool writer, uint32_t *bytes, uint32_t *n_packets) {
    const struct ring_state *state = ring->state;
    uint32_t other = atomic_load(writer ? &state->read_to : &state->written_to);
    uint32_t n_other = atomic_load(writer ? &state->n_read : &state->n_written);
    if (!is_position(ring, other)) {
        return AEE_EBADSTATE;
    }
    *bytes = writer ? distance(ring, other, ring->position) : distance(ring, ring->position, other);
    *n_packets = writer ? ring->n_packets - n_other : n_other - ring->n_packets;
    return AEE_SUCCESS;
}
