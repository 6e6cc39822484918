/* A DSP library by hand: what `hexnpu idl` would write for an interface with one method of each kind of argument. */
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "AEEStdErr.h"
#include "HAP_farf.h"
#include "HAP_mem.h"
#include "calc.h"
#include "qurt.h"
#include "remote.h"

#define MIB ((size_t) 1 << 20)

static int32_t counter; /* a session's own */
static uint32_t opened;

static int sum(const remote_arg *a) {
    const int32_t *values = a[0].buf.pv;
    int64_t total = 0;
    for (size_t i = 0; i < a[0].buf.nLen / sizeof *values; i++) {
        total += values[i];
    }
    memcpy(a[1].buf.pv, &total, sizeof total);
    return 0;
}

/* All pointers that DSP code can see fit in 32 bits: of arguments, stack, heap, globals, code. */
static int low(const remote_arg *a) {
    int on_stack = 0;
    void *heap = malloc(100);
    uintptr_t seen = (uintptr_t) a[0].buf.pv | (uintptr_t) a[1].buf.pv | (uintptr_t) &on_stack | (uintptr_t) heap |
                     (uintptr_t) &counter | (uintptr_t) low;
    free(heap);
    uint32_t high = (uint32_t) (seen >> 32);
    memcpy(a[1].buf.pv, &high, sizeof high);
    return 0;
}

static bool fills(const uint8_t *p, uint8_t value, size_t bytes) {
    size_t n = 0;
    while (p && ((uintptr_t) p >> 32) == 0 && n < bytes && p[n] == value) {
        n++;
    }
    return n == bytes;
}

/* Compilers leave out allocations that nobody uses, and take them for good. */
static void *volatile sink;
static bool none(void *p) {
    sink = p;
    return !sink;
}

/* A heap that is full gives NULL, and nothing of it is lost. */
static int fill_heap(const remote_arg *a) {
    void **last = NULL;
    uint32_t n = 0;
    uint8_t *small = malloc(100), *aligned;
    memset(small, 7, 100);
    for (void **p; (p = malloc(MIB)); n++) {
        if ((uintptr_t) p >> 32) {
            return AEE_EFAILED;
        }
        *p = last;
        last = p;
    }
    bool ok = none(calloc(1, 4 * MIB)) && none(realloc(small, 4 * MIB)) && none(memalign(128, 4 * MIB));
    ok = ok && fills(small, 7, 100);
    while (last) {
        void **before = *last;
        free(last);
        last = before;
    }
    ok = ok && none(malloc(1024 * MIB)) && none(calloc(SIZE_MAX / 2, 3));
    ok = ok && !posix_memalign((void **) &aligned, 128, MIB);
    small = realloc(small, 4 * MIB);
    uint8_t *zeros = calloc(3, MIB);
    ok = ok && fills(small, 7, 100) && fills(zeros, 0, 3 * MIB) && !((uintptr_t) aligned & 127);
    free(small);
    free(zeros);
    free(aligned);
    memcpy(a[0].buf.pv, &n, sizeof n);
    return ok ? AEE_SUCCESS : AEE_EBADSTATE;
}

/* Reads a buffer that the client mapped, by its file descriptor. */
static int mapped(const remote_arg *a) {
    int32_t in[2];
    memcpy(in, a[0].buf.pv, sizeof in);
    uint8_t *p = HAP_mmap(NULL, in[1], HAP_PROT_READ | HAP_PROT_WRITE, 0, in[0], 0);
    if (p == HAP_MAP_FAILED) {
        return AEE_ENOSUCHMAP;
    }
    uint32_t total = 0;
    for (int32_t i = 0; i < in[1]; i++) {
        total += p[i];
        p[i] = (uint8_t) ~p[i];
    }
    memcpy(a[1].buf.pv, &total, sizeof total);
    return HAP_munmap(p, in[1]);
}

static int where(const remote_arg *a) {
    int32_t in[2];
    memcpy(in, a[0].buf.pv, sizeof in);
    void *p = HAP_mmap(NULL, in[1], HAP_PROT_READ | HAP_PROT_WRITE, 0, in[0], 0);
    uint32_t address = (uint32_t) (uintptr_t) p;
    memcpy(a[1].buf.pv, &address, sizeof address);
    return p == HAP_MAP_FAILED ? AEE_ENOSUCHMAP : HAP_munmap(p, in[1]);
}

static void scale(const remote_arg *a) {
    const uint8_t *from = a[0].buf.pv;
    uint8_t *to = a[1].buf.pv;
    for (size_t i = 0; i < a[1].buf.nLen; i++) {
        to[i] = (uint8_t) (3 * from[i]);
    }
}

/* Gives in handles back as out handles, the other way round. */
static void handles(uint32_t sc, remote_arg *a) {
    uint32_t n = REMOTE_SCALARS_INHANDLES(sc);
    for (uint32_t i = 0; i < n; i++) {
        a[n + i].h64 = a[n - 1 - i].h64;
    }
}

static void count_up(const remote_arg *a) {
    int32_t count = __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
    memcpy(a[0].buf.pv, &count, sizeof count);
}

static int meet(const remote_arg *a) {
    static int here;
    int32_t n;
    memcpy(&n, a[0].buf.pv, sizeof n);
    __atomic_add_fetch(&here, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < 20000; i++) {
        if (__atomic_load_n(&here, __ATOMIC_SEQ_CST) >= n) {
            return 0;
        }
        qurt_sleep(1000);
    }
    return AEE_EEXPIRED;
}

int calc_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg *a) {
    switch (REMOTE_SCALARS_METHOD(sc)) {
    case CALC_OPEN: a[2].h64 = 0x1000 + opened++; return strstr(a[1].buf.pv, "refuse") ? AEE_EFAILED : 0;
    case CALC_CLOSE: return 0;
    case CALC_EMPTY: return 0;
    case CALC_SUM: return sum(a);
    case CALC_SCALE: scale(a); return 0;
    case CALC_COUNT: count_up(a); return 0;
    case CALC_LOW: return low(a);
    case CALC_MAPPED: return mapped(a);
    case CALC_HANDLES: handles(sc, a); return 0;
    case CALC_SELF: memcpy(a[0].buf.pv, &h, sizeof h); return 0;
    case CALC_RESULT: return AEE_EBADITEM;
    case CALC_FARF: FARF(ALWAYS, "the calculator says %d", 42); return 0;
    case CALC_CRASH: *(volatile int *) 8 = 1; return 0;
    case CALC_ABORT: abort();
    case CALC_EXIT: exit(3);
    case CALC_HANG:
        __atomic_add_fetch(&counter, 1, __ATOMIC_SEQ_CST);
        for (volatile int forever = 1; forever;) {
        }
        return 0;
    case CALC_WHERE: return where(a);
    case CALC_MEET: return meet(a);
    case CALC_END_THREAD: qurt_thread_exit(0);
    case CALC_HEAP: return fill_heap(a);
    default: return AEE_EUNSUPPORTED;
    }
}

/* The old kind of entry, without handles. */
int calc_skel_invoke(uint32_t sc, remote_arg *a) {
    return REMOTE_SCALARS_METHOD(sc) == CALC_SUM ? sum(a) : AEE_EUNSUPPORTED;
}
