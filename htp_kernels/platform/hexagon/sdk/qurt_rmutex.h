/* Recursive mutexes of QuRT. */
#pragma once

#include "qurt_mutex.h"
