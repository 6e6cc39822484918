/* remote_session_control(): what is said about sessions before they start, and orders to those that run. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../queue/queue-multi.h"
#include "internal.h"

#define MIN_STACK (16 << 10)
#define MAX_STACK (8 << 20)
#define DEFAULT_PRIORITY 192 /* of DSP threads: 1 is the most urgent, 255 the least */

struct notification {
    struct notification *next;
    fastrpc_notif_fn_t fn;
    void *context;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct setting {
    bool is_unsigned, reserved;
    int priority, stack_bytes;
    struct notification *notifications; /* only ever grows */
} settings[N_EFFECTIVE];

uint64_t session_stack_bytes(int effective) {
    pthread_mutex_lock(&lock);
    int bytes = settings[effective].stack_bytes;
    pthread_mutex_unlock(&lock);
    return (uint64_t) bytes;
}

static void set_reserved(int effective, bool reserved) {
    pthread_mutex_lock(&lock);
    settings[effective].reserved = reserved;
    pthread_mutex_unlock(&lock);
}

void session_started(int effective) {
    set_reserved(effective, true);
}

void session_ended(int effective) {
    set_reserved(effective, false);
}

void session_notify(int effective, remote_rpc_status_flags_t status) {
    pthread_mutex_lock(&lock);
    struct notification *n = settings[effective].notifications;
    pthread_mutex_unlock(&lock);
    for (; n; n = n->next) {
        n->fn(n->context, effective % N_DOMAINS, effective / N_DOMAINS, status);
    }
}

/* Whether a session runs; what it was started with cannot be changed then. */
static bool is_open(int effective) {
    int aee = 0;
    struct pd *pd = domain_exists(effective) ? pd_get(effective, false, &aee) : NULL;
    bool open = pd && !pd_is_dead(pd);
    if (pd) {
        pd_put(pd);
    }
    return open;
}

/* fn for one domain, or for all of them where `domain` is -1; stops at the first that fails. */
static int each(int domain, int (*fn)(int effective, const void *data, const char *who), const void *data,
                const char *who) {
    if (domain != -1) {
        return domain_check(domain, who) < 0 ? AEE_EBADPARM : fn(domain, data, who);
    }
    int aee = AEE_SUCCESS;
    for (int i = 0; i < N_EFFECTIVE && !aee; i++) {
        aee = fn(i, data, who);
    }
    return aee;
}

static int set_thread(int effective, const void *data, const char *who) {
    const struct remote_rpc_thread_params *p = data;
    if (p->prio != -1 && (p->prio < 1 || p->prio > 255)) {
        return fail(AEE_EBADPARM, who, "a thread priority of %d: they are 1 to 255", p->prio);
    }
    if (p->stack_size != -1 && (p->stack_size < MIN_STACK || p->stack_size > MAX_STACK)) {
        return fail(AEE_EBADPARM, who, "a stack of %d bytes: %d to %d are possible", p->stack_size, MIN_STACK,
                    MAX_STACK);
    }
    pthread_mutex_lock(&lock);
    struct setting *s = &settings[effective];
    s->priority = p->prio == -1 ? s->priority : p->prio;
    s->stack_bytes = p->stack_size == -1 ? s->stack_bytes : p->stack_size;
    pthread_mutex_unlock(&lock);
    int aee = 0;
    struct pd *pd = p->stack_size != -1 && domain_exists(effective) ? pd_get(effective, false, &aee) : NULL;
    if (pd) {
        struct fr_ctl ctl = {.kind = FR_STACK, .bytes = (uint64_t) p->stack_size};
        pd_control(pd, &ctl, -1);
        pd_put(pd);
    }
    return AEE_SUCCESS;
}

static int thread_params(const struct remote_rpc_thread_params *p, const char *who) {
    return each(p->domain, set_thread, p, who);
}

static int relative_priority(const struct remote_rpc_relative_thread_priority *p, const char *who) {
    int64_t wanted = DEFAULT_PRIORITY + (int64_t) p->relative_thread_priority;
    int priority = (int) (wanted < 1 ? 1 : wanted > 255 ? 255 : wanted);
    struct remote_rpc_thread_params as = {.domain = p->domain, .prio = priority, .stack_size = -1};
    return thread_params(&as, who);
}

static int set_unsigned(int effective, const void *data, const char *who) {
    const struct remote_rpc_control_unsigned_module *p = data;
    bool want = p->enable, open = is_open(effective);
    pthread_mutex_lock(&lock);
    bool differs = settings[effective].is_unsigned != want;
    if (!open) {
        settings[effective].is_unsigned = want;
    }
    pthread_mutex_unlock(&lock);
    return open && differs
               ? fail(AEE_EALREADYLOADED, who, "domain %d has an open session: ask for an %s module before it",
                      effective, want ? "unsigned" : "signed")
               : AEE_SUCCESS;
}

static int set_dump(int effective, const void *data, const char *who) {
    (void) data; /* a crash leaves the host's core dump, or none */
    return is_open(effective) ? fail(AEE_ERPC, who, "domain %d has an open session: ask for dumps before it", effective)
                              : AEE_SUCCESS;
}

static int set_initial_memory(int effective, const void *data, const char *who) {
    const struct remote_rpc_pd_initmem_size *p = data;
    pthread_mutex_lock(&lock);
    bool is_unsigned = settings[effective].is_unsigned;
    pthread_mutex_unlock(&lock);
    if (is_unsigned && p->domain != -1) {
        return fail(AEE_EUNSUPPORTED, who, "unsigned sessions have a fixed initial memory");
    }
    return p->pd_initmem_size < (3u << 20) || p->pd_initmem_size > (200u << 20)
               ? fail(AEE_EBADPARM, who, "an initial memory of %u bytes: 3 to 200 MiB are possible", p->pd_initmem_size)
               : AEE_SUCCESS;
}

static int add_notification(int effective, const void *data, const char *who) {
    (void) who;
    const remote_rpc_notif_register_t *p = data;
    struct notification *n = malloc(sizeof *n);
    if (!n) {
        return AEE_ENOMEMORY;
    }
    pthread_mutex_lock(&lock);
    *n = (struct notification){settings[effective].notifications, p->notifier_fn, p->context};
    settings[effective].notifications = n;
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

static int process_type(struct remote_process_type *p, const char *who) {
    if (domain_check(p->domain, who) < 0) {
        return AEE_EBADPARM;
    }
    pthread_mutex_lock(&lock);
    p->process_type = settings[p->domain].is_unsigned ? PROCESS_TYPE_UNSIGNED : PROCESS_TYPE_SIGNED;
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

/* Ends a session; its handles stay to be closed where `handles_too` is false. */
static int end_session(int effective, enum pd_end why, bool handles_too) {
    int aee = 0;
    struct pd *pd = domain_exists(effective) ? pd_get(effective, false, &aee) : NULL;
    if (!pd) {
        return AEE_ERPC;
    }
    pd_finish(pd, why);
    if (handles_too) {
        handles_drop(pd);
    }
    pd_put(pd);
    return AEE_SUCCESS;
}

static int kill_process(const struct remote_rpc_process_clean_params *p, const char *who) {
    if (domain_check(p->domain, who) < 0) {
        return AEE_EBADPARM;
    }
    int aee = end_session(p->domain, PD_KILLED, false);
    return aee ? fail(aee, who, "domain %d has no open session to kill", p->domain) : AEE_SUCCESS;
}

static int close_session(int effective, const void *data, const char *who) {
    const struct remote_rpc_session_close *p = data;
    int aee = end_session(effective, PD_CLOSED, true);
    return aee && p->domain != -1 ? fail(aee, who, "domain %d has no open session to close", effective) : AEE_SUCCESS;
}

static int exception(const remote_rpc_process_exception *p, const char *who) {
    int aee = 0;
    struct pd *pd = domain_exists(p->domain) ? pd_get(p->domain, false, &aee) : NULL;
    if (!pd) {
        return fail(AEE_EBADPARM, who, "domain %d has no open session", p->domain);
    }
    pthread_mutex_lock(&pd->death_lock);
    bool lives = !pd->reaped && !kill(pd->pid, SIGABRT);
    pthread_mutex_unlock(&pd->death_lock);
    pd_put(pd);
    return lives ? AEE_SUCCESS : AEE_ERPC;
}

/* An NPU by its name; -1 after a line. */
static int named(const char *name, uint32_t n, const char *who) {
    int domain = name && n ? domain_of_name(name, strnlen(name, n)) : -1;
    if (domain < 0) {
        fail(AEE_EBADPARM, who, "no DSP is called %.*s", name ? (int) n : 6, name ? name : "(null)");
    }
    return domain;
}

static int reserve(remote_rpc_reserve_new_session_t *p, const char *who) {
    int domain = p->session_name && p->session_name_len ? named(p->domain_name, p->domain_name_len, who) : -1;
    if (domain < 0) {
        return AEE_EBADPARM;
    }
    int session = 1;
    pthread_mutex_lock(&lock);
    while (session < N_SESSIONS && settings[domain + session * N_DOMAINS].reserved) {
        session++;
    }
    bool found = session < N_SESSIONS;
    if (found) {
        settings[domain + session * N_DOMAINS].reserved = true;
    }
    pthread_mutex_unlock(&lock);
    p->session_id = (uint32_t) session;
    p->effective_domain_id = (uint32_t) (found ? domain + session * N_DOMAINS : N_EFFECTIVE);
    return found ? AEE_SUCCESS
                 : fail(AEE_ENOSESSION, who, "sessions 1 to %d of %.*s are taken: close one", N_SESSIONS - 1,
                        (int) p->domain_name_len, p->domain_name);
}

static int effective_id(remote_rpc_effective_domain_id_t *p, const char *who) {
    int domain = named(p->domain_name, p->domain_name_len, who);
    if (domain < 0 || p->session_id >= N_SESSIONS) {
        return domain < 0 ? AEE_EBADPARM
                          : fail(AEE_EBADPARM, who, "no session %u; they are 0 to %d", p->session_id, N_SESSIONS - 1);
    }
    p->effective_domain_id = (uint32_t) domain + p->session_id * N_DOMAINS;
    return AEE_SUCCESS;
}

static int get_uri(remote_rpc_get_uri_t *p, const char *who) {
    int domain = named(p->domain_name, p->domain_name_len, who);
    if (domain < 0) {
        return AEE_EBADPARM;
    }
    if (p->session_id >= N_SESSIONS || !p->module_uri || !p->module_uri_len || !p->uri ||
        p->uri_len <= p->module_uri_len) {
        return fail(AEE_EBADPARM, who, "session %u (of 0 to %d), a module URI of %u bytes and room for %u",
                    p->session_id, N_SESSIONS - 1, p->module_uri_len, p->uri_len);
    }
    int n = snprintf(p->uri, p->uri_len, "%.*s&_dom=%.*s&_session=%u", (int) p->module_uri_len, p->module_uri,
                     (int) p->domain_name_len, p->domain_name, p->session_id);
    return n >= (int) p->uri_len
               ? fail(AEE_EBADSIZE, who, "the URI has %d bytes and its zero, the room is %u", n, p->uri_len)
               : AEE_SUCCESS;
}

static uint32_t bytes_of(uint32_t request) {
    switch (request) {
    case FASTRPC_THREAD_PARAMS: return sizeof(struct remote_rpc_thread_params);
    case DSPRPC_CONTROL_UNSIGNED_MODULE: return sizeof(struct remote_rpc_control_unsigned_module);
    case FASTRPC_RELATIVE_THREAD_PRIORITY: return sizeof(struct remote_rpc_relative_thread_priority);
    case FASTRPC_REMOTE_PROCESS_KILL: return sizeof(struct remote_rpc_process_clean_params);
    case FASTRPC_SESSION_CLOSE: return sizeof(struct remote_rpc_session_close);
    case FASTRPC_CONTROL_PD_DUMP: return sizeof(struct remote_rpc_control_pd_dump);
    case FASTRPC_REMOTE_PROCESS_EXCEPTION: return sizeof(remote_rpc_process_exception);
    case FASTRPC_REMOTE_PROCESS_TYPE: return sizeof(struct remote_process_type);
    case FASTRPC_REGISTER_STATUS_NOTIFICATIONS: return sizeof(remote_rpc_notif_register_t);
    case FASTRPC_PD_INITMEM_SIZE: return sizeof(struct remote_rpc_pd_initmem_size);
    case FASTRPC_RESERVE_NEW_SESSION: return sizeof(remote_rpc_reserve_new_session_t);
    case FASTRPC_GET_EFFECTIVE_DOMAIN_ID: return sizeof(remote_rpc_effective_domain_id_t);
    case FASTRPC_GET_URI: return sizeof(remote_rpc_get_uri_t);
    case FASTRPC_MAX_THREAD_PARAM: return sizeof(struct remote_rpc_set_max_thread);
    case FASTRPC_CONTEXT_CREATE: return sizeof(fastrpc_context_create);
    case FASTRPC_CONTEXT_DESTROY: return sizeof(fastrpc_context_destroy);
    default: return 0;
    }
}

static int notification(const remote_rpc_notif_register_t *p, const char *who) {
    return p->notifier_fn ? each(p->domain, add_notification, p, who) : fail(AEE_EBADPARM, who, "the function is NULL");
}

static int max_threads(const struct remote_rpc_set_max_thread *p, const char *who) {
    return p->max_num_threads >= 128 && p->max_num_threads <= 256
               ? AEE_SUCCESS
               : fail(AEE_EBADPARM, who, "%u threads: 128 to 256 are possible", p->max_num_threads);
}

FR_EXPORT int remote_session_control(uint32_t req, void *data, uint32_t datalen) {
    const char *who = __func__;
    uint32_t need = bytes_of(req);
    if (!need) {
        return fail(AEE_EUNSUPPORTED, who, "request %u is not emulated: see enum session_control_req_id", req);
    }
    if (!data || datalen != need) {
        return fail(AEE_EBADPARM, who, "request %u takes a structure of %u bytes, not %u at %p", req, need, datalen,
                    data);
    }
    switch (req) {
    case FASTRPC_THREAD_PARAMS: return thread_params(data, who);
    case DSPRPC_CONTROL_UNSIGNED_MODULE: return each(*(int *) data, set_unsigned, data, who);
    case FASTRPC_RELATIVE_THREAD_PRIORITY: return relative_priority(data, who);
    case FASTRPC_REMOTE_PROCESS_KILL: return kill_process(data, who);
    case FASTRPC_SESSION_CLOSE: return each(*(int *) data, close_session, data, who);
    case FASTRPC_CONTROL_PD_DUMP: return each(*(int *) data, set_dump, data, who);
    case FASTRPC_REMOTE_PROCESS_EXCEPTION: return exception(data, who);
    case FASTRPC_REMOTE_PROCESS_TYPE: return process_type(data, who);
    case FASTRPC_REGISTER_STATUS_NOTIFICATIONS: return notification(data, who);
    case FASTRPC_PD_INITMEM_SIZE: return each(*(int *) data, set_initial_memory, data, who);
    case FASTRPC_RESERVE_NEW_SESSION: return reserve(data, who);
    case FASTRPC_GET_EFFECTIVE_DOMAIN_ID: return effective_id(data, who);
    case FASTRPC_GET_URI: return get_uri(data, who);
    case FASTRPC_CONTEXT_CREATE: return context_create(data);
    case FASTRPC_CONTEXT_DESTROY: return context_destroy(((fastrpc_context_destroy *) data)->ctx);
    default: return max_threads(data, who);
    }
}
