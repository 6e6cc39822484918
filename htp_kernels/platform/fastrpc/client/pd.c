/* Sessions: the table of protection domains, their users, their control messages and their end. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define PATIENCE_S 2 /* for a domain that was asked to end; then it is killed */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pd *table[N_EFFECTIVE]; /* each holds a reference */
static struct pd *all;                /* also those that ended and still have users */
static uint64_t last_serial;

static void free_pd(struct pd *pd) {
    if (pd->shared) {
        munmap(pd->shared, sizeof *pd->shared);
    }
    if (pd->socket >= 0) {
        close(pd->socket);
    }
    slots_free(pd);
    maps_free(pd);
    pthread_mutex_destroy(&pd->control_lock);
    pthread_mutex_destroy(&pd->slot_lock);
    pthread_mutex_destroy(&pd->death_lock);
    pthread_mutex_destroy(&pd->map_lock);
    pthread_cond_destroy(&pd->slot_free);
    pthread_cond_destroy(&pd->gone);
    free(pd);
}

/* The table's lock is held. */
static void drop(struct pd *pd) {
    if (--pd->refs) {
        return;
    }
    struct pd **at = &all;
    while (*at != pd) {
        at = &(*at)->next;
    }
    *at = pd->next;
    free_pd(pd);
}

void pd_put(struct pd *pd) {
    pthread_mutex_lock(&table_lock);
    drop(pd);
    pthread_mutex_unlock(&table_lock);
}

static struct pd *new_pd(int effective) {
    struct pd *pd = calloc(1, sizeof *pd);
    if (!pd) {
        return NULL;
    }
    pd->domain = effective;
    pd->serial = ++last_serial;
    pd->socket = -1;
    for (uint32_t i = 0; i < FR_SLOTS; i++) {
        pd->flights[i].memfd = -1;
    }
    pthread_mutex_init(&pd->control_lock, NULL);
    pthread_mutex_init(&pd->slot_lock, NULL);
    pthread_mutex_init(&pd->death_lock, NULL);
    pthread_mutex_init(&pd->map_lock, NULL);
    pthread_cond_init(&pd->slot_free, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&pd->gone, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pd->next = all;
    all = pd;
    return pd;
}

static struct pd *start(int effective, int *aee) {
    static pthread_once_t checked = PTHREAD_ONCE_INIT;
    pthread_once(&checked, settings_check);
    struct pd *pd = new_pd(effective);
    if (!pd) {
        *aee = AEE_ENOMEMORY;
        return NULL;
    }
    pd->refs = 2; /* the table's and the watching thread's */
    if (!pd_spawn(pd)) {
        pd->refs = 1;
        drop(pd);
        *aee = AEE_ECONNREFUSED;
        return NULL;
    }
    pd_watch(pd);
    struct fr_ctl ctl = {.kind = FR_STACK, .bytes = session_stack_bytes(effective)};
    if (ctl.bytes) {
        pd_control(pd, &ctl, -1);
    }
    table[effective] = pd;
    session_started(effective);
    atomic_fetch_add(&fr_counters()->sessions, 1);
    return pd;
}

static struct pd *get(int effective, bool start_it, bool as_user, int *aee) {
    bool started = false;
    if (!domain_exists(effective)) {
        *aee = fail(AEE_ECONNREFUSED, "session",
                    "domain %d is not on this machine, which has %d NPU(s) from domain %d: see "
                    "`hexnpu emulate --npus`",
                    effective, npus(), FIRST_NPU);
        return NULL;
    }
    pthread_mutex_lock(&table_lock);
    struct pd *pd = table[effective];
    if (pd && start_it && atomic_load(&pd->dead)) {
        table[effective] = NULL;
        drop(pd);
        pd = NULL;
    }
    if (!pd && start_it) {
        pd = start(effective, aee);
        started = pd != NULL;
    }
    if (pd) {
        pd->refs++;
        pd->users += as_user;
    }
    pthread_mutex_unlock(&table_lock);
    if (started) {
        session_notify(effective, FASTRPC_USER_PD_UP);
    }
    return pd;
}

struct pd *pd_get(int effective, bool start_it, int *aee) {
    return get(effective, start_it, false, aee);
}

struct pd *pd_for_domain(int effective_domain, int *aee) {
    return get(effective_domain, true, true, aee);
}

static void release(struct pd *pd, bool even_with_maps) {
    pthread_mutex_lock(&table_lock);
    bool last = --pd->users == 0 && (even_with_maps || !maps_count(pd));
    if (last && table[pd->domain] == pd) {
        table[pd->domain] = NULL;
        pd->refs--; /* at least this user's is left */
    }
    pthread_mutex_unlock(&table_lock);
    if (last) {
        pd_finish(pd, PD_CLOSED);
    }
    pd_put(pd);
}

void pd_release(struct pd *pd) {
    release(pd, true);
}

void pd_release_unused(struct pd *pd) {
    release(pd, false);
}

bool pd_is_dead(struct pd *pd) {
    return atomic_load(&pd->dead);
}

void pd_finish(struct pd *pd, enum pd_end why) {
    int lives = PD_LIVES;
    atomic_compare_exchange_strong(&pd->end, &lives, why);
    pthread_mutex_lock(&table_lock);
    if (table[pd->domain] == pd) {
        table[pd->domain] = NULL;
        pd->refs--;
    }
    if (!pd->left && !table[pd->domain]) { /* else the number is another's by now */
        session_ended(pd->domain);
    }
    pd->left = true;
    pthread_mutex_unlock(&table_lock);
    shutdown(pd->socket, SHUT_WR);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&pd->death_lock);
    if (why == PD_KILLED && !pd->reaped) {
        kill(pd->pid, SIGKILL);
    }
    while (!pd->reaped) {
        if (pthread_cond_timedwait(&pd->gone, &pd->death_lock, &until) == ETIMEDOUT) {
            kill(pd->pid, SIGKILL);
            until.tv_sec += PATIENCE_S;
        }
    }
    pthread_mutex_unlock(&pd->death_lock);
}

