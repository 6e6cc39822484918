/* Instruction trace of the user's process: on and off, as often off as on. The emulator counts and traces nothing. */
#pragma once

#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

int HAP_user_etm_enable(void);
int HAP_user_etm_disable(void); /* an error where it is off */

#ifdef __cplusplus
}
#endif
