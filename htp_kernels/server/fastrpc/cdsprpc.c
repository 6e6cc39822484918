/* Finds libcdsprpc.so and its functions. */
#include "cdsprpc.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static struct cdsprpc rpc;

static const struct {
    const char *name;
    size_t at;
} functions[] = {
#define FUNCTION(f) {#f, offsetof(struct cdsprpc, f)}
    FUNCTION(rpcmem_alloc2),          FUNCTION(rpcmem_free),           FUNCTION(rpcmem_to_fd),
    FUNCTION(fastrpc_mmap),           FUNCTION(fastrpc_munmap),        FUNCTION(remote_handle_control),
    FUNCTION(remote_session_control), FUNCTION(dspqueue_create),       FUNCTION(dspqueue_export),
    FUNCTION(dspqueue_close),         FUNCTION(dspqueue_write),        FUNCTION(dspqueue_read),
    FUNCTION(remote_handle64_open),   FUNCTION(remote_handle64_invoke), FUNCTION(remote_handle64_close),
};

const struct cdsprpc *cdsprpc_open(const char **why) {
    static char sentence[512];
    *why = sentence;
    void *library = dlopen("libcdsprpc.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(sentence, sizeof sentence,
                 "there is no NPU here: %s; on a machine without one, run under `hexnpu emulate --`", dlerror());
        return NULL;
    }
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *f = dlsym(library, functions[i].name);
        if (!f) {
            snprintf(sentence, sizeof sentence, "libcdsprpc.so has no %s: it is older than this server needs",
                     functions[i].name);
            return NULL;
        }
        memcpy((char *) &rpc + functions[i].at, &f, sizeof f);
    }
    return &rpc;
}
