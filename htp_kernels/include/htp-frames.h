/*
 * The frames in front of a device server, on stdin/stdout or a socket. Every message, both ways, is a
 * struct htp_frame followed by `bytes` of payload. A reply has the request's type with HTP_REPLY set and its tag.
 * A reply whose status is not HTP_OK carries one sentence of UTF-8 as payload. A frame that cannot be understood is
 * answered (type HTP_F_ERROR) and the connection is closed.
 */
#pragma once

#include <stdint.h>

#define HTP_FRAME_MAGIC 0x46505448u /* "HTPF" */
#define HTP_FRAME_VERSION 1u
#define HTP_REPLY 0x8000u
#define HTP_MAX_FRAME_BYTES (1ull << 31)

enum htp_frame_type {
    HTP_F_ERROR = 0,
    HTP_F_HELLO = 1,    /* -> htp_hello */
    HTP_F_OPEN = 2,     /* htp_open -> (the new session's number is the reply frame's `session`) */
    HTP_F_CLOSE = 3,    /* session */
    HTP_F_ALLOC = 4,    /* htp_alloc -> htp_buffer_ref; with share = 1 the reply carries a file descriptor */
    HTP_F_FREE = 5,     /* htp_buffer_ref */
    HTP_F_WRITE = 6,    /* htp_range, then range.bytes of data */
    HTP_F_READ = 7,     /* htp_range -> data */
    HTP_F_LOAD = 8,     /* htp_load, then path_bytes of path: a range of a file of the device into a buffer */
    HTP_F_SUBMIT = 9,   /* an op batch -> its response */
    HTP_F_PROFILE = 10, /* htp_profile_set */
    HTP_F_STATS = 11,   /* -> htp_stats */
    HTP_F_UNMAP = 12,   /* htp_buffer_ref: drop the session's mapping; a batch that names the buffer maps it again */
};

struct htp_frame {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t session; /* 0 where the message is about the server itself; sessions count from 1 */
    uint32_t status;  /* enum htp_status in replies, 0 in requests */
    uint64_t tag;     /* chosen by the client, repeated in the reply */
    uint64_t bytes;
};

struct htp_hello {
    uint32_t protocol;
    uint32_t arch;      /* 73, 75, 79, 81 */
    uint32_t n_threads; /* HVX threads a session may have */
    uint32_t n_hmx;
    uint64_t vtcm_bytes;    /* the largest VTCM a session may ask for */
    uint64_t max_map_bytes; /* what a session maps at a time */
    uint32_t can_share;     /* 1: file descriptors can be passed over this connection */
    uint32_t clock_khz;     /* nominal NPU clock of the cycle counter */
    char flavour[16];       /* release, asan, tsan, hexagon */
};

struct htp_open {
    uint32_t n_threads;        /* 0 = the server's choice */
    uint32_t vtcm_mib;         /* 0 = the server's choice */
    uint64_t max_map_bytes;    /* 0 = the server's limit */
    char device[32];           /* "HTP0:0" */
    uint32_t fence_timeout_ms; /* how long an op waits for a peer; 0 = the server's choice */
    uint32_t pad;
};

struct htp_alloc {
    uint64_t bytes;
    uint32_t share; /* only over a unix socket */
    uint32_t pad;
};

struct htp_buffer_ref {
    uint32_t handle;
    uint32_t pad;
};

struct htp_range {
    uint32_t handle;
    uint32_t pad;
    uint64_t offset;
    uint64_t bytes;
};

struct htp_load {
    uint32_t handle;
    uint32_t path_bytes;
    uint64_t offset;
    uint64_t file_offset;
    uint64_t bytes;
};

struct htp_profile_set {
    uint32_t mode; /* enum htp_profile_mode */
    uint32_t pmu[8];
    uint32_t pad;
};

struct htp_stats {
    uint64_t n_batches;
    uint64_t n_ops;
    uint64_t n_failed;
    uint64_t dma_transfers;
    uint64_t dma_bytes;
    uint64_t n_buffers;
    uint64_t buffer_bytes;
    uint64_t mapped_bytes;
    uint64_t n_mappings;
    uint64_t fence_cycles; /* waited for peers */
};
