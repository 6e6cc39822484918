/*
 * FastRPC between a host program and the DSP: handles to modules, invocations, control requests, mappings of shared
 * buffers. Names, values and layout are those of libcdsprpc.so. `domain` is a DSP, or a session on it (an effective
 * domain); every function gives 0 or a code of AEEStdErr.h.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Annotations that generated code uses; they say nothing to these compilers. */
#ifndef __QAIC_REMOTE
#define __QAIC_REMOTE(ff) ff
#endif
#ifndef __QAIC_REMOTE_EXPORT
#define __QAIC_REMOTE_EXPORT
#endif
#ifndef __QAIC_REMOTE_ATTRIBUTE
#define __QAIC_REMOTE_ATTRIBUTE
#endif
#ifndef __QAIC_RETURN
#define __QAIC_RETURN
#endif
#ifndef __QAIC_IN
#define __QAIC_IN
#endif
#ifndef __QAIC_IN_CHAR
#define __QAIC_IN_CHAR
#endif
#ifndef __QAIC_IN_LEN
#define __QAIC_IN_LEN(len)
#endif
#ifndef __QAIC_OUT
#define __QAIC_OUT
#endif
#ifndef __QAIC_INT64PTR
#define __QAIC_INT64PTR uint64_t
#endif

/* Scalars of a call: attribute 31..29, method 28..24, in buffers 23..16, out buffers 15..8, in handles 7..4, out
 * handles 3..0. */
#define REMOTE_SCALARS_METHOD_ATTR(dwScalars) (((dwScalars) >> 29) & 0x7)
#define REMOTE_SCALARS_METHOD(dwScalars) (((dwScalars) >> 24) & 0x1f)
#define REMOTE_SCALARS_INBUFS(dwScalars) (((dwScalars) >> 16) & 0x0ff)
#define REMOTE_SCALARS_OUTBUFS(dwScalars) (((dwScalars) >> 8) & 0x0ff)
#define REMOTE_SCALARS_INHANDLES(dwScalars) (((dwScalars) >> 4) & 0x0f)
#define REMOTE_SCALARS_OUTHANDLES(dwScalars) ((dwScalars) & 0x0f)
#define REMOTE_SCALARS_MAKEX(nAttr, nMethod, nIn, nOut, noIn, noOut)                                                   \
    ((((uint32_t) (nAttr) & 0x7) << 29) | (((uint32_t) (nMethod) & 0x1f) << 24) | (((uint32_t) (nIn) & 0xff) << 16) |  \
     (((uint32_t) (nOut) & 0xff) << 8) | (((uint32_t) (noIn) & 0x0f) << 4) | ((uint32_t) (noOut) & 0x0f))
#define REMOTE_SCALARS_MAKE(nMethod, nIn, nOut) REMOTE_SCALARS_MAKEX(0, nMethod, nIn, nOut, 0, 0)
#define REMOTE_SCALARS_LENGTH(sc)                                                                                      \
    (REMOTE_SCALARS_INBUFS(sc) + REMOTE_SCALARS_OUTBUFS(sc) + REMOTE_SCALARS_INHANDLES(sc) +                           \
     REMOTE_SCALARS_OUTHANDLES(sc))

#define ADSP_DOMAIN_ID 0
#define MDSP_DOMAIN_ID 1
#define SDSP_DOMAIN_ID 2
#define CDSP_DOMAIN_ID 3
#define CDSP1_DOMAIN_ID 4

#define ADSP_DOMAIN_NAME "adsp"
#define MDSP_DOMAIN_NAME "mdsp"
#define SDSP_DOMAIN_NAME "sdsp"
#define CDSP_DOMAIN_NAME "cdsp"
#define CDSP1_DOMAIN_NAME "cdsp1"
#define GDSP0_DOMAIN_NAME "gdsp0"
#define GDSP1_DOMAIN_NAME "gdsp1"

/* What a module's URI ends with for each. */
#define ADSP_DOMAIN "&_dom=adsp"
#define MDSP_DOMAIN "&_dom=mdsp"
#define SDSP_DOMAIN "&_dom=sdsp"
#define CDSP_DOMAIN "&_dom=cdsp"
#define CDSP1_DOMAIN "&_dom=cdsp1"
#define GDSP0_DOMAIN "&_dom=gdsp0"
#define GDSP1_DOMAIN "&_dom=gdsp1"

