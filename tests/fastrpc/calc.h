/* Methods of calc_skel.c, and how the host programs of these tests call them. */
#pragma once

#define CALC_URI "file:///libcalc_skel.so?calc_skel_handle_invoke&_modver=1.0"

enum calc_method {
    CALC_OPEN,
    CALC_CLOSE,
    CALC_EMPTY,
    CALC_SUM,     /* in: int32 values; out: int64 */
    CALC_SCALE,   /* in: bytes; out: as many */
    CALC_COUNT,   /* out: int32, calls of this kind and CALC_HANG in this session so far */
    CALC_LOW,     /* in: bytes; out: uint32, or of what lies above 4 GiB in the pointers */
    CALC_MAPPED,  /* in: int32 file descriptor, int32 bytes; out: uint32 sum; the bytes are inverted */
    CALC_HANDLES, /* in handles; as many out handles, the other way round */
    CALC_SELF,    /* out: uint64, the handle that open() gave */
    CALC_RESULT,  /* gives AEE_EBADITEM */
    CALC_FARF,
    CALC_CRASH,
    CALC_ABORT,
    CALC_EXIT,
    CALC_HANG,
    CALC_WHERE, /* in: int32 file descriptor, int32 bytes; out: uint32, where HAP_mmap() puts it */
    CALC_MEET, /* in: int32 n; comes back when n calls are in it, AEE_EEXPIRED after 20 s */
    CALC_END_THREAD,
    CALC_HEAP, /* takes the heap until it is full; out: uint32, blocks of 1 MiB */
};
