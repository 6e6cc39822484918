/* The host's side of queues: create, export, close, and buffers as fastrpc_mmap() knows them. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../client/internal.h"
#include "AEEStdErr.h"
#include "queue.h"

#define DEFAULT_REQUEST_BYTES 65536u
#define DEFAULT_RESPONSE_BYTES 16384u

int side_find_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer, void **address,
                     uint64_t *size) {
    bool ref = buffer->flags & DSPQUEUE_BUFFER_FLAG_REF, deref = buffer->flags & DSPQUEUE_BUFFER_FLAG_DEREF;
    if (!pd_map_find(end->pd, buffer->fd, address, size)) {
        return AEE_ENOSUCHMAP;
    }
    if (ref && deref) {
        return AEE_EBADPARM;
    }
    return ref || deref ? pd_map_ref(end->pd, buffer->fd, ref ? 1 : -1) : AEE_SUCCESS;
}

void side_undo_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer) {
    if (buffer->flags & (DSPQUEUE_BUFFER_FLAG_REF | DSPQUEUE_BUFFER_FLAG_DEREF)) {
        pd_map_ref(end->pd, buffer->fd, buffer->flags & DSPQUEUE_BUFFER_FLAG_REF ? -1 : 1);
    }
}

/* pthreads want another type of function than qurt. */
struct start {
    void (*entry)(void *);
    void *argument;
};

static void *run(void *p) {
    struct start start = *(struct start *) p;
    free(p);
    start.entry(start.argument);
    return NULL;
}

int side_start_thread(uint64_t *thread, void (*entry)(void *), void *argument) {
    pthread_t host;
    struct start *start = malloc(sizeof *start);
    if (!start) {
        return AEE_ENOMEMORY;
    }
    *start = (struct start){entry, argument};
    if (pthread_create(&host, NULL, run, start)) {
        free(start);
        return AEE_ENOMEMORY;
    }
    *thread = (uint64_t) host;
    return AEE_SUCCESS;
}

void side_join_thread(uint64_t thread) {
    pthread_join((pthread_t) thread, NULL);
}

/* Memory that neither end can shrink under the other. */
static int make_memory(struct queue_end *end, int *fd) {
    *fd = memfd_create("dspqueue", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0) {
        return AEE_ENOMEMORY;
    }
    void *p = MAP_FAILED;
    if (!ftruncate(*fd, (off_t) end->bytes) &&
        !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        p = mmap(NULL, end->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    }
    if (p == MAP_FAILED) {
        close(*fd);
        return AEE_ENOMEMORY;
    }
    end->memory = p;
    end->memory->request_bytes = end->request_bytes;
    end->memory->response_bytes = end->response_bytes;
    return AEE_SUCCESS;
}

static void drop_memory(const struct queue_end *end) {
    if (end->region) {
        pd_unshare(end->pd, end->region);
    }
    munmap(end->memory, end->bytes);
}

static int share_memory(struct queue_end *end) {
    int fd;
    int error = make_memory(end, &fd);
    if (error) {
        return error;
    }
    end->region = pd_share(end->pd, fd, end->bytes);
    close(fd);
    if (!end->region) {
        drop_memory(end);
        return pd_is_dead(end->pd) ? AEE_ECONNRESET : AEE_ENOMEMORY;
    }
    return AEE_SUCCESS;
}

static void on_death(void *handle) {
    queue_break(handle, AEE_ECONNRESET);
}

static int create(struct queue_end *end, dspqueue_t *queue) {
    int error = share_memory(end);
    if (error) {
        fr_farf(FR_ERROR, "dspqueue_create: %llu bytes of memory cannot be shared with the session (0x%x)",
                (unsigned long long) end->bytes, (unsigned) error);
        return error;
    }
    error = queue_open(end, queue);
    if (error) {
        drop_memory(end);
        return error;
    }
    pd_on_death(end->pd, on_death, *queue);
    return AEE_SUCCESS;
}

/* A ring's bytes: a multiple of 8, and not none. */
static uint32_t ring_bytes(uint32_t bytes, uint32_t otherwise) {
    return ((bytes ? bytes : otherwise) + 7) & ~7u;
}

QUEUE_API AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                                    dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                                    void *callback_context, dspqueue_t *queue) {
    if (!queue) {
        return AEE_EBADPARM;
    }
    *queue = NULL;
    if (flags || req_queue_size > RING_MAX_BYTES || resp_queue_size > RING_MAX_BYTES) {
        fr_farf(FR_ERROR, "dspqueue_create: flags 0x%x (none are known), sizes %u and %u (%u bytes at most)", flags,
                req_queue_size, resp_queue_size, RING_MAX_BYTES);
        return AEE_EBADPARM;
    }
    struct queue_end end = {
        .request_bytes = ring_bytes(req_queue_size, DEFAULT_REQUEST_BYTES),
        .response_bytes = ring_bytes(resp_queue_size, DEFAULT_RESPONSE_BYTES),
        .packet_callback = packet_callback,
        .error_callback = error_callback,
        .context = callback_context,
    };
    int error = AEE_SUCCESS;
    domain = domain_or_default(domain, __func__);
    if (domain < 0) {
        return AEE_EBADPARM;
    }
    end.bytes = queue_memory_bytes(end.request_bytes, end.response_bytes);
    end.pd = pd_for_domain(domain, &error);
    if (!end.pd) {
        return domain_exists(domain) ? error : AEE_EUNSUPPORTED;
    }
    error = create(&end, queue);
    if (error) {
        pd_release(end.pd);
    }
    return error;
}

/* The DSP's end is closed first, unless the DSP itself is gone. */
static int may_close(const struct queue_end *end) {
    uint32_t holder = HOLDER_NONE;
    if (!end->memory || atomic_compare_exchange_strong(&end->memory->holder, &holder, HOLDER_CLOSED) ||
        pd_is_dead(end->pd)) {
        return AEE_SUCCESS;
    }
    fr_farf(FR_ERROR, "dspqueue_close: the queue is still open on the DSP, which closes it first");
    return AEE_ERPC;
}

QUEUE_API AEEResult dspqueue_close(dspqueue_t queue) {
    struct queue_end end;
    int error = queue_close(queue, may_close, &end);
    if (error) {
        return error;
    }
    for (uint32_t i = 0; i < end.n_parts; i++) {
        int of_part = dspqueue_close(end.parts[i]);
        error = error ? error : of_part;
    }
    free(end.parts);
    if (end.memory) {
        pd_off_death(end.pd, on_death, queue);
        drop_memory(&end);
        pd_release(end.pd);
    }
    return error;
}

QUEUE_API AEEResult dspqueue_export(dspqueue_t handle, uint64_t *queue_id) {
    struct queue *queue = queue_id ? queue_enter(handle) : NULL;
    if (!queue) {
        return AEE_EBADPARM;
    }
    int error = AEE_SUCCESS;
    if (queue->end.n_parts) {
        fr_farf(FR_ERROR, "dspqueue_export: dspqueue_request() has given the ids of a queue to several domains");
        error = AEE_EUNSUPPORTED;
    } else {
        *queue_id = queue->end.region;
    }
    queue_leave(queue);
    return error;
}

QUEUE_API AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback,
                                    dspqueue_callback_t error_callback, void *callback_context, dspqueue_t *queue) {
    (void) queue_id, (void) packet_callback, (void) error_callback, (void) callback_context, (void) queue;
    fr_farf(FR_ERROR, "dspqueue_import: the host creates queues, the DSP imports them");
    return AEE_EUNSUPPORTED;
}
