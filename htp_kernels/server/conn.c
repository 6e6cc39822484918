/* A connection: frames in, replies out, never blocking. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server.h"

#define BUF_BYTES (256u << 10)
#define MAX_QUEUED (16u << 20) /* bytes of unsent replies above which no more requests are read */

static size_t min(size_t a, size_t b) {
    return a < b ? a : b;
}

static void *need(void *p) {
    if (!p) {
        fputs("htp-server: out of memory\n", stderr);
        exit(3);
    }
    return p;
}

struct conn *conn_open(int in, int out, bool is_stdio) {
    struct conn *c = need(calloc(1, sizeof *c));
    int domain = 0;
    socklen_t size = sizeof domain;
    c->in = in;
    c->out = out;
    c->is_stdio = is_stdio;
    c->is_socket = !getsockopt(out, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    c->can_share = c->is_socket && domain == AF_UNIX;
    c->buf = need(malloc(BUF_BYTES));
    c->last = &c->first;
    fcntl(in, F_SETFL, fcntl(in, F_GETFL) | O_NONBLOCK);
    fcntl(out, F_SETFL, fcntl(out, F_GETFL) | O_NONBLOCK);
    c->next = server.conns;
    server.conns = c;
    server.n_conns++;
    return c;
}

static void reply_free(struct reply *r) {
    if (r->buffer) {
        buffer_done_reading(r->buffer);
    } else {
        free(r->data);
    }
    if (r->fd >= 0) {
        close(r->fd);
    }
    free(r);
}

void conn_close(struct conn *c) {
    while (c->sessions) {
        session_close(c, c->sessions);
    }
    while (c->first) {
        struct reply *r = c->first;
        c->first = r->next;
        reply_free(r);
    }
    buffers_free_all(c);
    struct conn **at = &server.conns;
    while (*at != c) {
        at = &(*at)->next;
    }
    *at = c->next;
    server.n_conns--;
    close(c->in);
    if (c->out != c->in) {
        close(c->out);
    }
    free(c->buf);
    free(c->body);
    free(c);
}

bool conn_wants_input(const struct conn *c) {
    return c->queued < MAX_QUEUED;
}

/* Output */

static ssize_t send_some(struct conn *c, struct reply *r) {
    if (!c->is_socket) {
        return write(c->out, r->data + r->sent, r->bytes - r->sent);
    }
    struct iovec iov = {r->data + r->sent, r->bytes - r->sent};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    if (r->fd >= 0) {
        msg.msg_control = control.room;
        msg.msg_controllen = sizeof control.room;
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(cmsg), &r->fd, sizeof(int));
    }
    return sendmsg(c->out, &msg, MSG_NOSIGNAL);
}

void conn_writable(struct conn *c) {
    while (c->first) {
        struct reply *r = c->first;
        ssize_t n = send_some(c, r);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (n < 0) {
            c->broken = true; /* the client is gone */
            return;
        }
        if (r->fd >= 0 && n > 0) {
            close(r->fd);
            r->fd = -1;
        }
        r->sent += (size_t) n;
        c->queued -= (size_t) n;
        if (r->sent == r->bytes) {
            c->first = r->next;
            if (!c->first) {
                c->last = &c->first;
            }
            reply_free(r);
        }
    }
    if (c->closing) {
        /* What the client still sends is read and dropped, since a close over
         * unread input could lose the last reply. */
        c->broken = c->broken || shutdown(c->out, SHUT_WR) < 0;
    }
}

static void enqueue(struct conn *c, struct reply reply) {
    struct reply *r = need(malloc(sizeof *r));
    *r = reply;
    r->next = NULL;
    *c->last = r;
    c->last = &r->next;
    c->queued += r->bytes;
}

static struct htp_frame reply_header(const struct htp_frame *to, uint32_t session, enum htp_status status,
                                     uint64_t bytes) {
    return (struct htp_frame){.magic = HTP_FRAME_MAGIC,
                              .version = HTP_FRAME_VERSION,
                              .type = to->type | HTP_REPLY,
                              .session = session,
                              .status = status,
                              .tag = to->tag,
                              .bytes = bytes};
}

static void send_frame(struct conn *c, struct htp_frame header, const void *data, size_t bytes, int fd) {
    struct reply r = {.data = need(malloc(sizeof header + bytes)), .bytes = sizeof header + bytes, .fd = fd};
    memcpy(r.data, &header, sizeof header);
    if (bytes) {
        memcpy(r.data + sizeof header, data, bytes);
    }
    enqueue(c, r);
    conn_writable(c);
}

void conn_reply(struct conn *c, const struct htp_frame *to, uint32_t session, enum htp_status status, const void *data,
                size_t bytes) {
    send_frame(c, reply_header(to, session, status, bytes), data, bytes, -1);
}

void conn_reply_fd(struct conn *c, const struct htp_frame *to, const void *data, size_t bytes, int fd) {
    send_frame(c, reply_header(to, to->session, HTP_OK, bytes), data, bytes, fd);
}

