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

typedef double hvx_f64w __attribute__((vector_size(256), may_alias));

// 32 lanes sig * 2^exp, sig in units of the last place of the IEEE type (for 1.0: 2^23 or 2^10).
typedef struct {
    hvx_f64w sig;
    hvx_i64w exp;
} hvx_qf;

HVX_INLINE hvx_f64w hvx_pick_d(hvx_i64w mask, hvx_f64w a, hvx_f64w b) {
    return (hvx_f64w) (((hvx_i64w) a & mask) | ((hvx_i64w) b & ~mask));
}

HVX_INLINE hvx_i64w hvx_pick_l(hvx_i64w mask, hvx_i64w a, hvx_i64w b) {
    return (a & mask) | (b & ~mask);
}

HVX_INLINE hvx_f64w hvx_pow2_d(hvx_i64w exp) {
    return (hvx_f64w) ((exp + 1023) << 52);
}

HVX_INLINE hvx_qf hvx_qf_parse(struct hvx_qf_format f, hvx_i32 v) {
    hvx_i32 bias = (hvx_i32){0} + ((1 << (f.exponent_bits - 1)) - 1);
    return (hvx_qf){__builtin_convertvector(hvx_qf_n(f, v), hvx_f64w),
                    __builtin_convertvector(hvx_qf_e(f, v) - bias, hvx_i64w)};
}

// The magnitude of IEEE lanes (halves in the low 16 bits of words); all exponents are numbers.
HVX_INLINE hvx_qf hvx_qf_parse_ieee(struct hvx_qf_format f, hvx_i32 v) {
    hvx_i32 field = (v >> f.fraction_bits) & ((1 << f.exponent_bits) - 1);
    hvx_i32 fraction = v & ((1 << f.fraction_bits) - 1), normal = field != 0;
    hvx_i32 bias = (hvx_i32){0} + ((1 << (f.exponent_bits - 1)) - 1);
    hvx_i32 exp = (field | (~normal & 1)) - bias;
    return (hvx_qf){__builtin_convertvector(fraction | (normal & (1 << f.fraction_bits)), hvx_f64w),
                    __builtin_convertvector(exp, hvx_i64w)};
}

HVX_INLINE hvx_i32 hvx_qf_ieee_sign(struct hvx_qf_format f, hvx_i32 v) {
    return ((v >> (f.exponent_bits + f.fraction_bits)) & 1) != 0;
}

HVX_INLINE hvx_qf hvx_qf_parse_signed(struct hvx_qf_format f, hvx_i32 v) {
    hvx_qf q = hvx_qf_parse_ieee(f, v);
    hvx_i64w sign = __builtin_convertvector(hvx_qf_ieee_sign(f, v), hvx_i64w);
    q.sig = hvx_pick_d(sign, -q.sig, q.sig);
    return q;
}

// Nearest odd n for sig = t + r with t a multiple of 4 and 0 <= r < 4, `low` being the sign of what sig left out.
// Ties go to the lower n, so to even m. Where the exponent may grow by one, t + 2 is reachable as (t + 2) / 2.
struct hvx_qf_odd {
    hvx_f64w n;
    hvx_i64w doubled;
};

HVX_INLINE hvx_i64w hvx_qf_over(hvx_f64w r, hvx_f64w low, double limit) {
    return (r > limit) | ((r == limit) & (low > 0));
}

HVX_INLINE struct hvx_qf_odd hvx_qf_nearest_odd(hvx_f64w sig, hvx_f64w low, hvx_i64w narrow) {
    hvx_f64w t = __builtin_elementwise_floor(sig * 0.25) * 4, r = sig - t;
    hvx_i64w below = (r == 0) & (low < 0), above_middle = hvx_qf_over(r, low, 2.0);
    hvx_i64w above_first = hvx_qf_over(r, low, 1.5), above_last = hvx_qf_over(r, low, 2.5);
    hvx_i64w middle = above_first & ~above_last & ~narrow & ~below;
    hvx_i64w high = hvx_pick_l(narrow, above_middle, above_last);
    hvx_f64w n = t + hvx_pick_d(below, (hvx_f64w){0} - 1, hvx_pick_d(high, (hvx_f64w){0} + 3, (hvx_f64w){0} + 1));
    return (struct hvx_qf_odd){hvx_pick_d(middle, t * 0.5 + 1, n), middle};
}

// (sig + low) * 2^exp as lanes of format f, saturated to the largest magnitude or to the smallest.
HVX_INLINE hvx_i32 hvx_qf_round(struct hvx_qf_format f, hvx_f64w sig, hvx_f64w low, hvx_i64w exp) {
    const double two = (double) (2 << f.fraction_bits);
    const int64_t bias = (1 << (f.exponent_bits - 1)) - 1, most = bias + 1, least = -bias;
    hvx_f64w size = __builtin_elementwise_abs(sig);
    hvx_i64w carry = (size >= two) & ~((sig == -two) & (low >= 0));
    hvx_i64w over = (exp > most) | (carry & (exp == most)), under = exp < least - 1;
    hvx_i64w halve = (exp == least - 1) | (carry & (exp < most));
    struct hvx_qf_odd odd = hvx_qf_nearest_odd(hvx_pick_d(halve, sig * 0.5, sig), low, halve | (exp == most));
    hvx_f64w side = hvx_pick_d(sig >= 0, (hvx_f64w){0} + 1, (hvx_f64w){0} - 1);
    hvx_f64w n = hvx_pick_d(over, side * (two - 1), hvx_pick_d(under, side, odd.n));
    hvx_i64w e = exp + bias - halve - odd.doubled;
    e = hvx_pick_l(over, (hvx_i64w){0} + (most + bias), e) & ~under & ~((sig == 0) & (low == 0));
    return hvx_qf_pack(f, __builtin_convertvector(n, hvx_i32), __builtin_convertvector(e, hvx_i32));
}

