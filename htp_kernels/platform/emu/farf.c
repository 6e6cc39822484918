/* Log lines: one write() each, so that lines of several threads and processes do not mix. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "HAP_farf.h"
#include "emu.h"
#include "hap-internal.h"

#define LINE_BYTES 1024
#define MAX_FILES 32u

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int log_fd = 2;

static void open_log(void) {
    const char *path = getenv("HEXNPU_EMU_FARF");
    if (!path || !*path) {
        return;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) {
        log_fd = fd;
    } else {
        fprintf(stderr, "htp error farf.c: HEXNPU_EMU_FARF=%s: %s; log lines go to stderr\n", path, strerror(errno));
    }
}

void emu_log_line(const char *start, const char *format, va_list args) {
    char line[LINE_BYTES];
    pthread_once(&once, open_log);
    int head = snprintf(line, sizeof line, "%s", start);
    size_t used = head < LINE_BYTES ? (size_t) head : LINE_BYTES - 1;
    int body = vsnprintf(line + used, sizeof line - used, format, args);
    size_t room = sizeof line - used - 1;
    used += body < 0 ? 0 : (size_t) body < room ? (size_t) body : room;
    while (used && line[used - 1] == '\n') {
        used--;
    }
    line[used] = '\n';
    ssize_t written = write(log_fd, line, used + 1);
    (void) written; /* where to complain? */
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void log_at(int level, const char *file, int line, const char *format, va_list args) {
    static const char *const names[] = {"low", "medium", "high", "error", "fatal", "critical"};
    char start[320];
    int kind = level & 15;
    snprintf(start, sizeof start, "htp %s %s:%d: ", names[kind > 5 ? 4 : kind], base_name(file), line);
    emu_log_line(start, format, args);
}

void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    log_at(level, file, line, format, args);
    va_end(args);
}

__attribute__((format(printf, 4, 5))) static void log_plain(int level, const char *file, int line, const char *format,
                                                            ...) {
    va_list args;
    va_start(args, format);
    log_at(level, file, line, format, args);
    va_end(args);
}

void HAP_debug(const char *msg, int level, const char *filename, int line) {
    log_plain(level, filename, line, "%s", msg);
}

/* What run-time lines are wanted. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t wanted_levels;
static char *wanted_files[MAX_FILES];
static uint32_t n_wanted_files;

int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char *files[], unsigned short numberOfFiles) {
    if (numberOfFiles && !files) {
        return DSP_ERROR(AEE_EBADPARM);
    }
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < n_wanted_files; i++) {
        free(wanted_files[i]);
    }
    n_wanted_files = numberOfFiles < MAX_FILES ? numberOfFiles : MAX_FILES;
    for (uint32_t i = 0; i < n_wanted_files; i++) {
        wanted_files[i] = strdup(base_name(files[i]));
    }
    wanted_levels = mask;
    pthread_mutex_unlock(&lock);
    return AEE_SUCCESS;
}

static bool wanted(int level, const char *file) {
    pthread_mutex_lock(&lock);
    bool found = !n_wanted_files;
    for (uint32_t i = 0; i < n_wanted_files && !found; i++) {
        found = wanted_files[i] && !strcmp(wanted_files[i], base_name(file));
    }
    found = found && (wanted_levels >> (level & 31) & 1);
    pthread_mutex_unlock(&lock);
    return found;
}

void HAP_debug_runtime(int level, const char *file, int line, const char *format, ...) {
    va_list args;
    if (!wanted(level, file)) {
        return;
    }
    va_start(args, format);
    log_at(level, file, line, format, args);
    va_end(args);
}
