/* The compute resource manager with several clients in one process; HEXNPU_EMU_VTCM=4, or as test_hap.py says. */
#include <stdatomic.h>

#include "emu.h"
#include "HAP_compute_res.h"
#include "HAP_perf.h"
#include "HAP_vtcm_mgr.h"
#include "qurt.h"
#include "rules.h"

#define MIB (1u << 20)
#define SOON 1000u
#define LONG 20000000u

static qurt_thread_t start(unsigned short priority, void (*entry)(void *), void *arg) {
    qurt_thread_attr_t attr;
    qurt_thread_t id = 0;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_priority(&attr, priority);
    NEED(qurt_thread_create(&id, &attr, entry, arg) == QURT_EOK);
    return id;
}

static void join(qurt_thread_t id) {
    int status = -1;
    NEED(qurt_thread_join(id, &status) == QURT_EOK && status == 0);
}

static unsigned int acquire(uint32_t bytes, uint32_t min_bytes, uint32_t page, unsigned int timeout_us, uint8_t **p) {
    compute_res_attr_t attr;
    unsigned int size = 0;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param_v2(&attr, bytes, page, min_bytes);
    unsigned int id = HAP_compute_res_acquire(&attr, timeout_us);
    NEED((HAP_compute_res_attr_get_vtcm_ptr_v2(&attr, (void **) p, &size) == 0) == (id != 0));
    NEED(!id || (*p == HAP_compute_res_attr_get_vtcm_ptr(&attr) && size >= (min_bytes ? min_bytes : bytes)));
    return id;
}

static uint32_t available(void) {
    unsigned int total = 0, free_bytes = 0;
    compute_res_vtcm_page_t all, left;
    NEED(HAP_compute_res_query_VTCM(0, &total, &all, &free_bytes, &left) == 0 && total == 4 * MIB);
    NEED(all.block_size == total && all.page_list_len == 1 && all.page_list[0].page_size == total);
    NEED(left.block_size == free_bytes && left.page_list_len == (free_bytes > 0));
    return free_bytes;
}

static void parts(void) {
    uint8_t *a = NULL, *b = NULL, *c = NULL, *d = NULL;
    NEED(available() == 4 * MIB);
    NEED(acquire(5 * MIB, 0, 0, 0, &a) == 0 && a == NULL); /* more than there is */
    unsigned int ia = acquire(MIB + 1, 0, 0, 0, &a), ib = acquire(MIB, 0, MIB, 0, &b), ic = acquire(MIB, 0, 0, 0, &c);
    NEED(ia && ib && ic && ia != ib && ib != ic && (uintptr_t) b % MIB == 0 && (uintptr_t) a % MIB == 0);
    NEED(a[MIB] == 0xff && b[MIB - 1] == 0xff && emu_vtcm_contains((uintptr_t) a, MIB + 1));
    memset(a, 1, MIB + 1), memset(b, 2, MIB), memset(c, 3, MIB);
    NEED(a[0] == 1 && a[MIB] == 1 && b[0] == 2 && b[MIB - 1] == 2 && c[0] == 3 && c[MIB - 1] == 3);
    uint32_t left = available();
    NEED(left > 0 && left < MIB);
    uint64_t before = HAP_perf_get_time_us();
    NEED(acquire(MIB, 0, 0, 2000, &d) == 0 && HAP_perf_get_time_us() - before >= 2000);
    unsigned int id = acquire(MIB, 4096, 0, 0, &d); /* less will do */
    NEED(id && available() < left && HAP_compute_res_release(id) == 0 && available() == left);
    NEED(HAP_compute_res_release(ib) == 0 && HAP_compute_res_release(ib) != 0);
    NEED(!emu_vtcm_contains((uintptr_t) b, 1) && emu_vtcm_contains((uintptr_t) c, MIB));
    ib = acquire(MIB, 0, MIB, 0, &b);
    NEED(ib && b[0] == 0xff && a[MIB] == 1 && c[0] == 3);
    NEED(!HAP_compute_res_release(ia) && !HAP_compute_res_release(ib) && !HAP_compute_res_release(ic));
    NEED(available() == 4 * MIB && HAP_compute_res_release(0) != 0 && HAP_compute_res_release(9999) != 0);
}

