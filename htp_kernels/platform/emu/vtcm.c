/*
 * VTCM: one arena a process (a session is a process), whose parts are poison when they begin to be held. Where sessions
 * are threads of one process each has an arena of its own, as if each were alone on its NPU.
 */
#include "vtcm.h"

#include <stdatomic.h>
#include <string.h>

#include "emu.h"
#include "hap-internal.h"

#define PAGE 4096u
#define MAX_MIB 64u
#define MAX_PAGES ((MAX_MIB << 20) / PAGE)
#define DEFAULT_MIB 8u
#define ALIGN (1u << 20) /* of an arena: tables in VTCM are aligned by their size */

static _Thread_local uint32_t part_bytes; /* 0: the default */
static struct arena {
    _Atomic(uint8_t *) base;
    uint32_t bytes;
    _Atomic uint8_t held[MAX_PAGES]; /* read by threads that do nothing else with the manager */
} arenas[EMU_MAX_ARENAS];
static uint32_t n_arenas = 1;

void emu_vtcm_set_bytes(uint32_t bytes) {
    part_bytes = bytes;
}

void emu_vtcm_many_sessions(void) {
    n_arenas = EMU_MAX_ARENAS;
}

uint32_t emu_n_arenas(void) {
    return n_arenas;
}

uint32_t emu_vtcm_bytes(void) {
    return part_bytes ? part_bytes : emu_setting("HEXNPU_EMU_VTCM", MAX_MIB, DEFAULT_MIB) << 20;
}

uint8_t *emu_arena_fill(uint32_t arena, uint32_t bytes) {
    struct arena *a = &arenas[arena];
    uint8_t *base = atomic_load(&a->base);
    if (base && a->bytes != bytes) {
        EMU_UNPOISON(base, a->bytes);
        emu_low_unmap(base);
        base = NULL;
    }
    if (!base) {
        base = bytes ? emu_low_map_aligned(bytes, ALIGN) : NULL;
        a->bytes = bytes;
        if (base) {
            EMU_POISON(base, bytes);
        }
    }
    atomic_store(&a->base, base);
    return base;
}

uint8_t *emu_arena_base(uint32_t arena) {
    return atomic_load(&arenas[arena].base);
}

uint32_t emu_arena_bytes(uint32_t arena) {
    return arenas[arena].bytes;
}

static void set_held(struct arena *a, uint32_t offset, uint32_t bytes, uint8_t held) {
    for (uint32_t page = offset / PAGE; page < (offset + bytes + PAGE - 1) / PAGE; page++) {
        atomic_store_explicit(&a->held[page], held, memory_order_relaxed);
    }
}

void emu_arena_take(uint32_t arena, uint32_t offset, uint32_t bytes) {
    struct arena *a = &arenas[arena];
    uint8_t *part = atomic_load(&a->base) + offset;
    EMU_UNPOISON(part, bytes);
    memset(part, 0xff, bytes);
    set_held(a, offset, bytes, 1);
}

void emu_arena_give(uint32_t arena, uint32_t offset, uint32_t bytes) {
    struct arena *a = &arenas[arena];
    set_held(a, offset, bytes, 0);
    EMU_POISON(atomic_load(&a->base) + offset, bytes);
}

static bool all_held(struct arena *a, uintptr_t offset, size_t bytes) {
    for (uintptr_t page = offset / PAGE; page < (offset + bytes + PAGE - 1) / PAGE; page++) {
        if (page >= MAX_PAGES || !atomic_load_explicit(&a->held[page], memory_order_relaxed)) {
            return false;
        }
    }
    return true;
}

bool emu_vtcm_contains(uintptr_t address, size_t bytes) {
    for (uint32_t i = 0; i < n_arenas; i++) {
        uintptr_t begin = (uintptr_t) atomic_load_explicit(&arenas[i].base, memory_order_relaxed);
        if (begin && address >= begin && all_held(&arenas[i], address - begin, bytes)) {
            return true;
        }
    }
    return false;
}

void vtcm_op_begin(uint8_t *base, uint32_t touched_bytes) {
    emu_skew();
    EMU_UNPOISON(base, touched_bytes);
    memset(base, 0xff, touched_bytes);
    EMU_POISON(base, emu_vtcm_bytes());
}

void vtcm_op_region(uint8_t *region, uint32_t bytes) {
    EMU_UNPOISON(region, bytes);
}
