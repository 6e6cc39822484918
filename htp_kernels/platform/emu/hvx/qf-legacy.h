// qfloat of v73 and v75: unnormalised numbers computed in double, then rounded to the nearest lane value.
//
// Infinities and NaN of sf and hf are read as the numbers their bits continue to (2^128 and more, 2^16 and more);
// results that large convert back to those patterns.
//
// Worst difference to the exact result, in ulp of the IEEE type (an IEEE result is within 0.5):
//   vadd, vsub                  sf or hf operands, or qf operands that are normalised   1 of the largest operand
//                               qf operands with z leading zeros (after cancellation)   2^z times that
//   vmpy                        sf or hf operands                                       1
//                               qf operands with z leading zeros together               2^z
//   Wqf32_vmpy                  hf operands                                             1 (of qf32)
//   _equals_Vqf32, _Vqf16       0.5, ties to even
//   -x, |x|                     0
#ifndef HEXNPU_EMU_HVX_QF_LEGACY_H
#define HEXNPU_EMU_HVX_QF_LEGACY_H

typedef double hvx_f64 __attribute__((vector_size(128), may_alias));
typedef int64_t hvx_i64 __attribute__((vector_size(128), may_alias));

// 16 lanes sig * 2^exp, sig in units of the last place of the IEEE type (for 1.0: 2^23 or 2^10).
typedef struct {
    hvx_f64 sig;
    hvx_i64 exp;
} hvx_qf;

HVX_INLINE hvx_f64 hvx_pick_d(hvx_i64 mask, hvx_f64 a, hvx_f64 b) {
    return (hvx_f64) (((hvx_i64) a & mask) | ((hvx_i64) b & ~mask));
}

HVX_INLINE hvx_i64 hvx_pick_l(hvx_i64 mask, hvx_i64 a, hvx_i64 b) {
    return (a & mask) | (b & ~mask);
}

HVX_INLINE hvx_f64 hvx_pow2_d(hvx_i64 exp) {
    return (hvx_f64) ((exp + 1023) << 52);
}

HVX_INLINE hvx_qf hvx_qf_parse(struct hvx_qf_format f, hvx_qf_words v) {
    hvx_qf_words bias = (hvx_qf_words){0} + ((1 << (f.exponent_bits - 1)) - 1);
    return (hvx_qf){__builtin_convertvector(hvx_qf_n(f, v), hvx_f64),
                    __builtin_convertvector(hvx_qf_e(f, v) - bias, hvx_i64)};
}

// The magnitude of IEEE lanes (halves in the low 16 bits of words); all exponents are numbers.
HVX_INLINE hvx_qf hvx_qf_parse_ieee(struct hvx_qf_format f, hvx_qf_words v) {
    hvx_qf_words field = (v >> f.fraction_bits) & ((1 << f.exponent_bits) - 1);
    hvx_qf_words fraction = v & ((1 << f.fraction_bits) - 1), normal = field != 0;
    hvx_qf_words bias = (hvx_qf_words){0} + ((1 << (f.exponent_bits - 1)) - 1);
    hvx_qf_words exp = (field | (~normal & 1)) - bias;
    return (hvx_qf){__builtin_convertvector(fraction | (normal & (1 << f.fraction_bits)), hvx_f64),
                    __builtin_convertvector(exp, hvx_i64)};
}

HVX_INLINE hvx_qf_words hvx_qf_ieee_sign(struct hvx_qf_format f, hvx_qf_words v) {
    return ((v >> (f.exponent_bits + f.fraction_bits)) & 1) != 0;
}

HVX_INLINE hvx_qf hvx_qf_parse_signed(struct hvx_qf_format f, hvx_qf_words v) {
    hvx_qf q = hvx_qf_parse_ieee(f, v);
    hvx_i64 sign = __builtin_convertvector(hvx_qf_ieee_sign(f, v), hvx_i64);
    q.sig = hvx_pick_d(sign, -q.sig, q.sig);
    return q;
}

// Nearest odd n for sig = t + r with t a multiple of 4 and 0 <= r < 4, `low` being the sign of what sig left out.
// Ties go to the lower n, so to even m. Where the exponent may grow by one, t + 2 is reachable as (t + 2) / 2.
struct hvx_qf_odd {
    hvx_f64 n;
    hvx_i64 doubled;
};

HVX_INLINE hvx_i64 hvx_qf_over(hvx_f64 r, hvx_f64 low, double limit) {
    return (r > limit) | ((r == limit) & (low > 0));
}

HVX_INLINE struct hvx_qf_odd hvx_qf_nearest_odd(hvx_f64 sig, hvx_f64 low, hvx_i64 narrow) {
    hvx_f64 t = __builtin_elementwise_floor(sig * 0.25) * 4, r = sig - t;
    hvx_i64 below = (r == 0) & (low < 0), above_middle = hvx_qf_over(r, low, 2.0);
    hvx_i64 above_first = hvx_qf_over(r, low, 1.5), above_last = hvx_qf_over(r, low, 2.5);
    hvx_i64 middle = above_first & ~above_last & ~narrow & ~below;
    hvx_i64 high = hvx_pick_l(narrow, above_middle, above_last);
    hvx_f64 n = t + hvx_pick_d(below, (hvx_f64){0} - 1, hvx_pick_d(high, (hvx_f64){0} + 3, (hvx_f64){0} + 1));
    return (struct hvx_qf_odd){hvx_pick_d(middle, t * 0.5 + 1, n), middle};
}

