/* Mappings of shared buffers into a session: fastrpc_mmap(), and the functions it replaced. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define LOW_16 0xffffu /* flags of fastrpc_mmap(); above them there would be attributes */

/* The map's lock is held. */
static struct map *find(struct pd *pd, int fd) {
    struct map *m = pd->maps;
    while (m && m->fd != fd) {
        m = m->next;
    }
    return m;
}

static bool delayed(uint32_t flags) {
    return flags == FASTRPC_MAP_FD_DELAYED || flags == FASTRPC_MAP_FD_DELAYED_EXTENDED || flags == FASTRPC_MAP_FD_NOMAP;
}

static bool known_flags(uint32_t flags) {
    return flags == FASTRPC_MAP_STATIC || flags == FASTRPC_MAP_FD || flags == FASTRPC_MAP_FD_EXTENDED || delayed(flags);
}

static int check(int fd, uint64_t bytes, const char *who) {
    struct stat info;
    if (!bytes) {
        return fail(AEE_EBADPARM, who, "a buffer of no bytes (file descriptor %d)", fd);
    }
    if (fd < 0 || fstat(fd, &info)) {
        return fail(fd < 0 ? AEE_EBADPARM : AEE_EFAILED, who,
                    "%d is no open file descriptor: use what rpcmem_to_fd() gives", fd);
    }
    if (S_ISREG(info.st_mode) && bytes > ((uint64_t) info.st_size + 4095) / 4096 * 4096) {
        return fail(AEE_EFAILED, who, "%llu bytes of file descriptor %d, which has %llu", (unsigned long long) bytes,
                    fd, (unsigned long long) info.st_size);
    }
    return AEE_SUCCESS;
}

static int add(struct pd *pd, struct map *m, uint32_t flags, const char *who) {
    m->region = pd_share(pd, m->fd, m->bytes);
    if (!m->region) {
        return pd_is_dead(pd) ? pd_death_code(pd, false) : fail(AEE_ENOMEMORY, who, "the session takes no more memory");
    }
    struct fr_ctl ctl = {
        .kind = FR_MAP, .id = m->region, .fd = (uint32_t) m->fd, .flags = delayed(flags), .bytes = m->bytes};
    int aee = pd_control(pd, &ctl, -1);
    if (aee) {
        pd_unshare(pd, m->region);
        return pd_is_dead(pd) ? pd_death_code(pd, false)
                              : fail(AEE_EFAILED, who,
                                     "%llu bytes of file descriptor %d do not fit below 4 GiB "
                                     "of the session beside its other mappings: unmap some",
                                     (unsigned long long) m->bytes, m->fd);
    }
    m->there = ctl.address;
    m->next = pd->maps;
    pd->maps = m;
    atomic_fetch_add(&fr_counters()->bytes_mapped, m->bytes);
    return AEE_SUCCESS;
}

static int map(int domain, int fd, void *address, uint64_t bytes, uint32_t flags, uint64_t *there, const char *who) {
    int aee = check(fd, bytes, who);
    domain = domain_or_default(domain, who);
    if (aee || domain < 0) {
        return aee ? aee : AEE_EBADPARM;
    }
    struct pd *pd = pd_get(domain, true, &aee);
    if (!pd) {
        return aee;
    }
    struct map *m = malloc(sizeof *m);
    pthread_mutex_lock(&pd->map_lock);
    if (find(pd, fd)) {
        aee = fail(AEE_EALREADY, who,
                   "file descriptor %d is mapped already: unmap it before it is freed or mapped anew", fd);
    } else if (m) {
        *m = (struct map){.fd = fd, .address = address, .bytes = bytes};
        aee = add(pd, m, flags, who);
    } else {
        aee = AEE_ENOMEMORY;
    }
    if (!aee && there) {
        *there = m->there;
    }
    pthread_mutex_unlock(&pd->map_lock);
    if (aee) {
        free(m);
    }
    pd_put(pd);
    return aee;
}

/* The map's lock is held. */
static void take_out(struct pd *pd, struct map *m) {
    struct map **at = &pd->maps;
    while (*at != m) {
        at = &(*at)->next;
    }
    *at = m->next;
    struct fr_ctl ctl = {.kind = FR_UNMAP, .fd = (uint32_t) m->fd};
    pd_control(pd, &ctl, -1);
    pd_unshare(pd, m->region);
    free(m);
}

