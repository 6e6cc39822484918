/* Of both ends: log lines, the counters of the run, and waiting. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shared.h"

#define LOOK_NS 20000u /* a waiter looks this long before it sleeps: longer than a call of nothing takes */
#define LINE_BYTES 2048u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int farf_fd = STDERR_FILENO;
static struct fr_counters own_counters;
static struct fr_counters *counters = &own_counters;

static void map_counters(const char *path) {
    struct stat info;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    if (!fstat(fd, &info) && (size_t) info.st_size >= sizeof *counters) {
        void *p = mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        counters = p == MAP_FAILED ? &own_counters : p;
    }
    close(fd);
}

static void start(void) {
    const char *farf = getenv("HEXNPU_EMU_FARF"), *summary = getenv("HEXNPU_EMU_SUMMARY");
    if (farf && *farf) {
        int fd = open(farf, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        farf_fd = fd < 0 ? STDERR_FILENO : fd;
    }
    if (summary && *summary) {
        map_counters(summary);
    }
}

struct fr_counters *fr_counters(void) {
    pthread_once(&once, start);
    return counters;
}

void fr_farf(int level, const char *format, ...) {
    static const char *const names[] = {"low", "medium", "high", "error", "fatal"};
    char line[LINE_BYTES];
    va_list args;
    pthread_once(&once, start);
    int used = snprintf(line, sizeof line, "fastrpc %s: ", names[level < 0 || level > 4 ? 4 : level]);
    va_start(args, format);
    int more = vsnprintf(line + used, sizeof line - (size_t) used - 1, format, args);
    va_end(args);
    size_t n = (size_t) used + (size_t) (more < 0 ? 0 : more);
    n = n < sizeof line - 1 ? n : sizeof line - 2;
    line[n++] = '\n';
    ssize_t written = write(farf_fd, line, n); /* in one piece, between those of other processes */
    (void) written;
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

void fr_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_us) {
    struct timespec most = {(time_t) (timeout_us / 1000000), (long) (timeout_us % 1000000) * 1000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_us < 0 ? NULL : &most, NULL, 0);
}

void fr_futex_wake(_Atomic uint32_t *word, uint32_t n) {
    syscall(SYS_futex, word, FUTEX_WAKE, n > INT_MAX ? INT_MAX : n, NULL, NULL, 0);
}

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

void fr_wait_change(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleeps) {
    uint64_t until = now_ns() + LOOK_NS;
    do {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) {
                return;
            }
            relax();
        }
    } while (now_ns() < until);
    atomic_store(sleeps, 1);
    while (atomic_load(word) == value) {
        fr_futex_wait(word, value, -1);
    }
    atomic_store(sleeps, 0);
}

void fr_change(_Atomic uint32_t *word, uint32_t value, _Atomic uint32_t *sleeps) {
    atomic_store(word, value);
    if (atomic_load(sleeps)) {
        fr_futex_wake(word, 1);
    }
}
