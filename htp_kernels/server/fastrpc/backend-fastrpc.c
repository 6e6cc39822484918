/*
 * The NPU behind libcdsprpc.so: a session is a protection domain with our kernel library in it (platform/hexagon/npu.c),
 * and every request goes over its dspqueue. A session's process opens the default session of its domain.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../backend.h"
#include "cdsprpc.h"

#define MAX_MAP_BYTES (3000ull << 20) /* of a protection domain's 4 GiB */
#define MAX_BUFFERS 1024u
#define QUEUE_BYTES 8192u
#define NPU_CLOCK_KHZ 1000000u
#define MAX_REFS (1u + HTP_MAX_BUFS)

/* The methods of platform/hexagon/htp_npu.idl, behind open and close; arguments are one buffer. */
enum { METHOD_START = 2, METHOD_STOP = 3 };

/* A buffer of the server as this session has it. */
struct known {
    uint32_t handle;
    int fd;
    uint64_t bytes;
    bool flushed;
};

static const struct cdsprpc *rpc;
static int domain_id;
static struct backend_memory own;
static backend_buffer_source find_buffer;
static remote_handle64 npu;
static dspqueue_t queue;
static struct known known[MAX_BUFFERS];
static uint32_t n_known;

static uint32_t capability(uint32_t attribute) {
    struct remote_dsp_capability ask = {.domain = CDSP_DOMAIN_ID, .attribute_ID = attribute};
    return rpc->remote_handle_control(DSPRPC_GET_DSP_INFO, &ask, sizeof ask) ? 0 : ask.capability;
}

static const char *describe(struct htp_hello *hello) {
    const char *why;
    rpc = cdsprpc_open(&why);
    if (!rpc) {
        return why;
    }
    uint32_t arch = capability(ARCH_VER) & 0xff, hvx = capability(HVX_SUPPORT_128B);
    uint64_t vtcm = (uint64_t) capability(VTCM_PAGE) * capability(VTCM_COUNT);
    if (!arch || !hvx || !vtcm) {
        return "libcdsprpc.so knows no compute DSP with HVX and VTCM here";
    }
    hello->arch = (arch >> 4) * 10 + (arch & 15); /* 0x79 is v79 */
    hello->n_threads = hvx < hello->n_threads ? hvx : hello->n_threads;
    hello->vtcm_bytes = vtcm < hello->vtcm_bytes ? vtcm : hello->vtcm_bytes;
    hello->max_map_bytes = MAX_MAP_BYTES;
    hello->clock_khz = NPU_CLOCK_KHZ;
    snprintf(hello->flavour, sizeof hello->flavour, "hexagon");
    return NULL;
}

static bool allocate(struct backend_memory *m, uint64_t bytes) {
    void *p = rpc->rpcmem_alloc2(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, bytes);
    errno = ENOMEM;
    *m = (struct backend_memory){.address = p, .bytes = bytes, .fd = p ? rpc->rpcmem_to_fd(p) : -1};
    return p != NULL;
}

static void release(struct backend_memory *m) {
    rpc->rpcmem_free(m->address);
}

static void begin(uint32_t number, const struct backend_memory *memory, backend_buffer_source source) {
    domain_id = CDSP_DOMAIN_ID + (int) number;
    own = *memory;
    find_buffer = source;
}

/* A sentence where the server looks for one. Gives false. */
__attribute__((format(printf, 1, 2))) static bool say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf((char *) ((struct htp_npu_memory *) (void *) own.address)->response, HTP_DETAIL_BYTES, format, args);
    va_end(args);
    return false;
}

static int map(int fd, void *address, uint64_t bytes) {
    return rpc->fastrpc_mmap(domain_id, fd, address, 0, bytes, FASTRPC_MAP_FD);
}

static int invoke(uint32_t method, void *in, size_t bytes) {
    remote_arg argument = {.buf = {in, bytes}};
    return rpc->remote_handle64_invoke(npu, REMOTE_SCALARS_MAKE(method, in != NULL, 0), &argument);
}

static bool connect_npu(void) {
    struct remote_rpc_control_unsigned_module unsigned_pd = {.domain = domain_id, .enable = 1};
    char uri[128], name[16] = CDSP_DOMAIN_NAME;
    uint64_t id = 0;
    uint32_t arch = capability(ARCH_VER) & 0xff;
    if (domain_id != CDSP_DOMAIN_ID) { /* cdsp1 is the second one */
        snprintf(name, sizeof name, "%s%d", CDSP_DOMAIN_NAME, domain_id - CDSP_DOMAIN_ID);
    }
    snprintf(uri, sizeof uri, "file:///libhtp-v%x.so?htp_npu_skel_handle_invoke&_modver=1.0&_dom=%s", arch, name);
    rpc->remote_session_control(DSPRPC_CONTROL_UNSIGNED_MODULE, &unsigned_pd, sizeof unsigned_pd);
    int error = rpc->remote_handle64_open(uri, &npu);
    if (error) {
        return say("libhtp-v%x.so cannot be loaded on %s (FastRPC error 0x%x; `hexnpu doctor` explains it)%s", arch, name,
                   (unsigned) error,
                   domain_id == CDSP_DOMAIN_ID ? "" : ", or there is no such NPU (see `hexnpu emulate --npus`)");
    }
    error = rpc->dspqueue_create(domain_id, 0, QUEUE_BYTES, QUEUE_BYTES, NULL, NULL, NULL, &queue);
    error = error ? error : rpc->dspqueue_export(queue, &id);
    error = error ? error : map(own.fd, own.address, own.bytes);
    error = error ? error : invoke(METHOD_START, &id, sizeof id);
    return error ? say("the NPU's queue cannot be set up (FastRPC error 0x%x)", (unsigned) error) : true;
}

