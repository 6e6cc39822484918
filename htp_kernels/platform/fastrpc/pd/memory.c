/* Memory that the client shares: regions by id, and buffers by the client's file descriptor. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../emu/emu.h"
#include "internal.h"

struct region {
    uint64_t id, bytes;
    int fd;
    void *address; /* NULL: not mapped yet */
    uint32_t users;
    bool dropped; /* by the client; goes with its last user */
};

struct mapping {
    struct mapping *next;
    uint32_t fd;
    uint64_t region;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions; /* by id, which only grow */
static uint32_t n_regions, room;
static struct mapping *mappings;

/* Index of the region, or n_regions. The lock is held, as everywhere below. */
static uint32_t find(uint64_t id) {
    uint32_t low = 0, high = n_regions;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (regions[mid].id < id) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < n_regions && regions[low].id == id ? low : n_regions;
}

static struct region *hold(uint64_t id) {
    uint32_t i = find(id);
    struct region *r = i < n_regions ? &regions[i] : NULL;
    if (r && !r->address) {
        r->address = emu_low_map(r->bytes, r->fd, 0);
    }
    if (!r || !r->address) {
        return NULL;
    }
    r->users++;
    return r;
}

static void remove_unused(uint32_t i) {
    if (i == n_regions || regions[i].users || !regions[i].dropped) {
        return;
    }
    if (regions[i].address) {
        emu_low_unmap(regions[i].address);
    }
    close(regions[i].fd);
    n_regions--;
    memmove(&regions[i], &regions[i + 1], (n_regions - i) * sizeof regions[0]);
}

static void let_go(uint64_t id) {
    uint32_t i = find(id);
    if (i < n_regions) {
        regions[i].users--;
        remove_unused(i);
    }
}

int pd_region_add(uint64_t id, uint64_t bytes, int fd) {
    bool ok = fd >= 0 && id;
    pthread_mutex_lock(&lock);
    if (ok && n_regions == room) {
        uint32_t more = room ? 2 * room : 64;
        struct region *larger = realloc(regions, more * sizeof *larger);
        ok = larger;
        regions = ok ? larger : regions;
        room = ok ? more : room;
    }
    if (ok) { /* two clients' threads may come in the other order */
        uint32_t i = n_regions++;
        while (i && regions[i - 1].id > id) {
            regions[i] = regions[i - 1];
            i--;
        }
        regions[i] = (struct region){.id = id, .bytes = bytes, .fd = fd};
    }
    pthread_mutex_unlock(&lock);
    if (!ok && fd >= 0) {
        close(fd);
    }
    return ok ? AEE_SUCCESS : (int) AEE_ENOMEMORY;
}

void pd_region_drop(uint64_t id) {
    pthread_mutex_lock(&lock);
    uint32_t i = find(id);
    if (i < n_regions) {
        regions[i].dropped = true;
        remove_unused(i);
    }
    pthread_mutex_unlock(&lock);
}

void *pd_region(uint64_t id, uint64_t *bytes) {
    pthread_mutex_lock(&lock);
    struct region *r = hold(id);
    void *address = r ? r->address : NULL;
    if (r) {
        *bytes = r->bytes;
    }
    pthread_mutex_unlock(&lock);
    return address;
}

void pd_region_release(uint64_t id) {
    pthread_mutex_lock(&lock);
    let_go(id);
    pthread_mutex_unlock(&lock);
}

static struct mapping **mapping_of(uint32_t fd) {
    struct mapping **at = &mappings;
    while (*at && (*at)->fd != fd) {
        at = &(*at)->next;
    }
    return at;
}

/* A mapping is a user of its region from its first use on. */
static struct region *use(struct mapping *m) {
    uint32_t i = find(m->region);
    return i < n_regions && regions[i].address ? &regions[i] : hold(m->region);
}

int pd_map_add(const struct fr_ctl *ctl, uint64_t *address) {
    struct mapping *m = malloc(sizeof *m);
    if (!m) {
        return (int) AEE_ENOMEMORY;
    }
    pthread_mutex_lock(&lock);
    *m = (struct mapping){mappings, ctl->fd, ctl->id};
    bool delayed = ctl->flags;
    struct region *r = delayed ? NULL : hold(m->region);
    if (delayed || r) {
        mappings = m;
    }
    *address = r ? (uintptr_t) r->address : 0;
    pthread_mutex_unlock(&lock);
    if (!delayed && !r) {
        free(m);
    }
    return delayed || r ? AEE_SUCCESS : (int) AEE_ENOMEMORY;
}

void pd_map_drop(uint32_t fd) {
    pthread_mutex_lock(&lock);
    struct mapping **at = mapping_of(fd), *m = *at;
    if (m) {
        uint32_t i = find(m->region);
        *at = m->next;
        if (i < n_regions && regions[i].address) {
            let_go(m->region);
        }
    }
    pthread_mutex_unlock(&lock);
    free(m);
}

bool pd_map_find(uint32_t fd, void **address, uint64_t *size) {
    pthread_mutex_lock(&lock);
    struct mapping *m = *mapping_of(fd);
    struct region *r = m ? use(m) : NULL;
    if (r) {
        *address = r->address;
        *size = r->bytes;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

/* For HAP_mmap(), which closes what it gets. */
int pd_buffer_source(int handle, uint64_t *bytes) {
    int fd = -1;
    pthread_mutex_lock(&lock);
    struct mapping *m = handle >= 0 ? *mapping_of((uint32_t) handle) : NULL;
    uint32_t i = m ? find(m->region) : n_regions;
    if (i < n_regions) {
        fd = dup(regions[i].fd);
        *bytes = regions[i].bytes;
    }
    pthread_mutex_unlock(&lock);
    return fd;
}
