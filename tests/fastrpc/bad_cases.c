/* Wrong use of the API: the documented code each, and (the test looks) one line; a case each, by its name. */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "calc_host.h"

#define URI CALC_URI CDSP_DOMAIN

static char cdsp[] = CDSP_DOMAIN_NAME, session[] = "s";

static void opens(const char *uri, int aee) {
    remote_handle64 h = 1;
    CHECK_EQUAL(remote_handle64_open(uri, &h), aee);
    CHECK_EQUAL(h, 0);
}

static void unknown_domain(void) {
    opens(CALC_URI "&_dom=xdsp", AEE_EBADPARM);
}

static void absent_domain(void) {
    opens(CALC_URI ADSP_DOMAIN, AEE_ECONNREFUSED);
}

static void absent_npu(void) {
    opens(CALC_URI CDSP1_DOMAIN, AEE_ECONNREFUSED);
}

static void no_domain(void) {
    opens(CALC_URI, AEE_EBADPARM);
}

static void no_such_session(void) {
    opens(URI "&_session=4", AEE_EBADPARM);
}

static void bad_uri(void) {
    opens("file:///libcalc_skel.so&_dom=cdsp", DSP(AEE_EBADPARM));
}

static void null_uri(void) {
    opens(NULL, AEE_EBADPARM);
}

static void null_handle(void) {
    CHECK_EQUAL(remote_handle64_open(URI, NULL), AEE_EBADPARM);
}

static void no_library(void) {
    opens("file:///libnone_skel.so?none_skel_handle_invoke&_modver=1.0&_dom=cdsp", DSP(AEE_EUNABLETOLOAD));
}

/* The test puts a file of this name into the path. */
static void bad_library(void) {
    opens("file:///libbad_skel.so?calc_skel_handle_invoke&_modver=1.0&_dom=cdsp", DSP(AEE_EUNABLETOLOAD));
}

static void no_symbol(void) {
    opens("file:///libcalc_skel.so?other_skel_handle_invoke&_modver=1.0&_dom=cdsp", DSP(AEE_ENOSUCHSYMBOL));
}

static void session_limit(void) {
    for (int i = 1; i <= 4; i++) {
        struct remote_rpc_reserve_new_session r = {.domain_name = cdsp, .domain_name_len = 4};
        r.session_name = session;
        r.session_name_len = 1;
        CHECK_EQUAL(remote_session_control(FASTRPC_RESERVE_NEW_SESSION, &r, sizeof r),
                    i < 4 ? AEE_SUCCESS : AEE_ENOSESSION);
    }
}

static void unknown_name(void) {
    char name[] = "xdsp";
    struct remote_rpc_effective_domain_id e = {.domain_name = name, .domain_name_len = 4};
    CHECK_EQUAL(remote_session_control(FASTRPC_GET_EFFECTIVE_DOMAIN_ID, &e, sizeof e), AEE_EBADPARM);
}

static void short_uri(void) {
    char module[] = CALC_URI, uri[sizeof module + 8];
    struct remote_rpc_get_uri u = {.domain_name = cdsp, .domain_name_len = 4, .module_uri = module, .uri = uri};
    u.module_uri_len = sizeof module - 1;
    u.uri_len = sizeof uri;
    CHECK_EQUAL(remote_session_control(FASTRPC_GET_URI, &u, sizeof u), AEE_EBADSIZE);
}

static void wrong_size(void) {
    struct remote_rpc_thread_params p = {.domain = -1};
    CHECK_EQUAL(remote_session_control(FASTRPC_THREAD_PARAMS, &p, sizeof p - 1), AEE_EBADPARM);
}

static void unknown_request(void) {
    int data = 0;
    CHECK_EQUAL(remote_session_control(99, &data, sizeof data), AEE_EUNSUPPORTED);
}

static void late_unsigned(void) {
    struct remote_rpc_control_unsigned_module u = {.domain = CDSP_DOMAIN_ID, .enable = 1};
    calc_open(URI);
    CHECK_EQUAL(remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &u, sizeof u), AEE_EALREADYLOADED);
}

static void nothing_to_kill(void) {
    struct remote_rpc_process_clean_params p = {.domain = CDSP_DOMAIN_ID};
    CHECK_EQUAL(remote_session_control(FASTRPC_REMOTE_PROCESS_KILL, &p, sizeof p), AEE_ERPC);
}

static void closed_handle(void) {
    remote_handle64 h = calc_open(URI);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_EINVHANDLE);
}

static void closed_twice(void) {
    remote_handle64 h = calc_open(URI);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(h), AEE_EINVHANDLE);
}

static void invented_handle(void) {
    CHECK_EQUAL(calc_call((remote_handle64) -1, CALC_EMPTY), AEE_EINVHANDLE);
}

static void no_arguments(void) {
    remote_handle64 h = calc_open(URI);
    CHECK_EQUAL(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(CALC_SUM, 1, 1), NULL), AEE_EBADPARM);
}

