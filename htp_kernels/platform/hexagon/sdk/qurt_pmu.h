/* Event counters of the core: eight of them, which event each counts, whether they count. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define QURT_PMUCNT0 0
#define QURT_PMUCNT1 1
#define QURT_PMUCNT2 2
#define QURT_PMUCNT3 3
#define QURT_PMUCFG 4    /* bits 9..8 of each event, two bits a counter */
#define QURT_PMUEVTCFG 5 /* bits 7..0 of events 0 to 3; writing it clears counters 0 to 3 */
#define QURT_PMUCNT4 6
#define QURT_PMUCNT5 7
#define QURT_PMUCNT6 8
#define QURT_PMUCNT7 9
#define QURT_PMUEVTCFG1 10 /* of events 4 to 7 */

void qurt_pmu_set(int reg_id, unsigned int reg_value);
unsigned int qurt_pmu_get(int reg_id);
void qurt_pmu_enable(int enable);

#ifdef __cplusplus
}
#endif
