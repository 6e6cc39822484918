/*
 * Instructions whose effect is a call of the platform: this program brings a platform of its own, which prints the
 * calls. C and C++ both compile it.
 */
#include <stdint.h>
#include <stdio.h>

#define LOAD_MPY(a, w, r) "{\n  activation.hf = mxmem(" a ", " r "):deep\n  weight.hf = mxmem(" w ", " r ")\n}\n"
#define COUNTER(n) __asm__ volatile("%0 = upmucnt" #n : "=r"(value)); printf("upmucnt" #n " %u\n", value)

#ifdef __cplusplus
extern "C" {
#endif
uint64_t HAP_perf_get_pcycles(void) { return 0x1122334455667788ull; }
uint64_t HAP_perf_get_qtimer_count(void) { return 0x99aabbccddeeff00ull; }
uint32_t qurt_pmu_get(int number) { return 1000u + (uint32_t) number; }
void emu_cleaninva(const void *line) { printf("cleaninva %d\n", *(const int *) line); }
void Q6_dmstart_A(void *d) { printf("dmstart %d\n", *(int *) d); }
void Q6_dmresume_A(void *d) { printf("dmresume %d\n", *(int *) d); }
void Q6_dmlink_AA(void *t, void *d) { printf("dmlink %d %d\n", *(int *) t, *(int *) d); }
int Q6_R_dmpoll(void) { return 17; }
int Q6_R_dmwait(void) { return 18; }
int Q6_R_dmpause(void) { return -19; }
void hmx_bias(uint32_t a) { printf("bias %x\n", a); }
void hmx_bias_low(uint32_t a) { printf("bias_low %x\n", a); }
void hmx_clear(void) { puts("clear"); }
void hmx_swap(void) { puts("swap"); }
void hmx_mac_ranges(uint32_t a, uint32_t ar, uint32_t w, uint32_t wr, unsigned form) {
    printf("mac %x %u %x %u form %u\n", a, ar, w, wr, form);
}
void hmx_store(uint32_t out, uint32_t param, unsigned form) { printf("store %x %u form %u\n", out, param, form); }
void hmx_convert(uint32_t param, unsigned form) { printf("convert %u %u\n", param, form); }
void hmx_store_converted(uint32_t out, uint32_t param) { printf("store_converted %x %u\n", out, param); }
#ifdef __cplusplus
}
#endif

static void counters(void) {
    uint64_t wide = 0;
    uint32_t value = 0, high = 0;
    __asm__ volatile(" %0 = c15:14\n" : "=r"(wide));
    printf("pcycles %llx\n", (unsigned long long) wide);
    __asm__ volatile("%0 = C19:18" : "=r"(wide));
    printf("packets %llx\n", (unsigned long long) wide);
    asm("%0 = upcycle" : "=r"(wide));
    printf("upcycle %llx\n", (unsigned long long) wide);
    __asm("%0 = utimer\n" : "=r"(wide));
    printf("utimer %llx\n", (unsigned long long) wide);
    __asm__("%0 = c30; %1 = utimerhi // halves\n" : "=r"(value), "=r"(high));
    printf("halves %x %x\n", value, high);
    COUNTER(0);
    COUNTER(1);
    COUNTER(2);
    COUNTER(3);
    COUNTER(4);
    COUNTER(5);
    COUNTER(6);
    COUNTER(7);
}

static void dma(void) {
    static int first = 1, second = 2;
    unsigned state = 0, old = 3;
    int paused;
    asm volatile(" release(%0):at" : : "r"(&first));
    asm volatile("release(%0):st\n dmstart(%0)" : : "r"(&first) : "memory");
    asm volatile(" dmlink(%0, %1)" : : "r"(&first), "r"(&second));
    asm volatile(" dmresume(%[d])" : : [d] "r"(&second));
    asm volatile(" %0 = dmpoll\n %1 = dmwait" : "=r"(state), "=r"(old) : : "memory");
    asm volatile("%0 = dmpause" : "=r"(paused));
    printf("dma %u %u %d\n", state, old, paused);
}

