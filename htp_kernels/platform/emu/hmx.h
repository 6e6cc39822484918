/*
 * The matrix unit (HMX) as plain C functions: `hexnpu emu-cc` translates an HMX packet into a call of one of them.
 *
 * Addresses are 32 bits and lie in VTCM. A tile is 32 x 32 halves, 2048 bytes. `range` is the last byte of the
 * operand as the instruction takes it: tiles * 2048 - 1, up to 32 tiles.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HMX_TILE_BYTES 2048u
#define HMX_MAX_TILES 32u

/* What a store says besides :after. */
enum hmx_store_form {
    HMX_BEFORE = 1, /* :before in place of :after */
    HMX_RETAIN = 2, /* :retain, the accumulator stays; without it a store clears it */
    HMX_POS = 4,    /* :pos, negative results become zero */
};

/* bias = mxmem2(Rs): 32 words of column scales, then 32 words of the rest; an area of 256 bytes. */
void hmx_bias(uint32_t address);
/* bias = mxmem(Rs): the first 128 bytes alone. */
void hmx_bias_low(uint32_t address);
/* mxclracc.hf: both accumulators. */
void hmx_clear(void);
/* mxswapacc.hf */
void hmx_swap(void);

/* { activation.hf = mxmem(Rs, Rt)[:deep]; weight.hf = mxmem(Ru, Rv) }, each operand with its range. */
void hmx_mac_ranges(uint32_t activation, uint32_t activation_range, uint32_t weight, uint32_t weight_range, bool deep);
/* The same with one range for both. */
static inline void hmx_mac(uint32_t activation, uint32_t weight, uint32_t range, bool deep) {
    hmx_mac_ranges(activation, range, weight, range, deep);
}

/* mxmem(Rs, Rt):after[:retain][:pos].hf = acc; `form` is a sum of enum hmx_store_form. */
void hmx_store(uint32_t out, uint32_t param, unsigned form);
static inline void hmx_store_after(uint32_t out, uint32_t param) {
    hmx_store(out, param, 0);
}

/* cvt.hf = acc(Rs) with the forms :retain and :pos, then mxmem(Rs, Rt) = cvt. */
void hmx_convert(uint32_t param, unsigned form);
void hmx_store_converted(uint32_t out, uint32_t param);
