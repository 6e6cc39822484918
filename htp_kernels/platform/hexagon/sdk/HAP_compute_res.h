/* The compute resource manager: VTCM (and the HMX lock) are asked for, used, given back. */
#pragma once

#include <stdint.h>

typedef struct {
    unsigned int attr[16]; /* opaque */
} compute_res_attr_t;

typedef struct {
    struct {
        unsigned int page_size;
        unsigned int num_pages;
    } page_list[8];
    unsigned int page_list_len;
} compute_res_vtcm_page_t;

int HAP_compute_res_attr_init(compute_res_attr_t *attr);
int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char serialize);
int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char single_page);
int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                           unsigned int min_vtcm_size);
void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr);
int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size);

/* A context number, 0 where the resources were not free within timeout_us. */
unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us);
int HAP_compute_res_release(unsigned int context_id);
int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size,
                               compute_res_vtcm_page_t *total_block_layout, unsigned int *avail_block_size,
                               compute_res_vtcm_page_t *avail_block_layout);
