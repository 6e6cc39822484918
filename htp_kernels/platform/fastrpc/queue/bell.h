/*
 * Waiting for the other process: a word in shared memory that is counted up and slept on.
 *
 * One word may have many listeners, which need different things (a reader takes a packet, a peeker does not), so a ring
 * wakes them all. The other side may write anything into these words: that costs sleep or wakes too early, never more.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BELL_FOREVER UINT64_MAX

struct bell {
    _Atomic uint32_t n_rings;
    _Atomic uint32_t n_listeners;
};

#pragma GCC visibility push(hidden)

/* CLOCK_MONOTONIC. */
uint64_t bell_now_ns(void);

/* What bell_wait() compares with: read it, look for what you want, then wait. */
uint32_t bell_rings(const struct bell *bell);

/* Until the bell has been rung since `seen`, or the clock reads deadline_ns: then it gives false. */
bool bell_wait(struct bell *bell, uint32_t seen, uint64_t deadline_ns);

void bell_ring(struct bell *bell);

#pragma GCC visibility pop
