/* Time: processor cycles, the 19.2 MHz system timer, microseconds. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t HAP_perf_get_pcycles(void);
uint64_t HAP_perf_get_qtimer_count(void);
uint64_t HAP_perf_get_time_us(void);

static inline uint64_t HAP_perf_qtimer_count_to_us(uint64_t count) {
    return count * 10 / 192;
}

#ifdef __cplusplus
}
#endif
