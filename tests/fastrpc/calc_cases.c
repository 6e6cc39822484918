/* Calls, buffers and mappings of one session; a case each, by its name. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "HAP_farf.h"
#include "calc_host.h"

#define URI CALC_URI CDSP_DOMAIN
#define MIB (1u << 20)

static void empty(void) {
    remote_handle64 h = calc_open(URI);
    for (int i = 0; i < 1000; i++) {
        CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_SUCCESS);
    }
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void sum(void) {
    remote_handle64 h = calc_open(URI);
    int32_t values[] = {1, -2, 3000000, 4};
    int64_t total = 0;
    CHECK_EQUAL(calc_inout(h, CALC_SUM, values, sizeof values, &total, sizeof total), AEE_SUCCESS);
    CHECK_EQUAL(total, 3000003);
    CHECK_EQUAL(calc_inout(h, CALC_SUM, NULL, 0, &total, sizeof total), AEE_SUCCESS);
    CHECK_EQUAL(total, 0);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void check_scale(remote_handle64 h, uint8_t *in, uint8_t *out, size_t n) {
    for (size_t i = 0; i < n; i++) {
        in[i] = (uint8_t) (i * 7 + i / 256);
        out[i] = 0xee;
    }
    CHECK_EQUAL(calc_inout(h, CALC_SCALE, in, n, out, n), AEE_SUCCESS);
    for (size_t i = 0; i < n; i++) {
        CHECK_EQUAL(out[i], (uint8_t) (3 * in[i]));
    }
}

/* Of every size: in the slot, beyond it, and larger than what a slot keeps. */
static void sizes(void) {
    static const size_t bytes[] = {1, 127, 128, 129, 32640, 32768, 32769, 65536, 65537, 1000000, 40 * MIB, 3};
    remote_handle64 h = calc_open(URI);
    uint8_t *in = malloc(40 * MIB), *out = malloc(40 * MIB);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        check_scale(h, in, out, bytes[i]);
    }
    free(in);
    free(out);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* rpcmem buffers, and parts of them, beside ordinary ones. */
