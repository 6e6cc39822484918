/* What the processor has, and naps. */
#pragma once

typedef struct {
    unsigned int max_hthreads;
} qurt_sysenv_max_hthreads_t;

int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt);
int qurt_hvx_get_units(void); /* bits 7..0: 64-byte units, bits 15..8: 128-byte units */
void qurt_sleep(unsigned long long duration_us);
