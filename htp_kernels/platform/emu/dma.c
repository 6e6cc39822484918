/*
 * The user DMA engine of a thread, on the real descriptor format.
 *
 * Descriptor words: 0 next (16-byte aligned, 0 ends the chain) | 1 [23:0] length or wide dst stride, [25:24] 0 = 1D,
 * 1 = 2D, [27:26] compression, 30 order, 31 done | 2 src | 3 dst; 2D only: 4 [7:0] type, then for
 * type 0: 5 width, rows << 16 | 6 src stride, dst stride << 16 | 7 src, dst offset
 * type 9: 5 width [23:0], rows [31:24] | 6 rows >> 8 in [7:0], src stride [31:8] | 7 offset.
 * A stride of 0 stands for one more than the field holds (0x10000 or 0x1000000).
 * Sources of other projects declare `next` as a pointer, which takes two words here: where DSP libraries are loaded,
 * a descriptor whose second word is 0 (a transfer of no bytes otherwise) is of that kind, and aligned to 8.
 * (Facts: TVM's hexagon_user_dma_descriptors.h, llama.cpp's dma-queue.h, quic/qemu's target/hexagon/dma.)
 *
 * When a transfer happens: lazy, at the poll or wait that sees it done; eager, at start or link; random, at any
 * instruction of the engine and in any order a seeded generator likes, but for the order bit. Whatever the mode, the
 * source is read at completion.
 */
#include <stdlib.h>
#include <string.h>

#include "emu.h"
#include "hap-internal.h"
#include "hexagon_protos.h"

#define W1_2D (1u << 24)
#define W1_COMPRESSED (3u << 26)
#define W1_ORDER (1u << 30)
#define W1_DONE (1u << 31)
#define STATE_RUN 1
#define MAX_PENDING 512

struct descriptor {
    uint32_t words[9];
};

enum word { NEXT, W1, SRC, DST, TYPE, W5, W6, W7 };

struct transfer {
    uintptr_t src, dst;
    uint32_t width, rows, src_stride, dst_stride;
};

struct engine {
    struct descriptor *head; /* the oldest that is not done; NULL: idle */
    uint64_t random;
};

enum mode { LAZY, EAGER, RANDOM };

static enum mode mode;
static uint64_t seed;
static _Thread_local struct engine engine;

const char *emu_dma_configure(const char *value) {
    if (!value || !*value || !strcmp(value, "lazy")) {
        mode = LAZY;
        return NULL;
    }
    if (!strcmp(value, "eager")) {
        mode = EAGER;
        return NULL;
    }
    char *end = NULL;
    if (!strncmp(value, "random:", 7) && value[7]) {
        mode = RANDOM;
        seed = strtoull(value + 7, &end, 10);
    }
    return end && !*end ? NULL : "HEXNPU_EMU_DMA must be lazy, eager or random:SEED";
}

/* Where `next` is a 64-bit pointer, every other word comes one later. */
static uint32_t is_wide(const struct descriptor *d) {
    return emu_low_has_heap() && !d->words[1];
}

static uint32_t get(const struct descriptor *d, enum word word) {
    return d->words[word + (word ? is_wide(d) : 0)];
}

static bool is_done(const struct descriptor *d) {
    return get(d, W1) & W1_DONE;
}

/* The low bits of a descriptor's address and of `next` say other things. */
static uintptr_t address_bits(uintptr_t value) {
    return value & (emu_low_has_heap() ? ~(uintptr_t) 7 : ~(uintptr_t) 15);
}

static struct descriptor *at(uintptr_t address) {
    struct descriptor *d = (struct descriptor *) address;
    if (address_bits(address) != address || !emu_low_contains(address, 16) || (address % 16 && !is_wide(d))) {
        emu_die("a DMA descriptor at 0x%zx: must be 16-byte aligned memory of the session", (size_t) address);
    }
    return d;
}

static uint32_t or_full(uint32_t stride, uint32_t full) {
    return stride ? stride : full;
}

static struct transfer decode(const struct descriptor *d) {
    struct transfer t = {.src = get(d, SRC), .dst = get(d, DST), .rows = 1};
    uint32_t w1 = get(d, W1);
    if (w1 & W1_COMPRESSED) {
        emu_die("a DMA descriptor asks for compression, which is not emulated");
    }
    if (!(w1 & W1_2D)) {
        t.width = w1 & 0xffffff;
        return t;
    }
    uint32_t type = get(d, TYPE) & 0xff, w5 = get(d, W5), w6 = get(d, W6);
    if (type == 0) {
        t.width = w5 & 0xffff;
        t.rows = w5 >> 16;
        t.src_stride = or_full(w6 & 0xffff, 0x10000);
        t.dst_stride = or_full(w6 >> 16, 0x10000);
    } else if (type == 9) {
        t.width = w5 & 0xffffff;
        t.rows = w5 >> 24 | (w6 & 0xff) << 8;
        t.src_stride = or_full(w6 >> 8, 0x1000000);
        t.dst_stride = or_full(w1 & 0xffffff, 0x1000000);
    } else {
        emu_die("a DMA descriptor of type %u, which is not emulated (0 and 9 are)", type);
    }
    if (get(d, W7)) {
        emu_die("a DMA descriptor with a width offset, which is not emulated");
    }
    return t;
}

