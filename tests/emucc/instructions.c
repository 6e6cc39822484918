/*
 * Instructions whose result can be seen: clang assembles this file for Hexagon and qemu-hexagon executes it, emu-cc
 * translates it for the emulator, and both print the same lines.
 */
#include <hexagon_protos.h>
#include <hexagon_types.h>
#include <hvx_hexagon_protos.h>
#include <stdint.h>

#ifdef TRANSLATED
#include <stdio.h>
#include <stdlib.h>
static void write_out(const char *text, int n) {
    fwrite(text, 1, (size_t) n, stdout);
}
#else
static void write_out(const char *text, int n) {
    register int r0 __asm__("r0") = 1;
    register const char *r1 __asm__("r1") = text;
    register int r2 __asm__("r2") = n;
    register int r6 __asm__("r6") = 64;
    __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r6) : "memory");
}
#endif

static void print(const char *name, uint64_t value) {
    char line[64];
    int n = 0;
    while (*name) {
        line[n++] = *name++;
    }
    line[n++] = ' ';
    for (int shift = 60; shift >= 0; shift -= 4) {
        line[n++] = "0123456789abcdef"[value >> shift & 15];
    }
    line[n++] = '\n';
    write_out(line, n);
}

static uint32_t words[64] __attribute__((aligned(128)));
static HVX_Vector vectors[6] __attribute__((aligned(128)));

static uint64_t mix(const void *p, int n) {
    const uint8_t *bytes = p;
    uint64_t hash = 1469598103934665603ull;
    for (int i = 0; i < n; i++) {
        hash = (hash ^ bytes[i]) * 1099511628211ull;
    }
    return hash;
}

static void transfers_and_arithmetic(int32_t a, int32_t b) {
    int32_t x = 0, y = 0;
    int64_t wide = 0;
    __asm__("%0 = %1" : "=r"(x) : "r"(a));
    print("move", (uint32_t) x);
    __asm__("%0 = #-7\n%1 = ##0x12345678" : "=r"(x), "=r"(y));
    print("constants", (uint32_t) x + (uint64_t) (uint32_t) y);
    __asm__("%0 = add(%1, %2)\n%0 = add(%0, #-3); %0 = and(%0, ##0x7fffffff)" : "=&r"(x) : "r"(a), "r"(b));
    print("add", (uint32_t) x);
    __asm__("%0 = sub(#100, %1)\n%0 = xor(%0, %2)\n%0 = or(%0, #5)" : "=&r"(x) : "r"(a), "r"(b));
    print("sub", (uint32_t) x);
    __asm__("%0 = asr(%1, #3)\n%0 = lsr(%0, #1)\n%0 = asl(%0, #2)" : "=&r"(x) : "r"(a));
    print("shift", (uint32_t) x);
    __asm__("%0 = neg(%1)\n%0 = not(%0)" : "=&r"(x) : "r"(a));
    print("neg", (uint32_t) x);
    __asm__("%0 = combine(%1, %2)" : "=r"(wide) : "r"(a), "r"(b));
    print("combine", (uint64_t) wide);
    __asm__("%0 = add(%0, %1)" : "+r"(wide) : "r"((int64_t) 0x100000001));
    print("add pairs", (uint64_t) wide);
    __asm__("%0 = mpyi(%1, %2)\n%0 += mpyi(%1, %2)" : "=&r"(x) : "r"(a), "r"(b));
    print("mpyi", (uint32_t) x);
    __asm__("%0 = mpy(%1, %2)" : "=r"(wide) : "r"(a), "r"(b));
    print("mpy", (uint64_t) wide);
    __asm__("%0 = max(%1, %2)\n%0 = add(%0, %0):sat" : "=&r"(x) : "r"(a), "r"(b));
    print("max", (uint32_t) x);
    __asm__("%0 = extractu(%1, #5, #9)" : "=r"(x) : "r"(a));
    print("extractu", (uint32_t) x);
    __asm__("r1:0 = combine(%1, %2)\nr2 = add(r0, r1)\n%0 = r2" : "=r"(x) : "r"(a), "r"(b) : "r0", "r1", "r2");
    print("by name", (uint32_t) x);
    __asm__("%L0 = %1\n%H0 = %2" : "=&r"(wide) : "r"(a), "r"(b));
    print("halves", (uint64_t) wide);
}

