/* The DSP's side of queues: import, close, and buffers as the client mapped them. Compiled with the DSP's AEE codes. */
#include <string.h>

#include "../pd/pd.h"
#include "AEEStdErr.h"
#include "queue.h"
#include "qurt_thread.h"

#define STACK_BYTES 65536u
#define PRIORITY 100u

int side_find_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer, void **address,
                     uint64_t *size) {
    (void) end;
    if (!pd_map_find(buffer->fd, address, size)) {
        return AEE_ENOSUCHMAP;
    }
    uint32_t both = DSPQUEUE_BUFFER_FLAG_REF | DSPQUEUE_BUFFER_FLAG_DEREF;
    return (buffer->flags & both) == both ? AEE_EBADPARM : AEE_SUCCESS;
}

/* A mapping here stays for as long as the client's does, and that one counts the references. */
void side_undo_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer) {
    (void) end, (void) buffer;
}

int side_start_thread(uint64_t *thread, void (*entry)(void *), void *argument) {
    qurt_thread_attr_t attr;
    qurt_thread_t id;
    qurt_thread_attr_init(&attr);
    qurt_thread_attr_set_name(&attr, "dspqueue");
    qurt_thread_attr_set_stack_size(&attr, STACK_BYTES);
    qurt_thread_attr_set_priority(&attr, PRIORITY);
    if (qurt_thread_create(&id, &attr, entry, argument) != QURT_EOK) {
        return AEE_EQURTTHREADCREATE;
    }
    *thread = id;
    return AEE_SUCCESS;
}

void side_join_thread(uint64_t thread) {
    int status;
    qurt_thread_join((unsigned int) thread, &status);
}

/* The client's word about the sizes counts once, and only where its memory bears it out. */
static bool has_sizes(struct queue_end *end) {
    if (end->bytes < QUEUE_DATA) {
        return false;
    }
    end->request_bytes = *(volatile uint32_t *) &end->memory->request_bytes;
    end->response_bytes = *(volatile uint32_t *) &end->memory->response_bytes;
    return end->request_bytes && end->request_bytes % 8 == 0 && end->request_bytes <= RING_MAX_BYTES &&
           end->response_bytes && end->response_bytes % 8 == 0 && end->response_bytes <= RING_MAX_BYTES &&
           queue_memory_bytes(end->request_bytes, end->response_bytes) <= end->bytes;
}

static int import(struct queue_end *end, dspqueue_t *queue) {
    uint32_t holder = HOLDER_NONE;
    if (!has_sizes(end)) {
        fr_farf(FR_ERROR, "dspqueue_import: region %llu is no queue", (unsigned long long) end->region);
        return AEE_EBADPARM;
    }
    if (!atomic_compare_exchange_strong(&end->memory->holder, &holder, HOLDER_DSP)) {
        fr_farf(FR_ERROR, "dspqueue_import: queue %llu %s", (unsigned long long) end->region,
                holder == HOLDER_DSP ? "has been imported already" : "was closed by the host");
        return holder == HOLDER_DSP ? AEE_EITEMBUSY : AEE_EBADSTATE;
    }
    int error = queue_open(end, queue);
    if (error) {
        atomic_store(&end->memory->holder, HOLDER_NONE);
    }
    return error;
}

QUEUE_API AEEResult dspqueue_import(uint64_t queue_id, dspqueue_callback_t packet_callback,
                                    dspqueue_callback_t error_callback, void *callback_context, dspqueue_t *queue) {
    struct queue_end end = {
        .is_dsp = true,
        .packet_callback = packet_callback,
        .error_callback = error_callback,
        .context = callback_context,
        .region = queue_id,
    };
    end.memory = queue ? pd_region(queue_id, &end.bytes) : NULL;
    if (!end.memory) {
        fr_farf(FR_ERROR, "dspqueue_import: there is no queue %llu in this session: the host closed it, or created it "
                          "in another one",
                (unsigned long long) queue_id);
        return AEE_EBADPARM;
    }
    int error = import(&end, queue);
    if (error) {
        pd_region_release(queue_id);
    }
    return error;
}

QUEUE_API AEEResult dspqueue_close(dspqueue_t queue) {
    struct queue_end end;
    int error = queue_close(queue, NULL, &end);
    if (!error) {
        atomic_store(&end.memory->holder, HOLDER_NONE);
        pd_region_release(end.region);
    }
    return error;
}

static AEEResult of_the_host(const char *function) {
    fr_farf(FR_ERROR, "%s: the host creates queues, the DSP imports them", function);
    return AEE_EUNSUPPORTED;
}

QUEUE_API AEEResult dspqueue_create(int domain, uint32_t flags, uint32_t req_queue_size, uint32_t resp_queue_size,
                                    dspqueue_callback_t packet_callback, dspqueue_callback_t error_callback,
                                    void *callback_context, dspqueue_t *queue) {
    (void) domain, (void) flags, (void) req_queue_size, (void) resp_queue_size;
    (void) packet_callback, (void) error_callback, (void) callback_context, (void) queue;
    return of_the_host(__func__);
}

QUEUE_API AEEResult dspqueue_export(dspqueue_t queue, uint64_t *queue_id) {
    (void) queue, (void) queue_id;
    return of_the_host(__func__);
}

QUEUE_API int dspqueue_request(dspqueue_request_payload *req) {
    (void) req;
    return of_the_host(__func__);
}