static void dma_settings(void) {
    unsigned data = 5, other = 6;
    asm volatile("dmcfgwr(%0, %1)" : : "r"(1), "r"(2));
    asm volatile("%0 = dmcfgrd(%2)\n%1 = dmsyncht" : "=r"(data), "=&r"(other) : "r"(4));
    printf("settings %u %u\n", data, other);
}

static void order(void) {
    static int line[32] __attribute__((aligned(128))) = {42};
    uint64_t box = 0x100000080ull;
    uint64_t there = 0, back = 0;
    uint32_t low = 0;
    asm volatile("memd_rl(%0):at = %1" : : "r"(&there), "r"(box) : "memory");
    asm volatile("%0 = memd_aq(%2)\n%1 = memw_aq(%2)" : "=&r"(back), "=r"(low) : "r"(&there) : "memory");
    asm volatile("memw_rl(%0):st = %1" : : "r"(&there), "r"(5) : "memory");
    printf("ordered %llx %x %llx\n", (unsigned long long) back, low, (unsigned long long) there);
    asm volatile("syncht" : : : "memory");
    asm volatile("barrier\n isync\n l2gclean\n l2gcleaninv; l2gunlock\n nop");
    asm volatile(" pause(#255)\n");
    for (int i = 0; i < 200; i++) {
        asm volatile("pause(#%0)" : : "i"(8));
    }
    asm volatile("dccleaninva(%0)" : : "r"(line));
    asm volatile("dccleana(%0)\n dcinva(%0)\n icinva(%0)\n dcfetch(%0 + #64)" : : "r"(line));
    asm volatile("l2fetch(%0, %1)" : : "r"(line), "r"(box));
    asm volatile("vmem(%0+#0):scatter_release\n v0 = vmem(%0+#0)\n" : : "r"(line) : "v0", "memory");
    printf("order %d\n", line[0]);
    asm volatile("dczeroa(%0)" : : "r"(line) : "memory");
    printf("zeroed %d\n", line[0]);
}

static void matrix(uint32_t a, uint32_t w, uint32_t out) {
    asm volatile("bias = mxmem2(%0)" : : "r"(0x1000));
    asm volatile("bias = mxmem(%0)\nmxclracc.hf\nmxswapacc.hf\n" : : "r"(0x2000));
    asm volatile(LOAD_MPY("%1", "%2", "%0") : : "r"(65535), "r"(a), "r"(w));
    asm volatile("{ activation.hf = mxmem(%0, %1)\n weight.hf = mxmem(%2, %3) }" : : "r"(a), "r"(2047), "r"(w), "r"(1023));
    asm volatile("{ weight.hf = mxmem(%1, %2):deep; activation.hf = mxmem(%0, %2) }" : : "r"(a), "r"(w), "r"(2047));
    asm volatile("mxmem(%0, %1):after.hf = acc\n" : : "r"(out), "r"(0) : "memory");
    asm volatile("mxmem(%0, %1):after:retain:pos.hf = acc\nmxmem(%0, %1):before.hf = acc" : : "r"(out), "r"(4));
    asm volatile("cvt.hf = acc(%0)\nmxmem(%1, %2) = cvt\n" : : "r"(2), "r"(out), "r"(0) : "memory");
}

static void floats_and_pointers(void) {
    float f = 1.5f, g = 0;
    double d = 2.5, e = 0;
    uint32_t bits = 0;
    const char *text = "text", *copy = 0;
    short small = -3;
    int wide = 0;
    asm("%0 = %1" : "=r"(bits) : "r"(f));
    asm("%0 = %1" : "=r"(g) : "r"(bits));
    asm("%0 = %1" : "=r"(e) : "r"(d));
    asm("%0 = %1" : "=r"(copy) : "r"(text));
    asm("%0 = %1" : "=r"(wide) : "r"(small));
    asm("%0 = add(%0, #1)" : "=r"(wide) : "0"(wide));
    printf("bits %x %g %g %s %d\n", bits, g, e, copy, wide);
}

int main(void) {
    counters();
    dma();
    dma_settings();
    order();
    matrix(0xd8000000u, 0xd8000800u, 0xd8001000u);
    floats_and_pointers();
    if (HAP_perf_get_pcycles())
        asm volatile("nop");
    else
        asm("dmstart(%0)" : : "r"(0));
    return 0;
}
