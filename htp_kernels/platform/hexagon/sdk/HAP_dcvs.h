/* Additions to a request of the kind HAP_power_set_DCVS_v3. */
#pragma once

#include "HAP_power.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { HAP_DCVS_CLK_PERF_HIGH, HAP_DCVS_CLK_PERF_LOW } HAP_dcvs_clk_perf_mode_t;

int HAP_set_dcvs_v3_duty_cycle(void *context, uint32 max_active_time, uint32 periodicity);
int HAP_set_dcvs_v3_duty_cycle_params(HAP_power_request_t *request, uint32 max_active_time, uint32 periodicity);
int HAP_set_dcvs_v3_core_perf_mode(HAP_power_request_t *request, HAP_dcvs_clk_perf_mode_t perf_mode);
int HAP_set_dcvs_v3_bus_perf_mode(HAP_power_request_t *request, HAP_dcvs_clk_perf_mode_t perf_mode);
/* From v79 on, AEE_EVERSIONNOTSUPPORT before. */
int HAP_set_dcvs_v3_protected_bus_corners(HAP_power_request_t *request, unsigned char enable_protected_corners);
int HAP_set_ddr_perf_mode(HAP_power_request_t *request, unsigned int perf_mode);

#ifdef __cplusplus
}
#endif
