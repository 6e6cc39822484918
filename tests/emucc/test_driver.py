"""The command: flags, defines, messages, dependencies, libraries."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hexnpu.emucc.arguments import parse_arguments
from hexnpu.emucc.driver import image_base
from hexnpu.errors import UsageError
from tests.conftest import require_tool

EMU_CC = (sys.executable, "-m", "hexnpu.emucc")


def emu_cc(*arguments: object, cwd: Path, ok: bool = True) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([*EMU_CC, *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == ok, result.stderr
    return result


def test_flags_of_a_real_build_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int x;")
    (tmp_path / "b.o").write_bytes(b"")
    (tmp_path / "more.rsp").write_text("-mllvm -hexagon-x=1 -DQUOTED='a b'")
    command = parse_arguments(
        [
            "-mcpu=v75", "-mv75", "-mhvx=v75", "-mhvx-length=128B", "-mhmx", "-G0", "-fvectorize", "-flto", "-Wall",
            "-Werror", "-fno-zero-initialized-in-bss", "-fdata-sections", "-fpic", "-Ofast", "-ffast-math",
            "-x", "c", f"{tmp_path}/a.c", "-x", "none",
            "-Wl,-Bsymbolic", "-Wl,-L/nowhere", "-Wl,--no-threads", "-Wl,--wrap=malloc", "-shared",
            "-Wl,-soname,libx.so", "-Wl,--start-group", f"{tmp_path}/b.o", "/sdk/lib/v75/G0/init.o", "/sdk/libqurt.a",
            "-Wl,--end-group", "-lc", "-lm", f"@{tmp_path}/more.rsp", "-isystem", "/sdk/incs", "-o", "out.so",
        ]
    )  # fmt: skip
    assert (command.arch, command.hmx, command.shared, command.soname) == (75, True, True, "libx.so")
    assert command.sources == [(f"{tmp_path}/a.c", "c")]
    assert command.objects == ["-Wl,--start-group", f"{tmp_path}/b.o", "-Wl,--end-group", "-lm"]
    assert command.compiler == ["-Wall", "-fdata-sections", "-O3"]
    assert command.preprocessor == ["-DQUOTED=a b", "-isystem", "/sdk/incs"]
    assert command.output == "out.so" and not command.links_cplusplus
    for name in ("-lc++", "/sdk/lib/v75/G0/pic/libc++.so.1"):
        assert parse_arguments([f"{tmp_path}/b.o", name, "-shared"]).links_cplusplus


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-mv83", "-c", "a.c"], "v83 is not emulated"),
        (["-mhvx-length=64b", "-c", "a.c"], "64 bytes"),
        (["-c", "missing.c"], "cannot read missing.c"),
        (["-c", "a.S"], "Hexagon assembly"),
        (["--target=x86_64-linux", "-c", "a.c"], "x86_64-linux"),
        (["-Wl,--wrap=open", "-shared", "a.c"], "--wrap=open"),
        (["-c"], "no input files"),
        (["-o"], "-o lacks its value"),
        (["-x", "fortran", "a.c"], "fortran"),
        (["libx.a", "-shared"], "cannot read libx.a"),
    ],
)
def test_what_cannot_be_taken(arguments: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_arguments(arguments)


def test_an_object_of_the_dsp_is_refused(tmp_path: Path) -> None:
    clang = require_tool("clang-19", "clang-19")
    (tmp_path / "a.c").write_text("int x;")
    subprocess.run([clang, "--target=hexagon", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    result = emu_cc("-shared", "a.o", "-o", "a.so", cwd=tmp_path, ok=False)
    assert "a.o holds Hexagon code" in result.stderr and "emu-cc" in result.stderr


@pytest.mark.parametrize("arch", [73, 81])
def test_defines_and_preprocessing(arch: int, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        "__HEXAGON_ARCH__ __HVX_ARCH__ __HVX_LENGTH__ __hexagon__ __HVX__ __fp16\n"
        "#if defined(__HVX_IEEE_FP__)\nieee\n#endif\n#ifdef __HMX__\nhmx\n#endif\n"
        'asm("frobnicate");\n'
    )
    text = emu_cc("-E", "-P", f"-mcpu=hexagonv{arch}", "-mhmx", "a.c", cwd=tmp_path).stdout
    words = text[text.index(f"{arch} {arch}") :].split("\n")
    assert words[0] == f"{arch} {arch} 128 1 1 _Float16"
    assert ("ieee" in words) == (arch >= 79) and "hmx" in words
    assert 'asm("frobnicate");' in words


def test_messages_name_the_source(tmp_path: Path) -> None:
    (tmp_path / "in.h").write_text('static inline void g(void) {\n    asm volatile("frob(r1)");\n}\n')
    (tmp_path / "a.c").write_text(
        '#include "in.h"\n#define GO(x) asm volatile("wait(" x ")")\nvoid f(void) {\n    g();\n    GO("r0");\n}\n'
    )
    result = emu_cc("-c", "a.c", cwd=tmp_path, ok=False)
    assert result.returncode == 1
    assert "in.h:2: error: cannot translate the instruction 'frob(r1)'" in result.stderr
    assert "a.c:5: error: cannot translate the instruction 'wait(r0)'" in result.stderr
    assert not list(tmp_path.glob("*.o"))
    (tmp_path / "good.c").write_text("int x;")
    emu_cc("-fsyntax-only", "good.c", cwd=tmp_path)
    assert not list(tmp_path.glob("*.o"))
    (tmp_path / "b.c").write_text('void f(void) {\n    asm("nop\\n"\n        "nop");\n    undeclared();\n}\n')
    assert "b.c:4:" in emu_cc("-c", "b.c", cwd=tmp_path, ok=False).stderr


@pytest.mark.parametrize("flags", [("-O2", "-c"), ("-S",), ("-shared",), ("-MMD", "-c")])
def test_a_full_disk_is_one_line(flags: tuple[str, ...], full_disk: Path, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int f(int x) { return x + 1; }\n")
    result = emu_cc(*flags, "a.c", "-o", full_disk / "out", cwd=tmp_path, ok=False)
    assert result.returncode == 1
    assert result.stderr.startswith("emu-cc: error: ") and result.stderr.count("\n") == 1
    assert "o space left" in result.stderr
    assert not (full_disk / "out").exists()


def test_what_compilers_say_of_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "clang"
    compiler.write_text("#!/bin/sh\nfor i in 1 2 3; do echo 'unable to write: NoSpaceLeft' >&2; done; exit 9\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    (tmp_path / "a.c").write_text("int x;\n")
    result = emu_cc("-c", "a.c", "-o", "a.o", cwd=tmp_path, ok=False)
    assert result.returncode == 1
    assert result.stderr.startswith("emu-cc: error: no space left on a disk") and result.stderr.count("\n") == 1


def test_where_the_output_goes(tmp_path: Path) -> None:
    """A link stays one, a pipe is written into, a folder that is missing is named, an old output outlives an error."""
    (tmp_path / "a.c").write_text("int f(int x) { return x + 1; }\n")
    (tmp_path / "link.o").symlink_to("real.o")
    emu_cc("-c", "a.c", "-o", "link.o", cwd=tmp_path)
    assert (tmp_path / "link.o").is_symlink() and (tmp_path / "real.o").read_bytes()[:4] == b"\x7fELF"
    assert "f:" in emu_cc("-S", "a.c", "-o", "/proc/self/fd/1", cwd=tmp_path).stdout
    missing = emu_cc("-c", "a.c", "-o", "none/a.o", cwd=tmp_path, ok=False)
    assert missing.stderr == "emu-cc: error: cannot write none/a.o: No such file or directory\n"
    (tmp_path / "a.c").write_text("int f( {\n")
    emu_cc("-c", "a.c", "-o", "real.o", cwd=tmp_path, ok=False)
    assert (tmp_path / "real.o").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.c", "link.o", "real.o"]


def test_dependencies(tmp_path: Path) -> None:
    (tmp_path / "one.h").write_text("#define ONE 1\n")
    (tmp_path / "a.c").write_text('#include "one.h"\nint x = ONE;\n')
    emu_cc("-c", "a.c", "-MD", "-MT", "there/a.o", "-MF", "a.dep", "-o", "a.o", cwd=tmp_path)
    assert (tmp_path / "a.dep").read_text().startswith("there/a.o:")
    assert "one.h" in (tmp_path / "a.dep").read_text()
    emu_cc("-c", "a.c", "-MMD", "-o", "b.o", cwd=tmp_path)
    assert (tmp_path / "b.d").read_text().startswith("b.o:")
    assert "one.h" in emu_cc("-MM", "a.c", cwd=tmp_path).stdout


LIBRARY = """
#include <stdint.h>
#include <stdlib.h>
uint64_t HAP_perf_get_pcycles(void);
static int counter = 40;
int *where(void) { return &counter; }
int quotient(int a, int b) { return a / b; }
unsigned remainder_of(unsigned a, unsigned *b) { return a % *b; }
int64_t wide(int64_t a, int64_t b) { return a / b; }
uint8_t small(uint8_t a, uint8_t b) { return (uint8_t) (a / b); }
uint64_t unresolved(void) { return HAP_perf_get_pcycles(); }
void *aligned(void) { return memalign(128, 256); }
uint32_t narrow(void *p) { return (uint32_t) p; }
"""


def test_a_library_lies_low_and_divides_like_the_dsp(tmp_path: Path) -> None:
    """No other test's library has its name, and so its place."""
    (tmp_path / "a.c").write_text(LIBRARY)
    emu_cc("-O2", "-Wall", "-Werror", "-c", "a.c", "-o", "a.o", cwd=tmp_path)
    emu_cc("-shared", "-Wl,-soname,liblow.so", "a.o", "-o", "liblow.so", cwd=tmp_path)
    elf = (tmp_path / "liblow.so").read_bytes()
    headers = int.from_bytes(elf[32:40], "little")
    sizes = int.from_bytes(elf[54:56], "little")
    loads = [
        int.from_bytes(elf[at + 16 : at + 24], "little")
        for at in range(headers, headers + 10 * sizes, sizes)
        if int.from_bytes(elf[at : at + 4], "little") == 1
    ]
    assert loads[0] == image_base("liblow.so") and 0x20000000 <= loads[0] < 0x38000000 and loads[0] % (1 << 16) == 0
    assert len({image_base(f"lib{i}_skel.so") for i in range(20)}) == 20
    # Its undefined symbols are those of the process that loads it.
    (tmp_path / "platform.c").write_text("unsigned long HAP_perf_get_pcycles(void) { return 77; }")
    emu_cc("-shared", "platform.c", "-o", "libplatform.so", cwd=tmp_path)
    ctypes.CDLL(str(tmp_path / "libplatform.so"), mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(tmp_path / "liblow.so"))
    assert library.unresolved() == 77
    library.where.restype = ctypes.c_void_p
    assert 0x20000000 <= library.where() < 0x40000000
    library.wide.restype, library.wide.argtypes = ctypes.c_int64, (ctypes.c_int64, ctypes.c_int64)
    assert [library.quotient(7, 2), library.quotient(7, 0), library.quotient(-(2**31), -1)] == [3, 0, -(2**31)]
    assert [library.remainder_of(7, ctypes.byref(ctypes.c_uint(d))) for d in (4, 0)] == [3, 7]
    assert [library.wide(2**40, 2**20), library.wide(2**40, 0), library.wide(-(2**63), -1)] == [2**20, 0, -(2**63)]
    library.small.restype = ctypes.c_uint8
    assert [library.small(200, 7), library.small(200, 0)] == [28, 0]


