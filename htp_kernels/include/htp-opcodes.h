/* HTP_OP_MUL_MAT = 4 and so on, from the op table. */
#pragma once

enum htp_opcode {
#define HTP_OP(code, name, family) HTP_OP_##name = code,
#include "htp-ops.def"
#undef HTP_OP
};
