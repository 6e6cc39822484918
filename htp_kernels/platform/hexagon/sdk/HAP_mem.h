/* Mapping of shared buffers into the session, by the file descriptor that rpcmem gave them; the heap. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "AEEStdDef.h"
#include "AEEStdErr.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_PROT_NONE 0x00
#define HAP_PROT_READ 0x01
#define HAP_PROT_WRITE 0x02
#define HAP_PROT_EXEC 0x04

/* How the DSP caches the pages; goes with the permissions. */
#define HAP_MEM_CACHE_WRITEBACK 0x10
#define HAP_MEM_CACHE_NON_SHARED 0x20
#define HAP_MEM_CACHE_WRITETHROUGH 0x40

#define HAP_MEM_FLAGS_SKIP_DSP_MAP 0
#define HAP_MEM_FLAGS_DSP_MAP 1
#define HAP_MEM_FLAGS_EXTENDED_MAP 2 /* may lie above 4 GiB of the DSP */
#define HAP_MEM_FLAGS_MAX (HAP_MEM_FLAGS_EXTENDED_MAP + 1)

#define HAP_MAP_FAILED ((void *) -1)

/* A buffer that is mapped already gets one more user. addr must be NULL, flags 0. */
void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset);
void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset);
int HAP_munmap(void *addr, int len); /* AEE_ENOSUCHMAP: no such mapping */
int HAP_munmap2(void *addr, size_t len);
/* The mapping of the whole buffer, with one more user, until HAP_mmap_put(). */
int HAP_mmap_get(int fd, void **vaddr, uint64 *paddr);
int HAP_mmap_put(int fd);

/* One call for several requests. */
typedef enum { START = 0, END } marker_t;
typedef enum {
    HAP_MEM_LOG_BLOCKS = 1,
    HAP_MEM_SET_MARKER = 2,
    HAP_MEM_MAP = 3,
    HAP_MEM_UNMAP = 4,
    HAP_RESERVE_VA = 5,
    HAP_UNRESERVE_VA = 6
} HAP_mem_req_t;
typedef struct {
    marker_t marker_type;
    uint16_t instance;
} HAP_mem_marker_payload_t;
typedef struct {
    uint64_t addr; /* 0, or of HAP_RESERVE_VA */
    uint64_t len;
    int prot;  /* permissions and caching */
    int flags; /* HAP_MEM_FLAGS_... */
    int fd;
    uint64_t dsp_pa; /* offset in the buffer */
    uint64_t dsp_va; /* out */
} HAP_mem_map_t;
typedef struct {
    uint64_t dsp_va;
    uint64_t len;
} HAP_mem_unmap_t;
typedef struct {
    uint64_t len;
    int prot;
    int flags;
    uint64_t dsp_va; /* out */
} HAP_mem_reserve_t;
typedef struct {
    uint64_t dsp_va;
    uint64_t len;
} HAP_mem_unreserve_t;
typedef struct {
    HAP_mem_req_t request_id;
    union {
        HAP_mem_marker_payload_t mem_marker_payload;
        HAP_mem_map_t mmap;
        HAP_mem_unmap_t munmap;
        HAP_mem_reserve_t reserve;
        HAP_mem_unreserve_t unreserve;
    };
} HAP_mem_req_payload_t;
int HAP_mem_request(HAP_mem_req_payload_t *mem_payload);

static inline int HAP_malloc(uint32 bytes, void **pptr) {
    *pptr = malloc(bytes);
    return *pptr ? AEE_SUCCESS : (int) AEE_ENOMEMORY;
}
static inline int HAP_free(void *ptr) {
    free(ptr);
    return ptr ? AEE_SUCCESS : (int) AEE_EBADCLASS;
}

struct HAP_mem_stats {
    uint64 bytes_free;
    uint64 bytes_used;
    uint64 seg_free;
    uint64 seg_used;
    uint64 min_grow_bytes;
};
int HAP_mem_get_stats(struct HAP_mem_stats *stats);
int HAP_mem_set_grow_size(uint64 min, uint64 max);
int HAP_mem_set_heap_thresholds(unsigned int low_largest_block_size, unsigned int high_largest_block_size);
/* Bytes of the calling thread's stack that are left. */
uint64 HAP_mem_available_stack(void);

#ifdef __cplusplus
}
#endif
