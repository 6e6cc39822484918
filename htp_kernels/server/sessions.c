/* Sessions as the server sees them: a child process each, one request at a time, and an obituary. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "htp-signal.h"
#include "server.h"

#define FIRST_FREE_FD 5
#define MAX_FDS 4096 /* where the kernel is older than close_range (Linux 5.9) */

/* musl and Android's older C libraries have no close_range(). */
static void close_from(int first) {
    if (syscall(SYS_close_range, first, ~0u, 0)) {
        for (int fd = first; fd < MAX_FDS; fd++) {
            close(fd);
        }
    }
}

/* In the child: only stderr, the control socket and the memory stay open, and it does not outlive the server. */
static void become_session(int fd, uint32_t npu, const struct backend_memory *memory, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the server too, which ends its sessions */
    if (getppid() != parent) {
        _exit(0);
    }
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    struct backend_memory own = *memory;
    own.fd = fcntl(memory->fd, F_DUPFD, FIRST_FREE_FD); /* neither of the two may stand in the other's place */
    fd = fcntl(fd, F_DUPFD, FIRST_FREE_FD);
    dup2(fd, 3);
    own.fd = dup2(own.fd, 4);
    close_from(5);
    session_main(3, npu, &own);
    _exit(0);
}

/* What a session in a thread is given. */
struct thread_start {
    int fd;
    uint32_t npu;
    struct backend_memory memory;
};

static void *thread_main(void *p) {
    struct thread_start start = *(struct thread_start *) p;
    free(p);
    session_main(start.fd, start.npu, &start.memory);
    return NULL;
}

static bool start_thread(struct session *s, int fd, uint32_t npu) {
    struct thread_start *start = malloc(sizeof *start);
    *start = (struct thread_start){fd, npu, s->memory};
    s->is_thread = !pthread_create(&s->thread, NULL, thread_main, start);
    return s->is_thread;
}

static bool start(struct session *s, uint32_t npu) {
    int fds[2];
    if (!server.backend->allocate(&s->memory, sizeof(struct htp_npu_memory))) {
        return false;
    }
    s->shared = (struct htp_npu_memory *) (void *) s->memory.address;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds)) {
        return false;
    }
    pid_t parent = getpid();
    s->fd = fds[0];
    if (server.sessions_are_threads) {
        return start_thread(s, fds[1], npu);
    }
    s->pid = fork();
    if (s->pid == 0) {
        become_session(fds[1], npu, &s->memory, parent);
    }
    close(fds[1]);
    madvise(s->shared, sizeof *s->shared, MADV_DONTFORK); /* no other session's business */
    return s->pid > 0;
}

static void release(struct session *s) {
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        waitpid(s->pid, NULL, 0);
    }
    if (s->is_thread) {
        shutdown(s->fd, SHUT_RDWR); /* it ends with the batch in work */
        pthread_join(s->thread, NULL);
    }
    if (s->fd >= 0) {
        close(s->fd);
    }
    if (s->shared) {
        server.backend->release(&s->memory);
    }
    s->pid = 0;
    s->is_thread = false;
    s->fd = -1;
    s->shared = NULL;
}

struct session *session_open(struct conn *c, uint32_t npu, char *why) {
    if (server.n_sessions == MAX_SESSIONS) {
        snprintf(why, SENTENCE_BYTES, "this server has %u of them already; close some", MAX_SESSIONS);
        return NULL;
    }
    struct session *s = calloc(1, sizeof *s);
    s->fd = -1;
    if (!start(s, npu)) {
        snprintf(why, SENTENCE_BYTES, "%s", strerror(errno));
        release(s);
        free(s);
        return NULL;
    }
    s->conn = c;
    s->number = ++server.last_session;
    s->last = &s->first;
    s->next = c->sessions;
    c->sessions = s;
    server.n_sessions++;
    return s;
}

struct session *session_find(struct conn *c, uint32_t number) {
    struct session *s = c->sessions;
    while (s && s->number != number) {
        s = s->next;
    }
    return s;
}

static struct pending *unqueue(struct session *s) {
    struct pending *p = s->first;
    s->first = p->next;
    if (!s->first) {
        s->last = &s->first;
    }
    return p;
}

/* Every request that waits gets the session's obituary. */
static void refuse_all(struct session *s) {
    while (s->first) {
        struct pending *p = unqueue(s);
        if (p->frame.type) {
            conn_refuse(s->conn, &p->frame, HTP_INTERNAL_ERR, "%s", s->death);
        }
        free(p->batch);
        free(p);
    }
}

