/* The emulated NPU: a session is this process (or thread) itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../platform/emu/emu.h"
#include "backend.h"
#include "../runtime/htp-runtime.h"

#define MAX_MAP_BYTES 3355443200ull
#define KEPT_FREE (512ull << 20) /* of the low memory: VTCM, tables, descriptors */
#define PAGE 4096u

static _Thread_local struct htp_ctx *ctx;
static _Thread_local struct htp_npu_memory *own;

static const char *describe(struct htp_hello *hello) {
    uint64_t window = emu_low_capacity() - KEPT_FREE;
    hello->arch = __HVX_ARCH__;
    hello->max_map_bytes = window < MAX_MAP_BYTES ? window : MAX_MAP_BYTES;
    hello->clock_khz = EMU_CLOCK_KHZ;
    return NULL;
}

static bool allocate(struct backend_memory *m, uint64_t bytes) {
    /* Sealed: a client that shares the file and cut it short would end the server by SIGBUS. */
    int fd = memfd_create("hexnpu-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *p = MAP_FAILED;
    if (fd >= 0 && !ftruncate(fd, (off_t) ((bytes + PAGE - 1) / PAGE * PAGE))
        && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (p == MAP_FAILED) {
        int why = errno;
        close(fd);
        errno = why;
        return false;
    }
    *m = (struct backend_memory){.address = p, .bytes = bytes, .fd = fd};
    return true;
}

static void release(struct backend_memory *m) {
    munmap(m->address, m->bytes);
    close(m->fd);
}

static void begin(uint32_t npu, const struct backend_memory *memory, backend_buffer_source source) {
    (void) npu; /* every session has an NPU of its own */
    own = (struct htp_npu_memory *) (void *) memory->address;
    emu_set_buffer_source(source);
}

static bool exchange(struct htp_npu_message *m) {
    if (m->request == HTP_NPU_START) {
        emu_vtcm_set_bytes(m->session.vtcm_bytes);
    }
    htp_serve(&ctx, m, own);
    return true;
}

const struct backend backend_emu = {describe, allocate, release, begin, exchange};
