/* The op table of include/htp-ops.def in C: names, kernels, what an op cannot be without. */
#include <stdio.h>

#include "context.h"
#include "htp-opcodes.h"

#define HTP_OP(code, name, family) extern const struct htp_kernel htp_##family;
#include "htp-ops.def"
#undef HTP_OP

const struct htp_kernel htp_none = {.check = NULL, .run = NULL};

struct entry {
    const char *name;
    const struct htp_kernel *kernel;
};

static const struct entry table[] = {
#define HTP_OP(code, name, family) [code] = {#name, &htp_##family},
#include "htp-ops.def"
#undef HTP_OP
};

#define N_OPS (sizeof table / sizeof table[0])

bool htp_is_op(uint32_t opcode) {
    return opcode < N_OPS;
}

const struct htp_kernel *htp_kernel_of(uint32_t opcode) {
    return opcode < N_OPS && table[opcode].kernel != &htp_none ? table[opcode].kernel : NULL;
}

const char *htp_op_name(uint32_t opcode, char room[24]) {
    if (opcode < N_OPS) {
        return table[opcode].name;
    }
    snprintf(room, 24, "opcode %u", opcode);
    return room;
}

uint32_t htp_n_src(uint32_t opcode) {
    switch (opcode) {
    case HTP_OP_MUL:
    case HTP_OP_ADD:
    case HTP_OP_SUB:
    case HTP_OP_DIV:
    case HTP_OP_MUL_MAT:
    case HTP_OP_MUL_MAT_NX:
    case HTP_OP_RMS_NORM_MUL:
    case HTP_OP_ROPE:
    case HTP_OP_SET_ROWS:
    case HTP_OP_GET_ROWS:
    case HTP_OP_ALLREDUCE:
    case HTP_OP_ALLREDUCE_ADD:
        return 2;
    case HTP_OP_MUL_MAT_ADD:
    case HTP_OP_FLASH_ATTN_EXT:
        return 3;
    default:
        return 1;
    }
}

bool htp_takes_fence(uint32_t opcode, bool is_dst, uint32_t slot) {
    switch (opcode) {
    case HTP_OP_FENCE:
        return !is_dst && slot == 0;
    case HTP_OP_CPY_FENCE:
        return is_dst && slot == 1;
    case HTP_OP_ALLREDUCE:
    case HTP_OP_ALLREDUCE_ADD:
        return !is_dst && slot >= HTP_MAX_RANKS && slot < 2 * HTP_MAX_RANKS;
    default:
        return false;
    }
}
