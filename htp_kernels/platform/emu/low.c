/* Memory below 4 GiB: blocks between guard pages. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "emu.h"

#define PAGE 4096ull
#define LOW_BEGIN 0x10000ull
#ifdef EMU_ASAN
#define LOW_END 0x7fff0000ull /* ASan's shadow begins above */
#else
#define LOW_END 0xfffff000ull
#endif
#define HEAP_END 0x40000000ull /* what emu_low_reserve_heap() keeps free: the brk heap and libraries */
#define MAX_BLOCKS 65536u
#define SKIP (1ull << 20) /* where something foreign is in the way */

struct block {
    uint64_t begin, end; /* the usable bytes, whole pages */
    size_t bytes;        /* as asked for */
    dev_t device;        /* of a mapped file: which one, from where */
    ino_t file;
    long offset;
    uint32_t n_users;
};

static struct block blocks[MAX_BLOCKS]; /* sorted by address */
static uint32_t n_blocks;
static uint64_t low_begin = LOW_BEGIN;
/* The server's session alone maps nothing while its threads work; others do. */
static bool concurrent;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

void emu_low_many_sessions(void) {
    concurrent = true;
}

void emu_low_reserve_heap(void) {
    concurrent = true;
    low_begin = HEAP_END;
}

/* Raised by every change of the table, so that a thread may keep what it found there. */
static _Atomic uint32_t generation = 1;

static void lock_to_change(void) {
    if (concurrent) {
        pthread_rwlock_wrlock(&lock);
    }
    atomic_fetch_add(&generation, 1);
}

static void lock_to_read(void) {
    if (concurrent) {
        pthread_rwlock_rdlock(&lock);
    }
}

static void unlock(void) {
    if (concurrent) {
        pthread_rwlock_unlock(&lock);
    }
}

static uint64_t round_up(uint64_t n) {
    return (n + PAGE - 1) & ~(PAGE - 1);
}

uint64_t emu_low_capacity(void) {
    return LOW_END - low_begin;
}

/* Where a block with its guard page can begin from `from` on, so that its bytes are aligned. */
static uint64_t align_behind_guard(uint64_t from, uint64_t align) {
    return ((from + PAGE + align - 1) & ~(align - 1)) - PAGE;
}

/* Reserves span bytes (guards included) in the gap [from, to); 0 where it does not fit or is taken by others. */
static uint64_t reserve(uint64_t from, uint64_t to, uint64_t span, uint64_t align) {
    from = align_behind_guard(from, align);
    while (from + span <= to) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
        void *p = mmap((void *) (uintptr_t) from, span, PROT_NONE, flags, -1, 0);
        if (p == (void *) (uintptr_t) from) {
            return from;
        }
        if (p != MAP_FAILED) {
            munmap(p, span);
        } else if (errno != EEXIST) {
            return 0;
        }
        from = align_behind_guard(from + SKIP, align);
    }
    return 0;
}

/* The first gap that takes span bytes; `at` is where the block goes in the sorted table. */
static uint64_t find_gap(uint64_t span, uint64_t align, uint32_t *at) {
    uint64_t from = low_begin;
    for (uint32_t i = 0; i <= n_blocks; i++) {
        uint64_t to = i < n_blocks ? blocks[i].begin - PAGE : LOW_END;
        uint64_t found = reserve(from, to, span, align);
        if (found) {
            *at = i;
            return found;
        }
        if (i < n_blocks) {
            from = blocks[i].end + PAGE;
        }
    }
    return 0;
}

/* A buffer is seen at one address, however often it is mapped; ThreadSanitizer takes two for different memory. */
static struct block *shared_block(const struct block *want) {
    for (uint32_t i = 0; want->file && i < n_blocks; i++) {
        struct block *b = &blocks[i];
        if (b->file == want->file && b->device == want->device && b->offset == want->offset && b->bytes == want->bytes) {
            return b;
        }
    }
    return NULL;
}

