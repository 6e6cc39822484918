/* Cache maintenance, and the heap. */
#pragma once

#include <stdint.h>

typedef uintptr_t qurt_addr_t;
typedef unsigned int qurt_size_t;

typedef enum {
    QURT_MEM_CACHE_FLUSH,
    QURT_MEM_CACHE_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_INVALIDATE,
    QURT_MEM_CACHE_FLUSH_ALL,
    QURT_MEM_CACHE_FLUSH_INVALIDATE_ALL,
} qurt_mem_cache_op_t;

typedef enum { QURT_MEM_ICACHE, QURT_MEM_DCACHE } qurt_mem_cache_type_t;

int qurt_mem_cache_clean(qurt_addr_t addr, qurt_size_t size, qurt_mem_cache_op_t opcode, qurt_mem_cache_type_t type);

/* Page-aligned here, at least 8-byte aligned on the device. */
void *qurt_malloc(unsigned int size);
void qurt_free(void *ptr);
