// One memory fault per argument, each of which the asan flavour must report. "none" makes the same accesses in bounds.
#include <stdlib.h>
#include <string.h>

#include "kernels/hvx-base.h"

enum { ARENA = 4096 };

static volatile HVX_Vector sink;

// All lanes: of a load of which one lane is used, the compiler leaves only that lane.
static void consume(HVX_Vector v) {
    sink = v;
}

int main(int argc, char **argv) {
    const char *fault = argc > 1 ? argv[1] : "none";
    char *arena = aligned_alloc(128, ARENA);
    if (!arena) return 2;
    memset(arena, 0, ARENA);
    volatile size_t last = ARENA - 128;
    HVX_Vector v = Q6_V_vsplat_R(7);

    if (!strcmp(fault, "overrun-store")) last += 128;
    hvx_store(arena + last, v);
    if (!strcmp(fault, "overrun-load")) last += 128;
    consume(hvx_load(arena + last));
    if (!strcmp(fault, "overrun-storeu")) last += 1;
    hvx_storeu(arena + last, v);
    if (!strcmp(fault, "overrun-loadu")) last += 1;
    consume(hvx_loadu(arena + last));
    // Under a predicate only the bytes chosen are written: 4 of the next line are 4 too many.
    if (!strcmp(fault, "overrun-predicated")) last += 128;
    Q6_vmem_QRIV(Q6_Q_vsetq_R(4), (HVX_Vector *) (arena + last), v);
    if (!strcmp(fault, "misaligned-load")) last -= 64;
    consume(hvx_load(arena + last));
    if (!strcmp(fault, "misaligned-store")) last -= 2;
    hvx_store(arena + last, v);
    if (!strcmp(fault, "use-after-free")) free(arena);
    consume(*(HVX_Vector *) arena);
    return 0;
}
