/*
 * The matrix unit: fp16 tiles of 32 x 32, accumulators of floats.
 *
 * A float holds every product of two halves exactly and adds with 24 bits, the hardware's accumulator with 22 bits and
 * an exponent of its own: results are close, not bit-exact. The unit's halves have neither infinity nor NaN, as the USR
 * bit for them is clear in a new thread: exponent 31 is one more exponent, and what is too large becomes 131008.
 * What the hardware knows and this does not ends the process: int8 and the other operand types, spatial offsets and
 * filters (:above, :single, :dilate), compressed weights.
 */
#include "hmx.h"

#include <math.h>
#include <string.h>

#include "emu.h"
#include "hexagon_types.h"
#include "hvx/vtcm-check.h"

#define N 32         /* rows, columns and inner elements of a tile */
#define N_BANKS 4    /* of column words */
#define MAX_UNITS 16 /* one for each compute resource context */

/* How a column's sum becomes a half: (shape(sum + before) * scale) + after. */
struct columns {
    float before[N], scale[N], after[N];
    float at_most[N], at_least[N]; /* of sum + before: shapes min(0, x) and max(0, x) */
    uint32_t drop[N];              /* the sign bit where the shape is |x| */
};

struct unit {
    float acc[2][N][N];
    struct columns banks[N_BANKS];
    _Float16 converted[N / 2][2 * N]; /* as a tile */
    uint32_t activation, range; /* of a packet whose weights are yet to come */
    unsigned current, form;
    bool pending;
};

static struct unit units[MAX_UNITS];
static _Thread_local struct unit *held;

/* Before the first bias = mxmem2 a column's words are zero, and so is every result: as on the chip after a reset. */
void hmx_hold(unsigned context) {
    held = context && context <= MAX_UNITS ? &units[context - 1] : NULL;
}

static struct unit *unit(const char *instruction) {
    if (!held) {
        emu_die("%s on a thread without HAP_compute_res_hmx_lock(): the matrix unit is not its own", instruction);
    }
    return held;
}

/* Column words. */

/* A half with `extra` further bits of significand. */
static float half_with(uint32_t half, uint32_t extra, int n_extra) {
    int exponent = (int) (half >> 10 & 31);
    uint32_t significand = ((half & 0x3ff) | (exponent ? 0x400u : 0)) << n_extra | extra;
    float value = ldexpf((float) significand, (exponent ? exponent : 1) - 25 - n_extra);
    return half & 0x8000 ? -value : value;
}

/* The two words of a column: scale and output bias as halves; then four bits more of each, the shape of two bits, the
 * scale's negation, and a half with five bits more that is added to the sum. */
static void set_column(struct columns *c, int n, uint32_t low, uint32_t high) {
    unsigned shape = high >> 8 & 3;
    c->scale[n] = half_with(low & 0xffff, high & 15, 4) * (high & 1u << 10 ? -1.0f : 1.0f);
    c->after[n] = half_with(low >> 16, high >> 4 & 15, 4);
    c->before[n] = half_with(high >> 16, high >> 11 & 31, 5);
    c->at_most[n] = shape == 1 ? 0.0f : INFINITY;
    c->at_least[n] = shape == 2 ? 0.0f : -INFINITY;
    c->drop[n] = shape == 3 ? 0x80000000u : 0;
}

static void load_bias(uint32_t address, uint32_t bytes) {
    struct unit *u = unit("bias = mxmem");
    uint32_t at = address & ~3u, words[2 * N] = {0};
    if (at % bytes) {
        emu_die("bias = mxmem of 0x%08x: the column words must be %u-byte aligned", (unsigned) address, (unsigned) bytes);
    }
    emu_vtcm_check(at, bytes, "bias = mxmem");
    HEX_READ_RANGE(at, bytes);
    memcpy(words, (const void *) (uintptr_t) at, bytes);
    for (int n = 0; n < N; n++) {
        set_column(&u->banks[address & 3], n, words[n], words[N + n]);
    }
}

void hmx_bias(uint32_t address) {
    load_bias(address, 8 * N);
}

void hmx_bias_low(uint32_t address) {
    load_bias(address, 4 * N);
}

/* Accumulators. */

void hmx_clear(void) {
    struct unit *u = unit("mxclracc.hf");
    memset(u->acc, 0, sizeof u->acc);
}

void hmx_swap(void) {
    unit("mxswapacc.hf")->current ^= 1;
}

/* Products. */

