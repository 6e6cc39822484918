/* A handle while a call uses it. */
#pragma once

#include "internal.h"

struct use {
    struct pd *pd;
    const char *name;
    uint32_t module, index;
};

/* The session and module of an open handle, kept until handle_unuse(); an AEE code, after a line. */
int handle_use(uint64_t handle, struct use *use, const char *who);
void handle_unuse(const struct use *use);