static void overrun_part(void) {
    uint8_t *a = NULL, *b = NULL;
    NEED(acquire(MIB, 0, 0, 0, &a));
    unsigned int ib = acquire(MIB, 0, 0, 0, &b);
    HAP_compute_res_release(ib);
    b[0] = 1; /* the asan build must see it */
}

/* A cached client holds its VTCM from time to time, always at one address. */

struct client {
    compute_res_attr_t attr;
    unsigned int id;
    uint8_t *vtcm;
    _Atomic uint32_t n_asked;
    bool gives_back;
};

static int asked(unsigned int context_id, void *p) {
    struct client *c = p;
    atomic_fetch_add(&c->n_asked, 1);
    NEED(context_id == c->id && HAP_compute_res_check_release_request(context_id));
    return c->gives_back ? HAP_compute_res_release_cached(context_id) : 0;
}

static void open_client(struct client *c, uint32_t bytes) {
    HAP_compute_res_attr_init(&c->attr);
    HAP_compute_res_attr_set_serialize(&c->attr, 0);
    HAP_compute_res_attr_set_cache_mode(&c->attr, 1);
    HAP_compute_res_attr_set_vtcm_param_v2(&c->attr, bytes, bytes, bytes);
    HAP_compute_res_attr_set_release_callback(&c->attr, asked, c);
    c->id = HAP_compute_res_acquire(&c->attr, SOON);
    c->vtcm = HAP_compute_res_attr_get_vtcm_ptr(&c->attr);
    NEED(c->id && c->vtcm && !emu_vtcm_contains((uintptr_t) c->vtcm, 1));
}

static void cached(void) {
    struct client a = {0}, b = {0};
    open_client(&a, 4 * MIB);
    open_client(&b, 4 * MIB); /* the same place, in turn */
    NEED(a.vtcm == b.vtcm && available() == 4 * MIB);
    NEED(HAP_compute_res_acquire_cached(a.id, SOON) == 0 && HAP_compute_res_acquire_cached(a.id, SOON) != 0);
    memset(a.vtcm, 1, 4 * MIB);
    NEED(HAP_compute_res_acquire_cached(b.id, SOON) != 0 && a.vtcm[0] == 1); /* as urgent: nobody is asked */
    NEED(a.n_asked == 0 && HAP_compute_res_check_release_request(a.id) == 0);
    NEED(HAP_compute_res_release_cached(a.id) == 0 && HAP_compute_res_release_cached(a.id) != 0);
    NEED(HAP_compute_res_acquire_cached(b.id, SOON) == 0 && b.vtcm[0] == 0xff);
    NEED(HAP_compute_res_release(b.id) == 0 && HAP_compute_res_acquire_cached(b.id, SOON) != 0);
    NEED(HAP_compute_res_acquire_cached(a.id, 0) == 0 && HAP_compute_res_release(a.id) == 0);
    struct client c = {0}, d = {0};
    open_client(&c, MIB);
    open_client(&d, MIB); /* there is room for both */
    NEED(c.vtcm != d.vtcm && !HAP_compute_res_acquire_cached(c.id, 0) && !HAP_compute_res_acquire_cached(d.id, 0));
}

static void urgent(void *p) {
    struct client *c = p;
    uint8_t *vtcm = NULL;
    unsigned int id = acquire(4 * MIB, 0, 0, LONG, &vtcm);
    NEED(id && vtcm[0] == 0xff);
    NEED(c->n_asked == 1 && HAP_compute_res_release(id) == 0);
}

/* The holder gives back later, as it sees that it was asked. */
static void asked_and_later(void) {
    struct client a = {0};
    open_client(&a, 4 * MIB);
    NEED(HAP_compute_res_acquire_cached(a.id, SOON) == 0);
    HAP_compute_res_update_priority(a.id, 200);
    qurt_thread_t id = start(50, urgent, &a);
    while (!atomic_load(&a.n_asked)) {
        qurt_sleep(100);
    }
    NEED(a.vtcm[0] == 0xff && HAP_compute_res_check_release_request(a.id));
    NEED(HAP_compute_res_release_cached(a.id) == 0);
    NEED(HAP_compute_res_acquire_cached(a.id, LONG) == 0); /* behind the urgent one */
    join(id);
    NEED(a.n_asked == 1 && HAP_compute_res_release(a.id) == 0);
}

