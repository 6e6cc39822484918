/* Naps, and the 19.2 MHz system timer. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_TIMER_TIMETICK_FROM_US(us) ((us) * 192ULL / 10ULL)
#define QURT_TIMER_TIMETICK_TO_US(ticks) qurt_timer_timetick_to_us(ticks)

void qurt_sleep(unsigned long long duration_us);
int qurt_timer_sleep(unsigned long long duration_us);
unsigned long long qurt_timer_get_ticks(void);
unsigned long long qurt_sysclock_get_hw_ticks(void);
unsigned long long qurt_timer_timetick_to_us(unsigned long long ticks);
/* Processor cycles of the core. */
unsigned long long qurt_get_core_pcycles(void);

#ifdef __cplusplus
}
#endif
