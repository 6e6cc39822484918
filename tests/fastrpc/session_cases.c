/* Sessions: several at once, their faults and their end; a case each, by its name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calc_host.h"
#include "dspqueue.h"

#define URI CALC_URI CDSP_DOMAIN
#define MODULE CALC_URI
#define MAX_SESSIONS 4

struct session {
    int domain, id;
    char uri[256];
    remote_handle64 h;
    int n_calls;
};

static char cdsp[] = CDSP_DOMAIN_NAME, module[] = MODULE, name[] = "test";

static void uri_of(struct session *s) {
    struct remote_rpc_get_uri u = {.domain_name = cdsp, .domain_name_len = 4, .session_id = (uint32_t) s->id};
    u.module_uri = module;
    u.module_uri_len = sizeof module - 1;
    u.uri = s->uri;
    u.uri_len = sizeof s->uri;
    CHECK_EQUAL(remote_session_control(FASTRPC_GET_URI, &u, sizeof u), AEE_SUCCESS);
}

/* Session 0 is there from the beginning; others are reserved. */
static void open_session(struct session *s, bool first) {
    if (first) {
        struct remote_rpc_effective_domain_id e = {.domain_name = cdsp, .domain_name_len = 4};
        CHECK_EQUAL(remote_session_control(FASTRPC_GET_EFFECTIVE_DOMAIN_ID, &e, sizeof e), AEE_SUCCESS);
        s->domain = (int) e.effective_domain_id;
        s->id = 0;
    } else {
        struct remote_rpc_reserve_new_session r = {.domain_name = cdsp, .domain_name_len = 4};
        r.session_name = name;
        r.session_name_len = 4;
        CHECK_EQUAL(remote_session_control(FASTRPC_RESERVE_NEW_SESSION, &r, sizeof r), AEE_SUCCESS);
        s->domain = (int) r.effective_domain_id;
        s->id = (int) r.session_id;
    }
    struct remote_rpc_control_unsigned_module u = {.domain = s->domain, .enable = 1};
    CHECK_EQUAL(remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &u, sizeof u), AEE_SUCCESS);
    uri_of(s);
    s->h = calc_open(s->uri);
}

static void *work(void *p) {
    struct session *s = p;
    uint8_t *shared = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 65536), own[300], out[300];
    int32_t what[2] = {rpcmem_to_fd(shared), 4096};
    for (int i = 0; i < s->n_calls; i++) {
        uint32_t total = 0;
        memset(own, i, sizeof own);
        CHECK_EQUAL(calc_inout(s->h, CALC_SCALE, own, sizeof own, out, sizeof out), AEE_SUCCESS);
        CHECK_EQUAL(out[sizeof out - 1], (uint8_t) (3 * i));
        CHECK_EQUAL(calc_inout(s->h, CALC_SCALE, shared, 30000, shared + 32768, 30000), AEE_SUCCESS);
        calc_count(s->h);
        if (i % 8 == 0) {
            CHECK_EQUAL(fastrpc_mmap(s->domain, what[0], shared, 0, 65536, FASTRPC_MAP_FD), AEE_SUCCESS);
            CHECK_EQUAL(calc_inout(s->h, CALC_MAPPED, what, sizeof what, &total, sizeof total), AEE_SUCCESS);
            CHECK_EQUAL(fastrpc_munmap(s->domain, what[0], shared, 65536), AEE_SUCCESS);
        }
    }
    rpcmem_free(shared);
    return NULL;
}

/* n sessions, two threads in each, all at once; each has globals of its own. */
static void sessions(int n, int n_calls) {
    struct session s[MAX_SESSIONS];
    pthread_t threads[2 * MAX_SESSIONS];
    for (int i = 0; i < n; i++) {
        open_session(&s[i], i == 0);
        s[i].n_calls = n_calls + i;
    }
    for (int i = 0; i < 2 * n; i++) {
        CHECK(!pthread_create(&threads[i], NULL, work, &s[i / 2]));
    }
    for (int i = 0; i < 2 * n; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < n; i++) {
        CHECK_EQUAL(calc_count(s[i].h), 2 * s[i].n_calls + 1);
        CHECK_EQUAL(remote_handle64_close(s[i].h), AEE_SUCCESS);
    }
}

