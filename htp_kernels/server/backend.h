/*
 * What runs the batches: the emulated NPU in this program (backend-emu.c), or an NPU behind FastRPC (backend-fastrpc.c).
 *
 * The server's main process asks for memory; begin() and exchange() belong to the process (or thread) of one session.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "htp-npu.h"

/* Memory that CPU and NPU share. */
struct backend_memory {
    uint8_t *address;
    uint64_t bytes;
    int fd;
};

/* Gives a file descriptor and the size of the buffer with this handle, or -1. */
typedef int (*backend_buffer_source)(int handle, uint64_t *bytes);

struct backend {
    /* Fills in what the device has; NULL, or a sentence on why there is none. */
    const char *(*describe)(struct htp_hello *hello);
    /* False: errno says why. */
    bool (*allocate)(struct backend_memory *memory, uint64_t bytes);
    void (*release)(struct backend_memory *memory);
    /* `memory` holds a struct htp_npu_memory; `npu` counts from 0. */
    void (*begin)(uint32_t npu, const struct backend_memory *memory, backend_buffer_source source);
    /* One request and its answer, in *m; false where the NPU is gone, with a sentence in the memory's `response`. */
    bool (*exchange)(struct htp_npu_message *m);
};

extern const struct backend backend_emu, backend_fastrpc;
