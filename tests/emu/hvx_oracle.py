"""Generates the C programs that run every intrinsic on the real instruction set and on the emulator.

The list of intrinsics and their prototypes is read out of clang's own Hexagon headers (as the ziglang package ships
them), so it is not ours. One text is emitted for both sides: it makes its inputs itself from a seeded generator that
mixes random lanes with edge values of each lane width, and writes every result to stdout. Only the prelude
differs, by `#ifdef __hexagon__`.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

CASES = 100
# Operands that choose a place or an amount are tried with every value of a byte.
EVERY_R = re.compile(r"vshuff|vdeal|valign|vlalign|vror|vsetq|vlut|vas[lr]|vlsr|vextract|_as[lr]_|_lsr_")
# ... and, since a constant takes another way through the compiler, these also with literals.
LITERAL_R = re.compile(r"Q6_(W_vshuff|W_vdeal|V_vror|V_valign|V_vlalign|Wh_vlut16|Vb_vlut32)\w*R")
LITERALS = (0, 1, 2, 4, 8, 16, 32, 64, -1, -2, -4, -8, -16, -32, -64, 3, 63, 65, 100, 127)
EDGE_R = (0, 1, -1, 2, 127, 128, -128, 255, 256, 0x7FFF, 0x8000, -0x8000, 0x7FFFFFFF, -0x80000000, 0x01010101)
RESULT_BYTES = {
    "HVX_Vector": 128, "HVX_VectorPair": 256, "HVX_VectorPred": 128,
    "Word32": 4, "UWord32": 4, "Word64": 8, "UWord64": 8, "void": 128,
}  # fmt: skip
MEMORY = re.compile(r"Q6_(vmem|vgather|vscatter)")


@dataclass(frozen=True)
class Intrinsic:
    """One prototype of clang's header: `arch` is the least __HVX_ARCH__ it asks for, 60 where none is named."""

    name: str
    returns: str
    params: tuple[tuple[str, str], ...]
    arch: int

    @property
    def r_values(self) -> list[int | None]:
        """The values of the scalar operand, one case each; None is a random one."""
        if not any(kind == "Word32" and not name.startswith("I") for kind, name in self.params):
            return [None] * CASES
        every = list(range(256)) if EVERY_R.search(self.name) else []
        return [*EDGE_R, *every, *([None] * (CASES - len(EDGE_R)))]

    @property
    def immediates(self) -> list[tuple[int, ...]]:
        """Every value of an immediate operand, or pairs of a few where there are two."""
        names = [name for kind, name in self.params if kind == "Word32" and name.startswith("I")]
        ranges = [immediate_range(name) for name in names]
        if len(ranges) == 2:
            ranges = [values[:: max(1, len(values) // 5)] for values in ranges]
        return list(itertools.product(*ranges))

    @property
    def literals(self) -> tuple[int, ...]:
        return LITERALS if LITERAL_R.match(self.name) else ()

    @property
    def result_bytes(self) -> int:
        if self.name.startswith("Q6_vscatter"):
            return 2048
        pointers = sum(kind == "HVX_VectorPred*" for kind, _ in self.params)
        return RESULT_BYTES[self.returns] + 128 * pointers

    @property
    def n_results(self) -> int:
        return len(self.r_values) * len(self.immediates) + len(self.literals)


def immediate_range(name: str) -> list[int]:
    bits = int(name[2:])
    return list(range(1 << bits)) if name[1] in "uU" else [-(1 << (bits - 1)), -1, 0, 1, (1 << (bits - 1)) - 1]


def clang_headers() -> Path:
    spec = importlib.util.find_spec("ziglang")
    assert spec is not None and spec.submodule_search_locations, "ziglang is missing: run .venv/bin/pytest (make dev)"
    return Path(spec.submodule_search_locations[0]) / "lib/include"


BLOCK = re.compile(
    r"(?:#if __HVX_ARCH__ >= (?P<arch>\d+)(?P<more>[^\n]*)\n)?/\* =+\n\s*Assembly Syntax:"
    r".*?C Intrinsic Prototype:\s*(?P<prototype>.*?)\s*Instruction Type:",
    re.DOTALL,
)


def read_intrinsics(header: Path) -> dict[str, Intrinsic]:
    """All prototypes of one of clang's Hexagon headers but those behind `__HVX_IEEE_FP__`."""
    found: dict[str, Intrinsic] = {}
    for block in BLOCK.finditer(header.read_text()):
        prototype = " ".join(block["prototype"].split())
        intrinsic = parse_prototype(prototype, int(block["arch"] or 60))
        if intrinsic and "IEEE" not in (block["more"] or ""):
            found[intrinsic.name] = intrinsic
    return found


def parse_prototype(text: str, arch: int) -> Intrinsic | None:
    match = re.match(r"(\w+) (Q6_\w+)\((.*)\)$", text)
    if not match:
        return None
    params = tuple(tuple(p.strip().rsplit(" ", 1)) for p in match[3].split(",") if p.strip())
    return Intrinsic(match[2], match[1], params, arch)  # type: ignore[arg-type]


PRELUDE = r"""
#include <stdint.h>
#include <hexagon_types.h>
#include <hexagon_protos.h>
#include <hvx_hexagon_protos.h>

extern uint32_t state;
void emit(const void *p, unsigned n);
uint32_t next(void);
void fill(void *p, unsigned n);
extern unsigned char *region;

static inline __attribute__((unused)) HVX_Vector any_v(void) {
    static unsigned char b[128] __attribute__((aligned(128)));
    fill(b, sizeof b);
    return *(HVX_Vector *) b;
}

static inline __attribute__((unused)) HVX_VectorPair any_w(void) {
    HVX_Vector low = any_v();
    return Q6_W_vcombine_VV(any_v(), low);
}

static inline __attribute__((unused)) HVX_VectorPred any_q(void) {
    return Q6_Q_vand_VR(any_v(), 0x01010101);
}

static inline __attribute__((unused)) int32_t any_r(void) {
    int32_t r;
    fill(&r, 4);
    return r;
}

static inline __attribute__((unused)) int64_t any_p(void) {
    int64_t r;
    fill(&r, 8);
    return r;
}

static inline __attribute__((unused)) void put_v(HVX_Vector v) {
    static unsigned char b[128] __attribute__((aligned(128)));
    *(HVX_Vector *) b = v;
    emit(b, sizeof b);
}

static inline __attribute__((unused)) void put_w(HVX_VectorPair w) {
    put_v(Q6_V_lo_W(w));
    put_v(Q6_V_hi_W(w));
}

static inline __attribute__((unused)) void put_q(HVX_VectorPred q) {
    put_v(Q6_V_vand_QR(q, -1));
}

static inline __attribute__((unused)) void put_r(int32_t r) {
    emit(&r, 4);
}

static inline __attribute__((unused)) void put_p(int64_t r) {
    emit(&r, 8);
}
"""

MAIN = r"""
#include <stdint.h>

uint32_t state;
unsigned char *region;
void emit(const void *p, unsigned n);
void finish(void);

#ifndef __hexagon__
// QEMU's user mode has no VTCM, so here all memory is as good.
void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what);
void emu_vtcm_check(uint32_t first, uint32_t bytes, const char *what) {
    (void) first, (void) bytes, (void) what;
}
#endif

uint32_t next(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

// Lanes of one width for the whole buffer, half of them edges of that width.
void fill(void *p, unsigned n) {
    static const int32_t edges[8] = {0, 1, -1, 2, -2, 0x55, 0x0f, -0x80};
    unsigned width = 1u << (next() >> 8) % 3, bits = 8 * width;
    for (unsigned i = 0; i < n; i += width) {
        uint32_t r = next(), v = next();
        if (r & 0x100) {
            uint32_t top = 1u << (bits - 1);
            uint32_t around[4] = {top, top - 1, top + 1, top - 2};
            uint32_t power = (1u << (r >> 16) % bits) + (uint32_t) edges[(r >> 12) & 3];
            v = r & 0x200 ? power : r & 0x400 ? around[(r >> 12) & 3] : (uint32_t) edges[(r >> 12) & 7];
        }
        __builtin_memcpy((char *) p + i, &v, width);
    }
}

#ifdef __hexagon__
static long hexagon_call(long number, long a, long b, long c) {
    register long r0 __asm__("r0") = a;
    register long r1 __asm__("r1") = b;
    register long r2 __asm__("r2") = c;
    register long r6 __asm__("r6") = number;
    __asm__ volatile("trap0(#1)" : "+r"(r0) : "r"(r1), "r"(r2), "r"(r6) : "memory");
    return r0;
}

static void write_out(const void *p, unsigned n) {
    const char *c = p;
    while (n) {
        long done = hexagon_call(64, 1, (long) c, n);
        if (done <= 0) hexagon_call(93, 1, 0, 0);
        c += done, n -= (unsigned) done;
    }
}

void *memcpy(void *to, const void *from, unsigned long n) {
    for (unsigned long i = 0; i < n; i++) ((volatile char *) to)[i] = ((const char *) from)[i];
    return to;
}

void *memset(void *to, int value, unsigned long n) {
    for (unsigned long i = 0; i < n; i++) ((volatile char *) to)[i] = (char) value;
    return to;
}
// Gathers and scatters take 32-bit addresses: on a 64-bit host this memory is mapped below 4 GiB.
static unsigned char *low_memory(void) {
    static unsigned char memory[2048] __attribute__((aligned(2048)));
    return memory;
}
#else
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static unsigned char *low_memory(void) {
    void *want = (void *) 0x20000000, *got;
    got = mmap(want, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got != want) exit(2);
    return got;
}

static void write_out(const void *p, unsigned n) {
    if (fwrite(p, 1, n, stdout) != n) exit(1);
}
#endif

static unsigned char out[1 << 16];
static unsigned used;

void finish(void) {
    write_out(out, used);
    used = 0;
}

void emit(const void *p, unsigned n) {
    if (used + n > sizeof out) finish();
    __builtin_memcpy(out + used, p, n);
    used += n;
}

@DECLARE@
static int run(void) {
    region = low_memory();
@CALLS@
    finish();
    return 0;
}

#ifdef __hexagon__
void _start(void) {
    hexagon_call(93, run(), 0, 0);
}
#else
int main(void) {
    return run();
}
#endif
"""

ANY = {
    "HVX_Vector": "any_v()", "HVX_VectorPair": "any_w()", "HVX_VectorPred": "any_q()", "HVX_VectorPred*": "any_q()",
    "Word64": "any_p()",
}  # fmt: skip
PUT = {
    "HVX_Vector": "put_v", "HVX_VectorPair": "put_w", "HVX_VectorPred": "put_q",
    "Word32": "put_r", "UWord32": "put_r", "Word64": "put_p", "UWord64": "put_p",
}  # fmt: skip


def case_function(it: Intrinsic, seed: int, inputs: bool) -> str:
    """C text that runs one intrinsic on all its cases and emits `n_results` results of `result_bytes` bytes.

    With `inputs`, each result follows the operands it was made from.
    """
    lines = [f"static __attribute__((noinline)) void t_{it.name}(void) {{", f"    state = {seed};"]
    values = it.r_values
    # A volatile table and a flag for the random ones: the compiler must not specialise for the values.
    table = ", ".join("0" if v is None else str(v & 0xFFFFFFFF) + "u" for v in values)
    fixed = ", ".join("0" if v is None else "1" for v in values)
    lines.append(f"    static const uint32_t r_values[{len(values)}] = {{{table}}};")
    lines.append(f"    static const unsigned char fixed[{len(values)}] = {{{fixed}}};")
    lines.append(f"    for (int i = 0; i < {len(values)}; i++) {{")
    lines.append("        int32_t r = fixed[i] ? (int32_t) r_values[i] : any_r();")
    lines.append("        (void) r;")
    for immediates in it.immediates:
        lines += memory_case(it) if MEMORY.match(it.name) else value_case(it, immediates, inputs)
    lines.append("    }")
    for literal in it.literals:
        lines += ["    {", f"        const int32_t r = {literal};", *value_case(it, (), inputs), "    }"]
    lines += ["}", ""]
    return "\n".join(lines)


def value_case(it: Intrinsic, immediates: tuple[int, ...], inputs: bool) -> list[str]:
    lines, arguments, after = ["        {"], [], []
    constants = iter(immediates)
    scalars = 0
    for k, (kind, name) in enumerate(it.params):
        if kind in ("Word32", "UWord32") and name.startswith("I"):
            arguments.append(str(next(constants)))
        elif kind in ("Word32", "UWord32"):
            scalars += 1
            lines.append(f"            int32_t a{k} = {'r' if scalars == n_scalars(it) else 'any_r()'};")
            arguments.append(f"a{k}")
        else:
            c_type = "int64_t" if kind == "Word64" else kind.rstrip("*")
            lines.append(f"            {c_type} a{k} = {ANY[kind]};")
            arguments.append(f"&a{k}" if kind.endswith("*") else f"a{k}")
            if inputs:
                lines.append(f"            {PUT[kind]}(a{k});")
            if kind.endswith("*"):
                after.append(f"            put_q(a{k});")
    lines.append(f"            {PUT[it.returns]}({it.name}({', '.join(arguments)}));")
    return [*lines, *after, "        }"]


def n_scalars(it: Intrinsic) -> int:
    return sum(kind == "Word32" and not name.startswith("I") for kind, name in it.params)


def memory_case(it: Intrinsic) -> list[str]:
    """Predicated stores, and gathers and scatters whose offsets lie in the region and never meet."""
    lines = [
        "        {",
        "            static unsigned char line[128] __attribute__((aligned(128)));",
        "            fill(region, 2048), fill(line, sizeof line);",
        "            HVX_VectorPred q = any_q();",
        "            HVX_Vector data = any_v();",
        "            (void) q, (void) data;",
    ]
    predicated = any(kind == "HVX_VectorPred" for kind, _ in it.params)
    if it.name.startswith("Q6_vmem"):
        return [
            *lines, f"            {it.name}(q, (HVX_Vector *) line, data);",
            "            emit(line, 128);", "        }",
        ]  # fmt: skip
    element = "w" if re.search(r"M(Vw)", it.name) else "h"
    offset = "(uint32_t) (k * 52 + 4 * i) % 2048" if element == "w" else "(uint32_t) (k * 26 + 2 * i) % 2048"
    if "Ww" in it.name:
        lines += [
            "            static uint32_t o[64] __attribute__((aligned(128)));",
            f"            for (int k = 0; k < 64; k++) o[32 * (k & 1) + (k >> 1)] = {offset};",
            "            HVX_VectorPair at = Q6_W_vcombine_VV(((HVX_Vector *) o)[1], ((HVX_Vector *) o)[0]);",
        ]
    else:
        lane, count = ("uint32_t", 32) if element == "w" else ("uint16_t", 64)
        lines += [
            f"            static {lane} o[{count}] __attribute__((aligned(128)));",
            f"            for (int k = 0; k < {count}; k++) o[k] = ({lane}) ({offset});",
            "            HVX_Vector at = *(HVX_Vector *) o;",
        ]
    mask = "q, " if predicated else ""
    where = "(int32_t) (uintptr_t) region, 2047"
    if it.name.startswith("Q6_vgather"):
        return [
            *lines, f"            {it.name}((HVX_Vector *) line, {mask}{where}, at);",
            "            emit(line, 128);", "        }",
        ]  # fmt: skip
    return [*lines, f"            {it.name}({mask}{where}, at, data);", "            emit(region, 2048);", "        }"]


def write_sources(folder: Path, intrinsics: list[Intrinsic], inputs: bool = False, per_file: int = 50) -> list[Path]:
    """The program's sources; running it emits the results of `intrinsics` in order."""
    sources, declare, calls = [], [], []
    for number, start in enumerate(range(0, len(intrinsics), per_file)):
        batch = intrinsics[start : start + per_file]
        body = [PRELUDE, *(case_function(it, 0x9E3779B9 ^ (start + k + 1), inputs) for k, it in enumerate(batch))]
        body += [f"void batch_{number}(void);", f"void batch_{number}(void) {{"]
        body += [*(f"    t_{it.name}();" for it in batch), "}", ""]
        path = folder / f"batch_{number}.c"
        path.write_text("\n".join(body))
        sources.append(path)
        declare.append(f"void batch_{number}(void);")
        calls.append(f"    batch_{number}();")
    main = folder / "main.c"
    main.write_text(MAIN.replace("@DECLARE@", "\n".join(declare)).replace("@CALLS@", "\n".join(calls)))
    return [main, *sources]
