/*
 * The life of one session: takes requests from the server over its control socket and drives the runtime, in a process
 * of its own or in a thread of the server.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../platform/emu/emu.h"
#include "server.h"

static _Thread_local int control;

static void send_ctl(const struct ctl *ctl) {
    send(control, ctl, sizeof *ctl,
         MSG_NOSIGNAL); /* where it fails the server is gone, as the next receive_ctl() finds */
}

/* One message, and the file descriptor that came with it (-1: none); false where the server is gone. */
static bool receive_ctl(struct ctl *ctl, int *fd) {
    struct iovec iov = {ctl, sizeof *ctl};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } in;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = in.room, .msg_controllen = sizeof in.room};
    *fd = -1;
    if (recvmsg(control, &msg, MSG_CMSG_CLOEXEC) != sizeof *ctl) {
        return false;
    }
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
    if (cmsg && cmsg->cmsg_type == SCM_RIGHTS) {
        memcpy(fd, CMSG_DATA(cmsg), sizeof *fd);
    }
    return true;
}

/* The server sends nothing else while a request is in work, so the next message is the answer. */
static int ask_for_buffer(int handle, uint64_t *bytes) {
    int fd = -1;
    struct ctl answer = {0};
    send_ctl(&(struct ctl){.kind = CTL_NEED, .handle = (uint32_t) handle});
    receive_ctl(&answer, &fd);
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
    struct ctl request;
    int none;
    while (receive_ctl(&request, &none) && ctx) {
        serve(ctx, shared, &request);
    }
    if (ctx) {
        htp_session_close(ctx);
    }
    close(fd);
}
