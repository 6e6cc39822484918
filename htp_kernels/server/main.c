/* htp-server: the command line and the poll loop. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "../platform/emu/emu.h"
#include "server.h"

#define USAGE \
    "usage: htp-server [--stdio] | --listen unix:PATH | --listen tcp:HOST:PORT | --layout | --version\n" \
    "       [--threads N] (HVX threads a session may have, 1 to 10; default 4)\n" \
    "       [--vtcm MIB] (2, 4 or 8; default 8)\n" \
    "       [--backend emu | fastrpc | auto] (the emulated NPU, default; the one behind libcdsprpc.so; that if there is one)\n"

#define VERSION "0.1.0"
#define MAX_POLL (1 + MAX_SESSIONS + 2 * MAX_CONNS)

#ifdef EMU_ASAN
#define FLAVOUR "asan"
/* A session that ends so ended by a sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "exitcode=86:detect_leaks=0:allocator_may_return_null=1:handle_abort=0";
}
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) {
    return "exitcode=86:print_stacktrace=1";
}
#elif defined(EMU_TSAN)
#define FLAVOUR "tsan"
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "exitcode=86:halt_on_error=1";
}
#else
#define FLAVOUR "release"
#endif
_Static_assert(HTP_SANITIZER_EXIT == 86, "the options above say so");

struct server server = {.backend = &backend_emu, .listen_fd = -1};

static int die(const char *text, const char *detail) {
    fprintf(stderr, "htp-server: %s%s\n", text, detail);
    return 2;
}

static int listen_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(address.sun_path, path);
    if (!lstat(path, &info) && S_ISSOCK(info.st_mode)) {
        unlink(path); /* of a server that is gone */
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof address) || listen(fd, 16)) {
        return -1;
    }
    server.listen_is_unix = true;
    return fd;
}

static int listen_tcp(char *where) {
    char *colon = strrchr(where, ':');
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found = NULL;
    if (!colon) {
        errno = EINVAL;
        return -1;
    }
    *colon = 0;
    if (getaddrinfo(*where ? where : NULL, colon + 1, &hints, &found)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 16)) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* Says where it listens, which tells a port that the system chose (tcp:HOST:0). */
static void announce(const char *name) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    char port[16] = "";
    if (!server.listen_is_unix && !getsockname(server.listen_fd, (struct sockaddr *) &address, &size)) {
        getnameinfo((struct sockaddr *) &address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV);
        printf("listening on tcp port %s\n", port);
    } else {
        printf("listening on %s\n", name);
    }
    fflush(stdout);
}

static void accept_client(void) {
    int fd = accept4(server.listen_fd, NULL, NULL, SOCK_CLOEXEC), one = 1;
    if (fd < 0) {
        return;
    }
    if (!server.listen_is_unix) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    conn_open(fd, fd, false);
}

/* What each poll entry belongs to: one of the two, or the listening socket. */
struct poll_owner {
    struct conn *conn;
    struct session *session;
};

