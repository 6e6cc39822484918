/* The compute resource manager: who holds which part of VTCM, a matrix unit, the right to run alone, and who waits. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "crm.h"
#include "emu.h"
#include "hap-internal.h"
#include "qurt_thread.h"

#define MAX_CONTEXTS 64u

/* A context number is the index + 1. */
struct context {
    bool used;
    bool active; /* holds what it asked for; a cached one does so from time to time */
    struct request request;
    uint32_t arena, offset, bytes;
    uint32_t unit; /* the matrix unit, while active */
    int priority;
    bool asked; /* its callback was called since it became active */
    bool callback_runs;
    pthread_t in_callback; /* the thread that runs it */
};

struct waiter {
    const struct context *who;
    struct waiter *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t changed;
static struct context contexts[MAX_CONTEXTS];
static struct waiter *waiters;
static uint32_t arena_users[EMU_MAX_ARENAS]; /* used contexts with VTCM */

static void make_cond(void) {
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
}

static void enter(void) {
    pthread_once(&once, make_cond);
    pthread_mutex_lock(&lock);
}

static void leave(void) {
    pthread_mutex_unlock(&lock);
}

/* Sleeps until something changes; false: the deadline has passed. */
static bool sleep_until(uint64_t deadline) {
    struct timespec until = {(time_t) (deadline / 1000000000u), (long) (deadline % 1000000000u)};
    return !pthread_cond_timedwait(&changed, &lock, &until);
}

uint32_t emu_n_hmx(void) {
    return emu_setting("HEXNPU_EMU_HMX", EMU_MAX_ARENAS, 1);
}

/* Places in VTCM. The lock is held in all that follows. */

/* What counts as taken: what is held and, cached_too, what is promised to cached contexts. */
static bool takes(const struct context *c, uint32_t arena, bool cached_too) {
    return c->used && c->bytes && c->arena == arena && (c->active || cached_too);
}

/* The free bytes from `at` to the next taken part, or to the end. */
static uint32_t room_at(uint32_t arena, uint32_t at, uint32_t total, bool cached_too) {
    uint32_t end = total;
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        const struct context *c = &contexts[i];
        if (takes(c, arena, cached_too) && c->offset + c->bytes > at && c->offset < end) {
            end = c->offset > at ? c->offset : at;
        }
    }
    return end > at ? end - at : 0;
}

/* The first place with the most room, wanted or less; taken parts end where one may begin. */
static uint32_t find_room(struct context *c, uint32_t total, bool cached_too) {
    const struct request *r = &c->request;
    uint32_t wanted = r->vtcm_bytes < total ? r->vtcm_bytes : total;
    uint32_t align = r->align < total ? r->align : VTCM_PAGE_BYTES;
    uint32_t best = 0;
    for (uint32_t i = 0; i <= MAX_CONTEXTS; i++) {
        const struct context *before = i ? &contexts[i - 1] : NULL;
        if (before && !takes(before, c->arena, cached_too)) {
            continue;
        }
        uint64_t end = before ? (uint64_t) before->offset + before->bytes : 0;
        uint64_t at = (end + align - 1) / align * align;
        uint32_t room = at < total ? room_at(c->arena, (uint32_t) at, total, cached_too) : 0;
        room = room < wanted ? room / VTCM_PAGE_BYTES * VTCM_PAGE_BYTES : wanted;
        if (room > best || (room == best && room && at < c->offset)) {
            best = room;
            c->offset = (uint32_t) at;
        }
    }
    return best;
}

/* A place for c: away from cached contexts if that gives all it wants, else anywhere that will do. */
static bool place_in(uint32_t arena, struct context *c) {
    const struct request *r = &c->request;
    uint32_t total = arena_users[arena] ? emu_arena_bytes(arena) : emu_vtcm_bytes();
    c->arena = arena;
    c->bytes = find_room(c, total, true);
    if (c->bytes < r->vtcm_bytes) {
        c->bytes = find_room(c, total, false);
    }
    return c->bytes && c->bytes >= r->min_bytes;
}

/* Sessions that are threads of one process take an arena each; a session alone shares its one in parts. */
static bool find_place(struct context *c) {
    uint32_t n_arenas = emu_n_arenas();
    for (uint32_t arena = 0; arena < n_arenas; arena++) {
        if ((n_arenas == 1 || !arena_users[arena]) && place_in(arena, c)) {
            return true;
        }
    }
    c->bytes = 0;
    return false;
}

