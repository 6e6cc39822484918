/*
 * The layout of repacked weights: a matrix [K, N] is ceil(N / 32) tile rows, each K / 32 tiles of 32 rows x 32 k; a row
 * beyond N is zero. A tensor of a tile type has
 *
 *   ne = (K, N, ne2, ne3), K a multiple of 32
 *   nb = (bytes of a tile, of a tile row, of a whole matrix, of ne2 matrices), and nothing lies between them.
 *
 * A quantized tile holds unsigned bytes w + zero point; byte 4 * row + i of vector j is
 *
 *   TILE_Q8_0         8 vectors: k = 4j + i, zero point 128, then the scales
 *   TILE_Q4_0, _Q4_1  4 vectors: low nibble k = 4j + i, high nibble k = 16 + 4j + i; zero point 8 (Q4_0) or 0 (Q4_1)
 *
 * and the scales are one last vector of 32 pairs of halves (d, m): the even half of word `row` is its scale, the
 * odd one its minimum (0 where the type has none).
 */
#pragma once

#include "htp-wire.h"

#define HTP_TILE_ROWS 32u
#define HTP_TILE_K 32u

/* Bytes of one tile; 0 for a type that is not tiled. */
static inline uint32_t htp_tile_bytes(uint32_t type) {
    switch (type) {
    case HTP_TILE_Q4_0:
    case HTP_TILE_Q4_1:
        return 640;
    case HTP_TILE_Q8_0:
        return 1152;
    default:
        return 0;
    }
}

/* What nb must be, given type and ne; 64 bit because a hostile ne overflows 32. `end` is the bytes of the tensor. */
struct htp_tile_layout {
    uint64_t nb[HTP_MAX_DIMS];
    uint64_t end;
};

static inline struct htp_tile_layout htp_tile_layout(uint32_t type, const uint32_t *ne) {
    struct htp_tile_layout l;
    l.nb[0] = htp_tile_bytes(type);
    l.nb[1] = ne[0] / HTP_TILE_K * l.nb[0];
    l.nb[2] = ((uint64_t) ne[1] + HTP_TILE_ROWS - 1) / HTP_TILE_ROWS * l.nb[1];
    /* Saturated: a product that leaves 64 bits is larger than any tensor. */
    l.nb[3] = l.nb[2] > UINT32_MAX ? UINT64_MAX : l.nb[2] * ne[2];
    l.end = l.nb[3] > UINT32_MAX ? UINT64_MAX : l.nb[3] * ne[3];
    return l;
}