static void *map_block(struct block want, int fd, uint64_t align) {
    size_t bytes = want.bytes;
    uint64_t whole = round_up(bytes ? bytes : 1);
    uint32_t at = 0;
    if (n_blocks == MAX_BLOCKS || bytes > LOW_END) {
        return NULL;
    }
    uint64_t base = find_gap(whole + 2 * PAGE, align, &at);
    if (!base) {
        return NULL;
    }
    int flags = MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED);
    void *p = mmap((void *) (uintptr_t) (base + PAGE), whole, PROT_READ | PROT_WRITE, flags, fd, want.offset);
    if (p == MAP_FAILED) {
        munmap((void *) (uintptr_t) base, whole + 2 * PAGE);
        return NULL;
    }
    memmove(&blocks[at + 1], &blocks[at], (n_blocks - at) * sizeof blocks[0]);
    want.begin = base + PAGE;
    want.end = base + PAGE + whole;
    blocks[at] = want;
    n_blocks++;
    EMU_POISON((char *) p + bytes, whole - bytes);
    return p;
}

static void *map(size_t bytes, int fd, long offset, uint64_t align) {
    struct block want = {.bytes = bytes, .offset = offset, .n_users = 1};
    struct stat info;
    lock_to_change();
    if (fd >= 0 && !fstat(fd, &info)) {
        want.device = info.st_dev;
        want.file = info.st_ino;
    }
    struct block *b = shared_block(&want);
    void *p = b ? (void *) (uintptr_t) b->begin : map_block(want, fd, align);
    if (b) {
        b->n_users++;
    }
    unlock();
    return p;
}

void *emu_low_map(size_t bytes, int fd, long offset) {
    return map(bytes, fd, offset, PAGE);
}

void *emu_low_map_aligned(size_t bytes, size_t align) {
    return map(bytes, -1, 0, align);
}

/* Index of the block that holds address p, or n_blocks. */
static uint32_t block_of(uintptr_t p) {
    uint32_t low = 0, high = n_blocks;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (blocks[mid].end <= p) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < n_blocks && blocks[low].begin <= p ? low : n_blocks;
}

static void unmap_block(uint32_t i) {
    if (--blocks[i].n_users) {
        return;
    }
    uint64_t whole = blocks[i].end - blocks[i].begin;
    EMU_UNPOISON((void *) (uintptr_t) blocks[i].begin, whole);
    munmap((void *) (uintptr_t) (blocks[i].begin - PAGE), whole + 2 * PAGE);
    n_blocks--;
    memmove(&blocks[i], &blocks[i + 1], (n_blocks - i) * sizeof blocks[0]);
}

bool emu_low_try_unmap(void *block) {
    lock_to_change();
    uint32_t i = block_of((uintptr_t) block);
    bool found = i < n_blocks && blocks[i].begin == (uintptr_t) block;
    if (found) {
        unmap_block(i);
    }
    unlock();
    return found;
}

void emu_low_unmap(void *block) {
    if (!emu_low_try_unmap(block)) {
        emu_die("unmap of %p, where no block begins", block);
    }
}

bool emu_low_has_heap(void) {
    return low_begin == HEAP_END;
}

/* The blocks that this thread asked about last: its DMA goes to and fro between a few of them. */
#define N_KEPT 4u
static _Thread_local struct {
    uint64_t begin, end;
    uint32_t generation;
} kept[N_KEPT];
static _Thread_local uint32_t next_kept;

static bool kept_contains(uintptr_t p, size_t bytes) {
    uint32_t now = atomic_load_explicit(&generation, memory_order_acquire);
    for (uint32_t i = 0; i < N_KEPT; i++) {
        if (kept[i].generation == now && p >= kept[i].begin && p <= kept[i].end && bytes <= kept[i].end - p) {
            return true;
        }
    }
    return false;
}

bool emu_low_contains(uintptr_t p, size_t bytes) {
    if (kept_contains(p, bytes)) {
        return true;
    }
    if (emu_low_has_heap() && p >= LOW_BEGIN && p < HEAP_END && bytes <= HEAP_END - p) {
        return true; /* heap and libraries: where nothing is mapped there, the access itself says so */
    }
    lock_to_read();
    uint32_t i = block_of(p);
    bool inside = i < n_blocks && bytes <= blocks[i].begin + blocks[i].bytes - p && p <= blocks[i].begin + blocks[i].bytes;
    if (inside) {
        kept[next_kept].begin = blocks[i].begin;
        kept[next_kept].end = blocks[i].begin + blocks[i].bytes;
        kept[next_kept].generation = atomic_load(&generation);
        next_kept = (next_kept + 1) % N_KEPT;
    }
    unlock();
    return inside;
}
