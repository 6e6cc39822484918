/* MUL_MAT as it is, but with 5 columns one element comes out wrong: what `hexnpu smoke` must see. */
#define htp_matmul right_matmul
#include "../htp_kernels/kernels/matmul-ops.c"
#undef htp_matmul

static enum htp_status wrong_run(struct htp_op *op) {
    enum htp_status status = right_matmul.run(op);
    const struct htp_tensor *dst = op->dst[0];
    if (status == HTP_OK && dst->ne[1] == 5) {
        float *last = (float *) (dst->data + 4 * dst->nb[1]) + dst->ne[0] - 1;
        *last += 4.0f;
    }
    return status;
}

static enum htp_status same_check(struct htp_op *op) {
    return right_matmul.check(op);
}

const struct htp_kernel htp_matmul = {.check = same_check, .run = wrong_run};
