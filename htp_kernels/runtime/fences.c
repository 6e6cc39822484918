/*
 * Fences between the sessions of a group; see htp-kernel.h. The sequence number and the status are one 64-bit word, so
 * that nobody sees the one without the other.
 */
#include "HAP_perf.h"
#include "context.h"
#include "hexagon_protos.h"

/* How far a peer can be ahead: a batch holds HTP_MAX_OPS ops of at most two numbers, and batches of a group begin
 * together. */
#define MAX_AHEAD (2 * HTP_MAX_OPS)
#define TURNS_A_LOOK 64u /* polls between two looks at the clock */

static uint64_t *word_of(const struct htp_tensor *fence) {
    return (uint64_t *) (void *) fence->data;
}

/* What was stored before is in memory, not only in this core's queues. */
static void store_barrier(void) {
#if defined(__hexagon__)
    __asm__ volatile("syncht" ::: "memory");
#endif
}

static void publish(const struct htp_tensor *fence, uint32_t seq, enum htp_status status) {
    uint64_t *word = word_of(fence);
    store_barrier();
    __atomic_store_n(word, seq | (uint64_t) status << 32, __ATOMIC_RELEASE);
    store_barrier();
    Q6_dccleaninva_A(word);
}

void htp_fence_release(const struct htp_tensor *fence, uint32_t seq) {
    publish(fence, seq, HTP_OK);
}

void htp_fence_fail(const struct htp_tensor *fence, uint32_t seq, enum htp_status status) {
    publish(fence, seq, status);
}

static uint64_t look(const struct htp_tensor *fence) {
    uint64_t *word = word_of(fence);
    Q6_dccleaninva_A(word);
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static bool is_failure(uint32_t status) {
    return status > HTP_OK && status <= HTP_VTCM_TOO_SMALL;
}

/* OK: seq is reached. NO_SUPPORT: not yet. INTERNAL_ERR: the word is no fence's. */
static enum htp_status judge(uint64_t seen, uint32_t seq) {
    int32_t ahead = (int32_t) ((uint32_t) seen - seq);
    if (seen >> 32 != HTP_OK || ahead > (int32_t) MAX_AHEAD) {
        return HTP_INTERNAL_ERR;
    }
    return ahead >= 0 ? HTP_OK : HTP_NO_SUPPORT;
}

static enum htp_status explain(struct htp_op *op, uint32_t rank, uint32_t seq, uint64_t seen, uint32_t waited_ms) {
    uint32_t value = (uint32_t) seen, status = (uint32_t) (seen >> 32);
    if (is_failure(status)) {
        return htp_failed(op, (enum htp_status) status, "fence of rank %u: expected %u, seen %u: rank %u has failed",
                          rank, seq, value, rank);
    }
    if (judge(seen, seq) == HTP_INTERNAL_ERR) {
        return htp_failed(op, HTP_INTERNAL_ERR,
                          "fence of rank %u: expected %u, seen %u (status %u), which no rank writes", rank, seq, value,
                          status);
    }
    return htp_failed(op, HTP_INTERNAL_ERR, "fence of rank %u: expected %u, seen %u for %u ms", rank, seq, value,
                      waited_ms);
}

enum htp_status htp_fence_wait(struct htp_op *op, uint32_t slot, uint32_t rank, uint32_t seq, uint32_t info) {
    struct htp_ctx *ctx = op->ctx;
    uint64_t limit_us = ctx->config.fence_timeout_ms * 1000ull, waited_us = 0;
    uint64_t start_us = HAP_perf_get_time_us(), start = HAP_perf_get_pcycles();
    htp_trace_start(op, 0, HTP_TR_FENCE, info);
    uint64_t seen = look(op->src[slot]);
    for (uint32_t turn = 1; judge(seen, seq) == HTP_NO_SUPPORT && waited_us <= limit_us; turn++) {
        htp_pause(turn);
        if (turn % TURNS_A_LOOK == 0) {
            waited_us = HAP_perf_get_time_us() - start_us;
        }
        seen = look(op->src[slot]);
    }
    htp_trace_stop(op, 0, HTP_TR_FENCE, info);
    ctx->stats.fence_cycles += HAP_perf_get_pcycles() - start;
    return judge(seen, seq) == HTP_OK ? HTP_OK : explain(op, rank, seq, seen, (uint32_t) (waited_us / 1000));
}
