/* The seam of platform/emu/vtcm.h: on the device VTCM is left as it is. */
#pragma once

#include <stdint.h>

static inline void vtcm_op_begin(uint8_t *base, uint32_t touched_bytes) {
    (void) base, (void) touched_bytes;
}

static inline void vtcm_op_region(uint8_t *region, uint32_t bytes) {
    (void) region, (void) bytes;
}
