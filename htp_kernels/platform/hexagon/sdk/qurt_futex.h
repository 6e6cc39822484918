/* Sleeps while *lock == val; wakes up to n_to_wake sleepers. A sleeper may also wake for no reason. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

int qurt_futex_wait(void *lock, int val);
int qurt_futex_wake(void *lock, int n_to_wake);

#ifdef __cplusplus
}
#endif
