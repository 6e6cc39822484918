/* Waiting for the other process: a short spin, then a futex. */
#define _GNU_SOURCE
#include "bell.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SPIN_NS 20000u   /* about what falling asleep and waking up again costs */
#define PATIENCE 4u      /* spins in vain, in a row */
#define RETRY 16u
#define WATCH_NS 100000u /* a timer may be that late, so the end of a time-out is watched, not slept through */

uint64_t bell_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

uint32_t bell_rings(const struct bell *bell) {
    return atomic_load(&bell->n_rings);
}

static bool rung(const struct bell *bell, uint32_t seen) {
    return bell_rings(bell) != seen;
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* On a single processor nobody can ring while we spin. */
static bool spinning_helps(void) {
    static _Atomic int answer; /* 0: not asked yet */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (!known) {
        cpu_set_t set;
        known = !sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 1 ? 1 : -1;
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return known > 0;
}

static bool spin_until(const struct bell *bell, uint32_t seen, uint64_t until_ns) {
    do {
        for (int i = 0; i < 32; i++) {
            if (rung(bell, seen)) {
                return true;
            }
            relax();
        }
    } while (bell_now_ns() < until_ns);
    return rung(bell, seen);
}

/* A thread that spins in vain (all processors are busy, or what it waits for takes long) soon only does it at times. */
static bool spin(const struct bell *bell, uint32_t seen, uint64_t until_ns) {
    static _Thread_local uint32_t n_in_vain;
    if (!spinning_helps() || (n_in_vain >= PATIENCE && n_in_vain++ % RETRY)) {
        return false;
    }
    bool heard = spin_until(bell, seen, until_ns);
    n_in_vain = heard ? 0 : n_in_vain + 1;
    return heard;
}

static void sleep_until(struct bell *bell, uint32_t seen, uint64_t until_ns) {
    struct timespec until = {(time_t) (until_ns / 1000000000u), (long) (until_ns % 1000000000u)};
    syscall(SYS_futex, &bell->n_rings, FUTEX_WAIT_BITSET, seen, until_ns == BELL_FOREVER ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

bool bell_wait(struct bell *bell, uint32_t seen, uint64_t deadline_ns) {
    uint64_t now = bell_now_ns();
    uint64_t spin_end = deadline_ns - now < SPIN_NS || deadline_ns < now ? deadline_ns : now + SPIN_NS;
    if (rung(bell, seen) || spin(bell, seen, spin_end)) {
        return true;
    }
    atomic_fetch_add(&bell->n_listeners, 1);
    while (!rung(bell, seen) && (now = bell_now_ns()) < deadline_ns) {
        if (deadline_ns - now > WATCH_NS) {
            sleep_until(bell, seen, deadline_ns == BELL_FOREVER ? BELL_FOREVER : deadline_ns - WATCH_NS);
        } else {
            relax();
        }
    }
    atomic_fetch_sub(&bell->n_listeners, 1);
    return rung(bell, seen);
}

void bell_ring(struct bell *bell) {
    atomic_fetch_add(&bell->n_rings, 1);
    if (atomic_load(&bell->n_listeners)) {
        syscall(SYS_futex, &bell->n_rings, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}
