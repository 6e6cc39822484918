/*
 * The NPU session: what the server (or the FastRPC skeleton on a device) drives. One session a process on the emulator.
 *
 *   htp_session_open -> htp_session_run ... -> htp_session_close; all calls come from one thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "htp-npu.h"

struct htp_ctx;

enum htp_busy { HTP_IDLE = 0, HTP_BUSY_BATCH = 1, HTP_BUSY_OP = 2 };

struct htp_config {
    uint32_t n_threads;
    uint32_t vtcm_bytes;
    uint64_t max_map_bytes;
    uint32_t fence_timeout_ms;
    struct htp_progress *progress; /* may lie in memory shared with another process */
};

/* NULL where it cannot be opened; `why` (HTP_DETAIL_BYTES) then holds a sentence. */
struct htp_ctx *htp_session_open(const struct htp_config *config, char *why);
void htp_session_close(struct htp_ctx *ctx);

/* Runs the batch of `bytes` at `message` (8-byte aligned) and writes its response, which must have room for
 * HTP_NPU_MAX_RESPONSE bytes whatever the message; gives the response's bytes. */
size_t htp_session_run(struct htp_ctx *ctx, const void *message, size_t bytes, void *response);

void htp_session_profile(struct htp_ctx *ctx, const struct htp_profile_set *set);
void htp_session_unmap(struct htp_ctx *ctx, uint32_t handle);
void htp_session_stats(const struct htp_ctx *ctx, struct htp_stats *stats);

/* Does what *m asks and puts the answer in its place. *ctx is NULL before HTP_NPU_START and after HTP_NPU_STOP. */
void htp_serve(struct htp_ctx **ctx, struct htp_npu_message *m, struct htp_npu_memory *memory);

/* "MUL_MAT", or "opcode 99". */
const char *htp_op_name(uint32_t opcode, char room[24]);