static void asked_and_at_once(void) {
    struct client a = {.gives_back = true};
    open_client(&a, 4 * MIB);
    NEED(HAP_compute_res_acquire_cached(a.id, SOON) == 0);
    HAP_compute_res_update_priority(a.id, 200);
    join(start(50, urgent, &a));
    NEED(HAP_compute_res_acquire_cached(a.id, SOON) == 0 && HAP_compute_res_release(a.id) == 0);
}

static void less_urgent(void *p) {
    uint8_t *vtcm = NULL;
    (void) p;
    NEED(acquire(4 * MIB, 0, 0, 5000, &vtcm) == 0);
}

static void not_asked(void) {
    struct client a = {0};
    open_client(&a, 4 * MIB);
    NEED(HAP_compute_res_acquire_cached(a.id, SOON) == 0 && HAP_compute_res_update_priority(a.id, 100) == 0);
    join(start(150, less_urgent, NULL));
    NEED(a.n_asked == 0 && HAP_compute_res_release(a.id) == 0);
}

/* Many clients, each sees its own bytes. */

static void come_and_go(void *p) {
    uint32_t me = *(uint32_t *) p, state = me;
    for (uint32_t i = 0; i < 200; i++) {
        state = state * 1664525 + 1013904223;
        uint32_t bytes = 4096 * (1 + state % 300);
        uint8_t *vtcm = NULL;
        unsigned int id = acquire(bytes, 0, 0, LONG, &vtcm);
        NEED(id);
        memset(vtcm, (int) me, bytes);
        qurt_sleep(0);
        NEED(vtcm[0] == me && vtcm[bytes / 2] == me && vtcm[bytes - 1] == me);
        NEED(HAP_compute_res_release(id) == 0);
    }
}

static void crowd(void) {
    uint32_t names[6] = {1, 2, 3, 4, 5, 6};
    qurt_thread_t ids[6];
    for (uint32_t i = 0; i < 6; i++) {
        ids[i] = start((unsigned short) (50 + i % 2), come_and_go, &names[i]);
    }
    for (uint32_t i = 0; i < 6; i++) {
        join(ids[i]);
    }
    NEED(available() == 4 * MIB);
}

/* The matrix unit and running alone */

static unsigned int acquire_hmx(bool alone, unsigned int timeout_us) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    NEED(alone || HAP_compute_res_attr_set_hmx_param(&attr, 1) == 0);
    HAP_compute_res_attr_set_serialize(&attr, alone);
    return HAP_compute_res_acquire(&attr, timeout_us);
}

struct hmx_case {
    unsigned int id;
    _Atomic uint32_t inside;
};

static void lock_hmx(void *p) {
    struct hmx_case *h = p;
    NEED(HAP_compute_res_hmx_unlock(h->id) != 0); /* it has none */
    for (uint32_t i = 0; i < 200; i++) {
        NEED(HAP_compute_res_hmx_lock(h->id) == 0 && HAP_compute_res_hmx_lock(h->id) != 0);
        NEED(atomic_fetch_add(&h->inside, 1) == 0);
        atomic_fetch_sub(&h->inside, 1);
        NEED(HAP_compute_res_hmx_unlock(h->id) == 0);
    }
    compute_res_hmx_mutex_t mutex;
    NEED(HAP_compute_res_hmx_lock3(h->id, HAP_COMPUTE_RES_HMX_SHARED, &mutex, LONG) == 0);
    mutex.lock(mutex.mutex), mutex.unlock(mutex.mutex);
    NEED(HAP_compute_res_hmx_unlock2(h->id, HAP_COMPUTE_RES_HMX_NON_SHARED) != 0);
    NEED(HAP_compute_res_hmx_unlock3(h->id, HAP_COMPUTE_RES_HMX_SHARED, &mutex) == 0);
}

static void lock_shared(void *p) {
    struct hmx_case *h = p;
    NEED(HAP_compute_res_hmx_lock3(h->id, HAP_COMPUTE_RES_HMX_NON_SHARED, NULL, 2000) != 0);
    NEED(HAP_compute_res_hmx_lock2(h->id, HAP_COMPUTE_RES_HMX_SHARED) == 0);
    NEED(HAP_compute_res_hmx_unlock2(h->id, HAP_COMPUTE_RES_HMX_SHARED) == 0);
}

