"""The native build: cached by content, rebuilt on a change, safe under two processes, clear when it cannot be done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu import native
from hexnpu.errors import BuildError
from tests.conftest import require_tool

MAIN = '#include <stdio.h>\n#include "answer.h"\nint main(void) { printf("%d\\n", ANSWER); return 0; }\n'


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of two files with a build cache of its own (zig's own cache stays shared, it holds the libc)."""
    monkeypatch.setenv("HEXNPU_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "zig").symlink_to(Path.home() / ".cache" / "hexnpu" / "zig")
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "answer.h").write_text("#define ANSWER 42\n")
    (folder / "main.c").write_text(MAIN)
    return folder / "main.c"


def run(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


def test_built_once_and_rebuilt_when_a_header_changes(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = native.compile_program("answer", [source])
    assert run(first) == "42"
    with monkeypatch.context() as patch:
        patch.setattr(native, "_compile", lambda *_: pytest.fail("compiled what the cache holds"))
        assert native.compile_program("answer", [source]) == first
    (source.parent / "answer.h").write_text("#define ANSWER 43\n")
    assert run(native.compile_program("answer", [source])) == "43"
    assert run(first) == "42"


def test_python_by_another_name_builds_nothing_again(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`hexnpu` starts python3 of its environment where a user types python."""
    monkeypatch.delenv("CC", raising=False)
    first = native.compile_program("answer", [source])
    monkeypatch.setattr(sys, "executable", f"{sys.executable}-by-another-name")
    assert native.compile_program("answer", [source]) == first


def test_compile_error_shows_the_compilers_words_and_leaves_nothing(source: Path) -> None:
    source.write_text("int main(void) { return not_there; }\n")
    with pytest.raises(BuildError, match="not_there"):
        native.compile_program("answer", [source])
    assert not [f for f in native.cache_dir().rglob("*") if f.is_file() and "zig" not in f.parts]


def test_cc_is_honoured(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = require_tool("clang-19", "clang-19")
    monkeypatch.setenv("CC", f"{clang} -DANSWER=7")
    (source.parent / "answer.h").write_text("")
    assert run(native.compile_program("answer", [source])) == "7"


@pytest.mark.parametrize(
    ("cc", "words"),
    [("/no/such/cc", "cannot run the compiler"), ("gcc", "gcc is not a clang"), ("clang '-O2", "No closing quotation")],
)
def test_unusable_cc(source: Path, monkeypatch: pytest.MonkeyPatch, cc: str, words: str) -> None:
    monkeypatch.setenv("CC", cc)
    with pytest.raises(BuildError, match=words):
        native.compile_program("answer", [source])


def test_old_processor_is_named(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "IS_X86", True)
    monkeypatch.setattr(native, "_cpu_features", lambda: "fpu sse2 avx")
    with pytest.raises(BuildError, match=r"x86-64-v3.*lacks.*avx2"):
        native.compile_program("answer", [source])


def test_two_processes_build_at_once(source: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hexnpu.native import compile_program;"
        "print(compile_program('answer', [Path(sys.argv[1])]))"
    )
    command = [sys.executable, "-c", code, str(source)]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    programs = [Path(p.communicate()[0].strip()) for p in pair]
    assert [p.returncode for p in pair] == [0, 0]
    assert programs[0] == programs[1] and run(programs[0]) == "42"


def test_full_cache_disk(source: Path, full_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_CACHE", str(full_disk / "cache"))
    with pytest.raises(BuildError, match=r"cannot write the build cache .*full/cache.*HEXNPU_CACHE"):
        native.compile_program("answer", [source])
    assert not list((full_disk / "cache").rglob("*.o"))


def test_a_cache_that_no_space_would_help(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_CACHE", str(source / "cache"))
    with pytest.raises(BuildError, match=r"main.c/cache: Not a directory; set HEXNPU_CACHE to another folder$"):
        native.compile_program("answer", [source])


@pytest.mark.parametrize("module", ["server_build", "emulator_build", "npu_library"])
def test_the_build_commands(module: str, tmp_path: Path) -> None:
    def build(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", f"hexnpu.{module}", *words]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)

    helped = build("--help")
    assert helped.returncode == 0 and helped.stdout.startswith(f"usage: python -m hexnpu.{module} [FLAVOUR")
    made = build("release")
    assert made.returncode == 0 and Path(made.stdout.rstrip("\n")).exists()
    (tmp_path / "file").write_text("")
    for wrong, says in (
        (build("debug"), "no flavour 'debug'; there are release, asan, tsan"),
        (build("release", "68"), "68"),
        (build("release", "79", "more"), "one argument too many"),
        (build(HEXNPU_CACHE=str(tmp_path / "file" / "cache")), "set HEXNPU_CACHE to another folder"),
    ):
        assert wrong.returncode in (1, 2) and says in wrong.stderr
        assert wrong.stderr.startswith("hexnpu: ") and "Traceback" not in wrong.stderr


@pytest.mark.slow
def test_wheel_carries_the_sources(tmp_path: Path) -> None:
    """The package as a wheel, away from the checkout, builds its server and runs an op."""
    root = Path(__file__).parents[1]
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=root, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(wheel), str(tmp_path / "site")], check=True)
    code = (
        "import numpy as np, hexnpu; assert '/site/' in hexnpu.__file__, hexnpu.__file__\n"
        "g = hexnpu.Graph(); x = g.input('x', (5,)); g.output(g.add(x, x), 'y')\n"
        "with hexnpu.open() as s: print(s.run(g, {'x': np.arange(5, dtype=np.float32)})['y'].tolist())"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[0.0, 2.0, 4.0, 6.0, 8.0]"
