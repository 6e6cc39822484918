/*
 * Log lines of the NPU side: FARF(LEVEL, format, ...).
 *
 * ERROR, FATAL and ALWAYS are compiled in; LOW, MEDIUM, HIGH and CRITICAL where FARF_<LEVEL> is defined to 1 before
 * this file is included (_DEBUG does that for HIGH). RUNTIME_<LEVEL> and RUNTIME_RPC_<LEVEL> are compiled in, and
 * logged once HAP_setFARFRuntimeLoggingParams() asked for them.
 */
#pragma once

#include "HAP_debug.h"

#define FARF(level, ...) FARF_PASTE_(FARF_WHERE_, FARF_##level)(level, __VA_ARGS__)
#define FARF_PASTE_(a, b) FARF_PASTE2_(a, b)
#define FARF_PASTE2_(a, b) a##b

#ifndef __FILENAME__
#define __FILENAME__ __FILE__
#endif

#define FARF_WHERE_0(level, ...)                                                                                       \
    do {                                                                                                               \
    } while (0)
#define FARF_WHERE_1(level, ...)                                                                                       \
    do {                                                                                                               \
        if (FARF_##level##_LEVEL & HAP_LEVEL_RUNTIME) {                                                                \
            HAP_debug_runtime(FARF_##level##_LEVEL ^ HAP_LEVEL_RUNTIME, __FILENAME__, __LINE__, __VA_ARGS__);          \
        } else {                                                                                                       \
            HAP_debug_v2(FARF_##level##_LEVEL, __FILENAME__, __LINE__, __VA_ARGS__);                                   \
        }                                                                                                              \
    } while (0)

#ifndef FARF_LOW
#define FARF_LOW 0
#endif
#ifndef FARF_MEDIUM
#define FARF_MEDIUM 0
#endif
#ifndef FARF_HIGH
#ifdef _DEBUG
#define FARF_HIGH 1
#else
#define FARF_HIGH 0
#endif
#endif
#ifndef FARF_ERROR
#define FARF_ERROR 1
#endif
#ifndef FARF_FATAL
#define FARF_FATAL 1
#endif
#ifndef FARF_CRITICAL
#define FARF_CRITICAL 0
#endif
#ifndef FARF_ALWAYS
#define FARF_ALWAYS 1
#endif
#ifndef FARF_RUNTIME_LOW
#define FARF_RUNTIME_LOW 1
#endif
#ifndef FARF_RUNTIME_MEDIUM
#define FARF_RUNTIME_MEDIUM 1
#endif
#ifndef FARF_RUNTIME_HIGH
#define FARF_RUNTIME_HIGH 1
#endif
#ifndef FARF_RUNTIME_ERROR
#define FARF_RUNTIME_ERROR 1
#endif
#ifndef FARF_RUNTIME_FATAL
#define FARF_RUNTIME_FATAL 1
#endif
#ifndef FARF_RUNTIME_RPC_LOW
#define FARF_RUNTIME_RPC_LOW 1
#endif
#ifndef FARF_RUNTIME_RPC_MEDIUM
#define FARF_RUNTIME_RPC_MEDIUM 1
#endif
#ifndef FARF_RUNTIME_RPC_HIGH
#define FARF_RUNTIME_RPC_HIGH 1
#endif
#ifndef FARF_RUNTIME_RPC_ERROR
#define FARF_RUNTIME_RPC_ERROR 1
#endif
#ifndef FARF_RUNTIME_RPC_FATAL
#define FARF_RUNTIME_RPC_FATAL 1
#endif
#ifndef FARF_RUNTIME_RPC_CRITICAL
#define FARF_RUNTIME_RPC_CRITICAL 1
#endif

#define FARF_LOW_LEVEL HAP_LEVEL_LOW
#define FARF_MEDIUM_LEVEL HAP_LEVEL_MEDIUM
#define FARF_HIGH_LEVEL HAP_LEVEL_HIGH
#define FARF_ERROR_LEVEL HAP_LEVEL_ERROR
#define FARF_FATAL_LEVEL HAP_LEVEL_FATAL
#define FARF_CRITICAL_LEVEL HAP_LEVEL_CRITICAL
#define FARF_ALWAYS_LEVEL HAP_LEVEL_HIGH
#define FARF_RUNTIME_LOW_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_LOW)
#define FARF_RUNTIME_MEDIUM_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_MEDIUM)
#define FARF_RUNTIME_HIGH_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_HIGH)
#define FARF_RUNTIME_ERROR_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_ERROR)
#define FARF_RUNTIME_FATAL_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_FATAL)
#define FARF_RUNTIME_RPC_LOW_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_LOW)
#define FARF_RUNTIME_RPC_MEDIUM_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_MEDIUM)
#define FARF_RUNTIME_RPC_HIGH_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_HIGH)
#define FARF_RUNTIME_RPC_ERROR_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_ERROR)
#define FARF_RUNTIME_RPC_FATAL_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_FATAL)
#define FARF_RUNTIME_RPC_CRITICAL_LEVEL (HAP_LEVEL_RUNTIME | HAP_LEVEL_RPC_CRITICAL)
