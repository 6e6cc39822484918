// Gather and scatter at the edges of their region, by the rules of the HVX manual: an element that does not lie wholly
// in [Rt, Rt + Mu] is dropped, a dropped or masked element of a gather leaves the destination as it was. With an
// argument: one operand that is not in VTCM.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "HAP_compute_res.h"
#include "hexagon_types.h"
#include "hvx_hexagon_protos.h"
#include "qurt_memory.h"

static int failures;

#define CHECK(condition) \
    do { \
        if (!(condition)) failures++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    } while (0)

enum { REGION = 256, LAST = REGION - 1 };

// The region is followed by bytes that must never be read into a result, nor written.
static union {
    uint8_t b[2 * REGION];
    uint16_t h[REGION];
    uint32_t w[REGION / 2];
} *memory;

union lanes {
    HVX_Vector v;
    uint32_t w[32];
    uint16_t h[64];
};

static union lanes *out, offsets, high_offsets, data; /* out lies in VTCM */

static int32_t region(void) {
    return (int32_t) (uintptr_t) memory->b;
}

static void reset(void) {
    for (unsigned i = 0; i < sizeof memory->b; i++) memory->b[i] = (uint8_t) i;
    memset(&memory->b[REGION], 0xee, REGION);
    memset(out, 0xaa, sizeof *out);
    memset(&offsets, 0, sizeof offsets);
    memset(&high_offsets, 0, sizeof high_offsets);
    for (int i = 0; i < 64; i++) data.h[i] = (uint16_t) (0x1000 + i);
}

static void check_untouched_outside(void) {
    for (int i = REGION; i < 2 * REGION; i++) CHECK(memory->b[i] == 0xee);
}

static void gather_words(void) {
    reset();
    offsets.w[1] = REGION - 4;
    offsets.w[2] = REGION;
    offsets.w[3] = (uint32_t) -4;
    offsets.w[4] = REGION - 2;
    Q6_vgather_ARMVw(&out->v, region() + 3, LAST, offsets.v);
    CHECK(out->w[0] == 0x03020100);
    CHECK(out->w[1] == 0xfffefdfc);
    CHECK(out->w[2] == 0xaaaaaaaa);
    CHECK(out->w[3] == 0xaaaaaaaa);
    CHECK(out->w[4] == 0xaaaaaaaa);
    // A last byte inside an element names the whole element.
    reset();
    offsets.w[0] = REGION - 4;
    Q6_vgather_ARMVw(&out->v, region(), LAST - 3, offsets.v);
    CHECK(out->w[0] == 0xfffefdfc);
}

static void gather_halves(void) {
    reset();
    offsets.h[1] = REGION - 2;
    offsets.h[2] = REGION;
    offsets.h[3] = 0xfffe;
    Q6_vgather_ARMVh(&out->v, region(), LAST, offsets.v);
    CHECK(out->h[0] == 0x0100);
    CHECK(out->h[1] == 0xfffe);
    CHECK(out->h[2] == 0xaaaa);
    CHECK(out->h[3] == 0xaaaa);
}

// A region of one half, and one of a half more than a word.
static void gather_from_small_regions(void) {
    reset();
    offsets.h[1] = 2;
    offsets.h[2] = 4;
    Q6_vgather_ARMVh(&out->v, region(), 1, offsets.v);
    CHECK(out->h[0] == 0x0100);
    CHECK(out->h[1] == 0xaaaa);
    Q6_vgather_ARMVh(&out->v, region() + 4, 5, offsets.v);
    CHECK(out->h[0] == 0x0504);
    CHECK(out->h[1] == 0x0706);
    CHECK(out->h[2] == 0x0908);
    offsets.h[0] = 3;
    Q6_vgather_ARMVh(&out->v, region(), 5, offsets.v);
    CHECK(out->h[0] == 0x0403);
}

static void gather_halves_by_words(void) {
    reset();
    offsets.w[0] = 2;
    high_offsets.w[0] = 4;
    offsets.w[1] = REGION;
    high_offsets.w[1] = (uint32_t) -2;
    Q6_vgather_ARMWw(&out->v, region(), LAST, Q6_W_vcombine_VV(high_offsets.v, offsets.v));
    CHECK(out->h[0] == 0x0302);
    CHECK(out->h[1] == 0x0504);
    CHECK(out->h[2] == 0xaaaa);
    CHECK(out->h[3] == 0xaaaa);
}

static void masked_gather(void) {
    reset();
    Q6_vgather_AQRMVw(&out->v, Q6_Q_vsetq_R(6), region(), LAST, offsets.v);
    CHECK(out->w[0] == 0x03020100);
    CHECK(out->w[1] == 0xaaaa0100);
    CHECK(out->w[2] == 0xaaaaaaaa);
}

