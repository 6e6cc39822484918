/* Trace events of profile mode 3: a bounded list a thread; what does not fit is not recorded. */
#include <string.h>

#include "HAP_perf.h"
#include "context.h"

void htp_trace_event(struct htp_tracer *tracer, uint32_t thread, enum htp_trace_id id, uint32_t info) {
    struct trace_ring *ring = &tracer->ring[thread];
    if (ring->used < ring->room) {
        ring->events[ring->used++] =
            (struct htp_trace_event){(uint32_t) HAP_perf_get_pcycles(), (uint16_t) id, (uint16_t) info};
    }
}

bool htp_trace_begin(struct htp_ctx *ctx, uint32_t n_traces) {
    for (uint32_t t = 0; t < HTP_TRACE_SLOTS; t++) {
        struct trace_ring *ring = &ctx->tracer.ring[t];
        if (ring->capacity < n_traces) {
            qurt_free(ring->events);
            *ring = (struct trace_ring){.events = qurt_malloc(n_traces * (uint32_t) sizeof *ring->events)};
            if (!ring->events) {
                return false;
            }
            ring->capacity = n_traces;
        }
        ring->room = n_traces;
        ring->used = 0;
    }
    return true;
}

size_t htp_trace_collect(struct htp_ctx *ctx, struct htp_response *response, uint8_t *out) {
    size_t bytes = 0;
    for (uint32_t t = 0; t < HTP_TRACE_SLOTS; t++) {
        const struct trace_ring *ring = &ctx->tracer.ring[t];
        size_t part = ring->used * sizeof *ring->events;
        if (part) {
            memcpy(out + bytes, ring->events, part);
        }
        bytes += part;
        response->n_traces[t] = ring->used;
    }
    return bytes;
}
