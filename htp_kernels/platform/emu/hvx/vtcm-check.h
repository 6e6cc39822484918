// Where gathers and scatters look: implemented by platform/emu/vtcm-check.c.
#ifndef HEXNPU_EMU_HVX_VTCM_CHECK_H
#define HEXNPU_EMU_HVX_VTCM_CHECK_H

#include <stdint.h>

// Ends the process unless [first, first + bytes) lies in VTCM; `what` opens the sentence that says so.
void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what);

#endif