static void two_sessions(void) {
    sessions(2, 200);
}

static void four_sessions(void) {
    sessions(4, 100);
}

static void own_globals(void) {
    struct session a, b;
    open_session(&a, true);
    open_session(&b, false);
    CHECK_EQUAL(b.id, 1);
    CHECK(a.domain != b.domain);
    for (int i = 1; i <= 10; i++) {
        CHECK_EQUAL(calc_count(a.h), i);
    }
    CHECK_EQUAL(calc_count(b.h), 1);
    struct remote_rpc_get_domain d = {0};
    CHECK_EQUAL(remote_handle64_control(b.h, DSPRPC_GET_DOMAIN, &d, sizeof d), AEE_SUCCESS);
    CHECK_EQUAL(d.domain, b.domain);
    CHECK_EQUAL(remote_handle64_close(a.h), AEE_SUCCESS);
    CHECK_EQUAL(calc_count(b.h), 2);
    CHECK_EQUAL(remote_handle64_close(b.h), AEE_SUCCESS);
}

static void *meet(void *p) {
    int32_t n = 8;
    remote_arg arg = {.buf = {&n, sizeof n}};
    CHECK_EQUAL(remote_handle64_invoke(*(remote_handle64 *) p, REMOTE_SCALARS_MAKE(CALC_MEET, 1, 0), &arg),
                AEE_SUCCESS);
    return NULL;
}

/* Calls of several threads run at the same time: each waits in the session for all the others. */
static void parallel(void) {
    remote_handle64 h = calc_open(URI);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++) {
        CHECK(!pthread_create(&threads[i], NULL, meet, &h));
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void fault(enum calc_method method) {
    remote_handle64 h = calc_open(URI), other = calc_open(URI);
    CHECK_EQUAL(calc_count(h), 1);
    CHECK_EQUAL(calc_call(h, method), DSP(AEE_EBADSTATE));
    CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_ECONNRESET);
    CHECK_EQUAL(calc_call(other, CALC_EMPTY), AEE_ECONNRESET);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    h = calc_open(URI); /* a new one, while a handle of the old one is still open */
    CHECK_EQUAL(calc_count(h), 1);
    CHECK_EQUAL(calc_call(other, CALC_EMPTY), AEE_ECONNRESET);
    CHECK_EQUAL(remote_handle64_close(other), AEE_SUCCESS);
    CHECK_EQUAL(calc_count(h), 2);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static void crash(void) {
    fault(CALC_CRASH);
}

static void aborts(void) {
    fault(CALC_ABORT);
}

static void exits(void) {
    fault(CALC_EXIT);
}

static void ends_the_thread(void) {
    fault(CALC_END_THREAD);
}

/* A crash of one session is nothing to another. */
static void crash_of_one(void) {
    struct session a, b;
    open_session(&a, true);
    open_session(&b, false);
    CHECK_EQUAL(calc_call(a.h, CALC_CRASH), DSP(AEE_EBADSTATE));
    CHECK_EQUAL(calc_count(b.h), 1);
    CHECK_EQUAL(remote_handle64_close(a.h), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(b.h), AEE_SUCCESS);
}

static void *hang(void *p) {
    CHECK_EQUAL(calc_call(*(remote_handle64 *) p, CALC_HANG), AEE_ECONNRESET);
    return NULL;
}

/* Returns once the call hangs, beside which others go on. */
static pthread_t start_hanging(remote_handle64 *h) {
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, hang, h));
    for (int32_t ours = 1; calc_count(*h) == ours; ours++) {
    }
    return thread;
}

