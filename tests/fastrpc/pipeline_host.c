/* Sends buffers of several sizes through pipeline_skel.c and looks at every byte. */
#include "AEEStdErr.h"
#include "check.h"
#include "pipeline.h"
#include "remote.h"
#include "rpcmem.h"

static void through(remote_handle64 h, uint32_t n_tiles, uint8_t value) {
    struct pipeline_job job = {.bytes = n_tiles * TILE_BYTES, .value = value};
    uint8_t *p = rpcmem_alloc(RPCMEM_HEAP_ID_SYSTEM, RPCMEM_DEFAULT_FLAGS, (int) job.bytes);
    remote_arg arg = {.buf = {&job, sizeof job}};
    CHECK(p);
    job.fd = rpcmem_to_fd(p);
    for (uint32_t i = 0; i < job.bytes; i++) {
        p[i] = (uint8_t) (i * 31 + i / 4096);
    }
    CHECK_EQUAL(fastrpc_mmap(CDSP_DOMAIN_ID, job.fd, p, 0, job.bytes, FASTRPC_MAP_FD_DELAYED), AEE_SUCCESS);
    CHECK_EQUAL(remote_handle64_invoke(h, REMOTE_SCALARS_MAKE(PIPELINE_RUN, 1, 0), &arg), AEE_SUCCESS);
    CHECK_EQUAL(fastrpc_munmap(CDSP_DOMAIN_ID, job.fd, p, job.bytes), AEE_SUCCESS);
    for (uint32_t i = 0; i < job.bytes; i++) {
        uint32_t sum = (uint8_t) (i * 31 + i / 4096) + (uint32_t) value;
        CHECK_EQUAL(p[i], sum > 255 ? 255 : sum);
    }
    rpcmem_free(p);
}

int main(void) {
    static const uint32_t tiles[] = {1, 2, 3, 8, 33};
    remote_handle64 h = 0;
    CHECK_EQUAL(remote_handle64_open(PIPELINE_URI CDSP_DOMAIN, &h), AEE_SUCCESS);
    for (uint32_t i = 0; i < sizeof tiles / sizeof tiles[0]; i++) {
        through(h, tiles[i], (uint8_t) (40 * i + 7));
    }
    CHECK_EQUAL(remote_handle64_close(h), AEE_SUCCESS);
    return 0;
}
