"""What the language means in C: names, constants, includes, inheritance, versions; and the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexnpu.cli import main
from hexnpu.idl import compile_idl
from hexnpu.native import DEFAULT_ARCH, Target, compile_objects, kernels_dir
from tests.conftest import require_tool
from tests.idl.generated import WARNINGS, build, every_idl, include_flags, read_unit, run, seen, write_files

CONSTANTS = """
#define BASE 5
enum mode { OFF, ON };
const long SUM = BASE + 3 * 2;
const long MIXED = (1 << 4) | 3 ^ 1 & 7;
const long DOWN = -7 / 2 + -7 % 2;
const unsigned long MASK = 0xff << 24;
const unsigned long long WIDE = 0xffffffffffffffff;
const long long LEAST = -0x7fffffffffffffff - 1;
const long LOW = -2147483647 - 1;
const octet OCTAL = 017;
const boolean YES = TRUE;
const char LETTER = 'a';
const char BREAK = '\\n';
const float HALF = 1 / 2.0;
const double SMALL = -1.5e-3;
const mode START = ON;
const string TEXT = "a \\"b\\" \\\\ " "and c";
module outer { const long DEPTH = 2; module inner { const long DEPTH = ::outer::DEPTH + DEPTH_ABOVE; }; };
interface it { const long OWN = outer::inner::DEPTH * SUM; };
"""

CONSTANTS_CHECK = """
#include "constants.h"
#include <string.h>
_Static_assert(SUM == 11 && MIXED == 18 && DOWN == -4 && MASK == 0xff000000u, "");
_Static_assert(WIDE == 0xffffffffffffffffull && LEAST == INT64_MIN && LOW == INT32_MIN && OCTAL == 15, "");
_Static_assert(YES == 1 && LETTER == 'a' && BREAK == 10 && HALF == 0.5f && SMALL == -0.0015 && START == ON, "");
_Static_assert(outer_DEPTH == 2 && outer_inner_DEPTH == 9 && it_OWN == 99, "");
_Static_assert(sizeof(TEXT) == sizeof("a \\"b\\" \\\\ and c") && sizeof(mode) == 4, "");
int main(void) { return strcmp(TEXT, "a \\"b\\" \\\\ and c"); }
"""


def test_constants(tmp_path: Path) -> None:
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    path = tmp_path / "constants.idl"
    path.write_text("#define DEPTH_ABOVE 7\n" + CONSTANTS)
    write_files(path, tmp_path)
    (tmp_path / "check.c").write_text(CONSTANTS_CHECK)
    run([compiler, *WARNINGS, *include_flags(tmp_path), str(tmp_path / "check.c"), "-o", str(tmp_path / "check")])
    run([str(tmp_path / "check")])


def test_included_files_have_headers_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "types.idl").write_text(
        '#pragma once\n#include "AEEStdDef.idl"\nstruct pair { long a, b; };\n'
        "interface base : remote_handle64 { long sum(in pair p, rout long s); };\n".replace(
            "#pragma once\n", '#pragma once\n#include "remote.idl"\n'
        )
    )
    path = tmp_path / "child.idl"
    path.write_text(
        '#include <types.idl>\n#include "types.idl"\ninterface child : base {\n#include "methods.idl"\n'
        "    long twice(in pair p, rout pair q);\n};\n"
    )
    (tmp_path / "methods.idl").write_text("long spliced(in long a);\n")
    files = compile_idl(path, [tmp_path / "more"])
    assert list(files) == ["child.h", "child_stub.c", "child_skel.c"]
    assert '#include "types.h"' in files["child.h"]
    assert "struct pair {" not in files["child.h"]
    interface = read_unit(path, (tmp_path / "more",)).interfaces[0]
    assert [m.name for m in interface.methods] == ["open", "close", "sum", "spliced", "twice"]
    assert "int child_sum(remote_handle64 _h, const pair *p, int *s);" in files["child.h"]


def test_an_interface_without_methods(tmp_path: Path) -> None:
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    path = tmp_path / "bare.idl"
    path.write_text("interface bare {};\n")
    write_files(path, tmp_path)
    for part in ("stub", "skel"):
        run([compiler, *WARNINGS, "-fsyntax-only", *include_flags(tmp_path), str(tmp_path / f"bare_{part}.c")])


def test_several_interfaces_of_a_file(tmp_path: Path) -> None:
    """One header, named after the file; a stub and a skel for each interface; the URI names the file's library."""
    path = tmp_path / "pack.idl"
    path.write_text(
        '#include "remote.idl"\ninterface one { long f(); };\n'
        "module m { interface two : remote_handle64 { long g(); }; };\n"
    )
    files = compile_idl(path)
    assert list(files) == ["pack.h", "one_stub.c", "one_skel.c", "m_two_stub.c", "m_two_skel.c"]
    uri = '#define m_two_URI "file:///libpack_skel.so?m_two_skel_handle_invoke&_modver=1.0"'
    assert uri in files["pack.h"]
    assert "int one_skel_invoke(uint32_t _sc, remote_arg *_args)\n{" in files["one_skel.c"]
    assert (
        "int m_two_skel_handle_invoke(remote_handle64 _h, uint32_t _sc, remote_arg *_args)\n{" in files["m_two_skel.c"]
    )
    assert 'remote_handle_open("one", &mine)' in files["one_stub.c"]


