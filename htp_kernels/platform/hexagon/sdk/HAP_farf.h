/* Log lines of the NPU side: FARF(level, format, ...). RUNTIME levels only; the emulator writes them to stderr. */
#pragma once

enum HAP_farf_level { HAP_LEVEL_LOW, HAP_LEVEL_MEDIUM, HAP_LEVEL_HIGH, HAP_LEVEL_ERROR, HAP_LEVEL_FATAL };

#define FARF_LOW HAP_LEVEL_LOW
#define FARF_MEDIUM HAP_LEVEL_MEDIUM
#define FARF_HIGH HAP_LEVEL_HIGH
#define FARF_ERROR HAP_LEVEL_ERROR
#define FARF_FATAL HAP_LEVEL_FATAL
#define FARF_ALWAYS HAP_LEVEL_HIGH

void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) __attribute__((format(printf, 4, 5)));

#define FARF(level, ...) HAP_debug_v2(FARF_##level, __FILE__, __LINE__, __VA_ARGS__)
