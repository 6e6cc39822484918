/*
 * htp-pd: one protection domain of an NPU. Its main thread takes control messages from the client; when their socket
 * closes the client is gone or done with the session, and the process ends.
 *
 * What DSP code can point at has to lie below 4 GiB: this program is linked at a fixed low address, its heap follows
 * it, and DSP libraries come behind the heap.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../emu/emu.h"
#include "internal.h"

#define HEAP_BEGIN_MAX 0x10000000u /* a heap from there on leaves too little room to the libraries' addresses */
#define MAX_TRIES 100
#define MAX_FDS 4096 /* where the kernel is older than close_range (Linux 5.9) */

/*
 * Linux puts the heap at a random distance behind the program, of up to 1 GiB. Where it came out too far: once more
 * without randomness, or where that is not allowed (containers) until it comes out well.
 */
static void keep_heap_low(char **argv) {
    int tries = argv[1] && argv[2] ? atoi(argv[2]) : 0;
    if ((uintptr_t) sbrk(0) < HEAP_BEGIN_MAX || tries >= MAX_TRIES) {
        return;
    }
    char count[16], *again[] = {argv[0], argv[1], count, NULL};
    snprintf(count, sizeof count, "%d", tries + 1);
    personality(ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", again);
}

static void close_from(int first) {
    if (syscall(SYS_close_range, first, ~0u, 0)) {
        for (int fd = first; fd < MAX_FDS; fd++) {
            close(fd);
        }
    }
}

/* The host program's files are not ours; stdout is its own, so what DSP code prints goes where its log goes. */
static void set_up_files(void) {
    const char *farf = getenv("HEXNPU_EMU_FARF");
    close_from(FR_SHARED_FD + 1);
    int log = farf && *farf ? open(farf, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    if (log >= 0) {
        dup2(log, STDERR_FILENO);
        close(log);
    }
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the client too, which ends its sessions */
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* One message, and the file descriptor that came with it (-1: none); false where the client is gone. */
static bool receive(struct fr_ctl *ctl, int *fd) {
    struct iovec iov = {ctl, sizeof *ctl};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } in;
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = in.room, .msg_controllen = sizeof in.room};
    ssize_t n;
    *fd = -1;
    do {
        n = recvmsg(FR_SOCKET_FD, &msg, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    struct cmsghdr *cmsg = n == sizeof *ctl ? CMSG_FIRSTHDR(&msg) : NULL;
    if (cmsg && cmsg->cmsg_type == SCM_RIGHTS) {
        memcpy(fd, CMSG_DATA(cmsg), sizeof *fd);
    }
    return n == sizeof *ctl;
}

static int serve(struct fr_shared *shared, struct fr_ctl *ctl, int fd) {
    switch (ctl->kind) {
    case FR_WORKER:
        return ctl->id < FR_SLOTS && pd_worker_start(&shared->slots[ctl->id], (uint32_t) ctl->id) ? AEE_SUCCESS
                                                                                                  : (int) AEE_ENOMEMORY;
    case FR_SHARE: return pd_region_add(ctl->id, ctl->bytes, fd);
    case FR_UNSHARE: pd_region_drop(ctl->id); return AEE_SUCCESS;
    case FR_MAP: return pd_map_add(ctl, &ctl->address);
    case FR_UNMAP: pd_map_drop(ctl->fd); return AEE_SUCCESS;
    case FR_STACK: pd_set_stack_bytes(ctl->bytes); return AEE_SUCCESS;
    default: return (int) AEE_EUNSUPPORTED;
    }
}

static void answer(const struct fr_ctl *ctl) {
    send(FR_SOCKET_FD, ctl, sizeof *ctl, MSG_NOSIGNAL); /* where it fails the client is gone, as receive() finds */
}

static struct fr_shared *start(void) {
    emu_low_reserve_heap();
    const char *wrong = emu_init();
    struct fr_shared *shared = wrong ? NULL : emu_low_map(sizeof *shared, FR_SHARED_FD, 0);
    if (wrong) {
        fr_farf(FR_FATAL, "htp-pd: %s", wrong);
    } else if (!shared) {
        fr_farf(FR_FATAL, "htp-pd: no room below 4 GiB");
    }
    emu_set_buffer_source(pd_buffer_source);
    close(FR_SHARED_FD);
    return shared;
}

int main(int argc, char **argv) {
    if (argc < 2 || fcntl(FR_SOCKET_FD, F_GETFD) < 0) {
        fprintf(stderr, "htp-pd: started by libcdsprpc.so for a session; run a host program by `hexnpu emulate`\n");
        return 2;
    }
    keep_heap_low(argv);
    mallopt(M_MMAP_MAX, 0); /* all of the heap stays behind the program */
    mallopt(M_ARENA_MAX, 1);
    set_up_files();
    struct fr_shared *shared = start();
    struct fr_ctl ctl = {.kind = FR_READY, .status = shared ? AEE_SUCCESS : (int) AEE_EFAILED};
    int fd;
    answer(&ctl);
    while (shared && receive(&ctl, &fd)) {
        ctl.status = serve(shared, &ctl, fd);
        answer(&ctl);
    }
    _exit(0); /* threads may be anywhere */
}