static void lock_and_end(void *p) {
    NEED(HAP_compute_res_hmx_lock(((struct hmx_case *) p)->id) == 0);
}

static void hmx(void) {
    struct hmx_case h = {.id = acquire_hmx(false, 0)};
    qurt_thread_t ids[3];
    NEED(h.id && acquire_hmx(false, SOON) == 0); /* there is one unit */
    join(start(100, lock_and_end, &h)); /* a thread that ends gives it up */
    for (uint32_t i = 0; i < 3; i++) {
        ids[i] = start(100, lock_hmx, &h);
    }
    for (uint32_t i = 0; i < 3; i++) {
        join(ids[i]);
    }
    NEED(HAP_compute_res_hmx_lock2(h.id, HAP_COMPUTE_RES_HMX_SHARED) == 0);
    join(start(100, lock_shared, &h));
    NEED(HAP_compute_res_release(h.id) == 0 && HAP_compute_res_hmx_unlock2(h.id, HAP_COMPUTE_RES_HMX_SHARED) == 0);
    NEED(HAP_compute_res_hmx_lock(h.id) != 0); /* given back */
    uint8_t *vtcm = NULL;
    unsigned int without = acquire(MIB, 0, 0, 0, &vtcm);
    NEED(HAP_compute_res_hmx_lock(without) != 0);
}

static void no_hmx(void) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    NEED((unsigned) HAP_compute_res_attr_set_hmx_param(&attr, 1) == HAP_COMPUTE_RES_NOT_SUPPORTED);
    NEED(HAP_compute_res_attr_set_hmx_param(&attr, 0) == 0);
    NEED(HAP_compute_res_acquire(&attr, 0) == 0); /* asks for nothing */
}

static void two_units(void) {
    unsigned int a = acquire_hmx(false, 0), b = acquire_hmx(false, 0);
    NEED(a && b && acquire_hmx(false, 0) == 0);
    NEED(HAP_compute_res_hmx_lock(a) == 0);
    struct hmx_case other = {.id = b};
    join(start(100, lock_and_end, &other)); /* while this thread has the first */
    NEED(HAP_compute_res_hmx_unlock(a) == 0 && HAP_compute_res_release(b) == 0 && acquire_hmx(false, 0));
}

static void alone(void) {
    unsigned int id = acquire_hmx(true, 0), capability = 0;
    uint8_t *vtcm = NULL;
    NEED(id && acquire_hmx(true, SOON) == 0);
    NEED(acquire(MIB, 0, 0, 0, &vtcm)); /* who does not ask to be alone is not kept waiting */
    NEED(HAP_compute_res_release(id) == 0 && acquire_hmx(true, 0));
    NEED(HAP_compute_res_query_capability(HAP_COMPUTE_RES_PREEMPTION_CAPABILITY, &capability) == 0 && capability == 1);
}

static void older_calls(void) {
    unsigned int size = 0, count = 0, largest = 0, page = 0;
    NEED(HAP_query_total_VTCM(&size, &count) == 0 && size == 4 * MIB && count == 1);
    uint8_t *a = HAP_request_VTCM(3 * MIB, 0), *b = HAP_request_VTCM(MIB, 1);
    NEED(a && b && HAP_request_VTCM(4096, 1) == NULL);
    NEED(HAP_query_avail_VTCM(&largest, &page, &count) == 0 && largest == 0 && count == 0);
    NEED(HAP_release_VTCM(a) == 0 && HAP_release_VTCM(a) != 0 && HAP_release_VTCM(NULL) != 0);
    NEED(HAP_query_avail_VTCM(&largest, &page, &count) == 0 && largest == 3 * MIB && HAP_release_VTCM(b) == 0);
}

int main(int argc, char **argv) {
    static const struct named cases[] = {
        {"parts", parts},
        {"overrun_part", overrun_part},
        {"cached", cached},
        {"asked_and_later", asked_and_later},
        {"asked_and_at_once", asked_and_at_once},
        {"not_asked", not_asked},
        {"crowd", crowd},
        {"hmx", hmx},
        {"no_hmx", no_hmx},
        {"two_units", two_units},
        {"alone", alone},
        {"older_calls", older_calls},
    };
    emu_low_reserve_heap();
    return run_case(cases, sizeof cases / sizeof cases[0], argc, argv);
}