static void check_range(const char *side, uintptr_t p, uint32_t width, uint32_t rows, uint32_t stride) {
    size_t span = (size_t) (rows - 1) * stride + width;
    if (!emu_low_contains(p, span)) {
        emu_die("a DMA transfer's %s 0x%zx..0x%zx (%u rows of %u bytes, stride %u) is outside of buffers and VTCM",
                side, (size_t) p, (size_t) p + span, rows, width, stride);
    }
}

static void complete(struct descriptor *d) {
    emu_skew();
    struct transfer t = decode(d);
    if (t.width && t.rows) {
        check_range("source", t.src, t.width, t.rows, t.src_stride);
        check_range("destination", t.dst, t.width, t.rows, t.dst_stride);
        for (uint32_t r = 0; r < t.rows; r++) {
            uintptr_t to = t.dst + (size_t) r * t.dst_stride, from = t.src + (size_t) r * t.src_stride;
            memcpy((void *) to, (const void *) from, t.width);
        }
    }
    d->words[W1 + is_wide(d)] |= W1_DONE;
}

static struct descriptor *next_of(const struct descriptor *d) {
    uintptr_t next = address_bits(d->words[NEXT]);
    return next ? at(next) : NULL;
}

static void skip_done(void) {
    while (engine.head && is_done(engine.head)) {
        engine.head = next_of(engine.head);
    }
}

/* SplitMix64: seeds that follow each other give streams that have nothing in common. */
static uint32_t random_below(uint32_t n) {
    uint64_t z = engine.random += 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return (uint32_t) ((z ^ z >> 31) % n);
}

/* Completes one transfer out of those that may go now: any up to the first with the order bit behind the head. */
static void complete_any(void) {
    struct descriptor *ready[MAX_PENDING];
    uint32_t n = 0;
    for (struct descriptor *d = engine.head; d && n < MAX_PENDING; d = next_of(d)) {
        if (d != engine.head && get(d, W1) & W1_ORDER) {
            break;
        }
        if (!is_done(d)) {
            ready[n++] = d;
        }
    }
    complete(ready[random_below(n)]);
    skip_done();
}

static void complete_all(void) {
    while (engine.head) {
        if (mode == RANDOM) {
            complete_any();
        } else {
            complete(engine.head);
            skip_done();
        }
    }
}

/* What an instruction that only queues does to the transfers already there. */
static void time_passes(void) {
    if (mode == EAGER) {
        complete_all();
    } else if (mode == RANDOM) {
        for (uint32_t n = random_below(3); n && engine.head; n--) {
            complete_any();
        }
    }
}

static uintptr_t low(const void *p) {
    uintptr_t address = (uintptr_t) p;
    if (address >> 32) {
        emu_die("the DMA descriptor %p lies above 4 GiB", p);
    }
    return address;
}

void Q6_dmstart_A(void *first) {
    if (!first) {
        return;
    }
    skip_done();
    if (engine.head) {
        emu_die("dmstart while the engine is running");
    }
    if (!engine.random) {
        engine.random = seed * 0xd1342543de82ef95ull + 1;
    }
    engine.head = at(low(first));
    time_passes();
}

void Q6_dmlink_AA(void *tail, void *next) {
    uintptr_t address = low(next);
    if (tail) {
        struct descriptor *t = at(low(tail));
        t->words[NEXT] = (t->words[NEXT] - (uint32_t) address_bits(t->words[NEXT])) | (uint32_t) address;
    }
    if (engine.head) {
        time_passes();
        skip_done();
    } else {
        Q6_dmstart_A(next);
    }
}

static Word32 state(void) {
    return engine.head ? (Word32) ((uintptr_t) engine.head | STATE_RUN) : 0;
}

Word32 Q6_R_dmpoll(void) {
    if (engine.head && mode == RANDOM) {
        complete_any();
    } else if (engine.head) {
        complete(engine.head);
        skip_done();
    }
    return state();
}

Word32 Q6_R_dmwait(void) {
    complete_all();
    return state();
}

Word32 Q6_R_dmpause(void) {
    Word32 was = state();
    engine.head = NULL;
    return was;
}

/* Goes on with what dmpause gave. */
void Q6_dmresume_A(void *paused) {
    uintptr_t address = address_bits(low(paused));
    engine.head = address ? at(address) : NULL;
    skip_done();
}
