/* Vector contexts (HVX): how many there are, and a claim of the calling thread on one. */
#pragma once

#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { QURT_HVX_MODE_64B = 0, QURT_HVX_MODE_128B = 1 } qurt_hvx_mode_t;

/* Bits 15..8: 128-byte contexts, bits 7..0: 64-byte ones. */
#define QURT_HVX_HW_UNITS_2X128B_4X64B 0x00000204
#define QURT_HVX_HW_UNITS_4X128B_0X64B 0x00000400
#define QURT_HVX_HW_UNITS_6X128B_0X64B 0x00000600

#define QURT_HVX_UNLOCKED (0)
#define QURT_HVX_LOCKED (1)
#define QURT_HVX_ERROR (-1)

/* qurt_hvx_reserve() counts in 64 bytes, two for a context. */
#define QURT_HVX_RESERVE_ALL (4)
#define QURT_HVX_RESERVE_ALL_AVAILABLE (0xff)
#define QURT_HVX_RESERVE_NOT_SUPPORTED (-1)
#define QURT_HVX_RESERVE_NOT_SUCCESSFUL (-2)
#define QURT_HVX_RESERVE_ALREADY_MADE (-3)
#define QURT_HVX_RESERVE_CANCEL_ERR (-4)

int qurt_hvx_get_units(void);
int qurt_hvx_get_mode(void);
int qurt_hvx_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_try_lock(qurt_hvx_mode_t lock_mode);
int qurt_hvx_unlock(void);
int qurt_hvx_get_lock_val(void);
int qurt_hvx_reserve(int num_units);
int qurt_hvx_cancel_reserve(void);

#ifdef __cplusplus
}
#endif