static void packets_and_predicates(int32_t a, int32_t b) {
    int32_t x = a, y = b;
    __asm__("{ %0 = %1\n %1 = %0 }" : "+r"(x), "+r"(y));
    print("swap", (uint32_t) x - (uint64_t) (uint32_t) y);
    __asm__("{ p0 = cmp.gt(%1, %2)\n if (p0.new) %0 = #1\n if (!p0.new) %0 = add(%1, #2) }"
            : "=r"(x) : "r"(a), "r"(b) : "p0");
    print("new", (uint32_t) x);
    __asm__("p1 = cmp.gtu(%1, %2)\n%0 = mux(p1, %1, #9)" : "=r"(x) : "r"(a), "r"(b) : "p1");
    print("mux", (uint32_t) x);
    __asm__("p2 = !cmp.eq(%1, %2)\nif (p2) %0 = #44" : "+r"(x) : "r"(a), "r"(a) : "p2");
    print("not eq", (uint32_t) x);
    __asm__("p0 = cmp.gt(%1, #2)\np1 = cmp.gt(%2, #2)\np2 = and(p0, !p1)\np3 = or(p2, p1)\np0 = not(p3)\n%0 = p0\n"
            "p1 = %1\nr4 = p1\n%0 = add(%0, r4)" : "=&r"(x) : "r"(a), "r"(b) : "p0", "p1", "p2", "p3", "r4");
    print("predicate logic", (uint32_t) x);
    __asm__("{ r3 = add(%1, #1)\n memw(%0 + #8) = r3.new }" : : "r"(words), "r"(a) : "r3", "memory");
    print("new value", words[2]);
    __asm__("%0 = #0\n1: %0 = add(%0, %1)\n%1 = add(%1, #-1)\np0 = cmp.gt(%1, #0)\nif (p0) jump 1b\njump 2f\n"
            "%0 = #0\n2:" : "=&r"(x), "+r"(y) : : "p0");
    print("loop", (uint32_t) x);
}

static void memory(void) {
    uint32_t x = 0, y = 0;
    uint64_t wide = 0;
    const uint32_t *at = words;
    for (int i = 0; i < 64; i++) {
        words[i] = 0x9e3779b9u * (uint32_t) (i + 1);
    }
    __asm__("%0 = memw(%1 + #4)" : "=r"(x) : "r"(words));
    print("memw", x);
    __asm__("%0 = memb(%2 + #3)\n%1 = memub(%2 + #3)" : "=&r"(x), "=r"(y) : "r"(words));
    print("memb", x + (uint64_t) y);
    __asm__("%0 = memh(%2 + #2)\n%1 = memuh(%2 + #2)" : "=&r"(x), "=r"(y) : "r"(words));
    print("memh", x + (uint64_t) y);
    __asm__("%0 = memd(%1 + #8)" : "=r"(wide) : "r"(words));
    print("memd", wide);
    __asm__("%0 = memw(%1++#4)\nmemw(%1++#4) = %0\nmemb(%1) = #-1" : "=&r"(x), "+r"(at) : : "memory");
    print("post", (uint64_t) (at - words) + words[1] + words[2]);
    __asm__("memh(%0 + #16) = %1\nmemd(%0 + #24) = %2" : : "r"(words), "r"(x), "r"(wide) : "memory");
    print("stores", mix(words, sizeof(words)));
    __asm__("1: %0 = memw_locked(%2)\n%1 = add(%0, #5)\nmemw_locked(%2, p0) = %1\nif (!p0) jump 1b"
            : "=&r"(x), "=&r"(y) : "r"(words) : "p0", "memory");
    print("locked", words[0] + (uint64_t) x + y);
    __asm__("1: %0 = memd_locked(%1)\n%0 = add(%0, %2)\nmemd_locked(%1, p3) = %0\nif (!p3) jump:nt 1b"
            : "=&r"(wide) : "r"(words), "r"((uint64_t) 1 << 33) : "p3", "memory");
    print("locked pair", wide);
    __asm__("r0 = memw_locked(%0)\np0 = cmp.eq(r0, #0)\nif (!p0) jump 2f\nmemw_locked(%0, p0) = %0\n2: nop"
            : : "r"(words) : "r0", "p0", "memory");
    print("spin lock", words[0]);
    __asm__("dczeroa(%0)" : : "r"((char *) words + 37) : "memory");
    print("zeroed", mix(words, sizeof(words)));
}

