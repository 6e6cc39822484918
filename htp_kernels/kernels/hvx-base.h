/* Loads, stores and small helpers that every HVX kernel uses. Only SDK names below. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hexagon_protos.h"
#include "hexagon_types.h"
#include "hvx_hexagon_protos.h"

/* The emulator's thread sanitizer does not see 128-byte accesses by itself; on the device these are nothing. */
#ifndef HEX_READ_RANGE
#define HEX_READ_RANGE(p, n) ((void)0)
#define HEX_WRITE_RANGE(p, n) ((void)0)
#endif

#define HVX_BYTES 128u
#define HVX_F32 32u /* floats a vector */
#define HVX_F16 64u /* halves a vector */

static inline HVX_Vector hvx_load(const void *p) {
    HEX_READ_RANGE(p, HVX_BYTES);
    return *(const HVX_Vector *) p;
}

static inline void hvx_store(void *p, HVX_Vector v) {
    HEX_WRITE_RANGE(p, HVX_BYTES);
    *(HVX_Vector *) p = v;
}

static inline HVX_Vector hvx_loadu(const void *p) {
    HEX_READ_RANGE(p, HVX_BYTES);
    return *(const HVX_UVector *) p;
}

static inline void hvx_storeu(void *p, HVX_Vector v) {
    HEX_WRITE_RANGE(p, HVX_BYTES);
    *(HVX_UVector *) p = v;
}

static inline uint32_t hex_round_up(uint32_t n, uint32_t to) {
    return (n + to - 1) / to * to;
}

static inline uint32_t hex_ceil_div(uint32_t n, uint32_t by) {
    return (n + by - 1) / by;
}

static inline uint32_t hex_min(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static inline uint32_t hex_max(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

/* Thread t's share [first, end) of n things over n_threads. */
struct hex_range {
    uint32_t first, end;
};

static inline struct hex_range hex_share(uint32_t n, uint32_t t, uint32_t n_threads) {
    uint32_t each = hex_ceil_div(n, n_threads);
    uint32_t first = hex_min(t * each, n);
    return (struct hex_range){first, hex_min(first + each, n)};
}
