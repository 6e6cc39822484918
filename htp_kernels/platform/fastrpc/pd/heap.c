/*
 * The heap of DSP code. Where the brk heap meets the libraries, glibc goes on with memory that lies anywhere; DSP code
 * keeps addresses in 32 bits, so there it gets NULL, as on a device whose heap is full. Sanitizers have heaps of their
 * own.
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../emu/emu.h"
#include "internal.h"

#if !defined(EMU_ASAN) && !defined(EMU_TSAN)

#define SMALL 4096u
#define SMALL_TRIES 256 /* use up what is left of a page that lies high */
#define LARGE_TRIES 2

void *__libc_malloc(size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void __libc_free(void *p);

static void *full(size_t bytes) {
    static _Atomic bool told;
    if (!atomic_exchange(&told, true)) {
        fr_farf(FR_ERROR, "malloc: %zu bytes find no room in the session's heap below 4 GiB; it gives NULL", bytes);
    }
    errno = ENOMEM;
    return NULL;
}

/* A block that came to lie high is kept: freed, it would be given again. Nobody touches it, so it takes no memory. */
static void *low(size_t alignment, size_t bytes) {
    for (int i = 0; i < (bytes < SMALL ? SMALL_TRIES : LARGE_TRIES); i++) {
        uint8_t *p = alignment ? __libc_memalign(alignment, bytes) : __libc_malloc(bytes);
        if (p && ((uintptr_t) p + bytes) >> 32 == 0) {
            return p;
        }
    }
    return full(bytes);
}

void *malloc(size_t bytes) {
    return low(0, bytes);
}

void *calloc(size_t n, size_t bytes) {
    size_t all;
    if (__builtin_mul_overflow(n, bytes, &all)) {
        return full(SIZE_MAX);
    }
    void *p = low(0, all);
    return p ? memset(p, 0, all) : NULL;
}

void *realloc(void *p, size_t bytes) {
    size_t before = p ? malloc_usable_size(p) : 0;
    if (p && bytes <= before) {
        return __libc_realloc(p, bytes);
    }
    void *larger = low(0, bytes);
    if (larger && p) {
        memcpy(larger, p, before);
        __libc_free(p);
    }
    return larger;
}

void *memalign(size_t alignment, size_t bytes) {
    return low(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return low(alignment, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t bytes) {
    if (alignment < sizeof(void *) || alignment & (alignment - 1)) {
        return EINVAL;
    }
    void *block = low(alignment, bytes);
    if (!block) {
        return ENOMEM;
    }
    *p = block;
    return 0;
}

#endif
