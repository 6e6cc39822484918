/* Calls of calc_skel.c from a host program. */
#pragma once

#include <stdint.h>

#include "AEEStdErr.h"
#include "calc.h"
#include "check.h"
#include "remote.h"
#include "rpcmem.h"

#define DSP(aee) ((int) (DSP_AEE_EOFFSET + (aee)))

static inline remote_handle64 calc_open(const char *uri) {
    remote_handle64 h = 0;
    CHECK_EQUAL(remote_handle64_open(uri, &h), AEE_SUCCESS);
    CHECK(h);
    return h;
}

static inline int calc_call(remote_handle64 h, enum calc_method method) {
    return remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(method, 0, 0), NULL);
}

static inline int calc_inout(remote_handle64 h, enum calc_method method, const void *in, size_t n_in, void *out,
                             size_t n_out) {
    remote_arg args[2] = {{.buf = {(void *) (uintptr_t) in, n_in}}, {.buf = {out, n_out}}};
    return remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(method, 1, 1), args);
}

static inline int calc_out(remote_handle64 h, enum calc_method method, void *out, size_t n) {
    remote_arg arg = {.buf = {out, n}};
    return remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(method, 0, 1), &arg);
}

static inline int32_t calc_count(remote_handle64 h) {
    int32_t count = -1;
    CHECK_EQUAL(calc_out(h, CALC_COUNT, &count, sizeof count), AEE_SUCCESS);
    return count;
}