// (sig + low) * 2^exp as lanes of format f, saturated to the largest magnitude or to the smallest.
HVX_INLINE hvx_qf_words hvx_qf_round(struct hvx_qf_format f, hvx_f64 sig, hvx_f64 low, hvx_i64 exp) {
    const double two = (double) (2 << f.fraction_bits);
    const int64_t bias = (1 << (f.exponent_bits - 1)) - 1, most = bias + 1, least = -bias;
    hvx_f64 size = __builtin_elementwise_abs(sig);
    hvx_i64 carry = (size >= two) & ~((sig == -two) & (low >= 0));
    hvx_i64 over = (exp > most) | (carry & (exp == most)), under = exp < least - 1;
    hvx_i64 halve = (exp == least - 1) | (carry & (exp < most));
    struct hvx_qf_odd odd = hvx_qf_nearest_odd(hvx_pick_d(halve, sig * 0.5, sig), low, halve | (exp == most));
    hvx_f64 side = hvx_pick_d(sig >= 0, (hvx_f64){0} + 1, (hvx_f64){0} - 1);
    hvx_f64 n = hvx_pick_d(over, side * (two - 1), hvx_pick_d(under, side, odd.n));
    hvx_i64 e = exp + bias - halve - odd.doubled;
    e = hvx_pick_l(over, (hvx_i64){0} + (most + bias), e) & ~under & ~((sig == 0) & (low == 0));
    return hvx_qf_pack(f, __builtin_convertvector(n, hvx_qf_words), __builtin_convertvector(e, hvx_qf_words));
}

// The operand with the larger exponent is normalised as far as the other one allows; then both are aligned.
HVX_INLINE hvx_qf_words hvx_qf_sum(struct hvx_qf_format f, hvx_qf a, hvx_qf b) {
    hvx_i64 a_first = a.exp > b.exp;
    hvx_f64 lead = __builtin_elementwise_abs(hvx_pick_d(a_first, a.sig, b.sig));
    hvx_i64 log2 = ((hvx_i64) lead >> 52) - 1023 - f.fraction_bits;
    log2 = hvx_pick_l(lead == 0, (hvx_i64){0} - (f.fraction_bits + 1), log2);
    hvx_i64 exp = hvx_pick_l(a_first, a.exp, b.exp) + log2, floor = hvx_pick_l(a_first, b.exp, a.exp);
    exp = hvx_pick_l(exp < floor, floor, exp);
    hvx_f64 x = a.sig * hvx_pow2_d(a.exp - exp), y = b.sig * hvx_pow2_d(b.exp - exp), sum = x + y;
    hvx_f64 back = sum - x;
    return hvx_qf_round(f, sum, (x - (sum - back)) + (y - back), exp);
}

// `from` is the operands' format, `f` the result's; the product of two significands is exact in double.
HVX_INLINE hvx_qf_words hvx_qf_product(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf a, hvx_qf b) {
    const double unit = 1.0 / (double) (1 << from.fraction_bits);
    const double scale = (double) (1 << f.fraction_bits) * unit * unit;
    return hvx_qf_round(f, a.sig * b.sig * scale, (hvx_f64){0}, a.exp + b.exp);
}

// IEEE operands: equal signs are added as magnitudes and the sign is put back, as in all products with them.
HVX_INLINE hvx_qf_words hvx_qf_add_ieee(struct hvx_qf_format f, hvx_qf_words a, hvx_qf_words b) {
    hvx_qf_words both = hvx_qf_ieee_sign(f, a) & hvx_qf_ieee_sign(f, b);
    hvx_qf_words sign = both & (int) (1u << (f.exponent_bits + f.fraction_bits));
    hvx_qf_words sum = hvx_qf_sum(f, hvx_qf_parse_signed(f, a ^ sign), hvx_qf_parse_signed(f, b ^ sign));
    return hvx_qf_negate(f, sum, both);
}

HVX_INLINE hvx_qf_words hvx_qf_add_mix(struct hvx_qf_format f, hvx_qf_words a, hvx_qf_words b) {
    return hvx_qf_sum(f, hvx_qf_parse(f, a), hvx_qf_parse_signed(f, b));
}

HVX_INLINE hvx_qf_words hvx_qf_add(struct hvx_qf_format f, hvx_qf_words a, hvx_qf_words b) {
    return hvx_qf_sum(f, hvx_qf_parse(f, a), hvx_qf_parse(f, b));
}

HVX_INLINE hvx_qf_words hvx_qf_sub(struct hvx_qf_format f, hvx_qf_words a, hvx_qf_words b) {
    return hvx_qf_add(f, a, hvx_qf_negate(f, b, (hvx_qf_words){0} - 1));
}

