/* What the processor has. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qurt_sysenv_max_hthreads {
    unsigned int max_hthreads;
} qurt_sysenv_max_hthreads_t;
typedef struct qurt_sysenv_arch_version {
    unsigned int arch_version; /* low byte 0x73, 0x75, ... */
} qurt_arch_version_t;

int qurt_sysenv_get_max_hw_threads(qurt_sysenv_max_hthreads_t *mhwt);
int qurt_sysenv_get_arch_version(qurt_arch_version_t *vers);

#ifdef __cplusplus
}
#endif
