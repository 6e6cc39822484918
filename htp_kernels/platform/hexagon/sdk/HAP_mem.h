/* Mapping of shared buffers into the session. `fd` is the buffer's handle; (void *)
 * -1 says that it cannot be mapped. */
#pragma once

#include <stddef.h>

#define HAP_PROT_READ 1
#define HAP_PROT_WRITE 2
#define HAP_MAP_FAILED ((void *) -1)

void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset);
int HAP_munmap(void *addr, int len);
void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset);
int HAP_munmap2(void *addr, size_t len);
