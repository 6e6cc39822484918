/* HAP: log lines, clocks and buffer mappings; start-up of the emulator. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "HAP_farf.h"
#include "HAP_mem.h"
#include "HAP_perf.h"
#include "emu.h"
#include "hap-internal.h"

static emu_buffer_source buffer_source;

const char *emu_init(void) {
    const char *wrong = emu_dma_configure(getenv("HEXNPU_EMU_DMA"));
    return wrong ? wrong : emu_skew_configure(getenv("HEXNPU_EMU_SKEW"));
}

void emu_many_sessions(void) {
    emu_low_many_sessions();
    emu_vtcm_many_sessions();
}

void emu_die(const char *format, ...) {
    char line[512] = "hexnpu emulator: ";
    size_t used = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    strcat(line, "\n");
    fputs(line, stderr);
    abort();
}

void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) {
    static const char *const names[] = {"low", "medium", "high", "error", "fatal"};
    const char *slash = strrchr(file, '/');
    va_list args;
    va_start(args, format);
    flockfile(stderr);
    fprintf(stderr, "htp %s %s:%d: ", names[level < 0 || level > 4 ? 4 : level], slash ? slash + 1 : file, line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(args);
}

static uint64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

uint64_t HAP_perf_get_pcycles(void) {
    return nanoseconds() * (EMU_CLOCK_KHZ / 1000) / 1000;
}

uint64_t HAP_perf_get_qtimer_count(void) {
    return nanoseconds() / 1000 * 192 / 10;
}

uint64_t HAP_perf_get_time_us(void) {
    return nanoseconds() / 1000;
}

void emu_set_buffer_source(emu_buffer_source source) {
    buffer_source = source;
}

void *HAP_mmap2(void *addr, size_t len, int prot, int flags, int fd, long offset) {
    (void) addr, (void) prot, (void) flags;
    uint64_t size = 0;
    int file = buffer_source ? buffer_source(fd, &size) : -1;
    if (file < 0) {
        return HAP_MAP_FAILED;
    }
    bool fits = offset >= 0 && offset % 4096 == 0 && (uint64_t) offset <= size && len <= size - (uint64_t) offset;
    void *p = fits ? emu_low_map(len, file, offset) : NULL;
    close(file);
    return p ? p : HAP_MAP_FAILED;
}

int HAP_munmap2(void *addr, size_t len) {
    (void) len;
    emu_low_unmap(addr);
    return 0;
}

void *HAP_mmap(void *addr, int len, int prot, int flags, int fd, long offset) {
    return len < 0 ? HAP_MAP_FAILED : HAP_mmap2(addr, (size_t) len, prot, flags, fd, offset);
}

int HAP_munmap(void *addr, int len) {
    return HAP_munmap2(addr, (size_t) len);
}
