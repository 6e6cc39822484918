/* Buffers: memory files of a connection, which its sessions map by file descriptor. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "server.h"

#define PAGE 4096u

struct buffer *buffer_create(struct conn *c, uint64_t bytes, char *why) {
    struct sysinfo info;
    sysinfo(&info);
    uint64_t total = (uint64_t) info.totalram * info.mem_unit;
    if (bytes == 0 || bytes > total) {
        snprintf(why, SENTENCE_BYTES, "a buffer of %llu bytes: must be 1 to the device's memory of %llu bytes",
                 (unsigned long long) bytes, (unsigned long long) total);
        return NULL;
    }
    /* Sealed: a client that shares the file and cut it short would end the server by SIGBUS. */
    int fd = memfd_create("hexnpu-buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, (off_t) ((bytes + PAGE - 1) / PAGE * PAGE))
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        snprintf(why, SENTENCE_BYTES, "a buffer of %llu bytes: %s", (unsigned long long) bytes, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    struct buffer *b = calloc(1, sizeof *b);
    *b = (struct buffer){.next = c->buffers, .handle = ++server.last_handle, .bytes = bytes, .fd = fd};
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

uint8_t *buffer_memory(struct buffer *b) {
    if (!b->memory) {
        void *p = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
        b->memory = p == MAP_FAILED ? NULL : p;
        if (b->memory) {
            madvise(p, b->bytes, MADV_DONTFORK); /* sessions map what they use themselves */
        }
    }
    return b->memory;
}

static void release(struct buffer *b) {
    if (b->memory) {
        munmap(b->memory, b->bytes);
    }
    close(b->fd);
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
