/* What a client asks the compute resource manager for, in the opaque words of compute_res_attr_t. */
#pragma once

#include <stdint.h>

#include "HAP_compute_res.h"

#define VTCM_PAGE_BYTES 4096u /* the smallest */

struct request {
    uint32_t vtcm_bytes, min_bytes, align; /* vtcm_bytes 0: no VTCM */
    uint8_t hmx, serialize, cached;
    uint32_t got_bytes;
    void *vtcm;
    int (*release_callback)(unsigned int context_id, void *client_context);
    void *client_context;
};
_Static_assert(sizeof(struct request) <= sizeof(compute_res_attr_t), "the request must fit the opaque words");

static inline struct request *request_of(compute_res_attr_t *attr) {
    return (struct request *) (void *) attr;
}
