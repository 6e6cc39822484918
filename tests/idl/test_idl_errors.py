"""What cannot be taken is refused in one line: file, line, column, what is wrong and what to do."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.errors import HexnpuError
from hexnpu.idl import compile_idl
from hexnpu.native import kernels_dir
from tests.idl.generated import HERE

OPEN = '#include "remote.idl"\ninterface it : remote_handle64 {\n'

# text -> line:column, and words of the sentence
BAD = [
    # names and types
    ("interface a { long f(in thing x); };", "1:25", "unknown type 'thing'; declare it before"),
    ("typedef long things; interface a { long f(in thing x); };", "1:46", "did you mean 'things'?"),
    ("interface a : base { };", "1:15", "unknown interface 'base'"),
    ("interface a : remote_handle64 { };", "1:15", '#include "remote.idl"'),
    ("interface a { long f(in remote_handle64 h); };", "1:25", '#include "remote.idl"'),
    ("struct s { long a; long a; };", "1:25", "'a' is taken already at"),
    ("struct s { sequence<long> a; long aLen; };", "1:35", "'aLen' is taken already"),
    ("struct s { long a; }; enum s { X };", "1:28", "'s' is declared already at"),
    ("enum a { X, Y }; enum b { Y };", "1:27", "'Y' in C is declared already at"),
    ("interface a { long f(); long f(); };", "1:30", "'f' is declared already"),
    (OPEN + "long open();\n};", "3:6", "method 'open' is declared already"),
    ("interface a { long f(in long x, rout long x); };", "1:43", "'x' is taken already"),
    ("interface a_b { long c(); }; interface a { long b_c(); };", "1:49", "'a_b_c' in C is declared already"),
    ("enum color { RED }; interface a { long f(in color color, in color other); };", "1:51", "hides the type 'color'"),
    ("interface a { long f(in long switch); };", "1:30", "has a meaning in the generated C"),
    ("struct s { long int; };", "1:12", "long int is no type"),
    ("struct s { octet int; };", "1:18", "'int' has a meaning in C"),
    ("struct s { long a; }; const long N = s;", "1:38", "'s' is not a constant"),
    ("const long N = 1; interface a { long f(in N x); };", "1:43", "'N' is not a type"),
    ("struct _s { long a; };", "1:8", "starts with _"),
    # methods
    ("interface a { void f(); };", "1:15", "cannot return void"),
    ("interface a { short f(); };", "1:15", "must return AEEResult or long"),
    ("interface a { long f(long x); };", "1:22", "needs in, rout or inrout; before long"),
    ("interface a { long f(out long x); };", "1:22", "write rout"),
    ("interface a { long f(inout long x); };", "1:22", "write inrout"),
    ("interface a { long f(in long x[3]); };", "1:30", "declare it with typedef"),
    ("interface a { long f(in long x rout long y); };", "1:32", "',' is missing between the parameters"),
    ("struct s { string t; }; interface a { long f(inrout s x); };", "1:55", "cannot be inrout"),
    (OPEN + "long f(inrout remote_handle64 h);\n};", "3:31", "a handle cannot be inrout"),
    (OPEN + "long f(in remote_handle64 h, in sequence<string> s);\n};", "3:6", "use two methods"),
    # not supported
    ("union u { long a; };", "1:1", "unions are not supported"),
    ("interface a { attribute long x; };", "1:15", "attributes are not supported"),
    ("interface a { async long f(); };", "1:15", "async methods are not supported"),
    ("interface a { oneway long f(); };", "1:15", "oneway methods are not supported"),
    ("interface a { long f(in any x); };", "1:25", "any is not supported"),
    ("interface a { long f(in dmahandle x); };", "1:25", "pass the file descriptor"),
    ("interface a { long f(in long x) raises (e); };", "1:33", "raises is not supported"),
    ("namespace n { };", "1:1", "write module"),
    ("typedef sequence<long, 4> s;", "1:22", "a bound of a sequence is not supported"),
    ("typedef string<4> s;", "1:15", "a bound of a string is not supported"),
    ("typedef sequence<sequence<long>> s;", "1:9", "the inner sequence needs a name"),
    ("struct s { string names[4]; };", "1:19", "an array of sequences or strings is not supported"),
    ("enum e { A = 3 };", "1:12", "take no values"),
    ("interface b { }; interface a : b, b { };", "1:33", "has one base"),
    ("interface b { }; interface a { long f(in b x); };", "1:42", "interface b as a type is not supported"),
    ("typedef long double d;", "1:9", "long double is no type"),
    ("typedef unsigned char c;", "1:9", "unsigned char is no type"),
    # constants
    ("const octet N = 256;", "1:17", "256 does not fit into 0..255"),
    ("const long N = 1 / 0;", "1:18", "division by zero"),
    ("const long N = 1.5;", "1:16", "write const double"),
    ('const long N = "x";', "1:16", "write const string"),
    ("const string N = 3;", "1:18", "3 is not a string"),
    ("const long N = M;", "1:16", "unknown constant 'M'"),
    ("const long N = 1 << 64;", "1:18", "not within 0..63"),
    ("typedef long a[0];", "1:16", "write a positive integer"),
    ("typedef long a[2000000];", "1:14", "a value of 8000000 bytes"),
    ("typedef double a[131072]; struct s { a b; char c; };", "1:34", "s is a value of 1048584 bytes"),
    ("const double N = 1e999;", "1:18", "does not fit into a double"),
    ("const float N = 1e39;", "1:17", "does not fit into a float"),
    ("const long N = " + "9" * 5000 + ";", "1:16", "5000 digits"),
    ("const string N = \"\\q\";", "1:18", "unknown escape"),
    ("const char N = 'ab';", "1:16", "is not one character"),
    ("const string IDL_VERSION = \"1.x\";", "1:28", 'write "1.2.3"'),
    # the text
    ("struct s { long a; }", "1:21", "';' is missing after the declaration, before the end of the file"),
    ("struct s { long a }", "1:19", "';' is missing after member a"),
    ("struct s { };", "1:8", "struct s is empty"),
    ("long x;", "1:1", "long declares nothing"),
    ("interface a {\n    long f(;\n};", "2:12", "needs in, rout or inrout"),
    ("struct s { long a; }; $", "1:23", "'$' means nothing here"),
    ("/* never closed\n", "1:1", "add */"),
    ('const string S = "abc;\n', "1:18", "has no end on its line"),
    ("const long N = 3u;", "1:16", "is not a number"),
    # the preprocessor
    ('#include "nowhere.idl"\n', "1:2", '"nowhere.idl" is not in'),
    ("#include nowhere\n", "1:2", "#include needs a file name"),
    ("#ifdef A\n", "1:2", "has no #endif"),
    ("#endif\n", "1:2", "without an #if"),
    ("#if 0\n#else\n#else\n#endif\n", "3:2", "after #else"),
    ("#define F(x) x\n", "1:9", "macro with arguments"),
    ("#if A && B\n#endif\n", "1:2", "write a number, defined(NAME)"),
    ("#error too old\n", "1:2", "too old"),
    ("#line 3\n", "1:2", "#line is not supported"),
    ('#include "bad.idl"\n', "1:2", "guard it with #ifndef"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where", "words"), BAD, ids=[f"{i}-{words[:24]}" for i, (_, _, words) in enumerate(BAD)]
)
def test_bad_input_is_refused(tmp_path: Path, text: str, where: str, words: str) -> None:
    path = tmp_path / "bad.idl"
    path.write_text(text)
    with pytest.raises(HexnpuError) as caught:
        compile_idl(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{where}: ")
    assert words in message
    assert "\n" not in message


def test_an_error_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "inner.idl").write_text("struct s {\n    lung a;\n};\n")
    (tmp_path / "outer.idl").write_text('#include "inner.idl"\n')
    with pytest.raises(HexnpuError, match=r"inner\.idl:2:5: unknown type 'lung'"):
        compile_idl(tmp_path / "outer.idl")


def test_a_base_is_not_compiled() -> None:
    with pytest.raises(HexnpuError, match="only serves to be included"):
        compile_idl(kernels_dir() / "platform/hexagon/sdk/remote.idl")


def test_brackets_without_end(tmp_path: Path) -> None:
    path = tmp_path / "deep.idl"
    path.write_text("const long N = " + "(" * 5000)
    with pytest.raises(HexnpuError, match="brackets inside brackets"):
        compile_idl(path)


@pytest.mark.parametrize("seed", range(4))
def test_mangled_files_give_an_error_or_code(tmp_path: Path, seed: int) -> None:
    """Words of a good file dropped, doubled, swapped or cut: never anything but an error with a place."""
    words = re.findall(r"\w+|\s+|[^\w\s]", (HERE / "every.idl").read_text())
    dice = random.Random(seed)
    path = tmp_path / "mangled.idl"
    refused = 0
    for _ in range(60):
        mangled = list(words)
        for _ in range(dice.randint(1, 3)):
            at, other = dice.randrange(len(mangled)), dice.randrange(len(mangled))
            match dice.randrange(4):
                case 0:
                    del mangled[at]
                case 1:
                    mangled.insert(at, mangled[other])
                case 2:
                    mangled[at], mangled[other] = mangled[other], mangled[at]
                case _:
                    mangled[at] = mangled[at][: len(mangled[at]) // 2]
        path.write_text("".join(mangled))
        try:
            assert compile_idl(path)
        except HexnpuError as error:
            refused += 1
            assert re.search(r"mangled\.idl:\d+:\d+: |cannot read", str(error)), error
    assert refused > 10


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(HexnpuError, match=r"cannot read .*none\.idl: No such file"):
        compile_idl(tmp_path / "none.idl")


def test_a_full_disk_gets_all_files_or_none(full_disk: Path) -> None:
    command = [sys.executable, "-m", "hexnpu", "idl", HERE / "every.idl", "-o", full_disk]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.startswith(f"hexnpu: cannot write into {full_disk}: No space left") and not result.stdout
    assert [path.name for path in full_disk.iterdir()] == ["filler"]