static nfds_t fill_poll(struct pollfd *fds, struct poll_owner *owners) {
    nfds_t n = 0;
    if (server.listen_fd >= 0 && server.n_conns < MAX_CONNS) {
        owners[n] = (struct poll_owner){0};
        fds[n++] = (struct pollfd){.fd = server.listen_fd, .events = POLLIN};
    }
    for (struct conn *c = server.conns; c; c = c->next) {
        for (struct session *s = c->sessions; s; s = s->next) {
            if (!s->dead) {
                owners[n] = (struct poll_owner){.session = s};
                fds[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
            }
        }
        short in = conn_wants_input(c) ? POLLIN : 0, out = c->first ? POLLOUT : 0;
        owners[n] = (struct poll_owner){.conn = c};
        fds[n++] = (struct pollfd){.fd = c->in, .events = c->in == c->out ? in | out : in};
        if (c->in != c->out && out) {
            owners[n] = (struct poll_owner){.conn = c};
            fds[n++] = (struct pollfd){.fd = c->out, .events = out};
        }
    }
    return n;
}

/* Sessions before connections: a connection's request may close a session, never the other way round. */
static void serve_ready(struct pollfd *fds, struct poll_owner *owners, nfds_t n) {
    for (nfds_t i = 0; i < n; i++) {
        if (fds[i].revents && owners[i].session) {
            session_readable(owners[i].session);
        }
    }
    for (nfds_t i = 0; i < n; i++) {
        struct conn *c = owners[i].conn;
        if (!c && !owners[i].session && fds[i].revents) {
            accept_client();
        }
        if (!c || c->broken) {
            continue;
        }
        if (fds[i].revents & POLLOUT) {
            conn_writable(c);
        }
        if (fds[i].revents & (POLLIN | POLLHUP | POLLERR) && fds[i].fd == c->in) {
            conn_readable(c);
        } else if (fds[i].revents & (POLLHUP | POLLERR)) {
            c->broken = true;
        }
    }
}

/* Closes what broke; false once the one client of --stdio is gone. */
static bool close_broken(void) {
    struct conn *next;
    bool go_on = true;
    for (struct conn *c = server.conns; c; c = next) {
        next = c->next;
        if (!c->broken && conn_wants_input(c)) {
            conn_process(c);
        }
        if (c->broken) {
            go_on = go_on && !c->is_stdio;
            conn_close(c);
        }
    }
    return go_on;
}

static volatile sig_atomic_t stopping;

static void stop(int signal) {
    (void) signal;
    stopping = 1;
}

static int serve(void) {
    static struct pollfd fds[MAX_POLL];
    static struct poll_owner owners[MAX_POLL];
    do {
        nfds_t n = fill_poll(fds, owners);
        if (poll(fds, n, -1) < 0) {
            continue;
        }
        serve_ready(fds, owners, n);
    } while (close_broken() && !stopping);
    while (server.conns) {
        conn_close(server.conns);
    }
    if (server.listen_is_unix) {
        unlink(server.listen_name);
    }
    return 0;
}

/* Which NPU: false where there is no such word. */
static bool choose_backend(const char *word) {
    server.choose_backend = !strcmp(word, "auto");
    server.backend = !strcmp(word, "emu") ? &backend_emu : &backend_fastrpc;
    return server.choose_backend || !strcmp(word, "emu") || !strcmp(word, "fastrpc");
}

static const char *describe(uint32_t n_threads, uint32_t vtcm_mib) {
    server.hello = (struct htp_hello){
        .protocol = HTP_VERSION,
        .n_threads = n_threads,
        .vtcm_bytes = (uint64_t) vtcm_mib << 20,
        .flavour = FLAVOUR,
    };
    const char *wrong = server.backend->describe(&server.hello);
    if (wrong && server.choose_backend) {
        server.backend = &backend_emu;
        wrong = server.backend->describe(&server.hello);
    }
    return wrong;
}

static int run(bool stdio, char *listen_at) {
    signal(SIGPIPE, SIG_IGN);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    if (stdio) {
        conn_open(0, 1, true);
        return serve();
    }
    bool is_unix = !strncmp(listen_at, "unix:", 5);
    if (!is_unix && strncmp(listen_at, "tcp:", 4) != 0) {
        return die("--listen takes unix:PATH or tcp:HOST:PORT, not ", listen_at);
    }
    server.listen_name = is_unix ? listen_at + 5 : listen_at;
    server.listen_fd = is_unix ? listen_unix(listen_at + 5) : listen_tcp(listen_at + 4);
    if (server.listen_fd < 0) {
        fprintf(stderr, "htp-server: cannot listen on %s: %s\n", listen_at, strerror(errno));
        return 1;
    }
    announce(listen_at);
    return serve();
}

int main(int argc, char **argv) {
    bool stdio = false, known_backend = true;
    char *listen_at = NULL;
    unsigned long n_threads = 4, vtcm_mib = 8;
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (!strcmp(argv[i], "--layout")) {
            print_layout();
            return 0;
        } else if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "--help")) {
            fputs(USAGE, stdout);
            return 0;
        } else if (!strcmp(argv[i], "--version")) {
            printf("htp-server %s, protocol %u, v%d, %s\n", VERSION, HTP_VERSION, __HVX_ARCH__, FLAVOUR);
            return 0;
        } else if (!strcmp(argv[i], "--stdio")) {
            stdio = true;
        } else if (!strcmp(argv[i], "--listen") && has_value) {
            listen_at = argv[++i];
        } else if (!strcmp(argv[i], "--backend") && has_value) {
            known_backend = choose_backend(argv[++i]);
        } else if (!strcmp(argv[i], "--threads") && has_value) {
            n_threads = strtoul(argv[++i], NULL, 10);
        } else if (!strcmp(argv[i], "--vtcm") && has_value) {
            vtcm_mib = strtoul(argv[++i], NULL, 10);
        } else {
            die("what is this, or what is its value: ", argv[i]);
            fputs(USAGE, stderr);
            return 2;
        }
    }
    const char *wrong = emu_init();
    if (wrong) {
        return die(wrong, "");
    }
    stdio = stdio || (!listen_at && !isatty(0)); /* the default for whoever starts it with pipes */
    if (stdio == (listen_at != NULL) || !known_backend || n_threads < 1 || n_threads > HTP_MAX_THREADS
        || (vtcm_mib != 2 && vtcm_mib != 4 && vtcm_mib != 8)) {
        fputs(USAGE, stderr);
        return 2;
    }
    const char *sessions = getenv("HEXNPU_EMU_SESSIONS");
    if (sessions && *sessions && strcmp(sessions, "processes") != 0 && strcmp(sessions, "threads") != 0) {
        return die("HEXNPU_EMU_SESSIONS must be processes or threads, not ", sessions);
    }
    wrong = describe((uint32_t) n_threads, (uint32_t) vtcm_mib);
    if (wrong) {
        return die(wrong, "");
    }
    /* A session on a real NPU is a process of its own in any case. */
    server.sessions_are_threads = server.backend == &backend_emu && sessions && !strcmp(sessions, "threads");
    if (server.sessions_are_threads) {
        emu_many_sessions();
    }
    return run(stdio, listen_at);
}
