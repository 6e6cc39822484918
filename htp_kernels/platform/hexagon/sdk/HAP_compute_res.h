/*
 * The compute resource manager: VTCM, the matrix unit (HMX) and the right to run alone are asked for by an attribute,
 * acquired under a context number, used, given back. A cached context keeps its VTCM address while others use it.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define HAP_COMPUTE_RES_NOT_SUPPORTED 0x80000404
#define HAP_COMPUTE_RES_MAX_NUM_THREADS 16

typedef struct {
    unsigned long long attributes[8]; /* opaque */
} compute_res_attr_t;

typedef struct {
    unsigned int page_size;
    unsigned int num_pages;
} compute_res_vtcm_page_def_t;
typedef struct {
    unsigned int block_size;
    unsigned int page_list_len;
    compute_res_vtcm_page_def_t page_list[8];
} compute_res_vtcm_page_t;

int HAP_compute_res_attr_init(compute_res_attr_t *attr);
int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char b_serialize);
int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attr, unsigned char b_enable);
int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char b_single_page);
/* min_vtcm_size: less than vtcm_size will do, down to this; 0: it will not. */
int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                           unsigned int min_vtcm_size);
int HAP_compute_res_attr_set_app_type(compute_res_attr_t *attr, unsigned int application_id);
int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attr, unsigned char b_enable);
/* The callback is told that somebody of higher priority waits for what the context holds; it must not wait. */
int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attr,
                                              int (*release_callback)(unsigned int context_id, void *client_context),
                                              void *client_context);
void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr);
int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size);

/* A context number, 0 where the resources were not free within timeout_us. With the cache mode nothing is held yet. */
unsigned int HAP_compute_res_acquire(compute_res_attr_t *attr, unsigned int timeout_us);
int HAP_compute_res_release(unsigned int context_id);
int HAP_compute_res_acquire_cached(unsigned int context_id, unsigned int timeout_us);
int HAP_compute_res_release_cached(unsigned int context_id);
/* Not 0: somebody of higher priority waits still. */
int HAP_compute_res_check_release_request(unsigned int context_id);
/* QuRT priorities, 1 the most urgent; 0: the caller's. */
int HAP_compute_res_update_priority(unsigned int context_id, unsigned short priority);

int HAP_compute_res_query_VTCM(unsigned int application_id, unsigned int *total_block_size,
                               compute_res_vtcm_page_t *total_block_layout, unsigned int *avail_block_size,
                               compute_res_vtcm_page_t *avail_block_layout);

/* The matrix unit belongs to the calling thread; shared, to several that take turns by themselves. */
typedef enum { HAP_COMPUTE_RES_HMX_NON_SHARED = 0, HAP_COMPUTE_RES_HMX_SHARED = 1 } compute_res_hmx_type_t;
typedef struct {
    void *mutex;
    void (*lock)(void *mutex);
    void (*unlock)(void *mutex);
} compute_res_hmx_mutex_t;
int HAP_compute_res_hmx_lock(unsigned int context_id);
int HAP_compute_res_hmx_unlock(unsigned int context_id);
int HAP_compute_res_hmx_lock2(unsigned int context_id, compute_res_hmx_type_t type);
int HAP_compute_res_hmx_unlock2(unsigned int context_id, compute_res_hmx_type_t type);
int HAP_compute_res_hmx_lock3(unsigned int context_id, compute_res_hmx_type_t type, compute_res_hmx_mutex_t *mutex,
                              unsigned int timeout_us);
int HAP_compute_res_hmx_unlock3(unsigned int context_id, compute_res_hmx_type_t type, compute_res_hmx_mutex_t *mutex);

typedef enum { HAP_COMPUTE_RES_PREEMPTION_CAPABILITY = 1 } compute_res_capability_id;
#define HAP_COMPUTE_RES_COOPERATIVE_PREEMPTION 1
#define HAP_COMPUTE_RES_AUTONOMOUS_PREEMPTION 2
#define HAP_COMPUTE_RES_THREADS_FOR_AUTONOMOUS_PREEMPTION 4
int HAP_compute_res_query_capability(compute_res_capability_id capability_id, unsigned int *data);

#ifdef __cplusplus
}
#endif
