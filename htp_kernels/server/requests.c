/* What each frame asks for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server.h"

#define FENCE_TIMEOUT_MS 60000u /* longer than any op: a peer may have a whole prompt's layers before its fence */
#define HVX_CONTEXTS 4u         /* threads of a session that names no number, as many as phones have */

int64_t request_head_bytes(struct conn *c, const struct htp_frame *frame) {
    uint64_t least = 0, most = 0;
    switch (frame->type) {
    case HTP_F_HELLO:
    case HTP_F_CLOSE:
    case HTP_F_STATS:
        break;
    case HTP_F_OPEN:
        least = most = sizeof(struct htp_open);
        break;
    case HTP_F_ALLOC:
        least = most = sizeof(struct htp_alloc);
        break;
    case HTP_F_FREE:
    case HTP_F_UNMAP:
        least = most = sizeof(struct htp_buffer_ref);
        break;
    case HTP_F_READ:
        least = most = sizeof(struct htp_range);
        break;
    case HTP_F_WRITE:
        least = sizeof(struct htp_range);
        most = HTP_MAX_FRAME_BYTES;
        break;
    case HTP_F_LOAD:
        least = sizeof(struct htp_load);
        most = least + 4096;
        break;
    case HTP_F_PROFILE:
        least = most = sizeof(struct htp_profile_set);
        break;
    case HTP_F_SUBMIT:
        most = HTP_NPU_MAX_BATCH;
        break;
    default:
        conn_malformed(c, "a frame of unknown type %u", frame->type);
        return -1;
    }
    if (frame->bytes < least || frame->bytes > most) {
        conn_malformed(c, "a frame of type %u with %llu bytes: must be %llu to %llu", frame->type,
                       (unsigned long long) frame->bytes, (unsigned long long) least, (unsigned long long) most);
        return -1;
    }
    return (int64_t) (frame->type == HTP_F_WRITE ? least : frame->bytes);
}

/* The buffer of a range, or NULL with a sentence. */
static struct buffer *range_buffer(struct conn *c, uint32_t handle, uint64_t offset, uint64_t bytes, char *why) {
    struct buffer *b = buffer_find(c, handle);
    if (!b) {
        snprintf(why, SENTENCE_BYTES, "there is no buffer %u", handle);
        return NULL;
    }
    if (offset > b->bytes || bytes > b->bytes - offset) {
        snprintf(why, SENTENCE_BYTES, "offset %llu, %llu bytes leave buffer %u of %llu bytes",
                 (unsigned long long) offset, (unsigned long long) bytes, handle, (unsigned long long) b->bytes);
        return NULL;
    }
    return b;
}

void request_write_begin(struct conn *c) {
    struct htp_range range;
    memcpy(&range, c->body, sizeof range);
    c->refusal[0] = 0;
    c->target = NULL;
    c->target_left = c->frame.bytes - sizeof range;
    if (range.bytes != c->target_left) {
        snprintf(c->refusal, sizeof c->refusal, "the frame has %llu bytes of data, its range says %llu",
                 (unsigned long long) c->target_left, (unsigned long long) range.bytes);
        return;
    }
    struct buffer *b = range_buffer(c, range.handle, range.offset, range.bytes, c->refusal);
    c->target = b ? b->memory.address + range.offset : NULL;
}

void request_write_end(struct conn *c) {
    if (c->refusal[0]) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "%s", c->refusal);
    } else {
        conn_reply(c, &c->frame, c->frame.session, HTP_OK, NULL, 0);
    }
}

static void hello(struct conn *c) {
    struct htp_hello answer = server.hello;
    answer.can_share = c->can_share;
    conn_reply(c, &c->frame, 0, HTP_OK, &answer, sizeof answer);
}

/* The n of "HTPn:m", or of "HTPn". */
static uint32_t npu_of(const char device[32]) {
    char name[33] = "";
    memcpy(name, device, 32);
    return strncmp(name, "HTP", 3) ? 0 : (uint32_t) strtoul(name + 3, NULL, 10);
}