/* By file descriptor, or where that is -1 by the domain's address. */
static int unmap(int domain, int fd, uint64_t there, const char *who) {
    int aee = AEE_SUCCESS;
    domain = domain_or_default(domain, who);
    if (domain < 0) {
        return AEE_EBADPARM;
    }
    struct pd *pd = pd_get(domain, false, &aee);
    if (!pd) {
        return fail(AEE_ENOTINITIALIZED, who, "domain %d has no open session: its mappings went with it", domain);
    }
    pthread_mutex_lock(&pd->map_lock);
    struct map *m = pd->maps;
    while (m && (fd >= 0 ? m->fd != fd : m->there != there)) {
        m = m->next;
    }
    if (!m) {
        aee = fail(AEE_ENOSUCHMAP, who, "file descriptor %d (address 0x%llx) is not mapped to domain %d", fd,
                   (unsigned long long) there, domain);
    } else if (m->refs) {
        aee = fail(AEE_EBADPARM, who, "file descriptor %d still has %d references from queues", m->fd, m->refs);
    } else {
        take_out(pd, m);
    }
    pthread_mutex_unlock(&pd->map_lock);
    pd_put(pd);
    return aee;
}

FR_EXPORT int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags) {
    uint32_t bits = (uint32_t) flags;
    if (fd < 0 || offset || bits & ~LOW_16 || !known_flags(bits)) {
        return fail(AEE_EBADPARM, __func__,
                    "file descriptor %d, offset %d, flags 0x%x: the offset is 0, flags are one of enum "
                    "fastrpc_map_flags that is not reserved",
                    fd, offset, bits);
    }
    return map(domain, fd, addr, length, bits, NULL, __func__);
}

FR_EXPORT int fastrpc_munmap(int domain, int fd, void *addr, size_t length) {
    (void) addr, (void) length; /* the descriptor says it */
    if (fd < 0) {
        return fail(AEE_EBADPARM, __func__, "%d is no file descriptor", fd);
    }
    return unmap(domain, fd, 0, __func__);
}

FR_EXPORT int remote_mem_map(int domain, int fd, int flags, uint64_t virtAddr, size_t size, uint64_t *remoteVirtAddr) {
    if (fd < 0 || flags != REMOTE_MAP_MEM_STATIC || !remoteVirtAddr) {
        return fail(AEE_EBADPARM, __func__, "file descriptor %d, flags %d, address to %p", fd, flags,
                    (void *) remoteVirtAddr);
    }
    return map(domain, fd, (void *) (uintptr_t) virtAddr, size, FASTRPC_MAP_STATIC, remoteVirtAddr, __func__);
}

FR_EXPORT int remote_mem_unmap(int domain, uint64_t remoteVirtAddr, size_t size) {
    (void) size;
    return remoteVirtAddr ? unmap(domain, -1, remoteVirtAddr, __func__)
                          : fail(AEE_EBADPARM, __func__, "the address is 0");
}

FR_EXPORT int remote_mmap64(int fd, uint32_t flags, uint64_t vaddrin, int64_t size, uint64_t *vaddrout) {
    if (fd < 0 || flags || size < 0 || !vaddrout) {
        return fail(AEE_EBADPARM, __func__, "file descriptor %d, flags %u, %lld bytes, address to %p", fd, flags,
                    (long long) size, (void *) vaddrout);
    }
    return map(-1, fd, (void *) (uintptr_t) vaddrin, (uint64_t) size, FASTRPC_MAP_STATIC, vaddrout, __func__);
}

FR_EXPORT int remote_munmap64(uint64_t vaddrout, int64_t size) {
    (void) size;
    return unmap(-1, -1, vaddrout, __func__);
}

FR_EXPORT int remote_mmap(int fd, uint32_t flags, uint32_t vaddrin, int size, uint32_t *vaddrout) {
    uint64_t there = 0;
    int aee = remote_mmap64(fd, flags, vaddrin, size, vaddrout ? &there : NULL);
    if (vaddrout) {
        *vaddrout = (uint32_t) there;
    }
    return aee;
}

FR_EXPORT int remote_munmap(uint32_t vaddrout, int size) {
    return remote_munmap64(vaddrout, size);
}

bool pd_map_find(struct pd *pd, uint32_t fd, void **address, uint64_t *size) {
    pthread_mutex_lock(&pd->map_lock);
    struct map *m = find(pd, (int) fd);
    if (m) {
        *address = m->address;
        *size = m->bytes;
    }
    pthread_mutex_unlock(&pd->map_lock);
    return m;
}

int pd_map_ref(struct pd *pd, uint32_t fd, int delta) {
    int aee = AEE_ENOSUCHMAP;
    pthread_mutex_lock(&pd->map_lock);
    struct map *m = find(pd, (int) fd);
    if (m) {
        aee = m->refs + delta < 0 ? AEE_EBADPARM : AEE_SUCCESS;
        m->refs += aee ? 0 : delta;
    }
    pthread_mutex_unlock(&pd->map_lock);
    return aee;
}

uint64_t maps_count(struct pd *pd) {
    uint64_t n = 0;
    pthread_mutex_lock(&pd->map_lock);
    for (const struct map *m = pd->maps; m; m = m->next) {
        n++;
    }
    pthread_mutex_unlock(&pd->map_lock);
    return n;
}

void maps_free(struct pd *pd) {
    while (pd->maps) {
        struct map *m = pd->maps;
        pd->maps = m->next;
        free(m);
    }
}