typedef _Float16 halves __attribute__((vector_size(128), aligned(128), may_alias));
typedef uint16_t half_bits __attribute__((vector_size(128), aligned(2), may_alias));
typedef float floats __attribute__((vector_size(256), aligned(4)));
typedef float row_floats __attribute__((vector_size(128), aligned(4), may_alias));

#define EACH_8(f, n) f(n), f((n) + 1), f((n) + 2), f((n) + 3), f((n) + 4), f((n) + 5), f((n) + 6), f((n) + 7)
#define EACH_32(f) EACH_8(f, 0), EACH_8(f, 8), EACH_8(f, 16), EACH_8(f, 24)
#define EVEN(i) (2 * (i))
#define ODD(i) (2 * (i) + 1)

/* Halves with exponent 31 as numbers: with the exponent one less they are half as large. */
static __attribute__((noinline)) floats widen_large(half_bits bits) {
    half_bits large = (half_bits) ((bits & 0x7c00) == 0x7c00);
    floats small = __builtin_convertvector((halves) (bits - (large & 0x400)), floats);
    floats twice = __builtin_convertvector((halves) (large & 0x3c00), floats); /* 1 or 0 */
    return small + small * twice;
}

static inline floats widen_pair(halves v) {
    half_bits bits = (half_bits) v;
    if (__builtin_reduce_or((half_bits) ((bits & 0x7c00) == 0x7c00))) {
        return widen_large(bits);
    }
    return __builtin_convertvector(v, floats);
}

/* Rows of a tile as floats: a vector holds two rows in turn. Activations are rows by inner elements, weights inner
 * elements by columns. */
static void widen(const halves *tile, int n_pairs, float out[N][N]) {
    for (int i = 0; i < n_pairs; i++) {
        floats both = widen_pair(tile[i]);
        *(row_floats *) out[2 * i] = __builtin_shufflevector(both, both, EACH_32(EVEN));
        *(row_floats *) out[2 * i + 1] = __builtin_shufflevector(both, both, EACH_32(ODD));
    }
}

#if defined(__AVX512F__) && !defined(HEXNPU_EMU_GENERIC)
enum { LANES = 16, ROWS = 8 };
#elif defined(__AVX2__) && !defined(HEXNPU_EMU_GENERIC)
enum { LANES = 8, ROWS = 4 };
#else
enum { LANES = 4, ROWS = 8 };
#endif
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* ROWS rows and two vectors of columns of an accumulator stay in registers over all n_inner elements. */
static inline void multiply_block(const float (*a)[N], int first, const float (*w)[N], int n_inner, float (*acc)[N]) {
    lanes sum[ROWS][2];
#pragma clang loop unroll(full)
    for (int r = 0; r < ROWS; r++) {
        sum[r][0] = ((const lanes *) acc[r])[0];
        sum[r][1] = ((const lanes *) acc[r])[1];
    }
    for (int k = 0; k < n_inner; k++) {
        lanes w0 = ((const lanes *) w[k])[0], w1 = ((const lanes *) w[k])[1];
#pragma clang loop unroll(full)
        for (int r = 0; r < ROWS; r++) {
            lanes x = a[r][first + k] - (lanes){0}; /* in every lane: x - 0 is x, x + 0 would be a sum */
            sum[r][0] = __builtin_elementwise_fma(x, w0, sum[r][0]);
            sum[r][1] = __builtin_elementwise_fma(x, w1, sum[r][1]);
        }
    }
#pragma clang loop unroll(full)
    for (int r = 0; r < ROWS; r++) {
        ((lanes *) acc[r])[0] = sum[r][0];
        ((lanes *) acc[r])[1] = sum[r][1];
    }
}

/* acc += a's inner elements from `first` on, times w's rows. */
static void multiply(float (*a)[N], int first, float (*w)[N], int n_inner, float (*acc)[N]) {
    for (int n = 0; n < N; n += 2 * LANES) {
        for (int r = 0; r < N; r += ROWS) {
            multiply_block((const float(*)[N]) a[r], first, (const float(*)[N]) & w[0][n], n_inner,
                           (float(*)[N]) & acc[r][n]);
        }
    }
}

/* The inner elements that a packet covers: from `first` of the first tile to the last one of the last tile. */
struct span {
    uint32_t n_tiles, first, n_inner;
};

