/* The DSP's stdlib.h declares memalign(), which this machine's does not. */
#pragma once

#include_next <stdlib.h>

#include <malloc.h>
