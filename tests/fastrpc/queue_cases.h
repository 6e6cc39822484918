/* What the programs over both ends of a queue ask often. */
#pragma once

#include "queue_fake.h"

static const struct callbacks none;

static inline uint64_t now_us(void) {
    return bell_now_ns() / 1000;
}

static inline void write_text(dspqueue_t queue, const char *text) {
    CHECK_IS(dspqueue_write_noblock(queue, 0, 0, NULL, (uint32_t) strlen(text), (const uint8_t *) text), AEE_SUCCESS);
}

static inline void read_text(dspqueue_t queue, const char *text) {
    uint8_t got[256] = {0};
    uint32_t flags, n_buffers = 9, bytes;
    CHECK_IS(dspqueue_read_noblock(queue, &flags, 0, &n_buffers, NULL, sizeof got, &bytes, got), AEE_SUCCESS);
    CHECK(flags == (DSPQUEUE_PACKET_FLAG_USER_READY | DSPQUEUE_PACKET_FLAG_MESSAGE));
    CHECK(n_buffers == 0 && bytes == strlen(text) && !memcmp(got, text, bytes));
}

static inline int read_any(dspqueue_t queue, uint32_t timeout_us) {
    return dspqueue_read(queue, NULL, 0, NULL, NULL, 0, NULL, NULL, timeout_us);
}

static inline int read_any_noblock(dspqueue_t queue) {
    return dspqueue_read_noblock(queue, NULL, 0, NULL, NULL, 0, NULL, NULL);
}

static inline uint64_t stat_of(dspqueue_t queue, enum dspqueue_stat stat) {
    uint64_t value = 0;
    CHECK_IS(dspqueue_get_stat(queue, stat, &value), AEE_SUCCESS);
    return value;
}