static struct span span_of(uint32_t address, uint32_t range, unsigned form) {
    uint32_t first = address >> 2 & 31, last = range >> 2 & 31, more = range / HMX_TILE_BYTES;
    if (address & (HMX_TILE_BYTES - 1) & ~(31u << 2)) {
        emu_die("activation.hf = mxmem(0x%08x): a tile must be 2048-byte aligned (spatial offsets are not emulated)",
                (unsigned) address);
    }
    if (more >= HMX_MAX_TILES || (more && !(form & HMX_DEEP))) {
        emu_die("activation.hf = mxmem with the range %u: %s", (unsigned) range,
                form & HMX_DEEP ? "a :deep takes at most 32 tiles, a range up to 65535"
                                : "without :deep it takes one tile, the range 2047 (filters are not emulated)");
    }
    if (first % 8 || last % 8 != 7 || more * N + last < first) {
        emu_die("activation.hf = mxmem: inner elements %u to %u of %u tiles, which must begin and end at a multiple of 8",
                (unsigned) first, (unsigned) last, (unsigned) more + 1);
    }
    return (struct span){.n_tiles = more + 1, .first = first, .n_inner = more * N + last + 1 - first};
}

/* Weights have 64 bytes an inner element, without gaps; negated where bit 5 of the address is set. */
static const halves *weights_of(uint32_t address, uint32_t range, uint32_t n_inner, unsigned form) {
    uint32_t at = address & ~(1u << 5), needed = n_inner * 2 * N * (form & HMX_WEIGHT_DEEP ? 2 : 1);
    if (at % 128) {
        emu_die("weight.hf = mxmem(0x%08x): weights must be 128-byte aligned", (unsigned) address);
    }
    if ((range | 127) < needed - 1) {
        emu_die("weight.hf = mxmem with the range %u, but the activations ask for %u bytes of weights", (unsigned) range,
                (unsigned) needed);
    }
    emu_vtcm_check(at, needed, "weight.hf = mxmem");
    HEX_READ_RANGE(at, needed);
    return (const halves *) (uintptr_t) at;
}

static void negate(float (*w)[N]) {
    for (int k = 0; k < N; k++) {
        for (int n = 0; n < N; n++) {
            w[k][n] = -w[k][n];
        }
    }
}

/* All inner elements of one product into one accumulator. */
static void product(const halves *activation, struct span s, const halves *weight, bool negated, float (*acc)[N]) {
    float a[N][N], w[N][N];
    for (uint32_t t = 0, done = 0; t < s.n_tiles; t++) {
        uint32_t first = t ? 0 : s.first, left = s.n_inner - done;
        uint32_t n = left < N - first ? left : N - first;
        widen(activation + t * N / 2, N / 2, a);
        widen(weight + done / 2, (int) n / 2, w);
        if (negated) {
            negate(w);
        }
        multiply(a, (int) first, w, (int) n, acc);
        done += n;
    }
}

void hmx_mac_ranges(uint32_t activation, uint32_t activation_range, uint32_t weight, uint32_t weight_range,
                    unsigned form) {
    struct unit *u = unit("activation.hf = mxmem");
    struct span s = span_of(activation, activation_range, form);
    uint32_t at = activation & ~(HMX_TILE_BYTES - 1), bytes = s.n_tiles * HMX_TILE_BYTES;
    emu_vtcm_check(at, bytes, "activation.hf = mxmem");
    HEX_READ_RANGE(at, bytes);
    const halves *w = weights_of(weight, weight_range, s.n_inner, form), *a = (const halves *) (uintptr_t) at;
    product(a, s, w, weight & 1u << 5, u->acc[u->current]);
    if (form & HMX_WEIGHT_DEEP) {
        product(a, s, w + s.n_inner / 2, weight & 1u << 5, u->acc[u->current ^ 1]);
    }
}

void hmx_activation(uint32_t address, uint32_t range, unsigned form) {
    struct unit *u = unit("activation.hf = mxmem");
    u->activation = address;
    u->range = range;
    u->form = form & HMX_DEEP;
    u->pending = true;
}

void hmx_weight(uint32_t address, uint32_t range, unsigned form) {
    struct unit *u = unit("weight.hf = mxmem");
    if (!u->pending) {
        emu_die("weight.hf = mxmem without activation.hf = mxmem: a packet has both");
    }
    u->pending = false;
    hmx_mac_ranges(u->activation, u->range, address, range, u->form | (form & HMX_WEIGHT_DEEP));
}

/* Results. */