static void ask_session(struct session *s, const struct htp_frame *frame, const struct htp_npu_message *message,
                        uint8_t *batch) {
    session_queue(s, frame, &(struct ctl){.kind = CTL_REQUEST, .message = *message}, batch);
}

static void open_session(struct conn *c) {
    struct htp_open open;
    char why[SENTENCE_BYTES];
    memcpy(&open, c->body, sizeof open);
    const struct htp_hello *limits = &server.hello;
    uint64_t vtcm = open.vtcm_mib ? (uint64_t) open.vtcm_mib << 20 : limits->vtcm_bytes;
    struct htp_npu_session session = {
        .n_threads = open.n_threads                     ? open.n_threads
                     : limits->n_threads < HVX_CONTEXTS ? limits->n_threads
                                                        : HVX_CONTEXTS,
        .vtcm_bytes = (uint32_t) vtcm,
        .max_map_bytes = open.max_map_bytes ? open.max_map_bytes : limits->max_map_bytes,
        .fence_timeout_ms = open.fence_timeout_ms ? open.fence_timeout_ms : FENCE_TIMEOUT_MS,
    };
    if (session.n_threads > limits->n_threads || vtcm > limits->vtcm_bytes
        || session.max_map_bytes > limits->max_map_bytes) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS,
                    "a session of %u threads, %llu bytes of VTCM, %llu bytes mapped: this server has %u, %llu, %llu",
                    session.n_threads, (unsigned long long) vtcm, (unsigned long long) session.max_map_bytes,
                    limits->n_threads, (unsigned long long) limits->vtcm_bytes,
                    (unsigned long long) limits->max_map_bytes);
        return;
    }
    struct session *s = session_open(c, npu_of(open.device), why);
    if (!s) {
        conn_refuse(c, &c->frame, HTP_INTERNAL_ERR, "cannot open a session: %s", why);
        return;
    }
    c->frame.session = s->number; /* so does the reply say */
    ask_session(s, &c->frame, &(struct htp_npu_message){.request = HTP_NPU_START, .session = session}, NULL);
}

static void alloc_buffer(struct conn *c) {
    struct htp_alloc alloc;
    char why[SENTENCE_BYTES];
    memcpy(&alloc, c->body, sizeof alloc);
    if (alloc.share && !c->can_share) {
        conn_refuse(c, &c->frame, HTP_NO_SUPPORT, "file descriptors can only be passed over a unix socket");
        return;
    }
    struct buffer *b = buffer_create(c, alloc.bytes, why);
    if (!b) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "%s", why);
        return;
    }
    struct htp_buffer_ref ref = {.handle = b->handle};
    conn_reply_fd(c, &c->frame, &ref, sizeof ref, alloc.share ? fcntl(b->memory.fd, F_DUPFD_CLOEXEC, 3) : -1);
}

static void free_buffer(struct conn *c) {
    struct htp_buffer_ref ref;
    memcpy(&ref, c->body, sizeof ref);
    struct buffer *b = buffer_find(c, ref.handle);
    if (!b) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "there is no buffer %u", ref.handle);
        return;
    }
    for (struct session *s = c->sessions; s; s = s->next) {
        ask_session(s, &(struct htp_frame){0},
                    &(struct htp_npu_message){.request = HTP_NPU_UNMAP, .handle = ref.handle}, NULL);
    }
    buffer_free(c, b);
    conn_reply(c, &c->frame, c->frame.session, HTP_OK, NULL, 0);
}

static void read_buffer(struct conn *c) {
    struct htp_range range;
    char why[SENTENCE_BYTES];
    memcpy(&range, c->body, sizeof range);
    struct buffer *b = range_buffer(c, range.handle, range.offset, range.bytes, why);
    if (b) {
        conn_reply_buffer(c, &c->frame, b, range.offset, range.bytes);
    } else {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "%s", why);
    }
}

/* Up to load->bytes from fd; gives how many. */
static uint64_t read_range(int fd, const struct htp_load *load, uint8_t *to) {
    uint64_t done = 0;
    ssize_t n = 1;
    while (done < load->bytes && n > 0) {
        n = pread(fd, to + done, load->bytes - done, (off_t) (load->file_offset + done));
        done += n > 0 ? (uint64_t) n : 0;
    }
    return done;
}

