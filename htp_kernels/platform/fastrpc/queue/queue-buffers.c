/* Buffers that packets refer to: found, counted and checked by the writer and, in its own map, by the reader. */
#include "AEEStdErr.h"
#include "queue.h"

static int resolve(struct queue *queue, struct dspqueue_buffer *buffer, int bad_bounds) {
    void *address = NULL;
    uint64_t size = 0, end = (uint64_t) buffer->offset + buffer->size;
    int error = side_find_buffer(&queue->end, buffer, &address, &size);
    if (error) {
        bool unknown = error == (int) AEE_ENOSUCHMAP;
        fr_farf(FR_ERROR, "dspqueue: buffer %u %s", buffer->fd,
                unknown ? "is not mapped: fastrpc_mmap() comes first" : "has REF with DEREF, or a DEREF without a REF");
        return error;
    }
    bool fits = buffer->size ? end <= size : buffer->offset == 0 && size <= UINT32_MAX;
    if (!fits) {
        fr_farf(FR_ERROR, "dspqueue: bytes %u to %llu of buffer %u, which has %llu%s", buffer->offset,
                (unsigned long long) end, buffer->fd, (unsigned long long) size,
                buffer->size ? "" : "; size 0 stands for all of it and needs offset 0");
        side_undo_buffer(&queue->end, buffer);
        return bad_bounds;
    }
    buffer->ptr = address ? (uint8_t *) address + buffer->offset : NULL; /* mapped without an address */
    buffer->size = buffer->size ? buffer->size : (uint32_t) size;
    return AEE_SUCCESS;
}

void queue_undo_buffers(struct queue *queue, const struct dspqueue_buffer *buffers, uint32_t n) {
    while (n-- > 0) {
        side_undo_buffer(&queue->end, &buffers[n]);
    }
}

int queue_find_buffers(struct queue *queue, struct dspqueue_buffer *buffers, uint32_t n, int bad_bounds) {
    for (uint32_t i = 0; i < n; i++) {
        int error = resolve(queue, &buffers[i], bad_bounds);
        if (error) {
            queue_undo_buffers(queue, buffers, i);
            return error;
        }
    }
    /* The caches of a host are coherent: flush and invalidate are this. */
    atomic_thread_fence(memory_order_seq_cst);
    return AEE_SUCCESS;
}