typedef int32_t row_mask __attribute__((vector_size(128), aligned(4), may_alias));
typedef _Float16 halves_unaligned __attribute__((vector_size(128), aligned(2), may_alias));
#define ZIP(i) ((i) / 2 + N * ((i) % 2))
#define EACH_64(f) EACH_32(f), EACH_8(f, 32), EACH_8(f, 40), EACH_8(f, 48), EACH_8(f, 56)

static inline row_floats pick(row_mask where, row_floats a, row_floats b) {
    return (row_floats) (((row_mask) a & where) | ((row_mask) b & ~where));
}

static inline row_floats result_row(const float *sums, const struct columns *c, bool positive) {
#define COLUMNS(member) (*(const row_floats *) c->member)
    row_floats x = *(const row_floats *) sums + COLUMNS(before);
    x = pick(x > COLUMNS(at_most), COLUMNS(at_most), x);
    x = pick(x < COLUMNS(at_least), COLUMNS(at_least), x);
    x = (row_floats) ((row_mask) x & ~*(const row_mask *) c->drop);
    x = x * COLUMNS(scale) + COLUMNS(after);
    return positive ? pick(x < 0, (row_floats){0}, x) : x;
#undef COLUMNS
}

/* Nearest even, up to 131008. Numbers that a half proper has no room for are rounded at half their size. */
static __attribute__((noinline)) half_bits narrow_large(floats x) {
    half_bits direct = (half_bits) __builtin_convertvector(x, halves_unaligned);
    half_bits halved = (half_bits) __builtin_convertvector(x * 0.5f, halves_unaligned);
    half_bits sign = direct & 0x8000, large = (half_bits) ((direct & 0x7fff) == 0x7c00);
    half_bits too_large = (half_bits) ((halved & 0x7fff) == 0x7c00);
    half_bits doubled = sign | ((((halved & 0x7fff) + 0x400) & ~too_large) | (too_large & 0x7fff));
    return (doubled & large) | (direct & ~large);
}

static inline half_bits narrow(floats x) {
    half_bits bits = (half_bits) __builtin_convertvector(x, halves_unaligned);
    if (__builtin_reduce_or((half_bits) ((bits & 0x7c00) == 0x7c00))) {
        return narrow_large(x);
    }
    return bits;
}

static void convert(struct unit *u, const struct columns *c, bool retain, bool positive) {
    float (*acc)[N] = u->acc[u->current];
    for (int i = 0; i < N / 2; i++) {
        row_floats row0 = result_row(acc[2 * i], c, positive), row1 = result_row(acc[2 * i + 1], c, positive);
        floats both = __builtin_shufflevector(row0, row1, EACH_64(ZIP));
        *(half_bits *) u->converted[i] = narrow(both);
    }
    if (!retain) {
        memset(acc, 0, sizeof u->acc[0]);
        u->current ^= 1;
    }
}

static void store(struct unit *u, uint32_t out, uint32_t param, const char *instruction) {
    if (out % HMX_TILE_BYTES || param >= HMX_TILE_BYTES) {
        emu_die("%s(0x%08x, %u): a tile must be 2048-byte aligned and its parameter below 2048 (spatial offsets are not "
                "emulated)",
                instruction, (unsigned) out, (unsigned) param);
    }
    emu_vtcm_check(out, HMX_TILE_BYTES, instruction);
    HEX_WRITE_RANGE(out, HMX_TILE_BYTES);
    memcpy((void *) (uintptr_t) out, u->converted, HMX_TILE_BYTES);
}

void hmx_store(uint32_t out, uint32_t param, unsigned form) {
    struct unit *u = unit("mxmem.hf = acc");
    convert(u, &u->banks[0], form & HMX_RETAIN, form & HMX_POS);
    if (!(form & HMX_BEFORE)) { /* what lies before an aligned tile is nothing */
        store(u, out, param, "mxmem.hf = acc");
    }
}

void hmx_convert(uint32_t param, unsigned form) {
    (void) form;
    struct unit *u = unit("cvt.hf = acc");
    if (param & ~(3u | 3u << 12)) {
        emu_die("cvt.hf = acc(%u): only bits 0 (retain), 1 (keep negative) and 12 to 13 (bank) are emulated",
                (unsigned) param);
    }
    convert(u, &u->banks[param >> 12 & 3], param & 1, !(param & 2));
}

void hmx_store_converted(uint32_t out, uint32_t param) {
    store(unit("mxmem = cvt"), out, param, "mxmem = cvt");
}
