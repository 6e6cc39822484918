// The 64-bit vectors of hexagon_types.h: made of words, halfwords or bytes, the highest one first, and taken apart.
#ifndef HEXNPU_EMU_HEXAGON_V64_H
#define HEXNPU_EMU_HEXAGON_V64_H

#include <stdint.h>

// Part n of size-bit parts, of type T.
#define HEX_V64_GET(T, v, n) ((T) ((uint64_t) (v) >> (8 * sizeof(T) * (n))))
#define HEX_V64_AT(T, part, n) ((uint64_t) (T) (part) << (8 * sizeof(T) * (n)))

#define HEXAGON_V64_CREATE_D(d) ((int64_t) (d))
#define HEXAGON_V64_CREATE_W(w1, w0) ((int64_t) (HEX_V64_AT(uint32_t, w1, 1) | HEX_V64_AT(uint32_t, w0, 0)))
#define HEXAGON_V64_CREATE_H(h3, h2, h1, h0)                                                                          \
    ((int64_t) (HEX_V64_AT(uint16_t, h3, 3) | HEX_V64_AT(uint16_t, h2, 2) | HEX_V64_AT(uint16_t, h1, 1) |             \
                HEX_V64_AT(uint16_t, h0, 0)))
#define HEXAGON_V64_CREATE_B(b7, b6, b5, b4, b3, b2, b1, b0)                                                          \
    ((int64_t) (HEX_V64_AT(uint8_t, b7, 7) | HEX_V64_AT(uint8_t, b6, 6) | HEX_V64_AT(uint8_t, b5, 5) |                \
                HEX_V64_AT(uint8_t, b4, 4) | HEX_V64_AT(uint8_t, b3, 3) | HEX_V64_AT(uint8_t, b2, 2) |                \
                HEX_V64_AT(uint8_t, b1, 1) | HEX_V64_AT(uint8_t, b0, 0)))

#define HEXAGON_V64_GET_D(v) (v)
#define HEXAGON_V64_GET_UD(v) ((uint64_t) (v))
#define HEXAGON_V64_GET_W0(v) HEX_V64_GET(int32_t, v, 0)
#define HEXAGON_V64_GET_W1(v) HEX_V64_GET(int32_t, v, 1)
#define HEXAGON_V64_GET_UW0(v) HEX_V64_GET(uint32_t, v, 0)
#define HEXAGON_V64_GET_UW1(v) HEX_V64_GET(uint32_t, v, 1)
#define HEXAGON_V64_GET_H0(v) HEX_V64_GET(int16_t, v, 0)
#define HEXAGON_V64_GET_H1(v) HEX_V64_GET(int16_t, v, 1)
#define HEXAGON_V64_GET_H2(v) HEX_V64_GET(int16_t, v, 2)
#define HEXAGON_V64_GET_H3(v) HEX_V64_GET(int16_t, v, 3)
#define HEXAGON_V64_GET_UH0(v) HEX_V64_GET(uint16_t, v, 0)
#define HEXAGON_V64_GET_UH1(v) HEX_V64_GET(uint16_t, v, 1)
#define HEXAGON_V64_GET_UH2(v) HEX_V64_GET(uint16_t, v, 2)
#define HEXAGON_V64_GET_UH3(v) HEX_V64_GET(uint16_t, v, 3)

#endif
