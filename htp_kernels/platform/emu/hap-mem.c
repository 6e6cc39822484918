/* Buffers of the host as mappings below 4 GiB, and what HAP tells about the heap. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "HAP_mem.h"
#include "emu.h"
#include "hap-internal.h"

#define MAX_GETS 1024u

static emu_buffer_source buffer_source;

void emu_set_buffer_source(emu_buffer_source source) {
    buffer_source = source;
}

/* A buffer's file, which the caller closes, and its size; -1: there is no such buffer. */
static int open_buffer(int fd, uint64_t *size) {
    return buffer_source ? buffer_source(fd, size) : -1;
}

void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset) {
    (void) addr, (void) prot, (void) flags;
    uint64_t size = 0;
    int file = open_buffer(fd, &size);
    if (file < 0) {
        return HAP_MAP_FAILED;
    }
    bool fits = offset >= 0 && offset % 4096 == 0 && (uint64_t) offset <= size && len <= size - (uint64_t) offset;
    void *p = fits ? emu_low_map(len, file, offset) : NULL;
    close(file);
    return p ? p : HAP_MAP_FAILED;
}

int HAP_munmap2(void *addr, size_t len) {
    (void) len;
    return emu_low_try_unmap(addr) ? AEE_SUCCESS : DSP_ERROR(AEE_ENOSUCHMAP);
}

void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset) {
    return len < 0 ? HAP_MAP_FAILED : HAP_mmap2(addr, (size_t) len, prot, flags, fd, offset);
}

int HAP_munmap(void *addr, int len) {
    return HAP_munmap2(addr, (size_t) len);
}

/* Mappings that HAP_mmap_get() gave, for HAP_mmap_put(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct got {
    int fd;
    uint32_t n;
    void *address;
} gets[MAX_GETS];

/* The entry of fd; with none, a free one where `free_too`, else NULL. */
static struct got *entry_of(int fd, bool free_too) {
    struct got *found = NULL;
    for (uint32_t i = 0; i < MAX_GETS; i++) {
        if (gets[i].n && gets[i].fd == fd) {
            return &gets[i];
        }
        if (free_too && !found && !gets[i].n) {
            found = &gets[i];
        }
    }
    return found;
}

int HAP_mmap_get(int fd, void **vaddr, uint64 *paddr) {
    uint64_t size = 0;
    int file = open_buffer(fd, &size);
    if (file < 0) {
        return DSP_ERROR(AEE_ENOSUCHMAP);
    }
    pthread_mutex_lock(&lock);
    struct got *g = entry_of(fd, true);
    void *p = g ? emu_low_map(size, file, 0) : NULL;
    if (p) {
        *g = (struct got){fd, g->n + 1, p};
        if (vaddr) {
            *vaddr = p;
        }
        if (paddr) {
            *paddr = (uintptr_t) p;
        }
    }
    pthread_mutex_unlock(&lock);
    close(file);
    return p ? AEE_SUCCESS : DSP_ERROR(AEE_ENOMEMORY);
}

int HAP_mmap_put(int fd) {
    pthread_mutex_lock(&lock);
    struct got *g = entry_of(fd, false);
    if (g) {
        g->n--;
        emu_low_unmap(g->address);
    }
    pthread_mutex_unlock(&lock);
    return g ? AEE_SUCCESS : DSP_ERROR(AEE_ENOSUCHMAP);
}

int HAP_mem_request(HAP_mem_req_payload_t *mem_payload) {
    if (!mem_payload) {
        return DSP_ERROR(AEE_EBADPARM);
    }
    if (mem_payload->request_id == HAP_MEM_UNMAP) {
        return HAP_munmap2((void *) (uintptr_t) mem_payload->munmap.dsp_va, mem_payload->munmap.len);
    }
    if (mem_payload->request_id != HAP_MEM_MAP || mem_payload->mmap.addr) {
        return DSP_ERROR(AEE_EUNSUPPORTED);
    }
    HAP_mem_map_t *m = &mem_payload->mmap;
    void *p = HAP_mmap2(NULL, m->len, m->prot, m->flags, m->fd, (long) m->dsp_pa);
    m->dsp_va = p == HAP_MAP_FAILED ? 0 : (uintptr_t) p;
    return m->dsp_va ? AEE_SUCCESS : DSP_ERROR(AEE_EMMAP);
}

int HAP_mem_get_stats(struct HAP_mem_stats *stats) {
#ifdef __GLIBC__
    struct mallinfo2 heap = mallinfo2();
    *stats = (struct HAP_mem_stats){.bytes_free = heap.fordblks, .bytes_used = heap.uordblks, .seg_used = 1};
#else /* musl does not tell */
    *stats = (struct HAP_mem_stats){.seg_used = 1};
#endif
    return AEE_SUCCESS;
}

int HAP_mem_set_grow_size(uint64 min, uint64 max) {
    return min <= max ? AEE_SUCCESS : DSP_ERROR(AEE_EBADPARM);
}

int HAP_mem_set_heap_thresholds(unsigned int low_largest_block_size, unsigned int high_largest_block_size) {
    (void) low_largest_block_size, (void) high_largest_block_size; /* the host's heap has none */
    return AEE_SUCCESS;
}

uint64 HAP_mem_available_stack(void) {
    pthread_attr_t attr;
    void *begin = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attr)) {
        return 0;
    }
    pthread_attr_getstack(&attr, &begin, &bytes);
    pthread_attr_destroy(&attr);
    return (uint64) ((uintptr_t) __builtin_frame_address(0) - (uintptr_t) begin);
}
