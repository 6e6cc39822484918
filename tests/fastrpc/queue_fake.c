#define _GNU_SOURCE
#include "queue_fake.h"

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_MAPS 8

_Atomic uint32_t fake_farf_lines;
bool fake_farf_silent;

static struct {
    uint32_t fd;
    void *of[2];
    uint64_t size;
    _Atomic int refs;
} maps[MAX_MAPS];
static int n_maps;

struct start {
    void (*entry)(void *);
    void *argument;
};

void fr_farf(int level, const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    (void) level;
    if (!fake_farf_silent) {
        fprintf(stderr, "farf: %s\n", line);
    }
    atomic_fetch_add(&fake_farf_lines, 1);
}

struct fr_counters *fr_counters(void) {
    static struct fr_counters counters;
    return &counters;
}

void fake_map(uint32_t fd, void *of_cpu, void *of_dsp, uint64_t size) {
    maps[n_maps].fd = fd;
    maps[n_maps].of[0] = of_cpu;
    maps[n_maps].of[1] = of_dsp;
    maps[n_maps++].size = size;
}

static int find(uint32_t fd) {
    for (int i = 0; i < n_maps; i++) {
        if (maps[i].fd == fd) {
            return i;
        }
    }
    return -1;
}

int fake_refs(uint32_t fd) {
    return atomic_load(&maps[find(fd)].refs);
}

int side_find_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer, void **address,
                     uint64_t *size) {
    int i = find(buffer->fd);
    bool ref = buffer->flags & DSPQUEUE_BUFFER_FLAG_REF, deref = buffer->flags & DSPQUEUE_BUFFER_FLAG_DEREF;
    if (i < 0) {
        return AEE_ENOSUCHMAP;
    }
    if (ref && deref) {
        return AEE_EBADPARM;
    }
    *address = maps[i].of[end->is_dsp];
    *size = maps[i].size;
    atomic_fetch_add(&maps[i].refs, ref - deref);
    return AEE_SUCCESS;
}

void side_undo_buffer(const struct queue_end *end, const struct dspqueue_buffer *buffer) {
    bool ref = buffer->flags & DSPQUEUE_BUFFER_FLAG_REF, deref = buffer->flags & DSPQUEUE_BUFFER_FLAG_DEREF;
    (void) end;
    atomic_fetch_add(&maps[find(buffer->fd)].refs, deref - ref);
}

static void *run(void *p) {
    struct start start = *(struct start *) p;
    free(p);
    start.entry(start.argument);
    return NULL;
}

int side_start_thread(uint64_t *thread, void (*entry)(void *), void *argument) {
    pthread_t host;
    struct start *start = malloc(sizeof *start);
    *start = (struct start){entry, argument};
    CHECK(!pthread_create(&host, NULL, run, start));
    *thread = (uint64_t) host;
    return AEE_SUCCESS;
}

void side_join_thread(uint64_t thread) {
    pthread_join((pthread_t) thread, NULL);
}

struct pair pair_open(uint32_t request_bytes, uint32_t response_bytes, struct callbacks of_cpu,
                      struct callbacks of_dsp) {
    struct pair pair = {.bytes = queue_memory_bytes(request_bytes, response_bytes)};
    pair.memory = mmap(NULL, pair.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pair.memory != MAP_FAILED);
    struct queue_end end = {.memory = pair.memory, .request_bytes = request_bytes, .response_bytes = response_bytes};
    end.packet_callback = of_cpu.packet, end.error_callback = of_cpu.error, end.context = of_cpu.context;
    CHECK_IS(queue_open(&end, &pair.cpu), AEE_SUCCESS);
    end.is_dsp = true;
    end.packet_callback = of_dsp.packet, end.error_callback = of_dsp.error, end.context = of_dsp.context;
    CHECK_IS(queue_open(&end, &pair.dsp), AEE_SUCCESS);
    return pair;
}

int fake_close(dspqueue_t queue) {
    struct queue_end end;
    return queue_close(queue, NULL, &end);
}

void pair_close(struct pair *pair) {
    if (pair->cpu) {
        CHECK_IS(fake_close(pair->cpu), AEE_SUCCESS);
    }
    if (pair->dsp) {
        CHECK_IS(fake_close(pair->dsp), AEE_SUCCESS);
    }
    munmap(pair->memory, pair->bytes);
}
