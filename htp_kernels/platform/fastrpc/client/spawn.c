/* Starts a protection domain's process, and sees it end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../include/htp-signal.h"
#include "internal.h"

#define START_MS 60000 /* a domain under an emulator of processors takes its time */
#define FIRST_SAFE_FD 10

extern char **environ;

/* Beside the library, unless HEXNPU_EMU_PD says where. */
static bool program_path(char path[FR_PATH_BYTES]) {
    const char *own = getenv("HEXNPU_EMU_PD");
    Dl_info info;
    if (own && *own) {
        return snprintf(path, FR_PATH_BYTES, "%s", own) < (int) FR_PATH_BYTES;
    }
    if (!dladdr((void *) (uintptr_t) pd_spawn, &info) || !info.dli_fname) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int n = slash ? (int) (slash - info.dli_fname) : 1;
    return snprintf(path, FR_PATH_BYTES, "%.*s/htp-pd", n, slash ? info.dli_fname : ".") < (int) FR_PATH_BYTES;
}

/* The same file under a number that the child's first ones do not meet. */
static int move_up(int fd) {
    int moved = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, FIRST_SAFE_FD);
    if (fd >= 0) {
        close(fd);
    }
    return moved;
}

static int spawn(struct pd *pd, const char *path, int socket, int shared) {
    char name[64];
    snprintf(name, sizeof name, "%s/%d", domain_name(pd->domain % N_DOMAINS), pd->domain / N_DOMAINS);
    char program[] = "htp-pd";
    char *argv[] = {program, name, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, every;
    sigemptyset(&none);
    sigfillset(&every);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, socket, FR_SOCKET_FD);
    posix_spawn_file_actions_adddup2(&actions, shared, FR_SHARED_FD);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &every);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int wrong = posix_spawn(&pd->pid, path, &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return wrong;
}

static bool wait_ready(struct pd *pd) {
    struct pollfd p = {.fd = pd->socket, .events = POLLIN};
    struct fr_ctl ctl;
    int n;
    do {
        n = poll(&p, 1, START_MS);
    } while (n < 0 && errno == EINTR);
    return n == 1 && recv(pd->socket, &ctl, sizeof ctl, MSG_DONTWAIT) == sizeof ctl && ctl.kind == FR_READY &&
           !ctl.status;
}

static bool share_slots(struct pd *pd, int *fd) {
    *fd = move_up(memfd_create("fastrpc-slots", MFD_CLOEXEC));
    if (*fd < 0 || ftruncate(*fd, sizeof *pd->shared)) {
        return false;
    }
    void *p = mmap(NULL, sizeof *pd->shared, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    pd->shared = p == MAP_FAILED ? NULL : p;
    return pd->shared;
}

bool pd_spawn(struct pd *pd) {
    char path[FR_PATH_BYTES];
    int fds[2] = {-1, -1}, shared = -1, wrong = 0;
    if (!program_path(path) || access(path, X_OK)) {
        fail(AEE_ECONNREFUSED, "session",
             "no program htp-pd at %s: it stands beside libcdsprpc.so as `hexnpu emulate` builds "
             "them; HEXNPU_EMU_PD may name another",
             path);
        return false;
    }
    bool ok = !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) && share_slots(pd, &shared);
    int theirs = move_up(fds[1]);
    pd->socket = fds[0];
    if (ok && theirs >= 0) {
        wrong = spawn(pd, path, theirs, shared);
    } else {
        wrong = errno;
    }
    close(theirs);
    close(shared);
    if (wrong) {
        fail(AEE_ECONNREFUSED, "session", "cannot start %s: %s", path, strerror(wrong));
        return false;
    }
    if (!wait_ready(pd)) {
        fail(AEE_ECONNREFUSED, "session", "%s did not come up; its own lines say why", path);
        kill(pd->pid, SIGKILL);
        waitpid(pd->pid, NULL, 0);
        return false;
    }
    return true;
}

/* The call in work, for the obituary: one of several says enough. */
static void say_where(struct pd *pd, char *where, size_t room) {
    snprintf(where, room, "between calls");
    pthread_mutex_lock(&pd->slot_lock);
    for (uint32_t i = 0; i < FR_SLOTS; i++) {
        const struct flight *f = &pd->flights[i];
        if (f->busy && f->module) {
            snprintf(where, room, "in method %u of %s", f->method, f->module);
            break;
        }
    }
    pthread_mutex_unlock(&pd->slot_lock);
}

static void say_fault(struct pd *pd, int status, bool known) {
    char how[64] = "is gone", where[160];
    if (known && WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "was killed by signal %d (%s)", WTERMSIG(status), htp_signal_name(WTERMSIG(status)));
    } else if (known) {
        snprintf(how, sizeof how, "ended with status %d", WEXITSTATUS(status));
    }
    say_where(pd, where, sizeof where);
    atomic_fetch_add(&fr_counters()->faults, 1);
    fr_farf(FR_ERROR, "session %d of %s %s %s; its calls fail from now on: close its handles and open it again",
            pd->domain / N_DOMAINS, domain_name(pd->domain % N_DOMAINS), how, where);
}

static remote_rpc_status_flags_t status_of(int end) {
    switch (end) {
    case PD_FAULT: return FASTRPC_USER_PD_EXCEPTION;
    case PD_KILLED: return FASTRPC_USER_PD_FORCE_KILL;
    default: return FASTRPC_USER_PD_EXIT;
    }
}

static void bury(struct pd *pd) {
    int status = 0, lives = PD_LIVES;
    pthread_mutex_lock(&pd->death_lock);
    kill(pd->pid, SIGKILL); /* it closed its socket: it is ending, and with what it did so is settled */
    pid_t got;
    do {
        got = waitpid(pd->pid, &status, 0);
    } while (got < 0 && errno == EINTR);
    if (atomic_compare_exchange_strong(&pd->end, &lives, PD_FAULT)) {
        say_fault(pd, status, got == pd->pid);
    }
    atomic_store(&pd->dead, true);
    for (uint32_t i = 0; i < FR_SLOTS; i++) {
        struct fr_slot *slot = &pd->shared->slots[i];
        fr_change(&slot->state, FR_DEAD, &slot->client_sleeps);
    }
    pthread_mutex_lock(&pd->slot_lock);
    pthread_cond_broadcast(&pd->slot_free);
    pthread_mutex_unlock(&pd->slot_lock);
    while (pd->watchers) {
        struct watcher *w = pd->watchers;
        pd->watchers = w->next;
        w->fn(w->ctx);
        free(w);
    }
    pd->reaped = true;
    pthread_cond_broadcast(&pd->gone);
    pthread_mutex_unlock(&pd->death_lock);
}

static void *watch(void *p) {
    struct pd *pd = p;
    struct pollfd poll_for = {.fd = pd->socket};
    while (poll(&poll_for, 1, -1) <= 0) {
    }
    bury(pd);
    session_notify(pd->domain, status_of(atomic_load(&pd->end)));
    pd_put(pd);
    return NULL;
}

void pd_watch(struct pd *pd) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t every, before;
    sigfillset(&every);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* the host's signals are for the host's threads */
    while (pthread_create(&thread, &attributes, watch, pd)) {
        usleep(1000);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}