static void disconnect(void) {
    invoke(METHOD_STOP, NULL, 0);
    rpc->dspqueue_close(queue);
    rpc->remote_handle64_close(npu);
}

static struct known *buffer(uint32_t handle) {
    for (uint32_t i = 0; i < n_known; i++) {
        if (known[i].handle == handle) {
            return &known[i];
        }
    }
    struct known b = {.handle = handle};
    b.fd = n_known < MAX_BUFFERS ? find_buffer((int) handle, &b.bytes) : -1;
    if (b.fd < 0 || map(b.fd, NULL, b.bytes)) {
        return NULL;
    }
    known[n_known] = b;
    return &known[n_known++];
}

static void forget(uint32_t handle) {
    for (uint32_t i = 0; i < n_known; i++) {
        if (known[i].handle == handle) {
            rpc->fastrpc_munmap(domain_id, known[i].fd, NULL, known[i].bytes);
            close(known[i].fd);
            known[i] = known[--n_known];
            return;
        }
    }
}

/* Buffers of which the CPU may have written anything since the NPU last looked: a bit each. */
static uint32_t written_buffers(const struct htp_request *request, const struct htp_wire_tensor *tensors) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < request->n_tensors; i++) {
        bits |= tensors[i].flags & HTP_TENSOR_WEIGHT || tensors[i].bi >= HTP_MAX_BUFS ? 0 : 1u << tensors[i].bi;
    }
    return bits;
}

/* Puts file descriptors for handles into the batch's buffer table, and the buffers whose caches need care into refs. A
 * batch that is not whole is left to the NPU, which refuses it. */
static uint32_t name_buffers(uint64_t bytes, struct dspqueue_buffer *refs) {
    uint8_t *batch = ((struct htp_npu_memory *) (void *) own.address)->batch;
    const struct htp_request *request = (const struct htp_request *) (const void *) batch;
    struct htp_buf *bufs = (struct htp_buf *) (void *) (batch + sizeof *request);
    uint32_t n = 0;
    if (bytes < sizeof *request || request->n_bufs > HTP_MAX_BUFS || request->n_tensors > HTP_MAX_TENSORS
        || bytes < sizeof *request + request->n_bufs * sizeof *bufs
                       + request->n_tensors * sizeof(struct htp_wire_tensor)) {
        return 0;
    }
    uint32_t written = written_buffers(request, (const struct htp_wire_tensor *) (const void *) (bufs + request->n_bufs));
    for (uint32_t i = 0; i < request->n_bufs; i++) {
        struct known *b = buffer(bufs[i].fd);
        bufs[i].fd = b ? (uint32_t) b->fd : UINT32_MAX;
        if (b && (written & 1u << i || !b->flushed)) {
            b->flushed = true;
            refs[n++] = (struct dspqueue_buffer){
                .fd = (uint32_t) b->fd,
                .flags = DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER | DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT,
            };
        }
    }
    return n;
}

/* One message there and one back. */
static bool talk(struct htp_npu_message *m) {
    struct dspqueue_buffer refs[MAX_REFS] = {{
        .fd = (uint32_t) own.fd,
        .flags = DSPQUEUE_BUFFER_FLAG_FLUSH_SENDER | DSPQUEUE_BUFFER_FLAG_INVALIDATE_RECIPIENT,
    }};
    uint32_t n_refs = 1, flags, bytes;
    if (m->request == HTP_NPU_BATCH) {
        n_refs += name_buffers(m->bytes, refs + 1);
    }
    int error = rpc->dspqueue_write(queue, 0, n_refs, refs, sizeof *m, (const uint8_t *) m, DSPQUEUE_TIMEOUT_NONE);
    error = error ? error
                  : rpc->dspqueue_read(queue, &flags, MAX_REFS, &n_refs, refs, sizeof *m, &bytes, (uint8_t *) m,
                                       DSPQUEUE_TIMEOUT_NONE);
    return error ? say("lost its NPU (FastRPC error 0x%x)", (unsigned) error) : true;
}

static bool exchange(struct htp_npu_message *m) {
    uint32_t request = m->request, handle = m->handle;
    if (request == HTP_NPU_START && !connect_npu()) {
        m->status = HTP_INTERNAL_ERR;
        return true;
    }
    if (request == HTP_NPU_UNMAP) {
        struct known *b = buffer(handle);
        m->handle = b ? (uint32_t) b->fd : UINT32_MAX;
    }
    bool alive = talk(m);
    if (request == HTP_NPU_UNMAP) {
        forget(handle);
    } else if (request == HTP_NPU_STOP && alive) {
        disconnect();
    }
    return alive;
}

const struct backend backend_fastrpc = {describe, allocate, release, begin, exchange};
