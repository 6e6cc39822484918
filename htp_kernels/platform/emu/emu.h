/*
 * The emulator's own interface, for the server and the tests; kernels and runtime never include it.
 *
 * Everything the NPU can address lies below 4 GiB of the process, as DMA descriptors hold 32-bit addresses: buffers,
 * VTCM and the qurt heap. Each such block stands between guard pages, so an overrun is a crash, never a neighbour's
 * bytes.
 *
 * Environment, read once by emu_init():
 *   HEXNPU_EMU_DMA   lazy (default) | eager | random:SEED    when transfers happen, see dma.c
 *   HEXNPU_EMU_SKEW  SEED                                    sessions stand still at random places, see skew.c
 * and read where they are needed, the defaults of `hexnpu emulate`:
 *   HEXNPU_EMU_HVX   vector contexts and hardware threads (4, and the host's processors)
 *   HEXNPU_EMU_HMX   matrix units (1)
 *   HEXNPU_EMU_VTCM  MiB (8)
 *   HEXNPU_EMU_ARCH  73, 75, 79 or 81 (what the emulator was built for)
 *   HEXNPU_EMU_FARF  file for log lines (stderr)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMU_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define EMU_TSAN 1
#endif
#endif

#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>
#define EMU_POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define EMU_UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define EMU_POISON(p, n) ((void) (p), (void) (n))
#define EMU_UNPOISON(p, n) ((void) (p), (void) (n))
#endif

#define EMU_CLOCK_KHZ 1000000u /* nominal NPU clock of HAP_perf_get_pcycles() */

/* Reads the environment; gives NULL or a sentence about a value that cannot be taken. */
const char *emu_init(void);

/* `bytes` of file descriptor fd from `offset` (fd < 0: of fresh zeroed memory), page aligned below 4 GiB; NULL: no
 * room. */
void *emu_low_map(size_t bytes, int fd, long offset);
/* Of fresh zeroed memory; align is a power of two from 4096 on. */
void *emu_low_map_aligned(size_t bytes, size_t align);
/* Gives a block of emu_low_map() back. */
void emu_low_unmap(void *block);
bool emu_low_try_unmap(void *block); /* false: no block begins there */
/* Whether all of [p, p + bytes) lies in one block, or in the reserved heap. */
bool emu_low_contains(uintptr_t p, size_t bytes);
/* The bytes that can be mapped at most. */
uint64_t emu_low_capacity(void);

/* Several sessions live in this process, a thread each: call it before the first of them. */
void emu_many_sessions(void);
void emu_low_many_sessions(void);
/* For a process that loads DSP libraries: blocks begin at 1 GiB, below which its brk heap may grow and libraries lie,
 * and threads map and unmap as they like. Call it before the first block. */
void emu_low_reserve_heap(void);
bool emu_low_has_heap(void); /* whether that was called */

/* How HAP_mmap finds a buffer: gives its file descriptor and size, or -1.
 * The descriptor is closed after the mapping. */
typedef int (*emu_buffer_source)(int handle, uint64_t *bytes);
void emu_set_buffer_source(emu_buffer_source source);

/* VTCM: how large the part is that this thread's session has, before its first HAP_compute_res_acquire(). */
void emu_vtcm_set_bytes(uint32_t bytes);
/* Whether all of [address, address + bytes) lies in VTCM that somebody holds now. */
bool emu_vtcm_contains(uintptr_t address, size_t bytes);

/* What event counter i (0 to 7) of the core shows, see qurt_pmu.h. */
uint32_t emu_pmu_count(int i);

/* Ends the process with a message that names the broken rule; the server reports it as the session's death. */
void emu_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
