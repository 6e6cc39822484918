/* libcdsprpc.so, opened at run time: a machine without one runs the same program on the emulated NPU. */
#pragma once

#include "dspqueue.h"
#include "remote.h"
#include "rpcmem.h"

struct cdsprpc {
    void *(*rpcmem_alloc2)(int heap, uint32_t flags, size_t bytes);
    void (*rpcmem_free)(void *p);
    int (*rpcmem_to_fd)(void *p);
    int (*fastrpc_mmap)(int domain, int fd, void *address, int offset, size_t bytes, enum fastrpc_map_flags flags);
    int (*fastrpc_munmap)(int domain, int fd, void *address, size_t bytes);
    int (*remote_handle_control)(uint32_t request, void *data, uint32_t bytes);
    int (*remote_session_control)(uint32_t request, void *data, uint32_t bytes);
    AEEResult (*dspqueue_create)(int domain, uint32_t flags, uint32_t requests, uint32_t responses,
                                 dspqueue_callback_t packet, dspqueue_callback_t error, void *context,
                                 dspqueue_t *queue);
    AEEResult (*dspqueue_export)(dspqueue_t queue, uint64_t *id);
    AEEResult (*dspqueue_close)(dspqueue_t queue);
    AEEResult (*dspqueue_write)(dspqueue_t queue, uint32_t flags, uint32_t n_buffers, struct dspqueue_buffer *buffers,
                                uint32_t bytes, const uint8_t *message, uint32_t timeout_us);
    AEEResult (*dspqueue_read)(dspqueue_t queue, uint32_t *flags, uint32_t max_buffers, uint32_t *n_buffers,
                               struct dspqueue_buffer *buffers, uint32_t max_bytes, uint32_t *bytes, uint8_t *message,
                               uint32_t timeout_us);
    int (*remote_handle64_open)(const char *uri, remote_handle64 *handle);
    int (*remote_handle64_invoke)(remote_handle64 handle, uint32_t scalars, remote_arg *args);
    int (*remote_handle64_close)(remote_handle64 handle);
};

/* NULL where it cannot be opened; *why is then a sentence. */
const struct cdsprpc *cdsprpc_open(const char **why);
