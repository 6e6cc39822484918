/*
 * FENCE: src0 is a peer's fence, dst0 the tensor that the peer has written once it is released; FENCE itself writes nothing.
 * CPY_FENCE: CPY of src0 to dst0 (memory that a peer reads), then the release of dst1, this rank's own fence.
 * params: the sequence number; for FENCE also the peer's rank.
 */
#include "htp-kernel.h"
#include "htp-opcodes.h"

enum { PARAM_SEQ = 0, PARAM_RANK = 1 };

extern const struct htp_kernel htp_cpy;

static enum htp_status fence_check(struct htp_op *op) {
    if (op->opcode == HTP_OP_FENCE) {
        return HTP_OK;
    }
    return op->dst[1] ? htp_cpy.check(op) : htp_bad(op, "dst1", "is missing");
}

static enum htp_status cpy_fence_run(struct htp_op *op) {
    uint32_t seq = (uint32_t) op->params[PARAM_SEQ];
    enum htp_status status = htp_cpy.run(op);
    if (status == HTP_OK) {
        htp_fence_release(op->dst[1], seq);
    } else {
        htp_fence_fail(op->dst[1], seq, status);
    }
    return status;
}

static enum htp_status fence_run(struct htp_op *op) {
    if (op->opcode == HTP_OP_CPY_FENCE) {
        return cpy_fence_run(op);
    }
    return htp_fence_wait(op, 0, (uint32_t) op->params[PARAM_RANK], (uint32_t) op->params[PARAM_SEQ], 0);
}

const struct htp_kernel htp_fence = {.check = fence_check, .run = fence_run};
