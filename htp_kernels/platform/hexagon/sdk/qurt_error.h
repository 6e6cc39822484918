/* Results of QuRT. */
#pragma once

#include "qurt_types.h"
