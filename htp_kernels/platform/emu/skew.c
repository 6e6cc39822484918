/*
 * HEXNPU_EMU_SKEW=SEED: sessions stand still for random times where they look at shared memory, where an op begins and where a
 * transfer ends, so that ranks of a group meet their barriers in every order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "emu.h"
#include "hap-internal.h"
#include "hexagon_protos.h"

#define LONG_NAP_NS 2000000u
#define SHORT_NAP_NS 100000u

static bool on;
static uint64_t seed;
static _Atomic uint32_t n_threads;
static _Thread_local uint64_t state;

const char *emu_skew_configure(const char *value) {
    char *end = NULL;
    on = value && *value;
    if (on) {
        seed = strtoull(value, &end, 10);
    }
    return end && *end ? "HEXNPU_EMU_SKEW must be a number" : NULL;
}

static uint32_t random_below(uint32_t n) {
    if (!state) {
        state = (seed + 1) * 0x9e3779b97f4a7c15ull + ((uint64_t) getpid() << 8) + atomic_fetch_add(&n_threads, 1) * 2 + 1;
    }
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t) ((state >> 33) % n);
}

void emu_skew(void) {
    if (__builtin_expect(!on, 1)) {
        return;
    }
    uint32_t chance = random_below(256);
    if (chance < 32) {
        uint32_t most = chance == 0 ? LONG_NAP_NS : SHORT_NAP_NS;
        nanosleep(&(struct timespec){.tv_nsec = random_below(most)}, NULL);
    }
}

void emu_cleaninva(const void *line) {
    (void) line;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    emu_skew();
}
