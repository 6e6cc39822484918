/* What FARF() calls. The emulator writes a line to the file that HEXNPU_EMU_FARF names, else to stderr. */
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "AEEStdDef.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_FARF_LEN 256

#define HAP_LEVEL_LOW 0
#define HAP_LEVEL_MEDIUM 1
#define HAP_LEVEL_HIGH 2
#define HAP_LEVEL_ERROR 3
#define HAP_LEVEL_FATAL 4
#define HAP_LEVEL_CRITICAL 5
#define HAP_LEVEL_RPC_LOW 16
#define HAP_LEVEL_RPC_MEDIUM 17
#define HAP_LEVEL_RPC_HIGH 18
#define HAP_LEVEL_RPC_ERROR 19
#define HAP_LEVEL_RPC_FATAL 20
#define HAP_LEVEL_RPC_CRITICAL 21
#define HAP_LEVEL_RUNTIME (1 << 5) /* logged where HAP_setFARFRuntimeLoggingParams() says so */

/* Sources of other projects print size_t by %u and the like, as fits a 32-bit machine. */
#ifdef HEXNPU_EMU_DSP
#define HAP_FARF_FORMAT
#else
#define HAP_FARF_FORMAT __attribute__((format(printf, 4, 5)))
#endif

void HAP_debug_v2(int level, const char *file, int line, const char *format, ...) HAP_FARF_FORMAT;
void HAP_debug_runtime(int level, const char *file, int line, const char *format, ...) HAP_FARF_FORMAT;
void HAP_debug(const char *msg, int level, const char *filename, int line);

/* Run-time lines are logged where bit (1 << level) of the mask is set; with files, only of those. */
int HAP_setFARFRuntimeLoggingParams(unsigned int mask, const char *files[], unsigned short numberOfFiles);

#ifdef __cplusplus
}
#endif
