/* Inside htp-pd: memory that the client shares. None of these names is visible to DSP libraries. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "../shared.h"

#pragma GCC visibility push(hidden)

/* The region that the client gave this id, mapped below 4 GiB on first use; NULL: unknown, or no room. Each call that
 * succeeds needs a release; it stays mapped until the client has taken the region back and nobody uses it. */
void *pd_region(uint64_t id, uint64_t *bytes);
void pd_region_release(uint64_t id);

/* The address here of the buffer that the client mapped by fastrpc_mmap(), by the client's file descriptor; it stays
 * until the client unmaps the buffer. */
bool pd_map_find(uint32_t fd, void **address, uint64_t *size);

#pragma GCC visibility pop
