// qfloat: the layout of qf32 and qf16, and which model computes on it.
//
// A qf32 lane is (m << 8) | e with m a signed 24-bit significand and e a biased exponent; a qf16 lane is (m << 5) | e
// with m of 11 bits. The significand has an implied last bit of 1: with n = 2 m + 1, always odd,
//
//     qf32 = n * 2^(e - 150)        qf16 = n * 2^(e - 25)        (0x5082 is 1289 * 2^-23 = 1.537e-4)
//
// and -x is the one's complement of m. Zero is n = +-1 with e = 0, which converts to a zero of that sign.
//
// Two models produce such lanes. qf-legacy.h (v73, v75) rounds as those processors do: 22 fraction bits, the last one
// forced, no infinity and no NaN. qf-ieee.h (v79, v81) rounds to IEEE single or half, as the newer internal format
// does after normalisation, and encodes the result in the layout above; see there for what that cannot hold.
#ifndef HEXNPU_EMU_HVX_QF_H
#define HEXNPU_EMU_HVX_QF_H

#include "float.h"

struct hvx_qf_format {
    int exponent_bits; // 8 or 5
    int fraction_bits; // of the IEEE type of the same size: 23 or 10
};

#define HVX_QF32 ((struct hvx_qf_format){8, 23})
#define HVX_QF16 ((struct hvx_qf_format){5, 10})

typedef hvx_i32 (*hvx_qf_op)(struct hvx_qf_format, hvx_i32, hvx_i32);
typedef hvx_i32 (*hvx_qf_product_op)(struct hvx_qf_format, struct hvx_qf_format, hvx_i32, hvx_i32);

// n of each lane: the significand with its implied bit. qf16 lanes come sign-extended to words.
HVX_INLINE hvx_i32 hvx_qf_n(struct hvx_qf_format f, hvx_i32 v) {
    return (v >> (f.exponent_bits - 1)) | 1;
}

HVX_INLINE hvx_i32 hvx_qf_e(struct hvx_qf_format f, hvx_i32 v) {
    return v & ((1 << f.exponent_bits) - 1);
}

HVX_INLINE hvx_i32 hvx_qf_pack(struct hvx_qf_format f, hvx_i32 n, hvx_i32 e) {
    return (n >> 1) * (1 << f.exponent_bits) + e;
}

// The one's complement of m where `mask` is all ones.
HVX_INLINE hvx_i32 hvx_qf_negate(struct hvx_qf_format f, hvx_i32 v, hvx_i32 mask) {
    return v ^ (mask & -(1 << f.exponent_bits));
}

#if __HVX_ARCH__ >= 79
#include "qf-ieee.h"
#else
#include "qf-legacy.h"
#endif

#include "qf-intrinsics.h"

#endif
