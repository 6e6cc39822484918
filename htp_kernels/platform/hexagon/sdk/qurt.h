/* QuRT, the real-time system of the NPU: what this project and kernels in the field use of it. */
#pragma once

#include "qurt_barrier.h"
#include "qurt_cond.h"
#include "qurt_futex.h"
#include "qurt_hvx.h"
#include "qurt_memory.h"
#include "qurt_mutex.h"
#include "qurt_pmu.h"
#include "qurt_sem.h"
#include "qurt_signal.h"
#include "qurt_sysenv.h"
#include "qurt_thread.h"
#include "qurt_timer.h"
#include "qurt_types.h"
