/* QuRT's own types and results. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef uintptr_t qurt_addr_t;
typedef unsigned int qurt_size_t;
typedef uint64_t qurt_paddr_64_t;

#define QURT_EOK 0
#define QURT_EVAL 1
#define QURT_EMEM 2
#define QURT_EINVALID 4
#define QURT_EFAILED 12
#define QURT_ENOTALLOWED 13
#define QURT_ENOTHREAD 30
#define QURT_EALIGN 32
#define QURT_ECANCEL 37
#define QURT_ETIMEDOUT 47
#define QURT_ENOTSUPPORTED 55
#define QURT_EFATAL -1