static void vectors_too(int32_t a) {
    HVX_Vector x, y;
    HVX_VectorPair pair;
    uint8_t *bytes = (uint8_t *) vectors;
    for (int i = 0; i < 768; i++) {
        bytes[i] = (uint8_t) (i * 37 + (i >> 3));
    }
    __asm__("%0 = vmem(%1 + #1)" : "=v"(x) : "r"(vectors));
    vectors[0] = x;
    __asm__("%0 = vmemu(%1)" : "=v"(x) : "r"(bytes + 200));
    vectors[1] = x;
    print("vmem", mix(vectors, 256));
    __asm__("%0.w = vadd(%1.w, %2.w)\nvmem(%3 + #2) = %0"
            : "=&v"(x) : "v"(vectors[0]), "v"(vectors[1]), "r"(vectors) : "memory");
    print("vadd", mix(vectors, 384));
    __asm__("%0 = vsplat(%1)\n%0.h = vsub(%2.h, %0.h):sat" : "=&v"(y) : "r"(a), "v"(x));
    vectors[3] = y;
    print("vsub", mix(vectors, 512));
    __asm__("%0.h = vmpy(%1.ub, %2.b)\n%0.h += vmpy(%1.ub, %2.b)" : "=&v"(pair) : "v"(x), "v"(y));
    vectors[4] = Q6_V_hi_W(pair);
    vectors[5] = Q6_V_lo_W(pair);
    print("vmpy", mix(vectors, 768));
    __asm__("v1:0 = vshuff(%1, %2, %3)\n%0 = vxor(v0, v1)" : "=v"(x) : "v"(x), "v"(y), "r"(-4) : "v0", "v1");
    vectors[0] = x;
    __asm__("q0 = vcmp.gt(%1.b, %2.b)\n%0 = vmux(q0, %1, %2)\nif (q0) vmem(%3 + #1) = %1"
            : "=&v"(x) : "v"(x), "v"(y), "r"(vectors) : "q0", "memory");
    vectors[2] = x;
    print("predicates", mix(vectors, 768));
    const HVX_Vector *from = vectors;
    __asm__("v3 = vmem(%0++#1)\nv4 = vmem(%0++#2)\nv3.b = vadd(v3.b, v4.b)\nvmem(%0++#-1) = v3\nv3 = vmemu(%0++#1)"
            : "+r"(from) : : "v3", "v4", "memory");
    print("stepping", (uint64_t) (from - vectors) + mix(vectors, 768));
    HVX_Vector *to = vectors + 4;
    from = vectors;
    __asm__("{ v5.cur = vmem(%0++#1)\n vmem(%1++#1) = v5 }\n{ v6.w = vadd(v5.w, v7.w)\n v7.tmp = vmem(%0 + #1) }\n"
            "vmem(%1) = v6" : "+r"(from), "+r"(to) : : "v5", "v6", "v7", "memory");
    print("current", (uint64_t) (to - from) + mix(vectors, 768));
    __asm__("%0.b = vadd(%0.b, %1.b)" : "+v"(pair) : "v"(pair));
    vectors[4] = Q6_V_lo_W(pair);
    __asm__("%0 = valign(%1, %2, #5)\n%0 = vror(%0, %3)" : "=&v"(x) : "v"(x), "v"(y), "r"(a));
    vectors[5] = x;
    print("pairs", mix(vectors, 768));
}

static void run(void) {
    static const int32_t numbers[] = {0, 1, -1, 7, 100, -12345, INT32_MAX, INT32_MIN, 0x12345678};
    for (unsigned i = 0; i < sizeof(numbers) / 4; i++) {
        transfers_and_arithmetic(numbers[i], numbers[(i + 4) % 9]);
    }
    packets_and_predicates(5, 9);
    packets_and_predicates(-3, 4);
    packets_and_predicates(8, 2);
    memory();
    vectors_too(0x01020304);
    vectors_too(-77);
}

#ifdef TRANSLATED
int main(void) {
    run();
    return 0;
}
#else
void _start(void) {
    run();
    __asm__ volatile("r6 = #93\nr0 = #0\ntrap0(#1)");
}
#endif