static void by_reference(void) {
    remote_handle64 h = calc_open(URI);
    uint8_t *shared = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8 * MIB), own[5000];
    CHECK(shared);
    check_scale(h, shared, shared + 4 * MIB, 3 * MIB);
    check_scale(h, own, shared + 100, sizeof own);
    check_scale(h, shared + 8 * MIB - sizeof own, own, sizeof own);
    rpcmem_free(shared);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void registered(void) {
    int fd = memfd_create("test", 0);
    CHECK(fd >= 0 && !ftruncate(fd, MIB));
    uint8_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    remote_handle64 h = calc_open(URI);
    remote_register_buf(p, MIB, fd);
    check_scale(h, p, p + MIB / 2, MIB / 2);
    remote_register_buf(p, MIB, -1);
    check_scale(h, p, p + MIB / 2, MIB / 2);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* Pointers of arguments, stack, heap, globals and code fit in 32 bits, wherever the arguments come from. */
static void low(void) {
    remote_handle64 h = calc_open(URI);
    static uint8_t large[MIB];
    uint8_t *shared = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096);
    uint32_t high = 1;
    CHECK_EQUAL(calc_inout(h, CALC_LOW, "abc", 3, &high, sizeof high), AEE_SUCCESS);
    CHECK_EQUAL(high, 0);
    CHECK_EQUAL(calc_inout(h, CALC_LOW, large, sizeof large, &high, sizeof high), AEE_SUCCESS);
    CHECK_EQUAL(high, 0);
    CHECK_EQUAL(calc_inout(h, CALC_LOW, shared, 4096, &high, sizeof high), AEE_SUCCESS);
    CHECK_EQUAL(high, 0);
    rpcmem_free(shared);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void heap(void) {
    remote_handle64 h = calc_open(URI);
    uint32_t n = 0;
    CHECK_EQUAL(calc_out(h, CALC_HEAP, &n, sizeof n), AEE_SUCCESS);
    CHECK(n > 300 && n < 1024);
    CHECK_EQUAL(calc_out(h, CALC_HEAP, &n, sizeof n), AEE_SUCCESS);
    CHECK(n > 300 && n < 1024);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void handle_arguments(void) {
    remote_handle64 h = calc_open(URI);
    remote_arg args[6];
    for (int i = 0; i < 3; i++) {
        args[i].h64 = 0x100000001ull * (uint64_t) (i + 1);
    }
    CHECK_EQUAL(remote_handle64_invoke(h, REMOTE_SCALARS_MAKEX(0, CALC_HANDLES, 0, 0, 3, 3), args), AEE_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(args[3 + i].h64, 0x100000001ull * (uint64_t) (3 - i));
    }
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* Two handles of one session: globals in common, the module's own handles apart. */
static void two_handles(void) {
    remote_handle64 a = calc_open(URI), b = calc_open(URI);
    uint64_t own_a = 0, own_b = 0;
    CHECK(a != b);
    CHECK_EQUAL(calc_count(a), 1);
    CHECK_EQUAL(calc_count(b), 2);
    CHECK_EQUAL(calc_out(a, CALC_SELF, &own_a, sizeof own_a), AEE_SUCCESS);
    CHECK_EQUAL(calc_out(b, CALC_SELF, &own_b, sizeof own_b), AEE_SUCCESS);
    CHECK_EQUAL(own_a, 0x1000);
    CHECK_EQUAL(own_b, 0x1001);
    CHECK_EQUAL(remote_handle64_close(a), AEE_SUCCESS);
    CHECK_EQUAL(calc_count(b), 3);
    CHECK_EQUAL(remote_handle64_close(b), AEE_SUCCESS);
    a = calc_open(URI); /* the session began anew */
    CHECK_EQUAL(calc_count(a), 1);
    CHECK_EQUAL(remote_handle64_close(a), AEE_SUCCESS);
}

static void old_kind(void) {
    remote_handle h = 0;
    int32_t values[] = {20, 22};
    int64_t total = 0;
    remote_arg args[2] = {{.buf = {values, sizeof values}}, {.buf = {&total, sizeof total}}};
    CHECK_EQUAL(remote_handle_open("calc", &h), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle_invoke(h, REMOTE_SCALARS_MAKE(CALC_SUM, 1, 1), args), AEE_SUCCESS);
    CHECK_EQUAL(total, 42);
    CHECK_EQUAL(remote_handle_close(h), AEE_SUCCESS);
}

/* What the module says comes back as it is, and out buffers stay as they were. */
static void module_error(void) {
    remote_handle64 h = calc_open(URI), refused = 0;
    int32_t out = 77;
    CHECK_EQUAL(calc_out(h, CALC_RESULT, &out, sizeof out), DSP(AEE_EBADITEM));
    CHECK_EQUAL(out, 77);
    CHECK_EQUAL(remote_handle64_open(URI "&refuse=1", &refused), DSP(AEE_EFAILED));
    CHECK_EQUAL(refused, 0);
    CHECK_EQUAL(calc_count(h), 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void check_mapped(enum fastrpc_map_flags flags) {
    remote_handle64 h = calc_open(URI);
    enum { N = 3 * 4096 };
    uint8_t *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, N);
    int32_t what[2] = {rpcmem_to_fd(p), N};
    uint32_t total = 0, expected = 0;
    for (int i = 0; i < N; i++) {
        p[i] = (uint8_t) i;
        expected += p[i];
    }
    CHECK_EQUAL(calc_inout(h, CALC_MAPPED, what, sizeof what, &total, sizeof total), DSP(AEE_ENOSUCHMAP));
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, what[0], p, 0, N, flags), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, what[0], p, 0, N, flags), AEE_EALREADY);
    CHECK_EQUAL(calc_inout(h, CALC_MAPPED, what, sizeof what, &total, sizeof total), AEE_SUCCESS);
    CHECK_EQUAL(total, expected);
    for (int i = 0; i < N; i++) {
        CHECK_EQUAL(p[i], (uint8_t) ~i);
    }
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, what[0], p, N), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, what[0], p, N), AEE_ENOSUCHMAP);
    CHECK_EQUAL(calc_inout(h, CALC_MAPPED, what, sizeof what, &total, sizeof total), DSP(AEE_ENOSUCHMAP));
    rpcmem_free(p);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void mapped(void) {
    check_mapped(FASTRPC_MAP_STATIC);
    check_mapped(FASTRPC_MAP_FD);
    check_mapped(FASTRPC_MAP_FD_DELAYED);
    check_mapped(FASTRPC_MAP_FD_NOMAP);
    check_mapped(FASTRPC_MAP_FD_EXTENDED);
    check_mapped(FASTRPC_MAP_FD_DELAYED_EXTENDED);
}

/* The functions that fastrpc_mmap() replaced give addresses of the DSP. */
static void old_maps(void) {
    remote_handle64 h = calc_open(URI);
    void *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8192);
    int fd = rpcmem_to_fd(p);
    int32_t what[2] = {fd, 8192};
    uint32_t where = 0;
    uint64_t there = 0;
    CHECK_EQUAL(remote_mem_map(CDSP_DOMAIN_ID, fd, REMOTE_MAP_MEM_STATIC, (uintptr_t) p, 8192, &there), AEE_SUCCESS);
    CHECK(there && !(there >> 32));
    CHECK_EQUAL(calc_inout(h, CALC_WHERE, what, sizeof what, &where, sizeof where), AEE_SUCCESS);
    CHECK_EQUAL(where, there); /* one mapping, as 4 GiB are soon full */
    CHECK_EQUAL(remote_mem_unmap(CDSP_DOMAIN_ID, there, 8192), AEE_SUCCESS);
    CHECK_EQUAL(remote_mem_unmap(CDSP_DOMAIN_ID, there, 8192), AEE_ENOSUCHMAP);
    CHECK_EQUAL(remote_mmap64(fd, 0, (uintptr_t) p, 8192, &there), AEE_SUCCESS);
    CHECK_EQUAL(remote_munmap64(there, 8192), AEE_SUCCESS);
    rpcmem_free(p);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* Until the session's 4 GiB are full: an error code, and after an unmap there is room again. */
