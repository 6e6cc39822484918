/* Between the files of the library; the queue needs client.h alone. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "AEEStdErr.h"
#include "client.h"
#include "remote.h"

#define FIRST_NPU CDSP_DOMAIN_ID
#define MAX_NPUS 4
#define N_DOMAINS 8  /* DSPs a number of a session can tell apart */
#define N_SESSIONS 4 /* of each */
#define N_EFFECTIVE (N_DOMAINS * N_SESSIONS)

/* ---- domains.c ---- */
int npus(void);
void settings_check(void); /* a line for each number of the environment that is none */
const char *domain_name(int domain);                   /* of an NPU of this machine, else NULL */
int domain_of_name(const char *name, size_t n);        /* -1: no DSP has this name */
bool domain_exists(int effective);                     /* an NPU of this machine, and a session it can have */
int domain_or_default(int effective, const char *who); /* -1 becomes the first NPU; then as domain_check() */
int domain_check(int effective, const char *who);      /* gives the domain, or -1 after a line that says why */
int domain_control(int effective, uint32_t request, void *data, uint32_t bytes, const char *who);

/* A line `who: ...`, and the code. */
int fail(int aee, const char *who, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* ---- pd.c: a session's process ---- */
enum pd_end { PD_LIVES, PD_CLOSED, PD_KILLED, PD_FAULT };

/* A mapping that fastrpc_mmap() or one of its elders made. */
struct map {
    struct map *next;
    int fd;
    void *address;
    uint64_t bytes, region, there; /* `there`: the domain's address, 0: none yet */
    int refs;
};

/* What a slot's client side knows: the call in work, and memory for buffers that do not fit into the slot. */
struct flight {
    const char *module;
    uint32_t method;
    bool busy;
    int memfd;
    void *spill;
    uint64_t spill_bytes, spill_region;
};

struct watcher {
    struct watcher *next;
    void (*fn)(void *);
    void *ctx;
};

struct pd {
    struct pd *next; /* of all that live in this process */
    int domain;      /* the effective one */
    uint64_t serial; /* no two of a process are the same */
    int refs;        /* pointers to it; under the table's lock, as `users` */
    int users;       /* handles and queues; the last one that goes ends it */
    bool left;       /* it has given its session's number back */
    pid_t pid;
    int socket;
    struct fr_shared *shared;
    _Atomic bool dead;
    _Atomic int end; /* enum pd_end: why */

    pthread_mutex_t control_lock;

    pthread_mutex_t slot_lock;
    pthread_cond_t slot_free;
    uint64_t busy, workers; /* a bit a slot */
    struct flight flights[FR_SLOTS];

    pthread_mutex_t death_lock; /* also held while watchers are called */
    pthread_cond_t gone;
    bool reaped;
    struct watcher *watchers;

    pthread_mutex_t map_lock;
    struct map *maps;
    _Atomic uint64_t next_region;
};

/* As pd_for_domain() without being a user; NULL also where `start` is false and there is none. pd_put() after it. */
struct pd *pd_get(int effective, bool start, int *aee);
void pd_put(struct pd *pd);
/* As pd_release(), where a session with mappings stays: after an open that failed. */
void pd_release_unused(struct pd *pd);
/* Ends it, whatever its users hope, and waits until it is gone. */
void pd_finish(struct pd *pd, enum pd_end why);
/* One control message and its answer: the answer's AEE code, AEE_ECONNRESET where the domain is gone. */
int pd_control(struct pd *pd, struct fr_ctl *ctl, int fd);
/* The code for a call that could not be made, or was in work (in_work) when the domain ended. */
int pd_death_code(struct pd *pd, bool in_work);
/* Before fork(), and after it on either side. */
void pd_fork_lock(void);
void pd_fork_unlock(void);
void pd_fork_child(void);

/* ---- spawn.c ---- */
bool pd_spawn(struct pd *pd);
void pd_watch(struct pd *pd); /* starts the thread that sees it end */

/* ---- slots.c ---- */
/* Runs what is in the slot: FR_CALL, FR_OPEN or FR_CLOSE. AEE code of the transport; the result is in the slot. */
struct fr_slot *slot_take(struct pd *pd, const char *module, uint32_t method, int *aee);
int slot_run(struct pd *pd, struct fr_slot *slot);
void slot_give(struct pd *pd, struct fr_slot *slot);
/* Memory of at least `bytes` for the slot's buffers outside of it; false: none. */
bool slot_spill(struct pd *pd, struct fr_slot *slot, uint64_t bytes, uint8_t **at, uint64_t *region);
void slots_free(struct pd *pd);

/* ---- library.c ---- */
struct module_uri {
    char file[FR_PATH_BYTES], symbol[256];
    int domain; /* the effective one; -1: not said */
};
/* Each gives an AEE code, after a line. */
int uri_parse(const char *uri, struct module_uri *out, const char *who);
int library_find(const char *file, char path[FR_PATH_BYTES], const char *who);

/* ---- handles.c ---- */
void handles_drop(struct pd *pd); /* of a session that was closed */

/* ---- memory.c ---- */
/* Where [p, p + bytes) lies in a registered buffer: its region in the domain and the offset in it; false: nowhere. */
bool buffer_reference(struct pd *pd, const void *p, uint64_t bytes, uint64_t *region, uint64_t *offset);
void buffers_fork_lock(void);
void buffers_fork_unlock(void);

/* ---- map.c ---- */
void maps_free(struct pd *pd);
uint64_t maps_count(struct pd *pd);

/* ---- session.c ---- */
uint64_t session_stack_bytes(int effective); /* as asked for; 0: not asked */
/* Whose numbers FASTRPC_RESERVE_NEW_SESSION does not give. */
void session_started(int effective);
void session_ended(int effective);
void session_notify(int effective, remote_rpc_status_flags_t status);