#define ITRANSPORT_PREFIX "'\":;./\\" /* of module names inside the transport */

#define MAX_DOMAIN_URI_SIZE 12
typedef struct domain {
    int id;
    char uri[MAX_DOMAIN_URI_SIZE];
} domain_t;
typedef struct domain domain;

typedef uint32_t remote_handle;
typedef uint64_t remote_handle64;

/* Arguments of a call, in the order in buffers, out buffers, in handles, out handles. */
typedef struct {
    void *pv;
    size_t nLen;
} remote_buf;
typedef struct {
    uint64_t pv;
    int64_t nLen;
} remote_buf64;
typedef struct {
    int32_t fd;
    uint32_t offset;
} remote_dma_handle;
typedef struct {
    int32_t fd;
    uint32_t offset;
    uint32_t len;
} remote_dma_handle64;
typedef union {
    remote_buf buf;
    remote_handle h;
    remote_handle64 h64;
    remote_dma_handle dma;
} remote_arg;
typedef union {
    remote_buf64 buf;
    remote_handle h;
    remote_handle64 h64;
    remote_dma_handle64 dma;
} remote_arg64;

/* Calls that do not wait. */
enum fastrpc_async_notify_type { FASTRPC_ASYNC_NO_SYNC, FASTRPC_ASYNC_CALLBACK, FASTRPC_ASYNC_POLL };
typedef uint64_t fastrpc_async_jobid;
typedef struct fastrpc_async_callback {
    void (*fn)(fastrpc_async_jobid jobid, void *context, int result);
    void *context;
} fastrpc_async_callback_t;
typedef struct fastrpc_async_descriptor {
    enum fastrpc_async_notify_type type;
    fastrpc_async_jobid jobid; /* out */
    fastrpc_async_callback_t cb;
} fastrpc_async_descriptor_t;

/* ---- remote_handle_control(), remote_handle64_control() ---- */

enum handle_control_req_id {
    DSPRPC_RESERVED,
    DSPRPC_CONTROL_LATENCY,  /* struct remote_rpc_control_latency */
    DSPRPC_GET_DSP_INFO,     /* struct remote_dsp_capability */
    DSPRPC_CONTROL_WAKELOCK, /* struct remote_rpc_control_wakelock */
    DSPRPC_GET_DOMAIN,       /* struct remote_rpc_get_domain */
    DSPRPC_SET_PATH,         /* struct remote_control_custom_path */
    DSPRPC_GET_PATH,
    DSPRPC_SMMU_SUPPORT, /* this and what follows is between library and kernel */
    DSPRPC_KALLOC_SUPPORT,
    DSPRPC_PM,
    DSPRPC_RPC_POLL,
    DSPRPC_ASYNC_WAKE,
    DSPRPC_NOTIF_WAKE,
    DSPRPC_REMOTE_PROCESS_KILL,
    DSPRPC_SET_MODE,
};

enum remote_rpc_latency_flags {
    RPC_DISABLE_QOS,
    RPC_PM_QOS,       /* keep the CPU awake */
    RPC_ADAPTIVE_QOS, /* the DSP wakes the CPU ahead of time */
    RPC_POLL_QOS,     /* the CPU polls for up to `latency` microseconds, 10,000 at most */
};
struct remote_rpc_control_latency {
    uint32_t enable; /* enum remote_rpc_latency_flags */
    uint32_t latency;
};

enum remote_dsp_attributes {
    DOMAIN_SUPPORT,
    UNSIGNED_PD_SUPPORT,
    HVX_SUPPORT_64B,  /* number of contexts */
    HVX_SUPPORT_128B,
    VTCM_PAGE,  /* bytes of the largest page */
    VTCM_COUNT, /* number of such pages */
    ARCH_VER,   /* low byte 0x73, 0x75, ... */
    HMX_SUPPORT_DEPTH,
    HMX_SUPPORT_SPATIAL,
    ASYNC_FASTRPC_SUPPORT,
    STATUS_NOTIFICATION_SUPPORT,
    MCID_MULTICAST,
    EXTENDED_MAP_SUPPORT, /* mappings above 4 GiB of the DSP */
    HANDLE_PRIORITY_SUPPORT,
};
typedef struct remote_dsp_capability {
    uint32_t domain;
    uint32_t attribute_ID; /* enum remote_dsp_attributes */
    uint32_t capability;   /* out */
} fastrpc_capability;

