/* Plain types of the FastRPC world, under the names that generated code and SDK sources use. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifndef _AEERESULT_DEFINED
typedef int AEEResult; /* 0 or a code of AEEStdErr.h */
#define _AEERESULT_DEFINED
#endif

#ifndef _INT8_DEFINED
typedef int8_t int8;
#define _INT8_DEFINED
#endif
#ifndef _UINT8_DEFINED
typedef uint8_t uint8;
#define _UINT8_DEFINED
#endif
#ifndef _BYTE_DEFINED
typedef uint8_t byte;
#define _BYTE_DEFINED
#endif
#ifndef _INT16_DEFINED
typedef int16_t int16;
#define _INT16_DEFINED
#endif
#ifndef _UINT16_DEFINED
typedef uint16_t uint16;
#define _UINT16_DEFINED
#endif
#ifndef _INT32_DEFINED
typedef int32_t int32;
#define _INT32_DEFINED
#endif
#ifndef _UINT32_DEFINED
typedef uint32_t uint32;
#define _UINT32_DEFINED
#endif
/* Generated prototypes say int64 and uint64. Host programs give them long long, as on Android and Windows; the DSP side
 * gives them int64_t, which is long long there, but long where the emulator runs. */
#if defined(__hexagon__) || defined(HEXNPU_EMU_DSP)
#define AEE_INT64 int64_t
#define AEE_UINT64 uint64_t
#else
#define AEE_INT64 long long
#define AEE_UINT64 unsigned long long
#endif
#ifndef _INT64_DEFINED
typedef AEE_INT64 int64;
#define _INT64_DEFINED
#endif
#ifndef _UINT64_DEFINED
typedef AEE_UINT64 uint64;
#define _UINT64_DEFINED
#endif
#ifndef _BOOLEAN_DEFINED
typedef uint8_t boolean;
#define _BOOLEAN_DEFINED
#endif

#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

#ifndef _AEEUID_DEFINED
typedef uint32_t AEEUID;
#define _AEEUID_DEFINED
#endif
#ifndef _AEEIID_DEFINED
typedef uint32_t AEEIID;
#define _AEEIID_DEFINED
#endif
#ifndef _AEECLSID_DEFINED
typedef uint32_t AEECLSID;
#define _AEECLSID_DEFINED
#endif
#ifndef _AEEPRIVID_DEFINED
typedef uint32_t AEEPRIVID;
#define _AEEPRIVID_DEFINED
#endif

#ifndef _AECHAR_DEFINED
typedef uint16_t AECHAR;
#define _AECHAR_DEFINED
#endif
#ifndef MIN_AECHAR
#define MIN_AECHAR 0
#endif
#ifndef MAX_AECHAR
#define MAX_AECHAR 65535
#endif

#ifndef CDECL
#define CDECL
#endif

#define __STR__(x) #x
#define __TOSTR__(x) __STR__(x)
#define __FILE_LINE__ __FILE__ ":" __TOSTR__(__LINE__)

#ifndef __QIDL_WCHAR_T_DEFINED__
#define __QIDL_WCHAR_T_DEFINED__
typedef uint16_t _wchar_t; /* IDL wchar */
#endif

#if !defined(__QIDL_STRING_OBJECT_DEFINED__) && !defined(__STRING_OBJECT__)
#define __QIDL_STRING_OBJECT_DEFINED__
#define __STRING_OBJECT__

/* An IDL string inside a sequence or a structure. dataLen is the room (ending zero included) where the string comes
 * back, dataLenReq the room the whole answer would have taken. */
typedef struct _cstring_s {
    char *data;
    int dataLen;
    int dataLenReq;
} _cstring_t;

typedef struct _wstring_s {
    _wchar_t *data;
    int dataLen;
    int dataLenReq;
} _wstring_t;
#endif