static void scatter(void) {
    reset();
    for (int i = 0; i < 32; i++) offsets.w[i] = REGION + 4 * (uint32_t) i;
    offsets.w[0] = 8;
    offsets.w[1] = REGION - 4;
    offsets.w[2] = (uint32_t) -4;
    Q6_vscatter_RMVwV(region(), LAST, offsets.v, data.v);
    CHECK(memory->w[2] == data.w[0]);
    CHECK(memory->w[REGION / 4 - 1] == data.w[1]);
    check_untouched_outside();

    reset();
    for (int i = 0; i < 64; i++) offsets.h[i] = (uint16_t) (REGION + 2 * i);
    offsets.h[0] = 6;
    offsets.h[1] = 10;
    Q6_vscatter_QRMVhV(Q6_Q_vsetq_R(2), region(), LAST, offsets.v, data.v);
    CHECK(memory->h[3] == data.h[0]);
    CHECK(memory->h[5] == 0x0b0a);
    check_untouched_outside();
}

static void scatter_accumulates(void) {
    reset();
    memset(memory->b, 0, REGION);
    for (int i = 0; i < 32; i++) offsets.w[i] = i < 3 ? 4 + (uint32_t) i : REGION;
    Q6_vscatteracc_RMVwV(region(), LAST, offsets.v, data.v);
    CHECK(memory->w[1] == data.w[0] + data.w[1] + data.w[2]);
    CHECK(memory->w[0] == 0 && memory->w[2] == 0);
    check_untouched_outside();
}

// One of many offsets is the last at which a half fits, and all others are past it.
static void last_half_of_vtcm(uint8_t *vtcm, uint32_t vtcm_bytes) {
    reset();
    memcpy(vtcm + vtcm_bytes - 2, "\x12\x34", 2);
    for (int i = 0; i < 64; i++) offsets.h[i] = i == 63 ? 254 : 256;
    Q6_vgather_ARMVh(&out->v, (int32_t) (uintptr_t) (vtcm + vtcm_bytes - 256), 255, offsets.v);
    CHECK(out->h[63] == 0x3412);
    CHECK(out->h[0] == 0xaaaa);
}

static void break_rule(const char *rule, uint8_t *vtcm, uint32_t vtcm_bytes, unsigned context) {
    HVX_Vector *elsewhere = qurt_malloc(4096);
    int32_t at = (int32_t) (uintptr_t) vtcm, beyond = (int32_t) (uintptr_t) elsewhere;
    if (!strcmp(rule, "gather_elsewhere")) Q6_vgather_ARMVw(&out->v, beyond, LAST, offsets.v);
    if (!strcmp(rule, "gather_to_elsewhere")) Q6_vgather_ARMVw(elsewhere, at, LAST, offsets.v);
    if (!strcmp(rule, "gather_past_the_end")) Q6_vgather_ARMVh(&out->v, at, (int32_t) vtcm_bytes, offsets.v);
    if (!strcmp(rule, "gather_everything")) Q6_vgather_ARMVw(&out->v, at, -1, offsets.v);
    if (!strcmp(rule, "scatter_elsewhere")) Q6_vscatter_RMVhV(beyond, LAST, offsets.v, data.v);
    if (!strcmp(rule, "scatter_past_the_end")) Q6_vscatteracc_RMVwV(at + 4, (int32_t) vtcm_bytes - 1, offsets.v, data.v);
    if (!strcmp(rule, "scatter_released")) {
        HAP_compute_res_release(context);
        Q6_vscatter_RMVwV(at, LAST, offsets.v, data.v);
    }
}

int main(int argc, char **argv) {
    compute_res_attr_t attr;
    HAP_compute_res_attr_init(&attr);
    HAP_compute_res_attr_set_vtcm_param(&attr, 8u << 20, 1);
    unsigned context = HAP_compute_res_acquire(&attr, 1000);
    uint8_t *vtcm = NULL;
    unsigned vtcm_bytes = 0;
    HAP_compute_res_attr_get_vtcm_ptr_v2(&attr, (void **) &vtcm, &vtcm_bytes);
    if (!vtcm) return 2;
    memory = (void *) vtcm;
    out = (void *) (vtcm + 4096);
    reset();
    if (argc > 1) {
        break_rule(argv[1], vtcm, vtcm_bytes, context);
        return 3;
    }
    gather_words();
    gather_halves();
    gather_from_small_regions();
    gather_halves_by_words();
    masked_gather();
    scatter();
    scatter_accumulates();
    last_half_of_vtcm(vtcm, vtcm_bytes);
    return failures != 0;
}
