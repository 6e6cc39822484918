/*
 * VTCM between ops: nothing on the device, poison in the emulator. The runtime calls vtcm_op_begin() before each op
 * with the bytes that earlier ops could touch, then vtcm_op_region() for each region the op owns.
 */
#pragma once

#include <stdint.h>

void vtcm_op_begin(uint8_t *base, uint32_t touched_bytes);
void vtcm_op_region(uint8_t *region, uint32_t bytes);
