// How third parties write HVX code: each idiom compiles without a warning and does what it says.
#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what);
void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what) {
    (void) first, (void) bytes, (void) what;
}

// All below 4 GiB, as the program is linked without -pie.
static uint8_t memory[4096] __attribute__((aligned(4096)));
static const int32_t table[32] __attribute__((aligned(128))) = {0, 4, 8, 12, 16, 20, 24, 28};
static const HVX_Vector ones = {1, 1, 1, 1};

typedef union {
    HVX_Vector v;
    float f32[32];
    _Float16 f16[64];
    uint8_t u8[128];
} lanes;

typedef struct {
    HVX_Vector v[2];
} two;

static inline HVX_Vector load_unaligned(const void *p) {
    return *(const HVX_UVector *) p;
}

static inline HVX_Vector splat_f32(float f) {
    union {
        float f;
        uint32_t i;
    } u = {.f = f};
    return Q6_V_vsplat_R(u.i);
}

static int volatile_stores(void *area) {
    volatile HVX_Vector *pv = (HVX_Vector *) area;
    pv[0] = Q6_V_vsplat_R(0x3c00);
    pv[1] = Q6_V_vzero();
    HVX_Vector back = pv[0];
    return ((uint32_t *) area)[31] == 0x3c00 && ((uint32_t *) area)[32] == 0 && Q6_R_vextract_VR(back, 124) == 0x3c00;
}

static int addresses_as_sizes(void) {
    uint16_t *half = (uint16_t *) memory;
    for (int i = 0; i < 64; i++) half[i] = (uint16_t) (3 * i);
    HVX_Vector offsets = *(const HVX_Vector *) table;
    const size_t region = 128 - 1;
    Q6_vgather_ARMVw((HVX_Vector *) (memory + 1024), (size_t) memory, region, offsets);
    Q6_vscatter_QRMVwV(Q6_Q_vsetq_R(8), (size_t) (memory + 2048), region, offsets, Q6_V_vsplat_R(-1));
    Q6_vscatter_RMVwV((uint32_t) (uintptr_t) (memory + 2048), (unsigned int) region, offsets, Q6_V_vsplat_R(7));
    return ((uint32_t *) (memory + 1024))[7] == (half[14] | (uint32_t) half[15] << 16) && memory[2048] == 7;
}

static int predicated_stores_and_words(void) {
    HVX_VectorPred q = Q6_Q_vsetq_R(6);
    Q6_vmem_QRIV(q, (HVX_Vector *) (memory + 3072), Q6_V_vsplat_R(0x01020304));
    Q6_vmem_QnRIV(Q6_Q_not_Q(q), (HVX_Vector *) (memory + 3072 + 128), Q6_Vb_vsplat_R(9));
    lanes x = {.v = splat_f32(1.5f)};
    x.f32[3] = 2.0f;
    HVX_Vector sum = Q6_Vsf_equals_Vqf32(Q6_Vqf32_vadd_VsfVsf(x.v, splat_f32(0.5f)));
    lanes got;
    memcpy(&got, &sum, sizeof got);
    return memory[3072 + 5] == 3 && memory[3072 + 6] == 0 && memory[3072 + 128] == 9 && got.f32[3] > 2.49999f &&
           got.f32[3] < 2.50001f; // qf32 before v79 has no exact 2.5
}

static int pairs_and_arrays(void) {
    two t = {{Q6_V_vzero(), ones}};
    HVX_VectorPair w = Q6_W_vshuff_VVR(t.v[1], t.v[0], -4);
    HVX_VectorPair *pw = (HVX_VectorPair *) (memory + 256);
    *pw = w;
    HVX_Vector acc[4] = {0};
    for (int i = 0; i < 4; i++) acc[i] = Q6_Vw_vadd_VwVw(acc[i], i & 1 ? Q6_V_hi_W(w) : Q6_V_lo_W(w));
    HVX_Vector moved = load_unaligned(memory + 256 + 4);
    Q6_l2fetch_AP(memory, Q6_P_combine_RR(Q6_R_combine_RlRl(128, 128), Q6_R_combine_RlRl(1, 0)));
    Q6_dcfetch_A(memory);
    return acc[0][1] == 1 && acc[1][0] == 0 && Q6_R_vextract_VR(moved, 0) == 1;
}

int main(void) {
    int all = volatile_stores(memory + 512) && addresses_as_sizes() && predicated_stores_and_words() && pairs_and_arrays();
    puts(all ? "ok" : "wrong");
    return !all;
}
