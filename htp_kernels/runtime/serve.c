/* What each request asks of the session. */
#include <string.h>

#include "htp-runtime.h"

static enum htp_status start(struct htp_ctx **ctx, const struct htp_npu_message *m, struct htp_npu_memory *memory) {
    char why[HTP_DETAIL_BYTES] = "";
    const struct htp_config config = {
        .n_threads = m->session.n_threads,
        .vtcm_bytes = m->session.vtcm_bytes,
        .max_map_bytes = m->session.max_map_bytes,
        .fence_timeout_ms = m->session.fence_timeout_ms,
        .progress = &memory->progress,
    };
    if (config.n_threads - 1 < HTP_MAX_THREADS) {
        *ctx = htp_session_open(&config, why);
    } else {
        strcpy(why, "a session has 1 to 10 threads");
    }
    memcpy(memory->response, why, sizeof why);
    return *ctx ? HTP_OK : HTP_INTERNAL_ERR;
}

void htp_serve(struct htp_ctx **ctx, struct htp_npu_message *m, struct htp_npu_memory *memory) {
    struct htp_npu_message answer = {.request = m->request, .status = HTP_OK};
    if (m->request == HTP_NPU_START && !*ctx) {
        answer.status = start(ctx, m, memory);
    } else if (!*ctx) {
        answer.status = HTP_INVAL_PARAMS;
    } else if (m->request == HTP_NPU_BATCH && m->bytes <= sizeof memory->batch) {
        answer.bytes = htp_session_run(*ctx, memory->batch, m->bytes, memory->response);
    } else if (m->request == HTP_NPU_PROFILE) {
        htp_session_profile(*ctx, &m->profile);
    } else if (m->request == HTP_NPU_STATS) {
        htp_session_stats(*ctx, (struct htp_stats *) (void *) memory->response);
        answer.bytes = sizeof(struct htp_stats);
    } else if (m->request == HTP_NPU_UNMAP) {
        htp_session_unmap(*ctx, m->handle);
    } else if (m->request == HTP_NPU_STOP) {
        htp_session_close(*ctx);
        *ctx = NULL;
    } else {
        answer.status = HTP_INVAL_PARAMS;
    }
    *m = answer;
}
