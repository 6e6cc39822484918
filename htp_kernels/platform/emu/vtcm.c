/*
 * VTCM and the compute resource manager: one arena a process (a session is a process), poisoned when it is acquired. Where
 * sessions are threads of one process each has an arena of its own, as if each were alone on its NPU.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "HAP_compute_res.h"
#include "emu.h"
#include "hap-internal.h"
#include "vtcm.h"

#define MAX_ARENAS 16u

/* What the manager keeps in the opaque words of compute_res_attr_t. */
struct request {
    uint32_t vtcm_bytes, min_bytes, wants_vtcm, got_bytes;
    void *vtcm;
};
_Static_assert(sizeof(struct request) <= sizeof(compute_res_attr_t), "the request must fit the opaque words");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;
static _Thread_local uint32_t part_bytes = 8u << 20;
static struct arena {
    uint8_t *base;
    uint32_t bytes;
    bool held;
} arenas[MAX_ARENAS]; /* a context number is the arena's index + 1 */
static uint32_t n_arenas = 1;

void emu_vtcm_set_bytes(uint32_t bytes) {
    part_bytes = bytes;
}

void emu_vtcm_many_sessions(void) {
    n_arenas = MAX_ARENAS;
}

static struct request *request_of(compute_res_attr_t *attr) {
    return (struct request *) (void *) attr;
}

int HAP_compute_res_attr_init(compute_res_attr_t *attr) {
    memset(attr, 0, sizeof *attr);
    return 0;
}

int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char serialize) {
    (void) attr, (void) serialize; /* one session a process: always so */
    return 0;
}

int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                           unsigned int min_vtcm_size) {
    (void) min_page_size; /* the arena is one page */
    struct request *r = request_of(attr);
    *r = (struct request){.vtcm_bytes = vtcm_size, .min_bytes = min_vtcm_size, .wants_vtcm = 1};
    return 0;
}

int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char single_page) {
    (void) single_page;
    return HAP_compute_res_attr_set_vtcm_param_v2(attr, vtcm_size, 0, vtcm_size);
}

void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr) {
    return request_of(attr)->vtcm;
}

int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size) {
    *vtcm_ptr = request_of(attr)->vtcm;
    *vtcm_size = request_of(attr)->got_bytes;
    return *vtcm_ptr ? 0 : -1;
}

static struct arena *free_arena(void) {
    for (uint32_t i = 0; i < n_arenas; i++) {
        if (!arenas[i].held) {
            return &arenas[i];
        }
    }
    return NULL;
}

/* Waits until an arena is free; NULL after timeout_us. The lock is held. */
static struct arena *wait_free(unsigned int timeout_us) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t) until.tv_nsec + timeout_us * 1000ull;
    until.tv_sec += (time_t) (ns / 1000000000u);
    until.tv_nsec = (long) (ns % 1000000000u);
    struct arena *a = free_arena();
    while (!a && !pthread_cond_timedwait(&freed, &lock, &until)) {
        a = free_arena();
    }
    return a ? a : free_arena();
}

/* Makes the arena as large as this session's part. */
static bool fill_arena(struct arena *a) {
    if (a->base && a->bytes != part_bytes) {
        emu_low_unmap(a->base);
        a->base = NULL;
    }
    if (!a->base) {
        a->base = emu_low_map(part_bytes, -1, 0);
        a->bytes = part_bytes;
    }
    return a->base != NULL;
}

unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us) {
    struct request *r = request_of(attr);
    if (!r->wants_vtcm || r->min_bytes > part_bytes) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    struct arena *a = wait_free(timeout_us);
    bool got = a && fill_arena(a);
    if (got) {
        a->held = true;
        r->vtcm = a->base;
        r->got_bytes = r->vtcm_bytes < part_bytes ? r->vtcm_bytes : part_bytes;
        EMU_UNPOISON(a->base, part_bytes);
        memset(a->base, 0xff, part_bytes);
    }
    pthread_mutex_unlock(&lock);
    return got ? (unsigned int) (a - arenas) + 1 : 0;
}

int HAP_compute_res_release(unsigned int context_id) {
    pthread_mutex_lock(&lock);
    bool was = context_id - 1 < n_arenas && arenas[context_id - 1].held;
    if (was) {
        struct arena *a = &arenas[context_id - 1];
        a->held = false;
        EMU_POISON(a->base, a->bytes);
        pthread_cond_signal(&freed);
    }
    pthread_mutex_unlock(&lock);
    return was ? 0 : -1;
}

int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size,
                               compute_res_vtcm_page_t *total_block_layout, unsigned int *avail_block_size,
                               compute_res_vtcm_page_t *avail_block_layout) {
    (void) application_id;
    compute_res_vtcm_page_t whole = {.page_list = {{part_bytes, 1}}, .page_list_len = 1};
    if (total_block_size) {
        *total_block_size = part_bytes;
    }
    if (total_block_layout) {
        *total_block_layout = whole;
    }
    bool held = !free_arena();
    if (avail_block_size) {
        *avail_block_size = held ? 0 : part_bytes;
    }
    if (avail_block_layout) {
        *avail_block_layout = held ? (compute_res_vtcm_page_t){0} : whole;
    }
    return 0;
}

bool emu_vtcm_contains(uintptr_t address, size_t bytes) {
    for (uint32_t i = 0; i < n_arenas; i++) {
        uintptr_t begin = (uintptr_t) arenas[i].base;
        if (arenas[i].held && address >= begin && bytes <= arenas[i].bytes && address - begin <= arenas[i].bytes - bytes) {
            return true;
        }
    }
    return false;
}

void vtcm_op_begin(uint8_t *base, uint32_t touched_bytes) {
    emu_skew();
    EMU_UNPOISON(base, touched_bytes);
    memset(base, 0xff, touched_bytes);
    EMU_POISON(base, part_bytes);
}

void vtcm_op_region(uint8_t *region, uint32_t bytes) {
    EMU_UNPOISON(region, bytes);
}