LOCKED = """
void count(unsigned *at, unsigned *here, int n) {
    __atomic_add_fetch(here, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(here, __ATOMIC_SEQ_CST) < 2);
    for (; n; n--)
        asm volatile("1: r0 = memw_locked(%0)\\n r0 = add(r0, #1)\\n memw_locked(%0, p0) = r0\\n if (!p0) jump 1b"
                     : : "r"(at) : "r0", "p0", "memory");
}
int stored(unsigned *at, unsigned other) {
    int done;
    asm volatile("r0 = memw_locked(%1)\\n memw(%1) = %2\\n memw_locked(%1, p0) = r0\\n %0 = p0"
                 : "=r"(done) : "r"(at), "r"(other) : "r0", "p0", "memory");
    return done;
}
"""


def test_locked_accesses_are_atomic(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(LOCKED)
    emu_cc("-O2", "-c", "a.c", "-o", "a.o", cwd=tmp_path)
    emu_cc("-shared", "a.o", "-o", "liba.so", cwd=tmp_path)
    library, word, here = ctypes.CDLL(str(tmp_path / "liba.so")), ctypes.c_uint(5), ctypes.c_uint(0)
    assert (bool(library.stored(ctypes.byref(word), 5)), word.value) == (True, 5)
    assert (bool(library.stored(ctypes.byref(word), 6)), word.value) == (False, 6)
    # ctypes lets go of Python's lock for the call. They begin together, and go on for many times a turn on one core.
    word.value, n = 0, 10_000_000
    threads = [threading.Thread(target=library.count, args=(ctypes.byref(word), ctypes.byref(here), n)) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert word.value == 2 * n


@pytest.mark.parametrize("first", ["hexagon_types.h", "hexagon_protos.h", "hvx_hexagon_protos.h"])
def test_any_header_of_the_toolchain_brings_the_others(first: str, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(
        f"#include <{first}>\n"
        "long long made(int a) { return HEXAGON_V64_CREATE_H(a, 2, -1, 4); }\n"
        "int taken(long long v) { return HEXAGON_V64_GET_H1(v) + Q6_R_max_RR(HEXAGON_V64_GET_UH3(v), -5); }\n"
        "HVX_Vector zero(void) { return Q6_V_vzero(); }\n"
    )
    emu_cc("-Wall", "-c", "a.c", "-o", "a.o", cwd=tmp_path)
    emu_cc("-shared", "a.o", "-o", "liba.so", cwd=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "liba.so"))
    library.made.restype = ctypes.c_longlong
    assert library.made(-3) == -3 << 48 | 2 << 32 | 0xFFFF << 16 | 4
    assert library.taken(ctypes.c_longlong(library.made(1))) == 0


def test_cplusplus(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(
        "#include <cstdint>\n#include <type_traits>\n"
        "template <typename T> struct Cell { T value;\n"
        '  T next() { T t; asm volatile("%0 = add(%1, #1)" : "=r"(t) : "r"(value)); value = t; return t; } };\n'
        'extern "C" uint32_t low(void *p) { return reinterpret_cast<uint32_t>(p); }\n'
        'extern "C" int next(int x) { Cell<int> c{x}; c.next(); return c.next(); }\n'
        'extern "C" int strlen2(const char *) asm("strlen");\n'
        'extern "C" int length(const char *s) { return strlen2(s); }\n'
    )
    emu_cc("-std=c++17", "-O2", "-c", "a.cpp", "-o", "a.o", cwd=tmp_path)
    emu_cc("-shared", "a.o", "-o", "liba.so", cwd=tmp_path)
    library = ctypes.CDLL(str(tmp_path / "liba.so"))
    assert library.next(5) == 7 and library.length(b"four") == 4
    assert library.low(ctypes.c_void_p(0x1_2345_6789)) == 0x2345_6789


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 traps")
def test_other_arithmetic_faults_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("#include <signal.h>\nint main(void) { return raise(SIGFPE); }\n")
    (tmp_path / "lib.c").write_text("int unused;\n")
    emu_cc("-shared", "lib.c", "-o", "liba.so", cwd=tmp_path)
    emu_cc("a.c", "./liba.so", "-Wl,--no-as-needed", "-Wl,-rpath,.", "-o", "a", cwd=tmp_path)
    assert subprocess.run(["./a"], cwd=tmp_path, check=False).returncode == -8
