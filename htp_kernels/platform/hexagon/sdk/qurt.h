/* QuRT, the real-time system of the NPU: what this project and kernels in the field use of it. */
#pragma once

#include "qurt_barrier.h"
#include "qurt_futex.h"
#include "qurt_memory.h"
#include "qurt_mutex.h"
#include "qurt_sysenv.h"
#include "qurt_thread.h"
