/* FARF() of the host program itself: the real library has these names too. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "HAP_debug.h"
#include "internal.h"

static int plain_level(int level) {
    int of_kind = level & ~(HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_LOW);
    return of_kind > FR_FATAL ? FR_FATAL : of_kind;
}

static void log_line(int level, const char *file, int line, const char *format, va_list args) {
    char text[1024];
    const char *slash = strrchr(file, '/');
    vsnprintf(text, sizeof text, format, args);
    fr_farf(plain_level(level), "%s:%d: %s", slash ? slash + 1 : file, line, text);
}

FR_EXPORT void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    log_line(level, file, line, format, args);
    va_end(args);
}

/* Nothing asks for run-time levels on this side: they stay silent, as on a device without a .farf file. */
FR_EXPORT void HAP_debug_runtime(int level, const char *file, int line, const char *format, ...) {
    (void) level, (void) file, (void) line, (void) format;
}