static bool load_range(const char *path, const struct htp_load *load, uint8_t *to, char *why) {
    struct stat info = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, SENTENCE_BYTES, "cannot open %.200s: %s", path, strerror(errno));
        return false;
    }
    uint64_t done = 0;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        snprintf(why, SENTENCE_BYTES, "%.200s is no regular file", path);
    } else {
        done = read_range(fd, load, to);
        snprintf(why, SENTENCE_BYTES, "%.200s: only %llu of %llu bytes from %llu could be read", path,
                 (unsigned long long) done, (unsigned long long) load->bytes, (unsigned long long) load->file_offset);
    }
    close(fd);
    return S_ISREG(info.st_mode) && done == load->bytes;
}

static void load_file(struct conn *c) {
    struct htp_load load;
    char why[SENTENCE_BYTES], path[4097];
    memcpy(&load, c->body, sizeof load);
    if (load.path_bytes != c->body_bytes - sizeof load || load.path_bytes == 0) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "the path has %zu bytes, path_bytes says %u",
                    c->body_bytes - sizeof load, load.path_bytes);
        return;
    }
    memcpy(path, c->body + sizeof load, load.path_bytes);
    path[load.path_bytes] = 0;
    struct buffer *b = range_buffer(c, load.handle, load.offset, load.bytes, why);
    if (b && load_range(path, &load, b->memory.address + load.offset, why)) {
        conn_reply(c, &c->frame, c->frame.session, HTP_OK, NULL, 0);
    } else {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "%s", why);
    }
}

static void server_stats(struct conn *c) {
    struct htp_stats stats = {0};
    for (struct buffer *b = c->buffers; b; b = b->next) {
        stats.n_buffers++;
        stats.buffer_bytes += b->bytes;
    }
    conn_reply(c, &c->frame, 0, HTP_OK, &stats, sizeof stats);
}

/* Requests that the session's process answers. */
static void for_session(struct conn *c) {
    struct session *s = session_find(c, c->frame.session);
    struct htp_npu_message ask = {0};
    uint8_t *batch = NULL;
    if (!s) {
        conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "there is no session %u", c->frame.session);
        return;
    }
    switch (c->frame.type) {
    case HTP_F_CLOSE:
        session_close(c, s);
        conn_reply(c, &c->frame, c->frame.session, HTP_OK, NULL, 0);
        return;
    case HTP_F_SUBMIT:
        ask.request = HTP_NPU_BATCH;
        ask.bytes = c->body_bytes;
        batch = c->body;
        c->body = NULL;
        break;
    case HTP_F_PROFILE:
        ask.request = HTP_NPU_PROFILE;
        memcpy(&ask.profile, c->body, sizeof ask.profile);
        if (ask.profile.mode > HTP_PROFILE_TRACE) {
            conn_refuse(c, &c->frame, HTP_INVAL_PARAMS, "profile mode %u: must be 0 to 3", ask.profile.mode);
            return;
        }
        break;
    case HTP_F_UNMAP: {
        struct htp_buffer_ref ref;
        memcpy(&ref, c->body, sizeof ref);
        ask.request = HTP_NPU_UNMAP;
        ask.handle = ref.handle;
        break;
    }
    default:
        ask.request = HTP_NPU_STATS;
        break;
    }
    ask_session(s, &c->frame, &ask, batch);
}

void request_run(struct conn *c) {
    switch (c->frame.type) {
    case HTP_F_HELLO:
        hello(c);
        break;
    case HTP_F_OPEN:
        open_session(c);
        break;
    case HTP_F_ALLOC:
        alloc_buffer(c);
        break;
    case HTP_F_FREE:
        free_buffer(c);
        break;
    case HTP_F_READ:
        read_buffer(c);
        break;
    case HTP_F_LOAD:
        load_file(c);
        break;
    case HTP_F_STATS:
        if (c->frame.session == 0) {
            server_stats(c);
            break;
        }
        __attribute__((fallthrough));
    default:
        for_session(c);
        break;
    }
}
