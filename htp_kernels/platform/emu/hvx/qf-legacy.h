// qfloat of v73 and v75: unnormalised numbers, each result rounded to the nearest lane value.
//
// A result is computed in float as a sum and its exact rest (what the sum left out), both in units of the last place of
// the result, which decides every rounding as the exact number would.
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

// Lanes sig * 2^exp, sig in units of the last place of the IEEE type (for 1.0: 2^23 or 2^10), of at most 24 bits.
typedef struct {
    hvx_f32 sig;
    hvx_i32 exp;
} hvx_qf;

HVX_INLINE hvx_f32 hvx_pick_f(hvx_i32 mask, hvx_f32 a, hvx_f32 b) {
    return (hvx_f32) (((hvx_i32) a & mask) | ((hvx_i32) b & ~mask));
}

HVX_INLINE hvx_i32 hvx_pick_w(hvx_i32 mask, hvx_i32 a, hvx_i32 b) {
    return (a & mask) | (b & ~mask);
}

// 2^exp for -126 <= exp <= 127.
HVX_INLINE hvx_f32 hvx_pow2_f(hvx_i32 exp) {
    return (hvx_f32) ((exp + 127) << 23);
}

HVX_INLINE hvx_qf hvx_qf_parse(struct hvx_qf_format f, hvx_i32 v) {
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    return (hvx_qf){__builtin_convertvector(hvx_qf_n(f, v), hvx_f32), hvx_qf_e(f, v) - bias};
}

// The magnitude of IEEE lanes (halves in the low 16 bits of words); all exponents are numbers.
HVX_INLINE hvx_qf hvx_qf_parse_ieee(struct hvx_qf_format f, hvx_i32 v) {
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    hvx_i32 field = (v >> f.fraction_bits) & ((1 << f.exponent_bits) - 1);
    hvx_i32 fraction = v & ((1 << f.fraction_bits) - 1), normal = field != 0;
    hvx_i32 significand = fraction | (normal & (1 << f.fraction_bits));
    return (hvx_qf){__builtin_convertvector(significand, hvx_f32), (field | (~normal & 1)) - bias};
}

HVX_INLINE hvx_i32 hvx_qf_ieee_sign(struct hvx_qf_format f, hvx_i32 v) {
    return ((v >> (f.exponent_bits + f.fraction_bits)) & 1) != 0;
}

HVX_INLINE hvx_qf hvx_qf_parse_signed(struct hvx_qf_format f, hvx_i32 v) {
    hvx_qf q = hvx_qf_parse_ieee(f, v);
    q.sig = hvx_pick_f(hvx_qf_ieee_sign(f, v), -q.sig, q.sig);
    return q;
}

// The nearest odd n for t + r + rest, with t a multiple of 4 and 0 <= r < 4, in steps from t: -1, 1 or 3, and 2 where the
// exponent may grow by one, as (t + 2) / 2. Ties go to the lower n, so to even m.
HVX_INLINE hvx_i32 hvx_qf_over(hvx_f32 r, hvx_f32 rest, float limit) {
    return (r - limit) + rest > 0;
}

HVX_INLINE hvx_i32 hvx_qf_step(hvx_f32 r, hvx_f32 rest, hvx_i32 narrow) {
    hvx_i32 below = (r == 0) & (rest < 0), above_middle = hvx_qf_over(r, rest, 2.0f);
    hvx_i32 above_first = hvx_qf_over(r, rest, 1.5f), above_last = hvx_qf_over(r, rest, 2.5f);
    hvx_i32 wide = (above_first & 1) + (above_last & 1), narrowed = above_middle & 2;
    return (hvx_pick_w(narrow, narrowed, wide) + 1) | below;
}

// (sig + rest) * 2^exp as lanes of format f, saturated to the largest magnitude or to the smallest.
HVX_INLINE hvx_i32 hvx_qf_round(struct hvx_qf_format f, hvx_f32 sig, hvx_f32 rest, hvx_i32 exp) {
    const float two = (float) (2 << f.fraction_bits);
    const int bias = (1 << (f.exponent_bits - 1)) - 1, most = bias + 1, least = -bias;
    hvx_i32 carry = (sig > two) | (sig < -two) | ((sig == two) & (rest >= 0)) | ((sig == -two) & (rest < 0));
    hvx_i32 over = (exp > most) | (carry & (exp == most)), under = exp < least - 1;
    hvx_i32 halve = (exp == least - 1) | (carry & (exp < most)), narrow = halve | (exp == most);
    hvx_f32 half = hvx_pick_f(halve, (hvx_f32){0} + 0.5f, (hvx_f32){0} + 1.0f);
    sig = sig * half;
    rest = rest * half;
    hvx_f32 t = __builtin_elementwise_floor(sig * 0.25f) * 4.0f;
    hvx_i32 step = hvx_qf_step(sig - t, rest, narrow), doubled = step == 2;
    hvx_i32 n = (__builtin_convertvector(t, hvx_i32) + step) >> (doubled & 1);
    hvx_i32 side = (sig < 0) | 1;
    n = hvx_pick_w(over, side * (int) (two - 1), hvx_pick_w(under, side, n));
    hvx_i32 e = exp + bias - halve - doubled;
    e = hvx_pick_w(over, (hvx_i32){0} + (most + bias), e) & ~under & ~((sig == 0) & (rest == 0));
    return hvx_qf_pack(f, n, e);
}

