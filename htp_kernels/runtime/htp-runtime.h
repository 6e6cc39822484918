/*
 * The NPU session: what the server (or the FastRPC skeleton on a device) drives. One session a process on the emulator.
 *
 *   htp_session_open -> htp_session_run ... -> htp_session_close; all calls come from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htp-frames.h"
#include "htp-wire.h"

struct htp_ctx;

enum htp_busy { HTP_IDLE = 0, HTP_BUSY_BATCH = 1, HTP_BUSY_OP = 2 };

/* Where the session is, for whoever must explain its death. May lie in memory shared with another process. */
struct htp_progress {
    volatile uint64_t seq; /* of the batch in work */
    volatile uint32_t busy; /* enum htp_busy */
    volatile uint32_t op;
    volatile uint32_t opcode;
};

struct htp_config {
    uint32_t n_threads;
    uint32_t vtcm_bytes;
    uint64_t max_map_bytes;
    uint32_t fence_timeout_ms;
    struct htp_progress *progress;
};

/* NULL where it cannot be opened; `why` (HTP_DETAIL_BYTES) then holds a sentence. */
struct htp_ctx *htp_session_open(const struct htp_config *config, char *why);
void htp_session_close(struct htp_ctx *ctx);

/* Runs the batch of `bytes` at `message` (8-byte aligned) and writes its response; gives the response's bytes. */
size_t htp_session_run(struct htp_ctx *ctx, const void *message, size_t bytes, void *response);
/* What `response` must have room for, whatever the message. */
#define HTP_RESPONSE_ROOM \
    (sizeof(struct htp_response) + HTP_MAX_OPS * sizeof(struct htp_profile) \
     + HTP_TRACE_SLOTS * HTP_MAX_TRACES * sizeof(struct htp_trace_event))

void htp_session_profile(struct htp_ctx *ctx, const struct htp_profile_set *set);
void htp_session_unmap(struct htp_ctx *ctx, uint32_t handle);
void htp_session_stats(const struct htp_ctx *ctx, struct htp_stats *stats);

/* "MUL_MAT", or "opcode 99". */
const char *htp_op_name(uint32_t opcode, char room[24]);
