/* The float mathematics of the kernels: the one place where they meet the differences between v73, v75, v79, v81. */
#pragma once

#include "hvx-arith.h"
#include "hvx-exp.h"
#include "hvx-inverse.h"
#include "hvx-sigmoid.h"
