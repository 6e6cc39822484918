/*
 * The matrix unit (HMX) as plain C functions: `hexnpu emu-cc` translates an HMX packet into calls of these, and the
 * intrinsics of hmx_hexagon_protos.h are made of them.
 *
 * Addresses are 32 bits and lie in VTCM. A tile is 32 x 32 halves, 2048 bytes. `range` is what the instruction takes:
 * for whole tiles the last byte of the operand, tiles * 2048 - 1, up to 32 tiles.
 * What cannot be done ends the process with a sentence, see docs/emulate.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define HMX_TILE_BYTES 2048u
#define HMX_MAX_TILES 32u

/* What a multiplication says. HMX_DEEP is 1, so that a bool for :deep is a form too. */
enum hmx_mac_form {
    HMX_DEEP = 1,        /* activation.hf = mxmem(...):deep, as many tiles as the range says; without it one */
    HMX_WEIGHT_DEEP = 2, /* weight.hf = mxmem(...):deep, weights of a second product go to the other accumulator */
};

/* What a store says besides :after. */
enum hmx_store_form {
    HMX_BEFORE = 1, /* :before in place of :after */
    HMX_RETAIN = 2, /* :retain, the accumulator stays; without it a store clears it and swaps to the other one */
    HMX_POS = 4,    /* :pos, negative results become zero */
};

/* bias = mxmem2(Rs): an area of 256 bytes, a word a column and then a second word a column. The low two bits of the
 * address choose one of four banks; stores use bank 0 unless they say otherwise. */
void hmx_bias(uint32_t address);
/* bias = mxmem(Rs): the first 128 bytes alone, the second words become zero. */
void hmx_bias_low(uint32_t address);
/* mxclracc.hf: both accumulators. */
void hmx_clear(void);
/* mxswapacc.hf */
void hmx_swap(void);

/* { activation.hf = mxmem(Rs, Rt)[:deep]; weight.hf = mxmem(Ru, Rv)[:deep] }, each operand with its range. */
void hmx_mac_ranges(uint32_t activation, uint32_t activation_range, uint32_t weight, uint32_t weight_range,
                    unsigned form);
/* The same with one range for both. */
static inline void hmx_mac(uint32_t activation, uint32_t weight, uint32_t range, bool deep) {
    hmx_mac_ranges(activation, range, weight, range, deep);
}

/* The halves of that packet, where they are statements of their own; the weights multiply. */
void hmx_activation(uint32_t address, uint32_t range, unsigned form);
void hmx_weight(uint32_t address, uint32_t range, unsigned form);

/* mxmem(Rs, Rt):after[:retain][:pos].hf = acc; `form` is a sum of enum hmx_store_form. */
void hmx_store(uint32_t out, uint32_t param, unsigned form);
static inline void hmx_store_after(uint32_t out, uint32_t param) {
    hmx_store(out, param, 0);
}

/* cvt.hf = acc(Rs), then mxmem(Rs, Rt) = cvt. In Rs of the first, bit 0 retains and bit 1 keeps negative results:
 * acc(2) is what everybody writes. `form` is not used. */
void hmx_convert(uint32_t param, unsigned form);
void hmx_store_converted(uint32_t out, uint32_t param);

/* Called by HAP_compute_res for its hmx_lock and hmx_unlock: from now on this thread may use the unit of compute
 * resource context `context` (1 to 16); 0: no unit. An HMX instruction of a thread without one ends the process. */
void hmx_hold(unsigned context);