int pd_death_code(struct pd *pd, bool in_work) {
    bool fault = atomic_load(&pd->end) == PD_FAULT;
    return in_work && fault ? (int) (DSP_AEE_EOFFSET + AEE_EBADSTATE) : AEE_ECONNRESET;
}

void pd_on_death(struct pd *pd, void (*fn)(void *ctx), void *ctx) {
    struct watcher *w = malloc(sizeof *w);
    pthread_mutex_lock(&pd->death_lock);
    bool gone = pd->reaped;
    if (w && !gone) {
        *w = (struct watcher){pd->watchers, fn, ctx};
        pd->watchers = w;
        w = NULL;
    }
    pthread_mutex_unlock(&pd->death_lock);
    free(w);
    if (gone) {
        fn(ctx);
    }
}

void pd_off_death(struct pd *pd, void (*fn)(void *ctx), void *ctx) {
    pthread_mutex_lock(&pd->death_lock);
    struct watcher **at = &pd->watchers;
    while (*at && ((*at)->fn != fn || (*at)->ctx != ctx)) {
        at = &(*at)->next;
    }
    struct watcher *w = *at;
    if (w) {
        *at = w->next;
    }
    pthread_mutex_unlock(&pd->death_lock);
    free(w);
}

static bool send_control(struct pd *pd, const struct fr_ctl *ctl, int fd) {
    struct iovec iov = {(void *) (uintptr_t) ctl, sizeof *ctl};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    if (fd >= 0) {
        msg.msg_control = control.room;
        msg.msg_controllen = sizeof control.room;
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
    }
    ssize_t n;
    do {
        n = sendmsg(pd->socket, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == sizeof *ctl;
}

static bool receive_control(struct pd *pd, struct fr_ctl *ctl) {
    ssize_t n;
    do {
        n = recv(pd->socket, ctl, sizeof *ctl, 0);
    } while (n < 0 && errno == EINTR);
    return n == sizeof *ctl;
}

/* Its socket is closed: it has ended, or is about to be buried. After this pd_is_dead() says so, too. */
static void await_end(struct pd *pd) {
    pthread_mutex_lock(&pd->death_lock);
    while (!pd->reaped) {
        pthread_cond_wait(&pd->gone, &pd->death_lock);
    }
    pthread_mutex_unlock(&pd->death_lock);
}

int pd_control(struct pd *pd, struct fr_ctl *ctl, int fd) {
    pthread_mutex_lock(&pd->control_lock);
    bool ok = !pd_is_dead(pd) && send_control(pd, ctl, fd) && receive_control(pd, ctl);
    pthread_mutex_unlock(&pd->control_lock);
    if (!ok) {
        await_end(pd);
    }
    return ok ? ctl->status : AEE_ECONNRESET;
}

uint64_t pd_share(struct pd *pd, int memfd, uint64_t bytes) {
    uint64_t id = atomic_fetch_add(&pd->next_region, 1) + 1;
    struct fr_ctl ctl = {.kind = FR_SHARE, .id = id, .bytes = bytes};
    return pd_control(pd, &ctl, memfd) ? 0 : id;
}

void pd_unshare(struct pd *pd, uint64_t id) {
    struct fr_ctl ctl = {.kind = FR_UNSHARE, .id = id};
    pd_control(pd, &ctl, -1);
}

/* At the host program's end, so that nothing of it is left once it is gone. */
__attribute__((destructor)) static void finish_all(void) {
    for (int i = 0; i < N_EFFECTIVE; i++) {
        pthread_mutex_lock(&table_lock);
        struct pd *pd = table[i];
        if (pd) {
            pd->refs++;
        }
        pthread_mutex_unlock(&table_lock);
        if (pd) {
            pd_finish(pd, PD_CLOSED);
            pd_put(pd);
        }
    }
}

void pd_fork_lock(void) {
    pthread_mutex_lock(&table_lock);
}

void pd_fork_unlock(void) {
    pthread_mutex_unlock(&table_lock);
}

/* The sessions are the parent's. What is left of them here says that they are gone. */
void pd_fork_child(void) {
    for (struct pd *pd = all; pd; pd = pd->next) {
        close(pd->socket);
        pd->socket = -1;
        munmap(pd->shared, sizeof *pd->shared);
        pd->shared = NULL;
        pd->reaped = true;
        atomic_store(&pd->end, PD_CLOSED);
        atomic_store(&pd->dead, true);
    }
    memset(table, 0, sizeof table);
    pthread_mutex_init(&table_lock, NULL);
}
