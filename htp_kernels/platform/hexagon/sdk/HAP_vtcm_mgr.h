/* VTCM without the compute resource manager: the older way, which waits for nothing. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

void *HAP_request_VTCM(unsigned int size, unsigned int single_page_flag); /* NULL: not free */
int HAP_release_VTCM(void *pVA);
int HAP_query_total_VTCM(unsigned int *page_size, unsigned int *page_count);
int HAP_query_avail_VTCM(unsigned int *avail_block_size, unsigned int *max_page_size, unsigned int *num_pages);

#ifdef __cplusplus
}
#endif
