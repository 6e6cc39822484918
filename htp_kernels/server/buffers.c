/* Buffers: memory of a connection, which its sessions map by file descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "server.h"

struct buffer *buffer_create(struct conn *c, uint64_t bytes, char *why) {
    struct sysinfo info;
    sysinfo(&info);
    uint64_t total = (uint64_t) info.totalram * info.mem_unit;
    if (bytes == 0 || bytes > total) {
        snprintf(why, SENTENCE_BYTES, "a buffer of %llu bytes: must be 1 to the device's memory of %llu bytes",
                 (unsigned long long) bytes, (unsigned long long) total);
        return NULL;
    }
    struct backend_memory memory;
    if (!server.backend->allocate(&memory, bytes)) {
        snprintf(why, SENTENCE_BYTES, "a buffer of %llu bytes: %s", (unsigned long long) bytes, strerror(errno));
        return NULL;
    }
    madvise(memory.address, bytes, MADV_DONTFORK); /* sessions map what they use themselves */
    struct buffer *b = calloc(1, sizeof *b);
    *b = (struct buffer){.next = c->buffers, .handle = ++server.last_handle, .bytes = bytes, .memory = memory};
    c->buffers = b;
    return b;
}

struct buffer *buffer_find(struct conn *c, uint32_t handle) {
    struct buffer *b = c->buffers;
    while (b && b->handle != handle) {
        b = b->next;
    }
    return b;
}

static void release(struct buffer *b) {
    server.backend->release(&b->memory);
    free(b);
}

void buffer_done_reading(struct buffer *b) {
    if (--b->n_readers == 0 && b->freed) {
        release(b);
    }
}

void buffer_free(struct conn *c, struct buffer *b) {
    struct buffer **at = &c->buffers;
    while (*at != b) {
        at = &(*at)->next;
    }
    *at = b->next;
    b->freed = true;
    if (b->n_readers == 0) {
        release(b);
    }
}

void buffers_free_all(struct conn *c) {
    while (c->buffers) {
        buffer_free(c, c->buffers);
    }
}