/* Whether somebody holds a part of what cached context c was promised. */
static bool place_is_taken(const struct context *c) {
    return room_at(c->arena, c->offset, emu_arena_bytes(c->arena), false) < c->bytes;
}

/* A matrix unit that no active context has. */
static bool find_unit(struct context *me) {
    uint64_t taken = 0;
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        const struct context *c = &contexts[i];
        taken |= c->used && c->active && c->request.hmx ? 1ull << c->unit : 0;
    }
    bool each_has_one = emu_n_arenas() > 1;
    uint32_t first = each_has_one ? me->arena : 0, end = each_has_one ? me->arena + 1 : emu_n_hmx();
    for (me->unit = first; me->unit < end; me->unit++) {
        if (!(taken >> me->unit & 1)) {
            return true;
        }
    }
    return false;
}

/* Whether two want the same kind of thing; sessions that are threads of one process have theirs apart. */
static bool compete(const struct request *a, const struct request *b) {
    bool same = (a->vtcm_bytes && b->vtcm_bytes) || (a->hmx && b->hmx) || (a->serialize && b->serialize);
    return same && emu_n_arenas() == 1;
}

static bool somebody_runs_alone(void) {
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        if (contexts[i].used && contexts[i].active && contexts[i].request.serialize && emu_n_arenas() == 1) {
            return true;
        }
    }
    return false;
}

static bool more_urgent_waits(const struct context *c) {
    for (const struct waiter *w = waiters; w; w = w->next) {
        if (w->who->priority < c->priority && compete(&w->who->request, &c->request)) {
            return true;
        }
    }
    return false;
}

/* Gives c what it asks for, if all of it is free; a cached context comes back to its place. */
static bool try_activate(struct context *c) {
    const struct request *r = &c->request;
    bool free = !more_urgent_waits(c) && !(r->serialize && somebody_runs_alone());
    if (free && r->vtcm_bytes) {
        free = c->used ? !place_is_taken(c) : find_place(c);
    }
    if (free && r->hmx) {
        free = find_unit(c);
    }
    if (free && r->vtcm_bytes && !arena_users[c->arena]) {
        free = emu_arena_fill(c->arena, emu_vtcm_bytes()) != NULL;
    }
    if (free && r->vtcm_bytes) {
        emu_arena_take(c->arena, c->offset, c->bytes);
    }
    c->active = free;
    c->asked = false;
    return free;
}

static void deactivate(struct context *c) {
    if (c->active && c->bytes) {
        emu_arena_give(c->arena, c->offset, c->bytes);
    }
    c->active = false;
    pthread_cond_broadcast(&changed);
}

/* Tells holders of lower priority, once each, that `me` waits. The lock is given up for their callbacks. */
static void ask_holders(const struct context *me) {
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        struct context *c = &contexts[i];
        struct request r = c->request;
        if (!c->used || !c->active || c->asked || !r.release_callback || c->priority <= me->priority ||
            !compete(&r, &me->request)) {
            continue;
        }
        c->asked = c->callback_runs = true;
        c->in_callback = pthread_self();
        leave();
        r.release_callback(i + 1, r.client_context);
        enter();
        c->callback_runs = false;
        pthread_cond_broadcast(&changed);
    }
}

/* Waits until c is active; false after timeout_us. */
static bool activate(struct context *c, unsigned int timeout_us) {
    uint64_t deadline = emu_nanoseconds() + timeout_us * 1000ull;
    if (try_activate(c)) {
        return true;
    }
    struct waiter me = {c, waiters};
    bool got = false, in_time = timeout_us > 0;
    waiters = &me;
    while (!got && in_time) {
        ask_holders(c);
        got = try_activate(c);
        if (!got) {
            in_time = sleep_until(deadline);
            got = try_activate(c);
        }
    }
    struct waiter **w = &waiters;
    while (*w != &me) {
        w = &(*w)->next;
    }
    *w = me.next;
    pthread_cond_broadcast(&changed); /* those behind this one may try now */
    return got;
}

static int own_priority(void) {
    return qurt_thread_get_priority(qurt_thread_get_id());
}

/* The used context of that number, or NULL. */
static struct context *find(unsigned int context_id) {
    bool there = context_id && context_id <= MAX_CONTEXTS && contexts[context_id - 1].used;
    return there ? &contexts[context_id - 1] : NULL;
}

static struct context *new_context(void) {
    for (uint32_t i = 0; i < MAX_CONTEXTS; i++) {
        if (!contexts[i].used && !contexts[i].callback_runs) {
            return &contexts[i];
        }
    }
    return NULL;
}