// The operand with the larger exponent is normalised as far as the other one allows; then both are aligned, of which a
// small one keeps at least its sign.
HVX_INLINE hvx_i32 hvx_qf_sum(struct hvx_qf_format f, hvx_qf a, hvx_qf b) {
    hvx_i32 a_first = a.exp > b.exp, small = (hvx_i32){0} - 60;
    hvx_f32 lead = __builtin_elementwise_abs(hvx_pick_f(a_first, a.sig, b.sig));
    hvx_i32 log2 = ((hvx_i32) lead >> 23) - 127 - f.fraction_bits;
    log2 = hvx_pick_w(lead == 0, (hvx_i32){0} - (f.fraction_bits + 1), log2);
    hvx_i32 exp = hvx_pick_w(a_first, a.exp, b.exp) + log2;
    exp = __builtin_elementwise_max(exp, hvx_pick_w(a_first, b.exp, a.exp));
    hvx_f32 x = a.sig * hvx_pow2_f(__builtin_elementwise_max(a.exp - exp, small));
    hvx_f32 y = b.sig * hvx_pow2_f(__builtin_elementwise_max(b.exp - exp, small));
    hvx_f32 sum = x + y, back = sum - x;
    return hvx_qf_round(f, sum, (x - (sum - back)) + (y - back), exp);
}

// `from` is the operands' format, `f` the result's.
HVX_INLINE hvx_i32 hvx_qf_product(struct hvx_qf_format f, struct hvx_qf_format from, hvx_qf a, hvx_qf b) {
    const float unit = 1.0f / (float) (1 << from.fraction_bits), scale = (float) (1 << f.fraction_bits) * unit * unit;
    hvx_f32 x = a.sig * scale, product = x * b.sig;
    return hvx_qf_round(f, product, __builtin_elementwise_fma(x, b.sig, -product), a.exp + b.exp);
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

// A lane's value times 2^more, rounded once, where it is subnormal. Zeros are told apart: the processor is slow with
// numbers that become subnormal, and there are many zeros.
HVX_INLINE hvx_f32 hvx_qf_scaled(struct hvx_qf_format f, hvx_i32 v, hvx_i32 more) {
    hvx_qf q = hvx_qf_parse(f, v);
    hvx_i32 zero = (v == 0) | (v == -(1 << f.exponent_bits)), exp = q.exp - f.fraction_bits + more;
    hvx_i32 low = (hvx_i32){0} - 100;
    hvx_f32 sig = (hvx_f32) ((hvx_i32) q.sig & ~(zero & 0x7fffffff));
    hvx_f32 x = sig * hvx_pow2_f(__builtin_elementwise_max(exp, low));
    return x * hvx_pow2_f(__builtin_elementwise_min(exp - low, (hvx_i32){0}));
}

// To sf, nearest even; from 2^128 on the exponent field goes on to 255. Large lanes are computed at half their size.
HVX_INLINE hvx_i32 hvx_qf_to_sf(hvx_i32 v) {
    hvx_i32 large = hvx_qf_e(HVX_QF32, v) > 200;
    return (hvx_i32) hvx_qf_scaled(HVX_QF32, v, large) + (large & 0x00800000);
}

// To hf in the low half of each word, nearest even; from 65536 on the exponent field goes on to 31, up to 131008.
HVX_INLINE hvx_u32 hvx_qf_to_hf(struct hvx_qf_format f, hvx_i32 v) {
    typedef uint16_t bits16 __attribute__((vector_size(64)));
    hvx_f32 half = hvx_qf_scaled(f, v, (hvx_i32){0} - 1), end = (hvx_f32){0} + 65504.0f;
    hvx_i32 large = __builtin_elementwise_abs(half) >= 16384.0f;
    half = __builtin_elementwise_min(__builtin_elementwise_max(half, -end), end);
    hvx_f32 single = hvx_pick_f(large, half, half + half);
    hvx_u32 bits = __builtin_convertvector((bits16) __builtin_convertvector(single, hvx_f16n), hvx_u32);
    return bits + ((hvx_u32) large & 0x0400);
}

HVX_INLINE hvx_i32 hvx_qf_apply(hvx_qf_op op, struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return op(f, a, b);
}

HVX_INLINE hvx_i32 hvx_qf_apply_product(hvx_qf_product_op op, struct hvx_qf_format f, struct hvx_qf_format from,
                                        hvx_i32 a, hvx_i32 b) {
    return op(f, from, a, b);
}

#endif
