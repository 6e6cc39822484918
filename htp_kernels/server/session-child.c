/*
 * The life of one session: takes requests from the server over its control socket and hands them to the backend, in a
 * process of its own or in a thread of the server.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

void session_main(int fd, uint32_t npu, const struct backend_memory *memory) {
    struct ctl ctl = {0};
    int none;
    bool started = true;
    control = fd;
    server.backend->begin(npu, memory, ask_for_buffer);
    while (started && receive_ctl(&ctl, &none)) {
        uint32_t request = ctl.message.request;
        if (!server.backend->exchange(&ctl.message)) {
            _exit(HTP_NPU_LOST_EXIT);
        }
        started = request != HTP_NPU_START || ctl.message.status == HTP_OK;
        ctl.kind = CTL_DONE;
        send_ctl(&ctl);
    }
    if (started) {
        server.backend->exchange(&(struct htp_npu_message){.request = HTP_NPU_STOP});
    }
    close(fd);
}