/* Acquiring and giving back */

unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us) {
    struct request *r = request_of(attr);
    struct context asking = {.request = *r, .priority = own_priority()};
    if (r->min_bytes > emu_vtcm_bytes() || !(r->vtcm_bytes || r->hmx || r->serialize)) {
        return 0;
    }
    enter();
    bool got = activate(&asking, timeout_us);
    struct context *c = got ? new_context() : NULL;
    if (c) {
        *c = asking;
        c->used = true;
        r->got_bytes = c->bytes;
        r->vtcm = c->bytes ? emu_arena_base(c->arena) + c->offset : NULL;
        arena_users[c->arena] += c->bytes > 0;
    }
    if (got && (!c || r->cached)) {
        deactivate(c ? c : &asking);
    }
    leave();
    return c ? (unsigned int) (c - contexts) + 1 : 0;
}

int HAP_compute_res_release(unsigned int context_id) {
    enter();
    struct context *c = find(context_id);
    while (c && c->callback_runs && !pthread_equal(c->in_callback, pthread_self())) {
        pthread_cond_wait(&changed, &lock);
        c = find(context_id);
    }
    if (c) {
        deactivate(c);
        c->used = false;
        arena_users[c->arena] -= c->bytes > 0;
    }
    leave();
    return c ? 0 : DSP_ERROR(AEE_EBADPARM);
}

int HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us) {
    int priority = own_priority();
    enter();
    struct context *c = find(context_id);
    bool can = c && c->request.cached && !c->active;
    if (can) {
        c->priority = priority;
    }
    bool got = can && activate(c, timeout_us);
    leave();
    return got ? 0 : DSP_ERROR(can ? AEE_EEXPIRED : AEE_EBADPARM);
}

int HAP_compute_res_release_cached(unsigned int context_id) {
    enter();
    struct context *c = find(context_id);
    bool can = c && c->request.cached && c->active;
    if (can) {
        deactivate(c);
    }
    leave();
    return can ? 0 : DSP_ERROR(AEE_EBADPARM);
}

int HAP_compute_res_check_release_request(unsigned int context_id) {
    enter();
    const struct context *c = find(context_id);
    int result = !c ? DSP_ERROR(AEE_EBADPARM) : c->active && more_urgent_waits(c);
    leave();
    return result;
}

int HAP_compute_res_update_priority(unsigned int context_id, unsigned short priority) {
    int own = own_priority();
    enter();
    struct context *c = find(context_id);
    if (c) {
        c->priority = priority ? priority : own;
        pthread_cond_broadcast(&changed); /* a waiter may be the more urgent one now */
    }
    leave();
    return c ? 0 : DSP_ERROR(AEE_EBADPARM);
}

int HAP_compute_res_query_capability(compute_res_capability_id capability_id, unsigned int *data) {
    if (capability_id != HAP_COMPUTE_RES_PREEMPTION_CAPABILITY || !data) {
        return DSP_ERROR(AEE_EBADPARM);
    }
    *data = HAP_COMPUTE_RES_COOPERATIVE_PREEMPTION;
    return 0;
}

static void fill_layout(compute_res_vtcm_page_t *layout, uint32_t bytes) {
    if (layout) {
        *layout = (compute_res_vtcm_page_t){.block_size = bytes, .page_list_len = bytes > 0};
        layout->page_list[0] = (compute_res_vtcm_page_def_t){bytes, bytes > 0};
    }
}

/* What is available is the largest part that nobody holds, as one page. */
int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size,
                               compute_res_vtcm_page_t *total_block_layout, unsigned int *avail_block_size,
                               compute_res_vtcm_page_t *avail_block_layout) {
    (void) application_id;
    uint32_t total = emu_vtcm_bytes();
    struct context c = {.request = {.vtcm_bytes = total, .min_bytes = VTCM_PAGE_BYTES, .align = VTCM_PAGE_BYTES}};
    enter();
    uint32_t available = find_place(&c) ? c.bytes : 0;
    leave();
    if (total_block_size) {
        *total_block_size = total;
    }
    if (avail_block_size) {
        *avail_block_size = available;
    }
    fill_layout(total_block_layout, total);
    fill_layout(avail_block_layout, available);
    return 0;
}

uint32_t emu_crm_unit(unsigned int context_id) {
    enter();
    const struct context *c = find(context_id);
    uint32_t unit = c && c->active && c->request.hmx ? c->unit + 1 : 0;
    leave();
    return unit;
}
