/* Call slots, from the client's side. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define KEEP_BYTES (64u << 20) /* a slot's spill that is larger goes back after the call */

static uint32_t index_of(struct pd *pd, struct fr_slot *slot) {
    return (uint32_t) (slot - pd->shared->slots);
}

/* The lowest free slot: a program with one thread always meets the same worker, still awake from the last call. */
struct fr_slot *slot_take(struct pd *pd, const char *module, uint32_t method, int *aee) {
    pthread_mutex_lock(&pd->slot_lock);
    while (pd->busy == UINT64_MAX && !pd_is_dead(pd)) {
        pthread_cond_wait(&pd->slot_free, &pd->slot_lock);
    }
    if (pd_is_dead(pd)) {
        pthread_mutex_unlock(&pd->slot_lock);
        *aee = pd_death_code(pd, false);
        return NULL;
    }
    uint32_t i = (uint32_t) __builtin_ctzll(~pd->busy);
    uint64_t bit = 1ull << i;
    bool started = pd->workers & bit;
    pd->busy |= bit;
    pd->workers |= bit;
    pd->flights[i].module = module;
    pd->flights[i].method = method;
    pd->flights[i].busy = true;
    pthread_mutex_unlock(&pd->slot_lock);
    struct fr_slot *slot = &pd->shared->slots[i];
    struct fr_ctl ctl = {.kind = FR_WORKER, .id = i};
    *aee = started ? AEE_SUCCESS : pd_control(pd, &ctl, -1);
    if (!*aee) {
        return slot;
    }
    pthread_mutex_lock(&pd->slot_lock);
    pd->workers &= ~bit;
    pthread_mutex_unlock(&pd->slot_lock);
    slot_give(pd, slot);
    return NULL;
}

int slot_run(struct pd *pd, struct fr_slot *slot) {
    fr_change(&slot->state, FR_REQUEST, &slot->worker_sleeps);
    if (!pd_is_dead(pd)) { /* else nobody may be left to say so */
        fr_wait_change(&slot->state, FR_REQUEST, &slot->client_sleeps);
    }
    return atomic_load(&slot->state) == FR_DONE ? AEE_SUCCESS : pd_death_code(pd, true);
}

static void free_spill(struct pd *pd, struct flight *f) {
    if (f->spill_region && !pd_is_dead(pd)) {
        pd_unshare(pd, f->spill_region);
    }
    if (f->spill) {
        munmap(f->spill, f->spill_bytes);
    }
    if (f->memfd >= 0) {
        close(f->memfd);
    }
    f->memfd = -1;
    f->spill = NULL;
    f->spill_bytes = f->spill_region = 0;
}

bool slot_spill(struct pd *pd, struct fr_slot *slot, uint64_t bytes, uint8_t **at, uint64_t *region) {
    struct flight *f = &pd->flights[index_of(pd, slot)];
    if (f->spill_bytes < bytes) {
        free_spill(pd, f);
        f->spill_bytes = (bytes + 0xfffff) & ~0xfffffull;
        f->memfd = memfd_create("fastrpc-call", MFD_CLOEXEC);
        void *p = f->memfd < 0 || ftruncate(f->memfd, (off_t) f->spill_bytes)
                      ? MAP_FAILED
                      : mmap(NULL, f->spill_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, f->memfd, 0);
        f->spill = p == MAP_FAILED ? NULL : p;
        f->spill_region = f->spill ? pd_share(pd, f->memfd, f->spill_bytes) : 0;
        if (!f->spill_region) {
            free_spill(pd, f);
            return false;
        }
    }
    *at = f->spill;
    *region = f->spill_region;
    return true;
}

void slot_give(struct pd *pd, struct fr_slot *slot) {
    uint32_t i = index_of(pd, slot);
    struct flight *f = &pd->flights[i];
    if (f->spill_bytes > KEEP_BYTES) {
        free_spill(pd, f);
    }
    pthread_mutex_lock(&pd->slot_lock);
    f->busy = false;
    f->module = NULL;
    pd->busy &= ~(1ull << i);
    pthread_cond_signal(&pd->slot_free);
    pthread_mutex_unlock(&pd->slot_lock);
}

void slots_free(struct pd *pd) {
    for (uint32_t i = 0; i < FR_SLOTS; i++) {
        free_spill(pd, &pd->flights[i]);
    }
}