static void killed(void) {
    remote_handle64 h = calc_open(URI);
    struct remote_rpc_process_clean_params p = {.domain = CDSP_DOMAIN_ID};
    pthread_t thread = start_hanging(&h);
    CHECK_EQUAL(remote_session_control(FASTRPC_REMOTE_PROCESS_KILL, &p, sizeof p), AEE_SUCCESS);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_ECONNRESET);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    h = calc_open(URI);
    CHECK_EQUAL(calc_count(h), 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* Needs the session's control messages for as long as it lives: memory for arguments, mappings, queues. */
static void *use_until_the_end(void *p) {
    remote_handle64 h = *(remote_handle64 *) p;
    void *shared = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096);
    size_t n = 100000;
    int aee = AEE_SUCCESS;
    while (!aee) {
        uint8_t *in = calloc(1, n);
        dspqueue_t queue;
        aee = calc_inout(h, CALC_SCALE, in, n, in, n);
        free(in);
        n = n < 66000000 ? n + 3000000 : 100000;
        int of_queue = dspqueue_create(CDSP_DOMAIN_ID, 0, 0, 0, NULL, NULL, NULL, &queue);
        CHECK(of_queue == AEE_SUCCESS || of_queue == AEE_ECONNRESET);
        CHECK(of_queue || dspqueue_close(queue) == AEE_SUCCESS);
        int of_map = fastrpc_mmap(CDSP_DOMAIN_ID, rpcmem_to_fd(shared), shared, 0, 4096, FASTRPC_MAP_FD);
        CHECK(of_map == AEE_SUCCESS || of_map == AEE_ECONNRESET || of_map == AEE_EALREADY);
        if (!of_map) {
            fastrpc_munmap(CDSP_DOMAIN_ID, rpcmem_to_fd(shared), shared, 4096);
        }
    }
    CHECK_EQUAL(aee, AEE_ECONNRESET);
    rpcmem_free(shared);
    return NULL;
}

/* Whatever a thread is about when the session is killed, the code says that it is gone. */
static void killed_anywhere(void) {
    for (int i = 0; i < 30; i++) {
        remote_handle64 h = calc_open(URI);
        pthread_t threads[2];
        struct remote_rpc_process_clean_params p = {.domain = CDSP_DOMAIN_ID};
        for (int t = 0; t < 2; t++) {
            CHECK(!pthread_create(&threads[t], NULL, use_until_the_end, &h));
        }
        while (calc_count(h) < 20 * (i + 1)) {
        }
        CHECK_EQUAL(remote_session_control(FASTRPC_REMOTE_PROCESS_KILL, &p, sizeof p), AEE_SUCCESS);
        for (int t = 0; t < 2; t++) {
            pthread_join(threads[t], NULL);
        }
        CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    }
}

/* A number is given to nobody else while its session runs, and once only. */
static void numbers(void) {
    struct session a, b, c;
    remote_handle64 unreserved = calc_open(CALC_URI CDSP_DOMAIN "&_session=1");
    open_session(&a, false);
    CHECK_EQUAL(a.id, 2);
    CHECK_EQUAL(calc_call(a.h, CALC_CRASH), DSP(AEE_EBADSTATE));
    remote_handle64 again = calc_open(a.uri);
    CHECK_EQUAL(remote_handle64_close(a.h), AEE_SUCCESS); /* of the one that crashed */
    open_session(&b, false);
    CHECK_EQUAL(b.id, 3);
    CHECK_EQUAL(remote_handle64_close(again), AEE_SUCCESS);
    open_session(&c, false);
    CHECK_EQUAL(c.id, 2);
    CHECK_EQUAL(remote_handle64_close(unreserved), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(b.h), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(c.h), AEE_SUCCESS);
}

static void session_close(void) {
    remote_handle64 h = calc_open(URI);
    struct remote_rpc_session_close p = {.domain = CDSP_DOMAIN_ID};
    pthread_t thread = start_hanging(&h);
    CHECK_EQUAL(remote_session_control(FASTRPC_SESSION_CLOSE, &p, sizeof p), AEE_SUCCESS);
    pthread_join(thread, NULL);
    CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_EINVHANDLE);
    CHECK_EQUAL(remote_handle64_close(h), AEE_EINVHANDLE);
    h = calc_open(URI);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