#define FASTRPC_WAKELOCK_CONTROL_SUPPORTED 1
struct remote_rpc_control_wakelock {
    uint32_t enable;
};
typedef struct remote_rpc_get_domain {
    int domain; /* out */
} remote_rpc_get_domain_t;
struct remote_control_custom_path {
    int32_t value_size; /* ending zero included */
    const char *path;   /* the key */
    char *value;
};

/* ---- remote_session_control() ---- */

enum session_control_req_id {
    FASTRPC_RESERVED_1,
    FASTRPC_THREAD_PARAMS,          /* struct remote_rpc_thread_params */
    DSPRPC_CONTROL_UNSIGNED_MODULE, /* struct remote_rpc_control_unsigned_module */
    FASTRPC_RESERVED_2,
    FASTRPC_RELATIVE_THREAD_PRIORITY, /* struct remote_rpc_relative_thread_priority */
    FASTRPC_RESERVED_3,
    FASTRPC_REMOTE_PROCESS_KILL,           /* struct remote_rpc_process_clean_params */
    FASTRPC_SESSION_CLOSE,                 /* struct remote_rpc_session_close */
    FASTRPC_CONTROL_PD_DUMP,               /* struct remote_rpc_control_pd_dump */
    FASTRPC_REMOTE_PROCESS_EXCEPTION,      /* remote_rpc_process_exception */
    FASTRPC_REMOTE_PROCESS_TYPE,           /* struct remote_process_type */
    FASTRPC_REGISTER_STATUS_NOTIFICATIONS, /* struct remote_rpc_notif_register */
    FASTRPC_PD_INITMEM_SIZE,               /* struct remote_rpc_pd_initmem_size */
    FASTRPC_RESERVE_NEW_SESSION,           /* struct remote_rpc_reserve_new_session */
    FASTRPC_GET_EFFECTIVE_DOMAIN_ID,       /* struct remote_rpc_effective_domain_id */
    FASTRPC_GET_URI,                       /* struct remote_rpc_get_uri */
    FASTRPC_MAX_THREAD_PARAM,              /* struct remote_rpc_set_max_thread */
    FASTRPC_CONTEXT_CREATE,                /* struct fastrpc_context_create */
    FASTRPC_CONTEXT_DESTROY,               /* struct fastrpc_context_destroy */
};

/* A domain of -1 in these means every domain, -1 elsewhere the default. */
struct remote_rpc_thread_params {
    int domain;
    int prio; /* 1, the most urgent, to 255 */
    int stack_size;
};
struct remote_rpc_control_unsigned_module {
    int domain;
    int enable;
};
struct remote_rpc_relative_thread_priority {
    int domain;
    int relative_thread_priority;
};
struct remote_rpc_process_clean_params {
    int domain;
};
struct remote_rpc_session_close {
    int domain;
};
struct remote_rpc_control_pd_dump {
    int domain;
    int enable;
};
typedef struct remote_rpc_process_clean_params remote_rpc_process_exception;

enum fastrpc_process_type { PROCESS_TYPE_SIGNED, PROCESS_TYPE_UNSIGNED };
struct remote_process_type {
    int domain;
    int process_type; /* out, enum fastrpc_process_type */
};

typedef enum remote_rpc_status_flags {
    FASTRPC_USER_PD_UP,
    FASTRPC_USER_PD_EXIT,
    FASTRPC_USER_PD_FORCE_KILL,
    FASTRPC_USER_PD_EXCEPTION,
    FASTRPC_DSP_SSR, /* the whole DSP started again */
} remote_rpc_status_flags_t;
typedef int (*fastrpc_notif_fn_t)(void *context, int domain, int session, remote_rpc_status_flags_t status);
typedef struct remote_rpc_notif_register {
    void *context;
    int domain;
    fastrpc_notif_fn_t notifier_fn;
} remote_rpc_notif_register_t;