@pytest.mark.parametrize(
    ("theirs", "fits"),
    [("1.2.3", True), ("1.2.2", True), ("1.2", True), ("1.1.9", True), ("0.99.99", True),
     ("1.2.4", False), ("1.3", False), ("2", False), ("1.2.3x", False), ("", False)],
)  # fmt: skip
def test_a_newer_caller_is_refused(tmp_path: Path, theirs: str, fits: bool) -> None:
    """IDL_VERSION goes into the URI; the skel takes callers that are not newer than itself."""
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    path = tmp_path / "dated.idl"
    path.write_text(
        '#include "remote.idl"\nconst string IDL_VERSION = "1.2.3";\ninterface dated : remote_handle64 {};\n'
    )
    write_files(path, tmp_path)
    assert '&_modver=1.0&_idlver=1.2.3"' in (tmp_path / "dated.h").read_text()
    uri = f"file:///libdated_skel.so?dated_skel_handle_invoke&_modver=1.0&_idlver={theirs}&_dom=cdsp"
    uri = uri if theirs else uri.replace("&_idlver=", "")
    (tmp_path / "main.c").write_text(f"""
#include "dated.h"
#include "AEEStdErr.h"
#include <string.h>
int dated_skel_handle_invoke(remote_handle64 h, uint32_t sc, remote_arg *args);
AEEResult dated_open(const char *uri, remote_handle64 *h) {{ *h = strlen(uri); return 0; }}
AEEResult dated_close(remote_handle64 h) {{ return (int) h; }}
int main(void)
{{
    char uri[] = "{uri}";
    uint32_t length = sizeof(uri);
    remote_arg args[3] = {{{{.buf = {{&length, 4}}}}, {{.buf = {{uri, length}}}}, {{.h64 = 0}}}};
    int error = dated_skel_handle_invoke(0, REMOTE_SCALARS_MAKEX(0, 0, 2, 0, 0, 1), args);
    return error == {"0" if fits else "AEE_ESTUBSKELVERMISMATCH"} && (args[2].h64 != 0) == {int(fits)} ? 0 : 1;
}}
""")
    sources = [str(tmp_path / "main.c"), str(tmp_path / "dated_skel.c")]
    run([compiler, *WARNINGS, *include_flags(tmp_path), *sources, "-o", str(tmp_path / "main")])
    run([str(tmp_path / "main")])


def test_header_is_cxx_too(tmp_path: Path) -> None:
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    write_files(every_idl(tmp_path), tmp_path)
    command = [compiler, "-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    run([*command, *include_flags(tmp_path), str(tmp_path / "every.h"), "-Wno-pragma-once-outside-header"])


@pytest.mark.slow
def test_output_compiles_for_hexagon(tmp_path: Path) -> None:
    """The 32-bit side: the asserts on sizes hold there too, and no warning comes."""
    write_files(every_idl(tmp_path), tmp_path)
    sources = sorted(tmp_path.glob("*_stub.c")) + sorted(tmp_path.glob("*_skel.c"))
    extra = [f"-I{tmp_path}", f"-I{kernels_dir() / 'platform/hexagon/sdk'}"]
    for obj in compile_objects(sources, Target(arch=DEFAULT_ARCH, hexagon=True), extra, label="generated code"):
        assert obj.read_bytes()[4] == 1, f"{obj} is not a 32-bit object"


def test_more_buffers_than_scalars_count(tmp_path: Path) -> None:
    """254 pages beside the primitive buffers and the records go through or are refused; the stub says which."""
    path = tmp_path / "many.idl"
    path.write_text(
        '#include "remote.idl"\ntypedef sequence<octet> page;\n'
        "interface many : remote_handle64 { long put(in sequence<page> pages); };\n"
    )
    unit = write_files(path, tmp_path)
    program = build(unit, "many", tmp_path)
    assert seen(run([str(program), "3", "20"]), "caller", "in") != []
    caller = (tmp_path / "many_caller.c").read_text()
    for pages, expected in ((253, "0"), (254, "AEE_EUNSUPPORTED")):
        text = caller.replace("+ test_length(4);", f"+ {pages};").replace(
            "int test_error = many_put", "test_result = 0; int test_error = many_put"
        ).replace("test_error != test_result", f"test_error != {expected}")  # fmt: skip
        assert text != caller
        (tmp_path / "many_caller.c").write_text(text)
        objects = [str(tmp_path / f"many_{part}.o") for part in ("stub", "skel", "callee")]
        compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
        sanitizers = "-fsanitize=address,undefined"
        run([compiler, *WARNINGS, sanitizers, *include_flags(tmp_path), str(tmp_path / "many_caller.c"), *objects,
             "-o", str(tmp_path / "many")])  # fmt: skip
        run([str(tmp_path / "many"), "3", "2"])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.idl"
    path.write_text('#include "types.idl"\ninterface small { long f(in number n); };\n')
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "types.idl").write_text("typedef long number;\n")
    out = tmp_path / "made" / "here"
    with pytest.raises(SystemExit) as done:
        main(["idl", str(path), "-o", str(out), "-I", str(tmp_path / "inc")])
    assert done.value.code in (0, None)
    names = [out / name for name in ("small.h", "small_stub.c", "small_skel.c")]
    assert capsys.readouterr().out.split() == [str(name) for name in names]
    assert all(name.read_text() for name in names)
    with pytest.raises(SystemExit) as failed:
        main(["idl", str(path), "-o", str(out)])
    assert failed.value.code == 1
    captured = capsys.readouterr()
    assert captured.err == f'hexnpu: {path}:1:2: "types.idl" is not in {tmp_path}; give its folder with -I\n'
