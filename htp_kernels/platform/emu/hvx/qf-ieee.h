// qfloat of v79 and v81: each result rounded to IEEE single (qf32) or half (qf16), nearest even, infinity and NaN
// included, and stored in the layout of qf.h. The processors keep four more bits beside the vector register, which
// normalised results do not show; a value that stays in qfloat over several operations is more exact there.
//
// Worst difference to the exact result, in ulp of the IEEE type: 0.5 for all of vadd, vsub, vmpy and the conversions,
// 0 for vneg and vabs. One more where the layout cannot hold the result:
//
// A significand must be odd, so trailing zeros move into the exponent; the exponent must fit, so of a qf32 from 2^105
// on, and of a qf16 from 128 on, an even significand becomes the next odd one: one ulp off. Infinity is the largest
// magnitude of the layout, NaN is the positive number two below.
#ifndef HEXNPU_EMU_HVX_QF_IEEE_H
#define HEXNPU_EMU_HVX_QF_IEEE_H

HVX_INLINE hvx_i32 hvx_pick_w(hvx_i32 mask, hvx_i32 a, hvx_i32 b) {
    return (a & mask) | (b & ~mask);
}

HVX_INLINE hvx_f32 hvx_pow2_f(hvx_i32 exp) {
    return (hvx_f32) ((exp + 127) << 23);
}

HVX_INLINE int hvx_qf_largest(struct hvx_qf_format f) {
    return (((1 << f.fraction_bits) - 1) << f.exponent_bits) | ((1 << f.exponent_bits) - 1);
}

HVX_INLINE int hvx_qf_nan(struct hvx_qf_format f) {
    return hvx_qf_largest(f) - (1 << f.exponent_bits);
}

// IEEE bits (of a half: in the low 16 bits) to lanes of format f.
HVX_INLINE hvx_i32 hvx_qf_encode(struct hvx_qf_format f, hvx_i32 bits) {
    const int fields = 1 << f.exponent_bits, inf = (fields - 1) << f.fraction_bits;
    hvx_i32 sign = ((bits >> (f.exponent_bits + f.fraction_bits)) & 1) != 0;
    hvx_i32 magnitude = bits & (int) ((1u << (f.exponent_bits + f.fraction_bits)) - 1);
    hvx_i32 field = magnitude >> f.fraction_bits, normal = field != 0;
    hvx_i32 significand = (magnitude & ((1 << f.fraction_bits) - 1)) | (normal & (1 << f.fraction_bits));
    hvx_i32 exponent = field | (~normal & 1);
    hvx_f32 last_bit = __builtin_convertvector(significand & -significand, hvx_f32);
    hvx_i32 zeros = ((hvx_i32) last_bit >> 23) - 127, room = fields - 1 - exponent;
    hvx_i32 shift = zeros & ((zeros >= 0) & (zeros <= room));
    hvx_i32 v = hvx_qf_pack(f, (significand >> shift) | 1, exponent + shift) & (magnitude != 0);
    v = hvx_pick_w(magnitude >= inf, (hvx_i32){0} + hvx_qf_largest(f), v);
    return hvx_pick_w(magnitude > inf, (hvx_i32){0} + hvx_qf_nan(f), hvx_qf_negate(f, v, sign));
}

// Lanes of format f to floats. A raw qf32 lane from 2^128 on becomes infinity, one below 2^-126 a subnormal. Zeros are
// told apart: the processor is slow with numbers that become subnormal, and there are many zeros.
HVX_INLINE hvx_f32 hvx_qf_decode(struct hvx_qf_format f, hvx_i32 v) {
    const int last = (1 << f.exponent_bits) - 1;
    hvx_i32 n = hvx_qf_n(f, v), e = hvx_qf_e(f, v);
    const int unit = last / 2 + f.fraction_bits; // n counts 2^(e - unit)
    hvx_i32 low = (hvx_i32){0} - 100, nan = v == hvx_qf_nan(f);
    hvx_i32 zero = (v == 0) | (v == -(1 << f.exponent_bits));
    hvx_i32 sig = (hvx_i32) __builtin_convertvector(n, hvx_f32) & ~(zero & 0x7fffffff);
    hvx_f32 x = (hvx_f32) sig * hvx_pow2_f(__builtin_elementwise_max(e - unit, low));
    x = x * hvx_pow2_f(__builtin_elementwise_min(e - unit - low, (hvx_i32){0}));
    if (f.exponent_bits == 5) {
        hvx_i32 inf = (e == last) & ((n == 2047) | (n == -2047)), sign = v & (int) 0x80000000;
        x = (hvx_f32) hvx_pick_w(inf, sign | 0x7f800000, (hvx_i32) x);
    }
    return (hvx_f32) hvx_pick_w(nan, (hvx_i32){0} + 0x7fc00000, (hvx_i32) x);
}

HVX_INLINE hvx_f32 hvx_qf_ieee(struct hvx_qf_format f, hvx_i32 v) {
    if (f.exponent_bits == 8) {
        return (hvx_f32) v;
    }
    typedef uint16_t halves __attribute__((vector_size(64)));
    return __builtin_convertvector((hvx_f16n) __builtin_convertvector(v, halves), hvx_f32);
}

// Floats to IEEE bits of f's size.
HVX_INLINE hvx_i32 hvx_qf_ieee_bits(struct hvx_qf_format f, hvx_f32 x) {
    if (f.exponent_bits == 8) {
        return (hvx_i32) x;
    }
    typedef uint16_t halves __attribute__((vector_size(64)));
    return __builtin_convertvector((halves) __builtin_convertvector(x, hvx_f16n), hvx_i32);
}

HVX_INLINE hvx_i32 hvx_qf_result(struct hvx_qf_format f, hvx_f32 x) {
    return hvx_qf_encode(f, hvx_qf_ieee_bits(f, x));
}

HVX_INLINE hvx_i32 hvx_qf_add_ieee(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_ieee(f, a) + hvx_qf_ieee(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_add_mix(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_decode(f, a) + hvx_qf_ieee(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_add(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_decode(f, a) + hvx_qf_decode(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_sub(struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_decode(f, a) - hvx_qf_decode(f, b));
}

HVX_INLINE hvx_i32 hvx_qf_mpy_ieee(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_ieee(from, a) * hvx_qf_ieee(from, b));
}

HVX_INLINE hvx_i32 hvx_qf_mpy_mix(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_decode(from, a) * hvx_qf_ieee(from, b));
}

HVX_INLINE hvx_i32 hvx_qf_mpy(struct hvx_qf_format f, struct hvx_qf_format from, hvx_i32 a, hvx_i32 b) {
    return hvx_qf_result(f, hvx_qf_decode(from, a) * hvx_qf_decode(from, b));
}

HVX_INLINE hvx_i32 hvx_qf_apply(hvx_qf_op op, struct hvx_qf_format f, hvx_i32 a, hvx_i32 b) {
    return op(f, a, b);
}

HVX_INLINE hvx_i32 hvx_qf_apply_product(hvx_qf_product_op op, struct hvx_qf_format f, struct hvx_qf_format from,
                                        hvx_i32 a, hvx_i32 b) {
    return op(f, from, a, b);
}

HVX_INLINE hvx_i32 hvx_qf_to_sf(hvx_i32 v) {
    return (hvx_i32) hvx_qf_decode(HVX_QF32, v);
}

HVX_INLINE hvx_u32 hvx_qf_to_hf(struct hvx_qf_format f, hvx_i32 v) {
    return (hvx_u32) hvx_qf_ieee_bits(HVX_QF16, hvx_qf_decode(f, v));
}

#endif