static int seen[FASTRPC_DSP_SSR + 1];

static int notified(void *context, int domain, int session, remote_rpc_status_flags_t status) {
    CHECK(context == (void *) seen && domain == CDSP_DOMAIN_ID && session == 0);
    __atomic_add_fetch(&seen[status], 1, __ATOMIC_SEQ_CST);
    return 0;
}

static void wait_seen(remote_rpc_status_flags_t status, int n) {
    for (int i = 0; i < 20000 && __atomic_load_n(&seen[status], __ATOMIC_SEQ_CST) < n; i++) {
        usleep(1000);
    }
    CHECK_EQUAL(__atomic_load_n(&seen[status], __ATOMIC_SEQ_CST), n);
}

static void notifications(void) {
    struct remote_rpc_notif_register r = {.context = seen, .domain = CDSP_DOMAIN_ID, .notifier_fn = notified};
    struct remote_rpc_process_clean_params p = {.domain = CDSP_DOMAIN_ID};
    CHECK_EQUAL(remote_session_control(FASTRPC_REGISTER_STATUS_NOTIFICATIONS, &r, sizeof r), AEE_SUCCESS);
    remote_handle64 h = calc_open(URI);
    wait_seen(FASTRPC_USER_PD_UP, 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    wait_seen(FASTRPC_USER_PD_EXIT, 1);
    h = calc_open(URI);
    CHECK_EQUAL(calc_call(h, CALC_ABORT), DSP(AEE_EBADSTATE));
    wait_seen(FASTRPC_USER_PD_EXCEPTION, 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    h = calc_open(URI);
    CHECK_EQUAL(remote_session_control(FASTRPC_REMOTE_PROCESS_KILL, &p, sizeof p), AEE_SUCCESS);
    wait_seen(FASTRPC_USER_PD_FORCE_KILL, 1);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    h = calc_open(URI);
    CHECK_EQUAL(remote_session_control(FASTRPC_REMOTE_PROCESS_EXCEPTION, &p, sizeof p), AEE_SUCCESS);
    wait_seen(FASTRPC_USER_PD_EXCEPTION, 2);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    wait_seen(FASTRPC_USER_PD_UP, 4);
}

static int count_entries(const char *folder) {
    DIR *d = opendir(folder);
    int n = 0;
    CHECK(d);
    while (readdir(d)) {
        n++;
    }
    closedir(d);
    return n;
}

/* Threads of the library end a little after what they watched. */
static void wait_alone(void) {
    for (int i = 0; i < 20000 && count_entries("/proc/self/task") > 3; i++) { /* ".", ".." and this thread */
        usleep(1000);
    }
    CHECK_EQUAL(count_entries("/proc/self/task"), 3);
}

/* A program that opens and closes sessions keeps no file, no thread and no child of them. */
static void no_leaks(void) {
    int fds = 0;
    for (int i = 0; i < 20; i++) {
        struct session a, b;
        static uint8_t large[200000];
        open_session(&a, true);
        open_session(&b, false);
        CHECK_EQUAL(b.id, 1); /* free again */
        void *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096);
        CHECK_EQUAL(fastrpc_mmap(a.domain, rpcmem_to_fd(p), p, 0, 4096, FASTRPC_MAP_FD), AEE_SUCCESS);
        CHECK_EQUAL(calc_inout(a.h, CALC_SCALE, large, sizeof large, large, sizeof large), AEE_SUCCESS);
        if (i % 4 == 0) {
            CHECK_EQUAL(calc_call(b.h, CALC_ABORT), DSP(AEE_EBADSTATE));
        }
        CHECK_EQUAL(remote_handle64_close(a.h), AEE_SUCCESS);
        CHECK_EQUAL(remote_handle64_close(b.h), AEE_SUCCESS);
        rpcmem_free(p);
        if (i == 2) {
            wait_alone();
            fds = count_entries("/proc/self/fd");
        }
    }
    wait_alone();
    CHECK_EQUAL(count_entries("/proc/self/fd"), fds);
    CHECK(wait(NULL) < 0); /* no child, living or dead */
}

/* After fork() the sessions are the parent's; the child may have some of its own. */
static void forks(void) {
    remote_handle64 h = calc_open(URI);
    CHECK_EQUAL(calc_count(h), 1);
    pid_t child = fork();
    if (!child) {
        CHECK_EQUAL(calc_call(h, CALC_EMPTY), AEE_EINVHANDLE);
        remote_handle64 own = calc_open(URI);
        CHECK_EQUAL(calc_count(own), 1);
        CHECK_EQUAL(remote_handle64_close(own), AEE_SUCCESS);
        own = calc_open(URI);
        exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_EQUAL(calc_count(h), 2);
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
}

/* Until the test kills this program. */
static void waits(void) {
    struct session a, b;
    open_session(&a, true);
    open_session(&b, false);
    void *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, 4096);
    CHECK_EQUAL(fastrpc_mmap(a.domain, rpcmem_to_fd(p), p, 0, 4096, FASTRPC_MAP_FD), AEE_SUCCESS);
    printf("ready\n");
    fflush(stdout);
    calc_call(a.h, CALC_HANG);
}

static void print_attributes(void) {
    for (uint32_t id = DOMAIN_SUPPORT; id <= HMX_SUPPORT_SPATIAL; id++) {
        struct remote_dsp_capability c = {.domain = CDSP_DOMAIN_ID, .attribute_ID = id};
        CHECK_EQUAL(remote_handle_control(DSPRPC_GET_DSP_INFO, &c, sizeof c), AEE_SUCCESS);
        printf("%x ", c.capability);
    }
    fastrpc_domain domains[8];
    system_req_payload q = {.id = FASTRPC_GET_DOMAINS};
    q.sys.flags = DOMAINS_LIST_FLAGS_SET_TYPE(0, FASTRPC_NSP);
    CHECK_EQUAL(remote_system_request(&q), AEE_SUCCESS);
    q.sys.domains = domains;
    q.sys.max_domains = 8;
    CHECK_EQUAL(remote_system_request(&q), AEE_SUCCESS);
    for (int i = 0; i < q.sys.num_domains; i++) {
        printf("%s=%d/%d/%d ", domains[i].name, domains[i].id, domains[i].instance_id, domains[i].status);
    }
    printf("\n");
}

/* A session on the second NPU. */
static void second_npu(void) {
    remote_handle64 a = calc_open(URI), b = calc_open(CALC_URI CDSP1_DOMAIN);
    struct remote_rpc_get_domain d = {0};
    CHECK_EQUAL(remote_handle64_control(b, DSPRPC_GET_DOMAIN, &d, sizeof d), AEE_SUCCESS);
    CHECK_EQUAL(d.domain, CDSP1_DOMAIN_ID);
    CHECK_EQUAL(calc_count(a), 1);
    CHECK_EQUAL(calc_count(b), 1);
    CHECK_EQUAL(remote_handle64_close(a), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_close(b), AEE_SUCCESS);
}

int main(int argc, char **argv) {
    static const struct test_case cases[] = {
        {"two_sessions", two_sessions},
        {"four_sessions", four_sessions},
        {"own_globals", own_globals},
        {"parallel", parallel},
        {"crash", crash},
        {"aborts", aborts},
        {"exits", exits},
        {"ends_the_thread", ends_the_thread},
        {"crash_of_one", crash_of_one},
        {"killed", killed},
        {"killed_anywhere", killed_anywhere},
        {"numbers", numbers},
        {"session_close", session_close},
        {"notifications", notifications},
        {"no_leaks", no_leaks},
        {"forks", forks},
        {"waits", waits},
        {"attributes", print_attributes},
        {"second_npu", second_npu},
        {NULL, NULL},
    };
    return run_case(cases, argc, argv);
}
