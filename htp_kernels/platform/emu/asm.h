/*
 * What translated assembly calls: `hexnpu emu-cc` puts this file in front of every source and writes calls of it in the
 * place of asm statements.
 *
 * It must not disturb the source behind it: it includes nothing, its names begin with emu_ or EMU_, and functions of the
 * platform are declared under names of its own, so that the headers that declare them as well are free to.
 */
#pragma once
#pragma GCC system_header /* no warnings of the source's flags */

#ifdef __cplusplus
#define EMU_ASM_C extern "C"
#else
#define EMU_ASM_C extern
#endif
#define EMU_ASM_INLINE static __inline__ __attribute__((always_inline, unused))

typedef int emu_asm_vector __attribute__((vector_size(128), aligned(128), may_alias));
typedef int emu_asm_vector_pair __attribute__((vector_size(256), aligned(128), may_alias));
typedef int emu_asm_vector_unaligned __attribute__((vector_size(128), aligned(1), may_alias));
typedef signed char emu_asm_predicate __attribute__((vector_size(128), aligned(128), may_alias));

/* Operands. A register holds the bits of an integer, a pointer or a float. */

EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_float_bits(const void *value) {
    __UINT32_TYPE__ bits;
    __builtin_memcpy(&bits, value, sizeof(bits));
    return bits;
}

EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_double_bits(const void *value) {
    __UINT64_TYPE__ bits;
    __builtin_memcpy(&bits, value, sizeof(bits));
    return bits;
}

EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_half_bits(const void *value) {
    __UINT16_TYPE__ bits;
    __builtin_memcpy(&bits, value, sizeof(bits));
    return bits;
}

EMU_ASM_INLINE _Float16 emu_asm_half(__UINT64_TYPE__ bits) {
    __UINT16_TYPE__ low = (__UINT16_TYPE__) bits;
    _Float16 value;
    __builtin_memcpy(&value, &low, sizeof(value));
    return value;
}

EMU_ASM_INLINE float emu_asm_float(__UINT64_TYPE__ bits) {
    __UINT32_TYPE__ low = (__UINT32_TYPE__) bits;
    float value;
    __builtin_memcpy(&value, &low, sizeof(value));
    return value;
}