static void full(void) {
    enum { MAX = 8 };
    const size_t gib = 1u << 30;
    remote_handle64 h = calc_open(URI);
    void *p[MAX];
    int n = 0, aee = AEE_SUCCESS;
    while (n < MAX && !aee) {
        p[n] = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, gib);
        CHECK(p[n]);
        aee = fastrpc_mmap(CDSP_DOMAIN_ID, rpcmem_to_fd(p[n]), p[n], 0, gib, FASTRPC_MAP_FD);
        n++;
    }
    CHECK_EQUAL(aee, AEE_EFAILED);
    CHECK(n >= 3); /* two of a GiB at least */
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, rpcmem_to_fd(p[0]), p[0], gib), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, rpcmem_to_fd(p[n - 1]), p[n - 1], 0, gib, FASTRPC_MAP_FD), AEE_SUCCESS);
    CHECK_EQUAL(calc_count(h), 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS); /* and drops the mappings */
    while (n--) {
        rpcmem_free(p[n]);
    }
}

static void large(void) {
    const size_t bytes = 3ull << 30;
    uint8_t *p = rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, bytes);
    CHECK(p);
    p[bytes - 1] = 5;
    CHECK_EQUAL(p[bytes - 1], 5);
    CHECK(rpcmem_to_fd(p) >= 0);
    rpcmem_free(p);
}

/* Leaves everything behind: mappings, handles, buffers. */
static void leaks(void) {
    calc_open(URI);
    for (int i = 0; i < 20; i++) {
        void *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, MIB);
        CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, rpcmem_to_fd(p), p, 0, MIB, FASTRPC_MAP_FD), AEE_SUCCESS);
    }
}

static void async_done(fastrpc_async_jobid id, void *context, int result) {
    CHECK(id);
    __atomic_store_n((int *) context, result ? result : 1, __ATOMIC_SEQ_CST);
}

static void async(void) {
    remote_handle64 h = calc_open(URI);
    int32_t values[] = {40, 2};
    int64_t total = 0;
    int result = -1, called = 0;
    remote_arg args[2] = {{.buf = {values, sizeof values}}, {.buf = {&total, sizeof total}}};
    fastrpc_async_descriptor_t poll = {.type = FASTRPC_ASYNC_POLL};
    CHECK_EQUAL(remote_handle64_invoke_async(h, &poll, REMOTE_SCALARS_MAKE(CALC_SUM, 1, 1), args), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_async_get_status(poll.jobid, -1, &result), AEE_SUCCESS);
    CHECK_EQUAL(result, AEE_SUCCESS);
    CHECK_EQUAL(total, 42);
    CHECK_EQUAL(fastrpc_release_async_job(poll.jobid), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_release_async_job(poll.jobid), AEE_EBADPARM);
    fastrpc_async_descriptor_t back = {.type = FASTRPC_ASYNC_CALLBACK, .cb = {async_done, &called}};
    CHECK_EQUAL(remote_handle64_invoke_async(h, &back, REMOTE_SCALARS_MAKE(CALC_EMPTY, 0, 0), NULL), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_async_get_status(back.jobid, -1, &result), AEE_SUCCESS);
    while (!__atomic_load_n(&called, __ATOMIC_SEQ_CST)) {
        usleep(100);
    }
    CHECK_EQUAL(called, 1);
    CHECK_EQUAL(fastrpc_release_async_job(back.jobid), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void farf(void) {
    remote_handle64 h = calc_open(URI);
    FARF(ALWAYS, "the host says %d", 43);
    FARF(RUNTIME_HIGH, "nobody asked");
    CHECK_EQUAL(calc_call(h, CALC_FARF), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"empty", empty},
        {"sum", sum},
        {"sizes", sizes},
        {"by_reference", by_reference},
        {"registered", registered},
        {"low", low},
        {"heap", heap},
        {"handle_arguments", handle_arguments},
        {"two_handles", two_handles},
        {"old_kind", old_kind},
        {"module_error", module_error},
        {"mapped", mapped},
        {"old_maps", old_maps},
        {"full", full},
        {"large", large},
        {"leaks", leaks},
        {"async", async},
        {"farf", farf},
        {NULL, NULL},
    };
    return run_case(cases, argc, argv);
}
