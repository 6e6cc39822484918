/* __fp16 for a host that is no Arm: _Float16, or 16 bits that only have a size where the compiler has no such type. */
#pragma once

#if defined(__clang__) || !defined(__cplusplus) || __GNUC__ >= 13
#define __fp16 _Float16
#else
typedef struct {
    unsigned short bits;
} __fp16;
#endif
