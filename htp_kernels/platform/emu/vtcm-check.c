/* The rule that gathers, scatters and the matrix unit share: their operands lie in VTCM. */
#include "hvx/vtcm-check.h"

#include "emu.h"

void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what) {
    if (!emu_vtcm_contains(first, bytes)) {
        emu_die("%s at 0x%08x of %u bytes is not within VTCM: only VTCM that HAP_compute_res_acquire() gave will do", what,
                (unsigned) first, (unsigned) bytes);
    }
}