EMU_ASM_INLINE double emu_asm_double(__UINT64_TYPE__ bits) {
    double value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

#ifdef __cplusplus
template <typename T> EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_in(T value) {
    return (__UINT64_TYPE__) value;
}
EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_in(_Float16 value) {
    return emu_asm_half_bits(&value);
}
EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_in(float value) {
    return emu_asm_float_bits(&value);
}
EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_in(double value) {
    return emu_asm_double_bits(&value);
}
template <typename T> struct emu_asm_out {
    static T of(__UINT64_TYPE__ bits) {
        return (T) bits;
    }
};
template <> struct emu_asm_out<_Float16> {
    static _Float16 of(__UINT64_TYPE__ bits) {
        return emu_asm_half(bits);
    }
};
template <> struct emu_asm_out<float> {
    static float of(__UINT64_TYPE__ bits) {
        return emu_asm_float(bits);
    }
};
template <> struct emu_asm_out<double> {
    static double of(__UINT64_TYPE__ bits) {
        return emu_asm_double(bits);
    }
};
template <typename T> struct emu_asm_plain {
    typedef T type;
};
template <typename T> struct emu_asm_plain<volatile T> {
    typedef T type;
};
#endif

/* Vectors */

EMU_ASM_INLINE emu_asm_vector emu_asm_low(emu_asm_vector_pair pair) {
    emu_asm_vector half;
    __builtin_memcpy(&half, &pair, sizeof(half));
    return half;
}

EMU_ASM_INLINE emu_asm_vector emu_asm_high(emu_asm_vector_pair pair) {
    emu_asm_vector half;
    __builtin_memcpy(&half, (const char *) &pair + sizeof(half), sizeof(half));
    return half;
}

EMU_ASM_INLINE emu_asm_vector_pair emu_asm_combine(emu_asm_vector high, emu_asm_vector low) {
    emu_asm_vector_pair pair;
    __builtin_memcpy(&pair, &low, sizeof(low));
    __builtin_memcpy((char *) &pair + sizeof(low), &high, sizeof(high));
    return pair;
}

/* vmem ignores the low seven bits of an address, vmemu does not. */
EMU_ASM_INLINE emu_asm_vector emu_asm_load(__UINTPTR_TYPE__ address) {
    return *(const emu_asm_vector *) (address & ~(__UINTPTR_TYPE__) 127);
}

EMU_ASM_INLINE void emu_asm_store(__UINTPTR_TYPE__ address, emu_asm_vector value) {
    *(emu_asm_vector *) (address & ~(__UINTPTR_TYPE__) 127) = value;
}

EMU_ASM_INLINE emu_asm_vector emu_asm_load_unaligned(__UINTPTR_TYPE__ address) {
    return *(const emu_asm_vector_unaligned *) address;
}

EMU_ASM_INLINE void emu_asm_store_unaligned(__UINTPTR_TYPE__ address, emu_asm_vector value) {
    *(emu_asm_vector_unaligned *) address = value;
}

/* Counters. A packet a cycle is as good a guess as any. */

EMU_ASM_C __UINT64_TYPE__ emu_asm_pcycles(void) __asm__("HAP_perf_get_pcycles");
EMU_ASM_C __UINT64_TYPE__ emu_asm_packets(void) __asm__("HAP_perf_get_pcycles");
EMU_ASM_C __UINT64_TYPE__ emu_asm_utimer(void) __asm__("HAP_perf_get_qtimer_count");
EMU_ASM_C __UINT32_TYPE__ emu_asm_pmu_register(int number) __asm__("qurt_pmu_get");

/* upmucntN: QuRT numbers counters 0 to 3 and 4 to 7 with two settings between them. */
EMU_ASM_INLINE __UINT32_TYPE__ emu_asm_pmu(int counter) {
    return emu_asm_pmu_register(counter < 4 ? counter : counter + 2);
}

/* Order, waiting, caches: host memory is coherent, so that order is all there is to keep. */

EMU_ASM_C int emu_asm_yield(void) __asm__("sched_yield");
EMU_ASM_C void emu_asm_dccleaninva_of(__UINTPTR_TYPE__ address) __asm__("emu_cleaninva");

EMU_ASM_INLINE void emu_asm_barrier(void) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

EMU_ASM_INLINE void emu_asm_release(void) {
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Scatters and gathers are done when they return. */
EMU_ASM_INLINE void emu_asm_scatter_release(void) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* The DSP's threads have hardware of their own, these may share a processor: now and then the others get it. */
EMU_ASM_INLINE void emu_asm_pause(void) {
    static __thread unsigned emu_turn;
#if defined(__x86_64__)
    __asm__ __volatile__("pause" ::: "memory");
#else
    __asm__ __volatile__("yield" ::: "memory");
#endif
    if (++emu_turn % 64 == 0) {
        (void) emu_asm_yield();
    }
}

EMU_ASM_INLINE void emu_asm_dcfetch(__UINTPTR_TYPE__ address) {
    __builtin_prefetch((const void *) address);
}

EMU_ASM_INLINE void emu_asm_dccleana(__UINTPTR_TYPE__ address) {
    (void) address;
    emu_asm_barrier();
}

EMU_ASM_INLINE void emu_asm_dcinva(__UINTPTR_TYPE__ address) {
    (void) address;
    emu_asm_barrier();
}

EMU_ASM_INLINE void emu_asm_icinva(__UINTPTR_TYPE__ address) {
    (void) address;
    emu_asm_barrier();
}

EMU_ASM_INLINE void emu_asm_dccleaninva(__UINTPTR_TYPE__ address) {
    emu_asm_dccleaninva_of(address);
}

/* Zeroes the 32-byte line that holds the address. */
EMU_ASM_INLINE void emu_asm_dczeroa(__UINTPTR_TYPE__ address) {
    __builtin_memset((void *) (address & ~(__UINTPTR_TYPE__) 31), 0, 32);
}

/*
 * Load-locked and store-conditional by comparing: the store happens where memory still holds what was loaded. A value
 * that went away and came back is not noticed, which the loops that these instructions stand in do not mind.
 */
static __thread __UINT64_TYPE__ emu_asm_locked __attribute__((unused));

EMU_ASM_INLINE __UINT32_TYPE__ emu_asm_load_locked32(__UINTPTR_TYPE__ address) {
    __UINT32_TYPE__ value = __atomic_load_n((__UINT32_TYPE__ *) address, __ATOMIC_SEQ_CST);
    emu_asm_locked = value;
    return value;
}

EMU_ASM_INLINE __UINT64_TYPE__ emu_asm_load_locked64(__UINTPTR_TYPE__ address) {
    __UINT64_TYPE__ value = __atomic_load_n((__UINT64_TYPE__ *) address, __ATOMIC_SEQ_CST);
    emu_asm_locked = value;
    return value;
}

/* 255: stored, 0: not. */
EMU_ASM_INLINE unsigned char emu_asm_store_locked32(__UINTPTR_TYPE__ address, __UINT32_TYPE__ value) {
    __UINT32_TYPE__ expected = (__UINT32_TYPE__) emu_asm_locked;
    return __atomic_compare_exchange_n((__UINT32_TYPE__ *) address, &expected, value, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST)
               ? 255
               : 0;
}

EMU_ASM_INLINE unsigned char emu_asm_store_locked64(__UINTPTR_TYPE__ address, __UINT64_TYPE__ value) {
    __UINT64_TYPE__ expected = emu_asm_locked;
    return __atomic_compare_exchange_n((__UINT64_TYPE__ *) address, &expected, value, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST)
               ? 255
               : 0;
}

/* User DMA: dma.c. Its settings have no effect here, and there is no TLB to follow. */

EMU_ASM_C void emu_asm_dmstart(void *descriptor) __asm__("Q6_dmstart_A");
EMU_ASM_C void emu_asm_dmlink(void *tail, void *descriptor) __asm__("Q6_dmlink_AA");
EMU_ASM_C void emu_asm_dmresume(void *descriptor) __asm__("Q6_dmresume_A");
EMU_ASM_C int emu_asm_dmpoll(void) __asm__("Q6_R_dmpoll");
EMU_ASM_C int emu_asm_dmwait(void) __asm__("Q6_R_dmwait");
EMU_ASM_C int emu_asm_dmpause(void) __asm__("Q6_R_dmpause");

EMU_ASM_INLINE int emu_asm_dmsyncht(void) {
    emu_asm_barrier();
    return 0;
}

EMU_ASM_INLINE int emu_asm_dmtlbsynch(void) {
    return 0;
}

EMU_ASM_INLINE __UINT32_TYPE__ emu_asm_dmcfgrd(__UINT32_TYPE__ index) {
    (void) index;
    return 0;
}

EMU_ASM_INLINE void emu_asm_dmcfgwr(__UINT32_TYPE__ index, __UINT32_TYPE__ value) {
    (void) index;
    (void) value;
}

/* The matrix unit: hmx.h, whose values these are. */

enum { EMU_HMX_DEEP = 1, EMU_HMX_WEIGHT_DEEP = 2, EMU_HMX_BEFORE = 1, EMU_HMX_RETAIN = 2, EMU_HMX_POS = 4 };

EMU_ASM_C void emu_hmx_bias(__UINT32_TYPE__ address) __asm__("hmx_bias");
EMU_ASM_C void emu_hmx_bias_low(__UINT32_TYPE__ address) __asm__("hmx_bias_low");
EMU_ASM_C void emu_hmx_clear(void) __asm__("hmx_clear");
EMU_ASM_C void emu_hmx_swap(void) __asm__("hmx_swap");
EMU_ASM_C void emu_hmx_mac(__UINT32_TYPE__ activation, __UINT32_TYPE__ activation_range, __UINT32_TYPE__ weight,
                           __UINT32_TYPE__ weight_range, unsigned form) __asm__("hmx_mac_ranges");
EMU_ASM_C void emu_hmx_store(__UINT32_TYPE__ out, __UINT32_TYPE__ param, unsigned form) __asm__("hmx_store");
EMU_ASM_C void emu_hmx_convert(__UINT32_TYPE__ param, unsigned form) __asm__("hmx_convert");
EMU_ASM_C void emu_hmx_store_converted(__UINT32_TYPE__ out, __UINT32_TYPE__ param) __asm__("hmx_store_converted");