// The operand with the larger exponent is normalised as far as the other one allows; then both are aligned.
HVX_INLINE hvx_i32 hvx_qf_sum(struct hvx_qf_format f, hvx_qf a, hvx_qf b) {
    hvx_i64w a_first = a.exp > b.exp;
    hvx_f64w lead = __builtin_elementwise_abs(hvx_pick_d(a_first, a.sig, b.sig));
    hvx_i64w log2 = ((hvx_i64w) lead >> 52) - 1023 - f.fraction_bits;
    log2 = hvx_pick_l(lead == 0, (hvx_i64w){0} - (f.fraction_bits + 1), log2);
    hvx_i64w exp = hvx_pick_l(a_first, a.exp, b.exp) + log2, floor = hvx_pick_l(a_first, b.exp, a.exp);
    exp = hvx_pick_l(exp < floor, floor, exp);
    hvx_f64w x = a.sig * hvx_pow2_d(a.exp - exp), y = b.sig * hvx_pow2_d(b.exp - exp), sum = x + y;
    hvx_f64w back = sum - x;
    return hvx_qf_round(f, sum, (x - (sum - back)) + (y - back), exp);
}

// `from` is the operands' format, `f` the result's; the product of two significands is exact in double.
HVX_INLINE hvx_i32 hvx_qf_product(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf a, hvx_qf b) {
    const double unit = 1.0 / (double) (1 << from.fraction_bits);
    const double scale = (double) (1 << f.fraction_bits) * unit * unit;
    return hvx_qf_round(f, a.sig * b.sig * scale, (hvx_f64w){0}, a.exp + b.exp);
}

// IEEE operands: equal signs are added as magnitudes and the sign is put back, as in all products with them.
HVX_INLINE hvx_i32 hvx_qf_add_ieee(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    hvx_i32 both = hvx_qf_ieee_sign(f, a) & hvx_qf_ieee_sign(f, b);
    hvx_i32 sign = both & (int) (1u << (f.exponent_bits + f.fraction_bits));
    hvx_i32 sum = hvx_qf_sum(f, hvx_qf_parse_signed(f, a ^ sign), hvx_qf_parse_signed(f, b ^ sign));
    return hvx_qf_negate(f, sum, both);
}

HVX_INLINE hvx_i32 hvx_qf_add_mix(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_sum(f, hvx_qf_parse(f, a), hvx_qf_parse_signed(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_add(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_sum(f, hvx_qf_parse(f, a), hvx_qf_parse(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_sub(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_add(f, a, hvx_qf_negate(f, b, (hvx_i32){0} - 1));
}

HVX_INLINE hvx_i32 hvx_qf_mpy_ieee(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    hvx_i32 product = hvx_qf_product(f, from, hvx_qf_parse_ieee(from, a), hvx_qf_parse_ieee(from, b));
    return hvx_qf_negate(f, product, hvx_qf_ieee_sign(from, a) ^ hvx_qf_ieee_sign(from, b));
}

HVX_INLINE hvx_i32 hvx_qf_mpy_mix(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    hvx_i32 product = hvx_qf_product(f, from, hvx_qf_parse(from, a), hvx_qf_parse_ieee(from, b));
    return hvx_qf_negate(f, product, hvx_qf_ieee_sign(from, b));
}

HVX_INLINE hvx_i32 hvx_qf_mpy(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_product(f, from, hvx_qf_parse(from, a), hvx_qf_parse(from, b));
}

HVX_INLINE hvx_f64w hvx_qf_value(struct hvx_qf_format f, hvx_i32 v) {
    hvx_qf q = hvx_qf_parse(f, v);
    return q.sig * hvx_pow2_d(q.exp - f.fraction_bits);
}

// To sf, nearest even; from 2^128 on the exponent field goes on to 255.
HVX_INLINE hvx_i32 hvx_qf_to_sf(hvx_i32 v) {
    hvx_f64w value = hvx_qf_value(HVX_QF32, v);
    hvx_i64w large = __builtin_elementwise_abs(value) >= 0x1p127;
    hvx_i32 bits = (hvx_i32) __builtin_convertvector(hvx_pick_d(large, value * 0.5, value), hvx_f32);
    return bits + (__builtin_convertvector(large, hvx_i32) & 0x00800000);
}

// To hf in the low half of each word, nearest even; from 65536 on the exponent field goes on to 31, up to 131008.
HVX_INLINE hvx_u32 hvx_qf_to_hf(struct hvx_qf_format f, hvx_i32 v) {
    hvx_f64w value = hvx_qf_value(f, v), end = (hvx_f64w){0} + 131008.0;
    value = __builtin_elementwise_min(__builtin_elementwise_max(value, -end), end);
    hvx_i64w large = __builtin_elementwise_abs(value) >= 32768.0;
    hvx_f32 single = __builtin_convertvector(hvx_pick_d(large, value * 0.5, value), hvx_f32); // exact where it matters
    typedef uint16_t halves __attribute__((vector_size(64)));
    hvx_u32 bits = __builtin_convertvector((halves) __builtin_convertvector(single, hvx_f16n), hvx_u32);
    return bits + (__builtin_convertvector(large, hvx_u32) & 0x0400);
}

#endif