struct remote_rpc_pd_initmem_size {
    int domain;
    uint32_t pd_initmem_size; /* 3 to 200 MiB, signed processes only */
};
struct remote_rpc_set_max_thread {
    int domain;
    unsigned int max_num_threads; /* 128 to 256 */
};

/* Name lengths do not count the ending zero. Session 0 is the default one, reserved ones begin with 1. */
typedef struct remote_rpc_reserve_new_session {
    char *domain_name;
    uint32_t domain_name_len;
    char *session_name;
    uint32_t session_name_len;
    uint32_t effective_domain_id; /* out: stands for domain and session wherever a domain is asked for */
    uint32_t session_id;          /* out */
} remote_rpc_reserve_new_session_t;
typedef struct remote_rpc_effective_domain_id {
    char *domain_name;
    uint32_t domain_name_len;
    uint32_t session_id;
    uint32_t effective_domain_id; /* out */
} remote_rpc_effective_domain_id_t;
typedef struct remote_rpc_get_uri {
    char *domain_name;
    uint32_t domain_name_len;
    uint32_t session_id;
    char *module_uri;
    uint32_t module_uri_len;
    char *uri;        /* out: module, domain and session */
    uint32_t uri_len; /* room; some 30 more than the module's, else AEE_EBADSIZE */
} remote_rpc_get_uri_t;

/* Several domains behind one context. */
typedef struct fastrpc_context_create {
    uint32_t *effec_domain_ids;
    uint32_t num_domain_ids;
    uint64_t flags;
    uint64_t ctx; /* out */
} fastrpc_context_create;
typedef struct fastrpc_context_destroy {
    uint64_t ctx;
    uint64_t flags;
} fastrpc_context_destroy;

/* ---- remote_system_request(): which DSPs there are ---- */

#define MAX_DOMAIN_NAMELEN 30
#define DOMAINS_LIST_FLAGS_TYPE_POS 5
#define DOMAINS_LIST_FLAGS_SET_TYPE(flags, type) ((flags) | ((type) & ((1 << DOMAINS_LIST_FLAGS_TYPE_POS) - 1)))

typedef enum {
    FASTRPC_ALL_DOMAINS,
    FASTRPC_NSP, /* compute DSP: the NPU */
    FASTRPC_LPASS,
    FASTRPC_SDSP,
    FASTRPC_MDSP,
    FASTRPC_HPASS,
} fastrpc_domain_type;
typedef struct {
    int id;
    int instance_id; /* which of its type */
    char name[MAX_DOMAIN_NAMELEN];
    fastrpc_domain_type type;
    int status; /* 0: down */
    uint32_t card;
    uint32_t soc_id;
    uint32_t reserved[10];
} fastrpc_domain;
typedef struct {
    fastrpc_domain *domains; /* NULL: only count */
    int max_domains;         /* room */
    int num_domains;         /* out */
    uint64_t flags;          /* low 5 bits: the type asked for */
} fastrpc_domains_info;
typedef enum { FASTRPC_GET_DOMAINS = 0 } system_req_id;
typedef struct {
    system_req_id id;
    union {
        fastrpc_domains_info sys;
    };
} system_req_payload;

/* ---- mappings ---- */

enum remote_mem_map_flags { REMOTE_MAP_MEM_STATIC };

enum fastrpc_map_flags {
    FASTRPC_MAP_STATIC, /* mapped now, library keeps caches right */
    FASTRPC_MAP_RESERVED,
    FASTRPC_MAP_FD,         /* mapped now, DSP finds it by HAP_mmap_get() */
    FASTRPC_MAP_FD_DELAYED, /* mapped when the DSP calls HAP_mmap() */
    FASTRPC_MAP_RESERVED_4,
    FASTRPC_MAP_RESERVED_5,
    FASTRPC_MAP_RESERVED_6,
    FASTRPC_MAP_RESERVED_7,
    FASTRPC_MAP_RESERVED_8,
    FASTRPC_MAP_RESERVED_9,
    FASTRPC_MAP_RESERVED_10,
    FASTRPC_MAP_RESERVED_11,
    FASTRPC_MAP_RESERVED_12,
    FASTRPC_MAP_RESERVED_13,
    FASTRPC_MAP_RESERVED_14,
    FASTRPC_MAP_RESERVED_15,
    FASTRPC_MAP_FD_NOMAP,            /* as delayed, without a mapping of the host */
    FASTRPC_MAP_FD_EXTENDED,         /* as FD, may lie above 4 GiB of the DSP */
    FASTRPC_MAP_FD_DELAYED_EXTENDED, /* as FD_DELAYED, may lie above 4 GiB of the DSP */
};

