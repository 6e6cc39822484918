// The matrix unit under a script: VTCM's first bytes come from stdin, each argument is one instruction with offsets
// into VTCM as operands, and what VTCM holds afterwards goes to stdout.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "HAP_compute_res.h"
#include "hmx_hexagon_protos.h"

static uint32_t base;

static void multiply_by_intrinsics(uint32_t activation, uint32_t weight, uint32_t n_tiles, uint32_t out) {
    Q6_mxclracc_hf();
    Q6_activation_hf_mxmem_RR_deep(activation, (Word32) (n_tiles * 2048 - 1));
    Q6_weight_hf_mxmem_RR(weight, (Word32) (n_tiles * 2048 - 1));
    Q6_mxmem_AR_after_hf((void *) (uintptr_t) out, 0);
}

static void run(const char *line) {
    char name[32] = "";
    long o[5] = {0};
    sscanf(line, "%31s %li %li %li %li %li", name, &o[0], &o[1], &o[2], &o[3], &o[4]);
    uint32_t at = base + (uint32_t) o[0];
#define IS(word) (!strcmp(name, word))
    if (IS("intrinsics")) {
        multiply_by_intrinsics(at, base + (uint32_t) o[1], (uint32_t) o[2], base + (uint32_t) o[3]);
    } else if (IS("bias")) {
        hmx_bias(at);
    } else if (IS("bias_low")) {
        hmx_bias_low(at);
    } else if (IS("clear")) {
        hmx_clear();
    } else if (IS("swap")) {
        hmx_swap();
    } else if (IS("mac")) {
        hmx_mac_ranges(at, (uint32_t) o[1], base + (uint32_t) o[2], (uint32_t) o[3], (unsigned) o[4]);
    } else if (IS("activation")) {
        hmx_activation(at, (uint32_t) o[1], (unsigned) o[2]);
    } else if (IS("weight")) {
        hmx_weight(at, (uint32_t) o[1], (unsigned) o[2]);
    } else if (IS("store")) {
        hmx_store(at, (uint32_t) o[1], (unsigned) o[2]);
    } else if (IS("convert")) {
        hmx_convert((uint32_t) o[0], 0);
    } else if (IS("store_converted")) {
        hmx_store_converted(at, (uint32_t) o[1]);
    } else if (IS("hold")) {
        hmx_hold((unsigned) o[0]);
    } else {
        exit(3);
    }
}

int main(int argc, char **argv) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, 8u << 20, 1);
    unsigned context = HAP_compute_res_acquire(&attr, 1000);
    uint8_t *vtcm = HAP_compute_res_attr_get_vtcm_ptr(&attr);
    if (!context) return 2;
    base = (uint32_t) (uintptr_t) vtcm;
    size_t bytes = fread(vtcm, 1, 8u << 20, stdin);
    hmx_hold(context);
    for (int i = 1; i < argc; i++) run(argv[i]);
    fwrite(vtcm, 1, bytes, stdout);
    return 0;
}