void session_close(struct conn *c, struct session *s) {
    snprintf(s->death, sizeof s->death, "session %u was closed", s->number);
    refuse_all(s);
    release(s);
    struct session **at = &c->sessions;
    while (*at != s) {
        at = &(*at)->next;
    }
    *at = s->next;
    server.n_sessions--;
    free(s);
}

static void say_how(int status, char *how, size_t room) {
    if (WIFSIGNALED(status)) {
        snprintf(how, room, "was killed by signal %d (%s)", WTERMSIG(status), htp_signal_name(WTERMSIG(status)));
    } else {
        snprintf(how, room, "ended with status %d%s", WEXITSTATUS(status),
                 WEXITSTATUS(status) == HTP_SANITIZER_EXIT ? " (a sanitizer's report is on the server's stderr)" : "");
    }
}

static void bury(struct session *s) {
    int status = 0;
    char how[128], where[96] = "between batches", name[24];
    waitpid(s->pid, &status, 0);
    s->pid = 0;
    say_how(status, how, sizeof how);
    const struct htp_progress *progress = &s->shared->progress;
    if (progress->busy == HTP_BUSY_OP) {
        snprintf(where, sizeof where, "in op %u %s of batch %llu", progress->op, htp_op_name(progress->opcode, name),
                 (unsigned long long) progress->seq);
    } else if (progress->busy == HTP_BUSY_BATCH) {
        snprintf(where, sizeof where, "while it read batch %llu", (unsigned long long) progress->seq);
    }
    bool lost = WIFEXITED(status) && WEXITSTATUS(status) == HTP_NPU_LOST_EXIT;
    const char *what = lost ? (const char *) s->shared->response : how;
    snprintf(s->death, sizeof s->death, "session %u %.160s %s; open a new one", s->number, what, where);
    fprintf(stderr, "htp-server: %s\n", s->death);
    release(s);
    s->dead = true;
    refuse_all(s);
}

static bool send_ctl(struct session *s, const struct ctl *ctl, int fd) {
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
    return sendmsg(s->fd, &msg, MSG_NOSIGNAL) == sizeof *ctl;
}

/* Gives the child its next request. A send that fails means that it died: its socket says so in the main loop. */
static void dispatch(struct session *s) {
    struct pending *p = s->first;
    if (s->busy || s->dead || !p) {
        return;
    }
    s->busy = true;
    if (p->batch) {
        memcpy(s->shared->batch, p->batch, p->ctl.message.bytes);
    }
    send_ctl(s, &p->ctl, -1);
}

void session_queue(struct session *s, const struct htp_frame *frame, const struct ctl *ctl, uint8_t *batch) {
    if (s->dead) {
        if (frame->type) {
            conn_refuse(s->conn, frame, HTP_INTERNAL_ERR, "%s", s->death);
        }
        free(batch);
        return;
    }
    struct pending *p = malloc(sizeof *p);
    *p = (struct pending){.frame = *frame, .ctl = *ctl, .batch = batch};
    *s->last = p;
    s->last = &p->next;
    dispatch(s);
}

static void give_buffer(struct session *s, uint32_t handle) {
    struct buffer *b = buffer_find(s->conn, handle);
    struct ctl answer = {.kind = CTL_BUFFER, .handle = handle, .bytes = b ? b->bytes : 0};
    send_ctl(s, &answer, b ? b->memory.fd : -1);
}

/* A refusal's bytes are a sentence. */
static void answer_first(struct session *s, const struct htp_npu_message *m) {
    struct pending *p = unqueue(s);
    s->busy = false;
    if (p->frame.type) {
        const uint8_t *response = s->shared->response;
        size_t room = sizeof s->shared->response, bytes = m->bytes < room ? m->bytes : room;
        bytes = m->status == HTP_OK ? bytes : strnlen((const char *) response, HTP_DETAIL_BYTES);
        conn_reply(s->conn, &p->frame, s->number, m->status, response, bytes);
    }
    free(p->batch);
    free(p);
    dispatch(s);
}

void session_readable(struct session *s) {
    struct ctl ctl;
    ssize_t n = recv(s->fd, &ctl, sizeof ctl, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n != sizeof ctl) {
        bury(s);
    } else if (ctl.kind == CTL_NEED) {
        give_buffer(s, ctl.handle);
    } else if (ctl.kind == CTL_DONE && s->busy) {
        answer_first(s, &ctl.message);
    }
}