HVX_INLINE hvx_qf_words hvx_qf_mpy_ieee(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf_words a,
                                        hvx_qf_words b) {
    hvx_qf_words product = hvx_qf_product(f, from, hvx_qf_parse_ieee(from, a), hvx_qf_parse_ieee(from, b));
    return hvx_qf_negate(f, product, hvx_qf_ieee_sign(from, a) ^ hvx_qf_ieee_sign(from, b));
}

HVX_INLINE hvx_qf_words hvx_qf_mpy_mix(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf_words a,
                                        hvx_qf_words b) {
    hvx_qf_words product = hvx_qf_product(f, from, hvx_qf_parse(from, a), hvx_qf_parse_ieee(from, b));
    return hvx_qf_negate(f, product, hvx_qf_ieee_sign(from, b));
}

HVX_INLINE hvx_qf_words hvx_qf_mpy(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf_words a, hvx_qf_words b) {
    return hvx_qf_product(f, from, hvx_qf_parse(from, a), hvx_qf_parse(from, b));
}

HVX_INLINE hvx_f64 hvx_qf_value(struct hvx_qf_format f, hvx_qf_words v) {
    hvx_qf q = hvx_qf_parse(f, v);
    return q.sig * hvx_pow2_d(q.exp - f.fraction_bits);
}

// To sf, nearest even; from 2^128 on the exponent field goes on to 255.
HVX_INLINE hvx_qf_words hvx_qf_half_to_sf(hvx_qf_words v) {
    typedef float floats __attribute__((vector_size(64)));
    hvx_f64 value = hvx_qf_value(HVX_QF32, v);
    hvx_i64 large = __builtin_elementwise_abs(value) >= 0x1p127;
    hvx_qf_words bits = (hvx_qf_words) __builtin_convertvector(hvx_pick_d(large, value * 0.5, value), floats);
    return bits + (__builtin_convertvector(large, hvx_qf_words) & 0x00800000);
}

// To hf in the low half of each word, nearest even; from 65536 on the exponent field goes on to 31, up to 131008.
HVX_INLINE hvx_qf_words hvx_qf_half_to_hf(struct hvx_qf_format f, hvx_qf_words v) {
    typedef float floats __attribute__((vector_size(64)));
    typedef _Float16 halves __attribute__((vector_size(32)));
    typedef uint16_t bits16 __attribute__((vector_size(32)));
    hvx_f64 value = hvx_qf_value(f, v), end = (hvx_f64){0} + 131008.0;
    value = __builtin_elementwise_min(__builtin_elementwise_max(value, -end), end);
    hvx_i64 large = __builtin_elementwise_abs(value) >= 32768.0;
    floats single = __builtin_convertvector(hvx_pick_d(large, value * 0.5, value), floats); // exact where it matters
    hvx_qf_words bits = __builtin_convertvector((bits16) __builtin_convertvector(single, halves), hvx_qf_words);
    return bits + (__builtin_convertvector(large, hvx_qf_words) & 0x0400);
}

#define HVX_UPPER_16(i) ((i) + 16)
#define HVX_EACH_16(F) HVX_EACH_8(F, 0), HVX_EACH_8(F, 8)

HVX_INLINE hvx_qf_words hvx_qf_lower(hvx_i32 v) {
    return (hvx_qf_words) __builtin_shufflevector(v, v, HVX_EACH_16(HVX_INDEX));
}

HVX_INLINE hvx_qf_words hvx_qf_upper(hvx_i32 v) {
    return (hvx_qf_words) __builtin_shufflevector(v, v, HVX_EACH_16(HVX_UPPER_16));
}

HVX_INLINE hvx_i32 hvx_qf_whole(hvx_qf_words lower, hvx_qf_words upper) {
    return (hvx_i32) __builtin_shufflevector(lower, upper, HVX_EACH_32(HVX_INDEX, 0));
}

HVX_INLINE hvx_i32 hvx_qf_apply(hvx_qf_op op, struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_whole(op(f, hvx_qf_lower(a), hvx_qf_lower(b)), op(f, hvx_qf_upper(a), hvx_qf_upper(b)));
}

HVX_INLINE hvx_i32 hvx_qf_apply_product(hvx_qf_product_op op, struct hvx_qf_format f, struct hvx_qf_format from,
                                        hvx_i32 a, hvx_i32 b) {
    hvx_qf_words lower = op(f, from, hvx_qf_lower(a), hvx_qf_lower(b));
    return hvx_qf_whole(lower, op(f, from, hvx_qf_upper(a), hvx_qf_upper(b)));
}

HVX_INLINE hvx_i32 hvx_qf_to_sf(hvx_i32 v) {
    return hvx_qf_whole(hvx_qf_half_to_sf(hvx_qf_lower(v)), hvx_qf_half_to_sf(hvx_qf_upper(v)));
}

HVX_INLINE hvx_u32 hvx_qf_to_hf(struct hvx_qf_format f, hvx_i32 v) {
    return (hvx_u32) hvx_qf_whole(hvx_qf_half_to_hf(f, hvx_qf_lower(v)), hvx_qf_half_to_hf(f, hvx_qf_upper(v)));
}

#endif
