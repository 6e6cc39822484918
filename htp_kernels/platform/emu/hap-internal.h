/* Between the files of the emulator's platform. */
#pragma once

#include <stdint.h>

/* Each takes the value of its environment variable (NULL: not set); gives NULL or what is wrong with it. */
const char *emu_dma_configure(const char *value);
const char *emu_skew_configure(const char *value);
/* A place where a session may be late. */
void emu_skew(void);
void emu_vtcm_many_sessions(void);