void conn_reply_buffer(struct conn *c, const struct htp_frame *to, struct buffer *b, uint64_t offset, uint64_t bytes) {
    struct htp_frame header = reply_header(to, to->session, HTP_OK, bytes);
    uint8_t *copy = need(malloc(sizeof header));
    memcpy(copy, &header, sizeof header);
    enqueue(c, (struct reply){.data = copy, .bytes = sizeof header, .fd = -1});
    if (bytes) {
        b->n_readers++;
        enqueue(c, (struct reply){.data = b->memory.address + offset, .bytes = bytes, .buffer = b, .fd = -1});
    }
    conn_writable(c);
}

void conn_refuse(struct conn *c, const struct htp_frame *to, enum htp_status status, const char *format, ...) {
    char text[SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    conn_reply(c, to, to->session, status, text, strlen(text));
}

void conn_malformed(struct conn *c, const char *format, ...) {
    char text[SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct htp_frame error = {.type = HTP_F_ERROR, .tag = c->frame.tag};
    c->closing = true;
    conn_reply(c, &error, 0, HTP_INVAL_PARAMS, text, strlen(text));
}

/* Input */

static void check_header(struct conn *c) {
    const struct htp_frame *f = &c->frame;
    if (f->magic != HTP_FRAME_MAGIC) {
        conn_malformed(c, "a frame begins with 0x%08x, not with \"HTPF\"", f->magic);
    } else if (f->version != HTP_FRAME_VERSION) {
        conn_malformed(c, "frame version %u: this server speaks %u", f->version, HTP_FRAME_VERSION);
    } else if (f->bytes > HTP_MAX_FRAME_BYTES) {
        conn_malformed(c, "a frame of %llu bytes: the limit is %llu", (unsigned long long) f->bytes,
                       HTP_MAX_FRAME_BYTES);
    } else {
        int64_t head = request_head_bytes(c, f);
        if (head >= 0) {
            free(c->body);
            c->body = need(malloc(head ? (size_t) head : 1));
            c->body_bytes = (size_t) head;
            c->body_used = 0;
            c->state = READ_BODY;
        }
    }
}

/* The next state of the machine once the current one has all its bytes. */
static void advance(struct conn *c) {
    if (c->state == READ_HEADER) {
        check_header(c);
    }
    if (c->closing) {
        return;
    }
    if (c->state == READ_BODY && c->body_used == c->body_bytes) {
        if (c->frame.type == HTP_F_WRITE) {
            request_write_begin(c);
            c->state = READ_DATA;
        } else {
            c->state = READ_HEADER;
            request_run(c);
        }
    }
    if (c->state == READ_DATA && !c->closing && c->target_left == 0) {
        c->state = READ_HEADER;
        request_write_end(c);
    }
}

/* Takes what is in buf; false where more input is needed. */
static bool take(struct conn *c) {
    size_t have = c->end - c->begin;
    if (c->state == READ_HEADER) {
        if (have < sizeof c->frame) {
            return false;
        }
        memcpy(&c->frame, c->buf + c->begin, sizeof c->frame);
        c->begin += sizeof c->frame;
    } else if (have == 0) {
        return false;
    } else if (c->state == READ_BODY) {
        size_t n = min(have, c->body_bytes - c->body_used);
        memcpy(c->body + c->body_used, c->buf + c->begin, n);
        c->body_used += n;
        c->begin += n;
        if (c->body_used < c->body_bytes) {
            return false;
        }
    } else {
        size_t n = min(have, c->target_left);
        if (c->target) {
            memcpy(c->target, c->buf + c->begin, n);
            c->target += n;
        }
        c->target_left -= n;
        c->begin += n;
        if (c->target_left) {
            return false;
        }
    }
    advance(c);
    return true;
}

/* Large payloads go straight to their place. */
static ssize_t read_some(struct conn *c) {
    if (c->begin == c->end) {
        c->begin = c->end = 0;
    }
    if (c->end == 0 && !c->closing && c->state == READ_DATA && c->target && c->target_left >= BUF_BYTES) {
        ssize_t n = read(c->in, c->target, c->target_left);
        if (n > 0) {
            c->target += n;
            c->target_left -= (uint64_t) n;
            advance(c);
        }
        return n;
    }
    if (c->end == 0 && !c->closing && c->state == READ_BODY && c->body_bytes - c->body_used >= BUF_BYTES) {
        ssize_t n = read(c->in, c->body + c->body_used, c->body_bytes - c->body_used);
        if (n > 0) {
            c->body_used += (size_t) n;
            advance(c);
        }
        return n;
    }
    memmove(c->buf, c->buf + c->begin, c->end - c->begin);
    c->end -= c->begin;
    c->begin = 0;
    ssize_t n = read(c->in, c->buf + c->end, BUF_BYTES - c->end);
    if (n > 0) {
        c->end += (size_t) n;
    }
    return n;
}

void conn_process(struct conn *c) {
    while (!c->closing && !c->broken && conn_wants_input(c) && take(c)) {
    }
    if (c->closing) {
        c->begin = c->end = 0;
    }
}

void conn_readable(struct conn *c) {
    ssize_t n = read_some(c);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        c->broken = true;
        return;
    }
    conn_process(c);
}
