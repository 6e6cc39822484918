/* The process of one session: takes requests from the server over its control socket and drives the runtime. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../platform/emu/emu.h"
#include "server.h"

static int control;

static void send_ctl(const struct ctl *ctl) {
    if (send(control, ctl, sizeof *ctl, MSG_NOSIGNAL) != sizeof *ctl) {
        _exit(0); /* the server is gone */
    }
}

/* One message, and the file descriptor that came with it (-1: none). */
static struct ctl receive_ctl(int *fd) {
    struct ctl ctl;
    struct iovec iov = {&ctl, sizeof ctl};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } in;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = in.room, .msg_controllen = sizeof in.room};
    if (recvmsg(control, &msg, MSG_CMSG_CLOEXEC) != sizeof ctl) {
        _exit(0);
    }
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    *fd = -1;
    if (cmsg && cmsg->cmsg_type == SCM_RIGHTS) {
        memcpy(fd, CMSG_DATA(cmsg), sizeof *fd);
    }
    return ctl;
}

/* The server sends nothing else while a request is in work, so the next message is the answer. */
static int ask_for_buffer(int handle, uint64_t *bytes) {
    int fd = -1;
    send_ctl(&(struct ctl){.kind = CTL_NEED, .handle = (uint32_t) handle});
    struct ctl answer = receive_ctl(&fd);
    *bytes = answer.bytes;
    return fd;
}

static void done(struct shared *shared, const char *sentence, uint32_t status, uint64_t bytes) {
    if (sentence) {
        bytes = strlen(sentence);
        memcpy(shared->response, sentence, bytes);
    }
    send_ctl(&(struct ctl){.kind = CTL_DONE, .status = status, .bytes = bytes});
}

static void serve(struct htp_ctx *ctx, struct shared *shared, const struct ctl *request) {
    uint64_t bytes = 0;
    switch (request->kind) {
    case CTL_BATCH:
        bytes = htp_session_run(ctx, shared->batch, request->bytes, shared->response);
        break;
    case CTL_PROFILE:
        htp_session_profile(ctx, &request->profile);
        break;
    case CTL_STATS:
        htp_session_stats(ctx, (struct htp_stats *) (void *) shared->response);
        bytes = sizeof(struct htp_stats);
        break;
    default:
        htp_session_unmap(ctx, request->handle);
        break;
    }
    done(shared, NULL, HTP_OK, bytes);
}

void session_main(int fd, struct shared *shared, const struct htp_config *config) {
    char why[HTP_DETAIL_BYTES] = "";
    struct htp_config own = *config;
    control = fd;
    own.progress = &shared->progress;
    emu_set_buffer_source(ask_for_buffer);
    emu_vtcm_set_bytes(own.vtcm_bytes);
    struct htp_ctx *ctx = htp_session_open(&own, why);
    done(shared, ctx ? NULL : why, ctx ? HTP_OK : HTP_INTERNAL_ERR, 0);
    for (;;) {
        int none;
        struct ctl request = receive_ctl(&none);
        if (!ctx) {
            _exit(1);
        }
        serve(ctx, shared, &request);
    }
}
