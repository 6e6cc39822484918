/* rpcmem, and buffers of the caller that are tied to a file descriptor: calls pass both by reference. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "rpcmem.h"

#define PAGE 4096ull

/* A buffer's region in a session, made by the first call that names it. */
struct region {
    uint64_t serial; /* of the domain; 0: none */
    uint64_t id;
};

struct buffer {
    uintptr_t begin;
    uint64_t bytes;
    int fd;
    bool ours;     /* rpcmem allocated it */
    bool unmapped; /* remote_register_fd() made the addresses: nothing is there */
    uint32_t refs; /* of remote_register_buf() */
    struct region regions[N_EFFECTIVE];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buffer **buffers; /* by address; they do not overlap but where the caller says so */
static uint32_t n_buffers, room;

/* Index of the first buffer that ends behind p. */
static uint32_t lower(uintptr_t p) {
    uint32_t low = 0, high = n_buffers;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (buffers[mid]->begin + buffers[mid]->bytes <= p) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}

static struct buffer *at(const void *p) {
    uint32_t i = lower((uintptr_t) p);
    return i < n_buffers && buffers[i]->begin <= (uintptr_t) p ? buffers[i] : NULL;
}

static struct buffer *insert(void *p, uint64_t bytes, int fd) {
    if (n_buffers == room) {
        uint32_t more = room ? 2 * room : 64;
        struct buffer **larger = realloc(buffers, more * sizeof *larger);
        if (!larger) {
            return NULL;
        }
        buffers = larger;
        room = more;
    }
    struct buffer *b = calloc(1, sizeof *b);
    if (!b) {
        return NULL;
    }
    *b = (struct buffer){.begin = (uintptr_t) p, .bytes = bytes, .fd = fd, .refs = 1};
    uint32_t i = lower(b->begin);
    memmove(&buffers[i + 1], &buffers[i], (n_buffers - i) * sizeof buffers[0]);
    buffers[i] = b;
    n_buffers++;
    return b;
}

static void take_out(struct buffer *b) {
    uint32_t i = lower(b->begin);
    while (buffers[i] != b) {
        i++;
    }
    n_buffers--;
    memmove(&buffers[i], &buffers[i + 1], (n_buffers - i) * sizeof buffers[0]);
}

/* Sessions forget a buffer that is out of the table. */
static void free_buffer(struct buffer *b) {
    for (int i = 0; i < N_EFFECTIVE; i++) {
        int aee = 0;
        struct pd *pd = b->regions[i].serial ? pd_get(i, false, &aee) : NULL;
        if (pd && pd->serial == b->regions[i].serial) {
            pd_unshare(pd, b->regions[i].id);
        }
        if (pd) {
            pd_put(pd);
        }
    }
    if (b->ours || b->unmapped) {
        munmap((void *) b->begin, b->bytes);
    }
    if (b->ours) {
        close(b->fd);
    }
    free(b);
}

bool buffer_reference(struct pd *pd, const void *p, uint64_t bytes, uint64_t *region, uint64_t *offset) {
    pthread_mutex_lock(&lock);
    struct buffer *b = at(p);
    bool inside = b && bytes <= b->begin + b->bytes - (uintptr_t) p;
    struct region *r = inside ? &b->regions[pd->domain] : NULL;
    if (r && r->serial != pd->serial) {
        *r = (struct region){pd->serial, pd_share(pd, b->fd, b->bytes)};
    }
    if (r) {
        *region = r->id;
        *offset = (uintptr_t) p - b->begin;
    }
    pthread_mutex_unlock(&lock);
    return r && *region;
}

FR_EXPORT void rpcmem_init(void) {
}

FR_EXPORT void rpcmem_deinit(void) {
}

static void *allocate(size_t size, const char *who) {
    if (!size || size > SIZE_MAX / 2) {
        fail(AEE_EBADPARM, who, "%zu bytes cannot be allocated", size);
        return NULL;
    }
    uint64_t bytes = (size + PAGE - 1) & ~(PAGE - 1);
    int fd = memfd_create("rpcmem", MFD_CLOEXEC);
    void *p = fd < 0 || ftruncate(fd, (off_t) bytes)
                  ? MAP_FAILED
                  : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    int error = errno;
    pthread_mutex_lock(&lock);
    struct buffer *b = p == MAP_FAILED ? NULL : insert(p, bytes, fd);
    if (b) {
        b->ours = true;
    }
    pthread_mutex_unlock(&lock);
    if (b) {
        return p;
    }
    if (p != MAP_FAILED) {
        munmap(p, bytes);
    }
    if (fd >= 0) {
        close(fd);
    }
    fail(AEE_ENORPCMEMORY, who, "no memory for %zu bytes: %s", size, strerror(error));
    return NULL;
}

FR_EXPORT void *rpcmem_alloc(int heapid, uint32_t flags, int size) {
    (void) heapid, (void) flags;
    if (size <= 0) {
        fail(AEE_EBADPARM, __func__, "%d bytes cannot be allocated; rpcmem_alloc2() takes 2 GiB and more", size);
        return NULL;
    }
    return allocate((size_t) size, __func__);
}

FR_EXPORT void *rpcmem_alloc2(int heapid, uint32_t flags, size_t size) {
    (void) heapid, (void) flags;
    return allocate(size, __func__);
}

FR_EXPORT void rpcmem_free(void *po) {
    if (!po) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct buffer *b = at(po);
    bool whole = b && b->ours && b->begin == (uintptr_t) po;
    if (whole) {
        take_out(b);
    }
    pthread_mutex_unlock(&lock);
    if (whole) {
        free_buffer(b);
    } else {
        fail(AEE_EBADPARM, __func__, "%p is no rpcmem buffer: it was freed before, or rpcmem_alloc() never gave it",
             po);
    }
}

FR_EXPORT int rpcmem_to_fd(void *po) {
    pthread_mutex_lock(&lock);
    struct buffer *b = at(po);
    int fd = b && b->ours && b->begin == (uintptr_t) po ? b->fd : -1;
    pthread_mutex_unlock(&lock);
    if (fd < 0) {
        fail(AEE_EBADPARM, __func__, "%p is no rpcmem buffer", po);
    }
    return fd;
}

static void register_buffer(void *buf, size_t size, int fd, const char *who) {
    pthread_mutex_lock(&lock);
    struct buffer *b = at(buf), *drop = NULL;
    bool same = b && b->begin == (uintptr_t) buf && b->bytes >= size;
    if (fd >= 0 && same && (b->ours || b->fd == fd)) {
        b->refs++;
    } else if (fd >= 0 && !b) {
        insert(buf, size, fd);
    } else if (fd == -1 && same) {
        if (--b->refs == 0 && !b->ours) {
            take_out(b);
            drop = b;
        }
        b->refs += b->ours && !b->refs; /* rpcmem_free() ends it, nothing else */
        same = true;
    } else {
        same = false;
    }
    bool known = fd >= 0 ? !b || same : same;
    pthread_mutex_unlock(&lock);
    if (drop) {
        free_buffer(drop);
    }
    if (!known) {
        errno = fd >= 0 ? EBUSY : EINVAL;
        fail(AEE_EBADPARM, who, "%p, %zu bytes, file descriptor %d: %s", buf, size, fd,
             fd >= 0 ? "overlaps a registered buffer" : "is not registered with this size");
    }
}

static void check_and_register(void *buf, size_t size, int fd, const char *who) {
    if (!buf || !size || fd < -1) {
        errno = EINVAL;
        fail(AEE_EBADPARM, who, "a buffer of %zu bytes at %p with file descriptor %d", size, buf, fd);
        return;
    }
    register_buffer(buf, size, fd, who);
}

FR_EXPORT void remote_register_buf(void *buf, int size, int fd) {
    check_and_register(buf, size < 0 ? 0 : (size_t) size, fd, __func__);
}

/* The attributes are about caches, which are coherent here. */
FR_EXPORT void remote_register_buf_attr(void *buf, int size, int fd, int attr) {
    (void) attr;
    check_and_register(buf, size < 0 ? 0 : (size_t) size, fd, __func__);
}

FR_EXPORT void remote_register_buf_attr2(void *buf, size_t size, int fd, int attr) {
    (void) attr;
    check_and_register(buf, size, fd, __func__);
}

static void *register_fd(int fd, size_t size, const char *who) {
    void *p =
        fd < 0 || !size ? MAP_FAILED : mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pthread_mutex_lock(&lock);
    struct buffer *b = p == MAP_FAILED ? NULL : insert(p, size, fd);
    if (b) {
        b->unmapped = true;
    }
    pthread_mutex_unlock(&lock);
    if (!b) {
        fail(AEE_EBADPARM, who, "file descriptor %d of %zu bytes cannot be registered", fd, size);
    }
    return b ? p : MAP_FAILED;
}

FR_EXPORT void *remote_register_fd(int fd, int size) {
    return register_fd(fd, size < 0 ? 0 : (size_t) size, __func__);
}

FR_EXPORT void *remote_register_fd2(int fd, size_t size) {
    return register_fd(fd, size, __func__);
}

/* In handles of a call the DSP sees the descriptor, and maps it by what fastrpc_mmap() knows: nothing to keep. */
FR_EXPORT int remote_register_dma_handle_attr(int fd, uint32_t len, uint32_t attr) {
    bool attribute = attr == FASTRPC_ATTR_NONE || attr == FASTRPC_ATTR_NOMAP;
    return fd >= 0 && len && attribute
               ? AEE_SUCCESS
               : fail(AEE_EBADPARM, __func__, "file descriptor %d, %u bytes, attributes 0x%x", fd, len, attr);
}

FR_EXPORT int remote_register_dma_handle(int fd, uint32_t len) {
    return remote_register_dma_handle_attr(fd, len, FASTRPC_ATTR_NONE);
}

/* Of how the real driver times its cache maintenance: nothing here. */
FR_EXPORT int remote_set_mode(uint32_t mode) {
    return mode <= REMOTE_MODE_SERIAL ? AEE_SUCCESS : fail(AEE_EBADPARM, __func__, "%u is no mode", mode);
}

void buffers_fork_lock(void) {
    pthread_mutex_lock(&lock);
}

void buffers_fork_unlock(void) {
    pthread_mutex_unlock(&lock);
}
