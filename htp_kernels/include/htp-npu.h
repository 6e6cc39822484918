/*
 * Between a session on the CPU and its NPU, over dspqueue: struct htp_npu_message in both directions, one request at a
 * time. The bytes themselves stand in memory that both map (struct htp_npu_memory), which comes as the message's first
 * buffer; a batch's other buffers follow, for the maintenance of caches.
 */
#pragma once

#include "htp-frames.h"
#include "htp-wire.h"

#define HTP_NPU_MAX_BATCH \
    (sizeof(struct htp_request) + HTP_MAX_BUFS * sizeof(struct htp_buf) \
     + HTP_MAX_TENSORS * sizeof(struct htp_wire_tensor) + HTP_MAX_OPS * sizeof(struct htp_wire_op))
#define HTP_NPU_MAX_RESPONSE \
    (sizeof(struct htp_response) + HTP_MAX_OPS * sizeof(struct htp_profile) \
     + HTP_TRACE_SLOTS * HTP_MAX_TRACES * sizeof(struct htp_trace_event))

enum htp_npu_request {
    HTP_NPU_START = 1, /* session -> a sentence in `response` where status is not HTP_OK */
    HTP_NPU_BATCH,     /* `bytes` of `batch` -> `bytes` of `response` */
    HTP_NPU_PROFILE,   /* profile */
    HTP_NPU_STATS,     /* -> struct htp_stats in `response` */
    HTP_NPU_UNMAP,     /* handle */
    HTP_NPU_STOP,
};

struct htp_npu_session {
    uint64_t max_map_bytes;
    uint32_t n_threads;
    uint32_t vtcm_bytes;
    uint32_t fence_timeout_ms;
    uint32_t pad;
};

struct htp_npu_message {
    uint32_t request; /* enum htp_npu_request */
    uint32_t status;  /* enum htp_status, of the answer */
    uint32_t handle;
    uint32_t pad;
    uint64_t bytes;
    union {
        struct htp_npu_session session;
        struct htp_profile_set profile;
    };
};

/* Where the session is, for whoever must explain its death. */
struct htp_progress {
    volatile uint64_t seq; /* of the batch in work */
    volatile uint32_t busy; /* enum htp_busy */
    volatile uint32_t op;
    volatile uint32_t opcode;
};

struct htp_npu_memory {
    struct htp_progress progress;
    _Alignas(128) uint8_t batch[(HTP_NPU_MAX_BATCH + 127) & ~(size_t) 127];
    _Alignas(128) uint8_t response[HTP_NPU_MAX_RESPONSE];
};
