/* Cache maintenance, and the heap. */
#pragma once

#include "qurt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    QURT_MEM_CACHE_FLUSH,
    QURT_MEM_CACHE_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_ALL,
    QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL,
    QURT_MEM_CACHE_TABLE_FLUSH_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_INVALIDATE_L2,
} qurt_mem_cache_op_t;

typedef enum { QURT_MEM_ICACHE, QURT_MEM_DCACHE } qurt_mem_cache_type_t;

int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type);
/* Address and size are multiples of 32, else QURT_EALIGN. */
int qurt_mem_l2cache_line_lock(qurt_addr_t addr, qurt_size_t size);
int qurt_mem_l2cache_line_unlock(qurt_addr_t addr, qurt_size_t size);
void qurt_mem_barrier(void);
void qurt_mem_syncht(void);

/* Page-aligned here, at least 8-byte aligned on the device. */
void *qurt_malloc(unsigned int size);
void qurt_free(void *ptr);

#ifdef __cplusplus
}
#endif