static void null_buffer(void) {
    int64_t total = 0;
    remote_handle64 h = calc_open(URI);
    CHECK_EQUAL(calc_inout(h, CALC_SUM, NULL, 8, &total, sizeof total), AEE_EBADPARM);
}

static void double_free(void) {
    void *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096);
    rpcmem_free(p);
    rpcmem_free(p);
}

static void free_unknown(void) {
    static char own[4096];
    rpcmem_free(own);
}

static void free_inside(void) {
    char *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 8192);
    rpcmem_free(p + 4096);
    p[8191] = 1; /* still there */
}

static void fd_of_unknown(void) {
    int own = 0;
    CHECK_EQUAL(rpcmem_to_fd(&own), -1);
}

static void alloc_none(void) {
    CHECK(!rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 0));
}

static void alloc_negative(void) {
    CHECK(!rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, -4096));
}

static int shared_fd(void) {
    return rpcmem_to_fd(rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096));
}

static void map_flags(void) {
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, shared_fd(), NULL, 0, 4096, FASTRPC_MAP_RESERVED), AEE_EBADPARM);
}

static void map_offset(void) {
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, shared_fd(), NULL, 4096, 4096, FASTRPC_MAP_FD), AEE_EBADPARM);
}

static void map_domain(void) {
    CHECK_EQUAL(fastrpc_mmap(77, shared_fd(), NULL, 0, 4096, FASTRPC_MAP_FD), AEE_EBADPARM);
}

static void map_no_file(void) {
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, 777, NULL, 0, 4096, FASTRPC_MAP_FD), AEE_EFAILED);
}

static void map_beyond(void) {
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, shared_fd(), NULL, 0, 8192, FASTRPC_MAP_FD), AEE_EFAILED);
}

static void map_twice(void) {
    int fd = shared_fd();
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, fd, NULL, 0, 4096, FASTRPC_MAP_FD), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, fd, NULL, 0, 4096, FASTRPC_MAP_FD), AEE_EALREADY);
}

static void unmap_unmapped(void) {
    calc_open(URI);
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, shared_fd(), NULL, 4096), AEE_ENOSUCHMAP);
}

static void unmap_no_session(void) {
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, shared_fd(), NULL, 4096), AEE_ENOTINITIALIZED);
}

static void unmapped_buffer(void) {
    int32_t what[2] = {shared_fd(), 4096};
    uint32_t total = 0;
    CHECK_EQUAL(calc_inout(calc_open(URI), CALC_MAPPED, what, sizeof what, &total, sizeof total), DSP(AEE_ENOSUCHMAP));
}

static void attribute(void) {
    struct remote_dsp_capability c = {.domain = CDSP_DOMAIN_ID, .attribute_ID = 200};
    CHECK_EQUAL(remote_handle_control(DSPRPC_GET_DSP_INFO, &c, sizeof c), AEE_EBADPARM);
}

static void latency(void) {
    struct remote_rpc_control_latency l = {.enable = RPC_POLL_QOS, .latency = 20000};
    CHECK_EQUAL(remote_handle64_control(calc_open(URI), DSPRPC_CONTROL_LATENCY, &l, sizeof l), AEE_EBADPARM);
}

static void system_request(void) {
    CHECK_EQUAL(remote_system_request(NULL), AEE_EBADPARM);
}

static void register_nothing(void) {
    remote_register_buf(NULL, 4096, 3);
}

static void no_program(void) {
    opens(URI, AEE_ECONNREFUSED);
}

#define CASE(name) {#name, name}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        CASE(unknown_domain),   CASE(absent_domain),    CASE(absent_npu),    CASE(no_domain),
        CASE(no_such_session),  CASE(bad_uri),          CASE(null_uri),      CASE(null_handle),
        CASE(no_library),       CASE(bad_library),      CASE(no_symbol),     CASE(session_limit),
        CASE(unknown_name),     CASE(short_uri),        CASE(wrong_size),    CASE(unknown_request),
        CASE(late_unsigned),    CASE(nothing_to_kill),  CASE(closed_handle), CASE(closed_twice),
        CASE(invented_handle),  CASE(no_arguments),     CASE(null_buffer),   CASE(double_free),
        CASE(free_unknown),     CASE(free_inside),      CASE(fd_of_unknown), CASE(alloc_none),
        CASE(alloc_negative),   CASE(map_flags),        CASE(map_offset),    CASE(map_domain),
        CASE(map_no_file),      CASE(map_beyond),       CASE(map_twice),     CASE(unmap_unmapped),
        CASE(unmap_no_session), CASE(unmapped_buffer),  CASE(attribute),     CASE(latency),
        CASE(system_request),   CASE(register_nothing), CASE(no_program),    {NULL, NULL},
    };
    return run_case(cases, argc, argv);
}
