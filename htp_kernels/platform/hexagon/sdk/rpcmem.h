/* Memory of the host that the DSP can map: allocated here, known to FastRPC by its file descriptor. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef ION_FLAG_CACHED
#define RPCMEM_DEFAULT_FLAGS ION_FLAG_CACHED
#else
#define RPCMEM_DEFAULT_FLAGS 1
#endif
#define RPCMEM_FLAG_UNCACHED 0
#define RPCMEM_FLAG_CACHED RPCMEM_DEFAULT_FLAGS

/* Map into every session, of now and later; failing to is no error. */
#define RPCMEM_TRY_MAP_STATIC 0x04000000

enum rpc_heap_ids {
    RPCMEM_HEAP_ID_SECURE = 9,
    RPCMEM_HEAP_ID_CONTIG = 22, /* physically contiguous, a few MiB */
    RPCMEM_HEAP_ID_SYSTEM = 25, /* the one to use */
};

/* Of older programs. */
#define RPCMEM_DEFAULT_HEAP -1
#define RPCMEM_HEAP_DEFAULT 0x80000000
#define RPCMEM_HEAP_NOREG 0x40000000
#define RPCMEM_HEAP_UNCACHED 0x20000000
#define RPCMEM_HEAP_NOVA 0x10000000
#define RPCMEM_HEAP_NONCOHERENT 0x08000000
#define RPCMEM_FORCE_NOFLUSH 0x01000000
#define RPCMEM_FORCE_NOINVALIDATE 0x02000000
#define ION_SECURE_FLAGS ((1 << 31) | (1 << 19))

#ifdef __cplusplus
extern "C" {
#endif

void rpcmem_init(void);   /* not needed before the others */
void rpcmem_deinit(void);

/* NULL: no memory. rpcmem_alloc() ends at 2 GiB, rpcmem_alloc2() does not. */
void *rpcmem_alloc(int heapid, uint32_t flags, int size);
void *rpcmem_alloc2(int heapid, uint32_t flags, size_t size);
void rpcmem_free(void *po); /* what is no such block is ignored */
int rpcmem_to_fd(void *po); /* -1: no such block */

__attribute__((unused)) static __inline void *rpcmem_alloc_def(int size) {
    return rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, size);
}

#ifdef __cplusplus
}
#endif
