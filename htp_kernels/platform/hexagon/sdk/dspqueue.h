/*
 * Packets between host and DSP: a message of bytes and references to mapped buffers, in two queues of shared memory,
 * one for each direction. The host creates and exports, the DSP imports.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "AEEStdDef.h"

#define DSPQUEUE_TIMEOUT_NONE 0xffffffff /* wait without end */

enum dspqueue_packet_flags {
    DSPQUEUE_PACKET_FLAG_MESSAGE = 0x0001,
    DSPQUEUE_PACKET_FLAG_BUFFERS = 0x0002,
    DSPQUEUE_PACKET_FLAG_WAKEUP = 0x0004, /* early wake-up, no packet for the client */
    DSPQUEUE_PACKET_FLAG_DRIVER_READY = 0x0008,
    DSPQUEUE_PACKET_FLAG_USER_READY = 0x0010,
    DSPQUEUE_PACKET_FLAG_RESERVED_ZERO = 0xffe0
};

enum dspqueue_buffer_flags {
    DSPQUEUE_BUFFER_FLAG_REF = 0x00000004,   /* take a reference to the mapped buffer */
    DSPQUEUE_BUFFER_FLAG_DEREF = 0x00000008, /* give one back */
    DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER = 0x00000010,
    DSPQUEUE_BUFFER_FLAG_INVALIDATE_SENDER = 0x00000020,
    DSPQUEUE_BUFFER_FLAG_FLUSH_RECIPIENT = 0x00000040,
    DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT = 0x00000080,
    DSPQUEUE_BUFFER_FLAG_RESERVED_ZERO = 0xffffff00
};

enum dspqueue_stat {
    DSPQUEUE_STAT_READ_QUEUE_PACKETS = 1,
    DSPQUEUE_STAT_READ_QUEUE_BYTES,
    DSPQUEUE_STAT_WRITE_QUEUE_PACKETS,
    DSPQUEUE_STAT_WRITE_QUEUE_BYTES,
    DSPQUEUE_STAT_EARLY_WAKEUP_WAIT_TIME, /* microseconds in all; reading sets it to 0 */
    DSPQUEUE_STAT_EARLY_WAKEUP_MISSES,    /* in all; reading sets it to 0 */
    DSPQUEUE_STAT_SIGNALING_PERF
};

#define DSPQUEUE_SIGNALING_PERF_REDUCED_SIGNALING 100
#define DSPQUEUE_SIGNALING_PERF_OPTIMIZED_SIGNALING 1000

typedef enum {
    DSPQUEUE_CREATE, /* one queue to several domains */
} dspqueue_request_req_id;

struct dspqueue;
typedef struct dspqueue *dspqueue_t;

/* [offset, offset + size) of the buffer that was mapped under fd; size 0 when writing: all of it. */
struct dspqueue_buffer {
    uint32_t fd;
    uint32_t size;
    uint32_t offset;
    uint32_t flags; /* enum dspqueue_buffer_flags */
    union {
        void *ptr; /* of the reader, offset included; NULL: not mapped here */
        uint64_t address;
    };
};

/* A packet is there, or the queue is broken. Comes from a thread of the library. */
typedef void (*dspqueue_callback_t)(dspqueue_t queue, AEEResult error, void *context);

typedef struct dspqueue_create_req {
    uint64_t ctx; /* of FASTRPC_CONTEXT_CREATE */
    uint64_t flags;
    uint32_t req_queue_size; /* bytes; 0: default */
    uint32_t resp_queue_size;
    uint32_t priority;
    dspqueue_callback_t packet_callback;
    dspqueue_callback_t error_callback;
    void *callback_context;
    dspqueue_t queue; /* out */
    uint64_t *ids;    /* out: one a domain */
    uint32_t num_ids;
} dspqueue_create_req;

typedef struct dspqueue_request_payload {
    dspqueue_request_req_id id;
    union {
        dspqueue_create_req create;
    };
} dspqueue_request_payload;

#ifdef __cplusplus
extern "C" {
#endif

/* Queue sizes in bytes, 0: default. With a packet callback there are no blocking reads. */
AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                          dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                          void *callback_context, dspqueue_t *queue);
AEEResult dspqueue_close(dspqueue_t queue); /* AEE_ERPC: the DSP still has it open */
AEEResult dspqueue_export(dspqueue_t queue, uint64_t *queue_id);
AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                          void *callback_context, dspqueue_t *queue);
int dspqueue_request(dspqueue_request_payload *req);

/* AEE_EWOULDBLOCK full or empty, AEE_EEXPIRED after timeout_us, AEE_ENOSUCHMAP a buffer that is not mapped,
 * AEE_EBADPARM, AEE_EBADITEM a broken packet, AEE_EINTERRUPTED closed meanwhile. A timeout_us of 0 does not wait. */
AEEResult dspqueue_write_noblock(dspqueue_t queue, uint32_t flags, uint32_t num_buffers,
                                 struct dspqueue_buffer *buffers, uint32_t message_length, const uint8_t *message);
AEEResult dspqueue_write(dspqueue_t queue, uint32_t flags, uint32_t num_buffers, struct dspqueue_buffer *buffers,
                         uint32_t message_length, const uint8_t *message, uint32_t timeout_us);
AEEResult dspqueue_read_noblock(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *num_buffers,
                                struct dspqueue_buffer *buffers, uint32_t max_message_length, uint32_t *message_length,
                                uint8_t *message);
AEEResult dspqueue_read(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *num_buffers,
                        struct dspqueue_buffer *buffers, uint32_t max_message_length, uint32_t *message_length,
                        uint8_t *message, uint32_t timeout_us);
AEEResult dspqueue_peek_noblock(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers, uint32_t *message_length);
AEEResult dspqueue_peek(dspqueue_t queue, uint32_t *flags, uint32_t *num_buffers, uint32_t *message_length,
                        uint32_t timeout_us);

/* Tells the reader that a packet comes in about wakeup_delay microseconds (0: soon). */
AEEResult dspqueue_write_early_wakeup_noblock(dspqueue_t queue, uint32_t wakeup_delay, uint32_t packet_flags);

AEEResult dspqueue_get_stat(dspqueue_t queue, enum dspqueue_stat stat, uint64_t *value);

#ifdef __cplusplus
}
#endif