/* Attributes of remote_register_buf_attr(). */
#define FASTRPC_ATTR_NONE 0
#define FASTRPC_ATTR_NON_COHERENT 2
#define FASTRPC_ATTR_COHERENT 4
#define FASTRPC_ATTR_KEEP_MAP 8
#define FASTRPC_ATTR_NOMAP 16
#define FASTRPC_ATTR_FORCE_NOFLUSH 32
#define FASTRPC_ATTR_FORCE_NOINVALIDATE 64
#define FASTRPC_ATTR_TRY_MAP_STATIC 128

#define REMOTE_MODE_PARALLEL 0
#define REMOTE_MODE_SERIAL 1

/* ---- functions ---- */

/* name: "file:///libNAME_skel.so?NAME_skel_handle_invoke&_modver=1.0", then &_dom=..., &_session=... */
int remote_handle_open(const char *name, remote_handle *ph);
int remote_handle64_open(const char *name, remote_handle64 *ph);
int remote_handle_invoke(remote_handle h, uint32_t dwScalars, remote_arg *pra);
int remote_handle64_invoke(remote_handle64 h, uint32_t dwScalars, remote_arg *pra);
int remote_handle_close(remote_handle h);
int remote_handle64_close(remote_handle64 h);
int remote_handle_control(uint32_t req, void *data, uint32_t datalen);
int remote_handle64_control(remote_handle64 h, uint32_t req, void *data, uint32_t datalen);
int remote_session_control(uint32_t req, void *data, uint32_t datalen);
int remote_system_request(system_req_payload *req);

int remote_handle_invoke_async(remote_handle h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars, remote_arg *pra);
int remote_handle64_invoke_async(remote_handle64 h, fastrpc_async_descriptor_t *desc, uint32_t dwScalars,
                                 remote_arg *pra);
/* timeout_us 0: do not wait, negative: without end. AEE_EBUSY: not done. */
int fastrpc_async_get_status(fastrpc_async_jobid jobid, int timeout_us, int *result);
int fastrpc_release_async_job(fastrpc_async_jobid jobid);

int fastrpc_mmap(int domain, int fd, void *addr, int offset, size_t length, enum fastrpc_map_flags flags);
int fastrpc_munmap(int domain, int fd, void *addr, size_t length);

/* Ties a file descriptor to a buffer of the caller, so that calls pass it without copies; fd -1 unties. */
void remote_register_buf(void *buf, int size, int fd);
void remote_register_buf_attr(void *buf, int size, int fd, int attr);
void remote_register_buf_attr2(void *buf, size_t size, int fd, int attr);
int remote_register_dma_handle(int fd, uint32_t len);
int remote_register_dma_handle_attr(int fd, uint32_t len, uint32_t attr);
void *remote_register_fd(int fd, int size); /* (void *) -1: failed */
void *remote_register_fd2(int fd, size_t size);

/* Of older programs, which fastrpc_mmap() replaced. */
int remote_mmap(int fd, uint32_t flags, uint32_t vaddrin, int size, uint32_t *vaddrout);
int remote_munmap(uint32_t vaddrout, int size);
int remote_mem_map(int domain, int fd, int flags, uint64_t virtAddr, size_t size, uint64_t *remoteVirtAddr);
int remote_mem_unmap(int domain, uint64_t remoteVirtAddr, size_t size);
int remote_mmap64(int fd, uint32_t flags, __QAIC_INT64PTR vaddrin, int64_t size, __QAIC_INT64PTR *vaddrout);
int remote_munmap64(__QAIC_INT64PTR vaddrout, int64_t size);

#ifdef __cplusplus
}
#endif
