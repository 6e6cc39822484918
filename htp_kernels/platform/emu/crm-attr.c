/* Attributes of requests to the compute resource manager, and VTCM by the older calls. */
#include <pthread.h>
#include <string.h>

#include "HAP_vtcm_mgr.h"
#include "crm.h"
#include "hap-internal.h"

#define MAX_OLD 64u

int HAP_compute_res_attr_init(compute_res_attr_t *attr) {
    memset(attr, 0, sizeof *attr);
    return 0;
}

int HAP_compute_res_attr_set_serialize(compute_res_attr_t *attr, unsigned char b_serialize) {
    request_of(attr)->serialize = b_serialize != 0;
    return 0;
}

int HAP_compute_res_attr_set_hmx_param(compute_res_attr_t *attr, unsigned char b_enable) {
    if (b_enable && !emu_n_hmx()) {
        return (int) HAP_COMPUTE_RES_NOT_SUPPORTED;
    }
    request_of(attr)->hmx = b_enable != 0;
    return 0;
}

/* Pages of VTCM are 4 KiB and times four on, to 16 MiB; each lies at a multiple of its size. */
static uint32_t page_for(uint32_t bytes) {
    uint32_t page = VTCM_PAGE_BYTES;
    while (page < bytes && page < 16u << 20) {
        page *= 4;
    }
    return page;
}

int HAP_compute_res_attr_set_vtcm_param_v2(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned int min_page_size,
                                           unsigned int min_vtcm_size) {
    struct request *r = request_of(attr);
    r->vtcm_bytes = vtcm_size;
    r->min_bytes = min_vtcm_size && min_vtcm_size < vtcm_size ? min_vtcm_size : vtcm_size;
    r->align = page_for(min_page_size);
    return 0;
}

int HAP_compute_res_attr_set_vtcm_param(compute_res_attr_t *attr, unsigned int vtcm_size, unsigned char b_single_page) {
    return HAP_compute_res_attr_set_vtcm_param_v2(attr, vtcm_size, b_single_page ? vtcm_size : 0, 0);
}

int HAP_compute_res_attr_set_app_type(compute_res_attr_t *attr, unsigned int application_id) {
    (void) attr, (void) application_id; /* VTCM has one partition */
    return 0;
}

int HAP_compute_res_attr_set_cache_mode(compute_res_attr_t *attr, unsigned char b_enable) {
    request_of(attr)->cached = b_enable != 0;
    return 0;
}

int HAP_compute_res_attr_set_release_callback(compute_res_attr_t *attr,
                                              int (*release_callback)(unsigned int context_id, void *client_context),
                                              void *client_context) {
    request_of(attr)->release_callback = release_callback;
    request_of(attr)->client_context = client_context;
    return 0;
}

void *HAP_compute_res_attr_get_vtcm_ptr(compute_res_attr_t *attr) {
    return request_of(attr)->vtcm;
}

int HAP_compute_res_attr_get_vtcm_ptr_v2(compute_res_attr_t *attr, void **vtcm_ptr, unsigned int *vtcm_size) {
    *vtcm_ptr = request_of(attr)->vtcm;
    *vtcm_size = request_of(attr)->got_bytes;
    return *vtcm_ptr ? 0 : DSP_ERROR(AEE_ENOMEMORY);
}

/* The older calls: blocks by address. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *address;
    unsigned int context_id;
} old[MAX_OLD];

static uint32_t index_of(const void *address) {
    uint32_t i = 0;
    while (i < MAX_OLD && old[i].address != address) {
        i++;
    }
    return i;
}

void *HAP_request_VTCM(unsigned int size, unsigned int single_page_flag) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, size, single_page_flag != 0);
    pthread_mutex_lock(&lock);
    uint32_t i = index_of(NULL);
    unsigned int context_id = i < MAX_OLD ? HAP_compute_res_acquire(&attr, 0) : 0;
    void *address = context_id ? HAP_compute_res_attr_get_vtcm_ptr(&attr) : NULL;
    if (address) {
        old[i].address = address;
        old[i].context_id = context_id;
    }
    pthread_mutex_unlock(&lock);
    return address;
}

int HAP_release_VTCM(void *pVA) {
    pthread_mutex_lock(&lock);
    uint32_t i = pVA ? index_of(pVA) : MAX_OLD;
    int result = i < MAX_OLD ? HAP_compute_res_release(old[i].context_id) : DSP_ERROR(AEE_EBADPARM);
    if (i < MAX_OLD) {
        old[i].address = NULL;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

int HAP_query_total_VTCM(unsigned int *page_size, unsigned int *page_count) {
    *page_count = 1;
    return HAP_compute_res_query_VTCM(0, page_size, NULL, NULL, NULL);
}

int HAP_query_avail_VTCM(unsigned int *avail_block_size, unsigned int *max_page_size, unsigned int *num_pages) {
    int result = HAP_compute_res_query_VTCM(0, NULL, NULL, avail_block_size, NULL);
    *max_page_size = *avail_block_size;
    *num_pages = *avail_block_size > 0;
    return result;
}
