// The Hexagon SDK's types on the host: HVX vectors as clang vector types.
//
// A vector is 128 bytes, a pair is two of them with the low vector first, a predicate is one byte a lane
// byte: 0xff for a set bit, 0x00 for a clear one. Every intrinsic keeps that form, so predicate algebra is plain
// bit algebra; Q6_V_vand_QR and Q6_Q_vand_VR convert as the instructions do.
#ifndef HEXNPU_EMU_HEXAGON_TYPES_H
#define HEXNPU_EMU_HEXAGON_TYPES_H

#include <stddef.h>
#include <stdint.h>

#if !defined(__clang__) || __clang_major__ < 18
#error "the HVX emulation needs clang 18 or newer: gcc returns 128-byte vectors differently and is 10 times slower"
#endif
#if defined(__x86_64__) && !defined(__AVX2__)
#error "the HVX emulation needs the x86-64-v3 instructions: compile with -march=native or -march=x86-64-v3"
#endif

#ifndef __HVX_LENGTH__
#define __HVX_LENGTH__ 128
#endif
#ifndef __HVX__
#define __HVX__ 1
#endif

typedef int HEXAGON_Vect1024 __attribute__((vector_size(128), aligned(128), may_alias));
typedef int HEXAGON_Vect2048 __attribute__((vector_size(256), aligned(128), may_alias));
typedef int HEXAGON_UVect1024 __attribute__((vector_size(128), aligned(1), may_alias));
typedef int HEXAGON_UVect2048 __attribute__((vector_size(256), aligned(1), may_alias));
typedef signed char HEXAGON_VecPred128 __attribute__((vector_size(128), aligned(128), may_alias));

#define HVX_Vector HEXAGON_Vect1024
#define HVX_VectorPair HEXAGON_Vect2048
#define HVX_UVector HEXAGON_UVect1024
#define HVX_UVectorPair HEXAGON_UVect2048
#define HVX_VectorPred HEXAGON_VecPred128

typedef int8_t Word8;
typedef int16_t Word16;
typedef int32_t Word32;
typedef int64_t Word64;
typedef uint8_t UWord8;
typedef uint16_t UWord16;
typedef uint32_t UWord32;
typedef uint64_t UWord64;

typedef int8_t HEXAGON_Int8;
typedef int16_t HEXAGON_Int16;
typedef int32_t HEXAGON_Int32;
typedef int64_t HEXAGON_Int64;
typedef uint8_t HEXAGON_UInt8;
typedef uint16_t HEXAGON_UInt16;
typedef uint32_t HEXAGON_UInt32;
typedef uint64_t HEXAGON_UInt64;
typedef int64_t HEXAGON_Vect64;
typedef int32_t HEXAGON_Vect32;
typedef int32_t HEXAGON_Pred;
typedef void *HEXAGON_Address;

// Told before a vector access to the bytes at `p`, because clang's ThreadSanitizer does not see accesses of
// 128 bytes. The other flavours see them (ASan) or need nothing (release).
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
void __tsan_read_range(void *p, unsigned long n);
void __tsan_write_range(void *p, unsigned long n);
#define HEX_READ_RANGE(p, n) __tsan_read_range((void *) (uintptr_t) (p), (n))
#define HEX_WRITE_RANGE(p, n) __tsan_write_range((void *) (uintptr_t) (p), (n))
#endif
#endif
#ifndef HEX_READ_RANGE
#define HEX_READ_RANGE(p, n) ((void) (p), (void) (n))
#define HEX_WRITE_RANGE(p, n) ((void) (p), (void) (n))
#endif

#include "hexagon-v64.h"

// The SDK's header brings the intrinsics along; so does this one, for sources that `hexnpu emu-cc` compiles.
#ifdef __hexagon__
#include "hexagon_protos.h"
#endif

#endif
