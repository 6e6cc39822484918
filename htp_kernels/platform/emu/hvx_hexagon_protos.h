// Every HVX intrinsic the emulator has, under its SDK name. A name that is missing here does not compile.
#ifndef HEXNPU_EMU_HVX_HEXAGON_PROTOS_H
#define HEXNPU_EMU_HVX_HEXAGON_PROTOS_H

#include "hexagon_types.h"

#include "hvx/arith.h"
#include "hvx/bf.h"
#include "hvx/cmp.h"
#include "hvx/cvt.h"
#include "hvx/f8.h"
#include "hvx/fcmp.h"
#include "hvx/gather.h"
#include "hvx/hf.h"
#include "hvx/logic.h"
#include "hvx/lut.h"
#include "hvx/mem.h"
#include "hvx/mpy.h"
#include "hvx/mpyadd.h"
#include "hvx/pack.h"
#include "hvx/permute.h"
#include "hvx/qf.h"
#include "hvx/rmpy.h"
#include "hvx/sf.h"
#include "hvx/shift.h"

#endif
