/*
 * The device server: one single-threaded process owns connections and buffers; each session is a child process of its
 * own (session-child.c), so that a crash in a kernel ends that session and nothing else.
 *
 * Between the two: a seqpacket socket for struct ctl, and shared memory for batches, responses and the session's
 * progress (struct htp_npu_memory).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../runtime/htp-runtime.h"
#include "backend.h"
#include "htp-frames.h"

#define SENTENCE_BYTES 320u
#define MAX_CONNS 256u    /* more clients wait in the listening socket's queue */
#define MAX_SESSIONS 256u /* of all connections; more are refused */
#define HTP_SANITIZER_EXIT 86
#define HTP_NPU_LOST_EXIT 87 /* the obituary is in the shared memory's `response` */

enum ctl_kind {
    CTL_REQUEST = 1, /* parent -> child: message; the child answers CTL_DONE */
    CTL_DONE,        /* child -> parent: message */
    CTL_NEED,        /* child -> parent: handle; the parent answers CTL_BUFFER */
    CTL_BUFFER,      /* parent -> child: bytes, and the file descriptor; without one there is no such buffer */
};

struct ctl {
    uint32_t kind;
    uint32_t handle;
    uint64_t bytes;
    struct htp_npu_message message;
};

struct buffer {
    struct buffer *next;
    uint32_t handle;
    uint64_t bytes;
    struct backend_memory memory;
    uint32_t n_readers; /* replies that still send from it */
    bool freed;
};

/* Something to be sent: `head`, then `bytes` of `data`, which is `owned` or lies in `buffer`. */
struct reply {
    struct reply *next;
    uint8_t *data;
    size_t bytes, sent;
    struct buffer *buffer; /* the data is this buffer's */
    int fd;                /* to pass along with the first byte, or -1 */
};

/* A request that waits for its session. */
struct pending {
    struct pending *next;
    struct htp_frame frame; /* frame.type 0: nobody waits for the reply */
    struct ctl ctl;
    uint8_t *batch;
};

struct session {
    struct session *next;
    struct conn *conn;
    uint32_t number;
    pid_t pid;        /* 0: none, or a thread */
    pthread_t thread; /* where the sessions are threads */
    bool is_thread;
    int fd;
    struct backend_memory memory;
    struct htp_npu_memory *shared; /* lies there */
    struct pending *first, **last; /* the first is in work when busy */
    bool busy, dead;
    char death[SENTENCE_BYTES]; /* how it died */
};

enum read_state { READ_HEADER, READ_BODY, READ_DATA };

struct conn {
    struct conn *next;
    int in, out;
    bool is_socket, can_share, is_stdio;
    bool closing; /* a malformed frame: nothing more is taken */
    bool broken;  /* to be closed by the main loop */
    uint8_t *buf; /* what was read and not yet taken: [begin, end) */
    size_t begin, end;
    enum read_state state;
    struct htp_frame frame;
    uint8_t *body;
    size_t body_bytes, body_used;
    uint8_t *target; /* of READ_DATA: where a WRITE's bytes go; NULL: nowhere */
    uint64_t target_left;
    char refusal[SENTENCE_BYTES]; /* the answer after READ_DATA, where the WRITE is refused */
    struct reply *first, **last;
    size_t queued;
    struct buffer *buffers;
    struct session *sessions;
};

struct server {
    const struct backend *backend;
    bool choose_backend; /* --backend auto: the emulated NPU where that one has none */
    struct htp_hello hello;
    struct conn *conns;
    uint32_t n_conns, n_sessions;
    uint32_t last_session, last_handle;
    const char *listen_name;
    int listen_fd;
    bool listen_is_unix;
    /* HEXNPU_EMU_SESSIONS=threads: so ThreadSanitizer sees what the ranks of a group share */
    bool sessions_are_threads;
};

extern struct server server;

/* conn.c */
struct conn *conn_open(int in, int out, bool is_stdio);
void conn_close(struct conn *c);
void conn_readable(struct conn *c);
/* Takes the requests that were read already. */
void conn_process(struct conn *c);
void conn_writable(struct conn *c);
bool conn_wants_input(const struct conn *c);
/* Sends a copy of `bytes` of data; `session` goes into the reply's header. */
void conn_reply(struct conn *c, const struct htp_frame *to, uint32_t session, enum htp_status status, const void *data,
                size_t bytes);
void conn_reply_fd(struct conn *c, const struct htp_frame *to, const void *data, size_t bytes, int fd);
void conn_reply_buffer(struct conn *c, const struct htp_frame *to, struct buffer *b, uint64_t offset, uint64_t bytes);
/* Refuses one request with a sentence. */
void conn_refuse(struct conn *c, const struct htp_frame *to, enum htp_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Answers with HTP_F_ERROR and closes: the stream cannot be trusted any more. */
void conn_malformed(struct conn *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* requests.c: what a frame asks for. */
/* How many bytes of payload come before the data (which only WRITE has); -1: malformed, and was answered. */
int64_t request_head_bytes(struct conn *c, const struct htp_frame *frame);
/* The payload's head of a WRITE is here: chooses c->target. */
void request_write_begin(struct conn *c);
void request_write_end(struct conn *c);
/* A whole frame is here, in c->frame and c->body. */
void request_run(struct conn *c);

/* buffers.c */
struct buffer *buffer_create(struct conn *c, uint64_t bytes, char *why);
struct buffer *buffer_find(struct conn *c, uint32_t handle);
void buffer_free(struct conn *c, struct buffer *b);
void buffer_done_reading(struct buffer *b);
void buffers_free_all(struct conn *c);

/* sessions.c */
struct session *session_open(struct conn *c, uint32_t npu, char *why);
struct session *session_find(struct conn *c, uint32_t number);
void session_close(struct conn *c, struct session *s);
void session_queue(struct session *s, const struct htp_frame *frame, const struct ctl *ctl, uint8_t *batch);
void session_readable(struct session *s);

/* session-child.c: a session's whole life, until its control socket `fd` is closed on the other side. */
void session_main(int fd, uint32_t npu, const struct backend_memory *memory);

/* layout.c */
void print_layout(void);
