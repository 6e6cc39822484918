"""`hexnpu generate`, `plan` and `ops` as a user meets them: what they print, and one line for all that is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import gguf
import pytest

from tests.models.tiny import Tiny

ROOT = Path(__file__).parents[2]


def hexnpu(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hexnpu", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Tiny(weights=gguf.GGMLQuantizationType.Q4_0).write(tmp_path_factory.mktemp("cli") / "tiny.gguf")


def test_readme_shows_what_the_command_prints(demo_gguf: Path) -> None:
    """The block of the README that begins with a generate command is the command's real output."""
    readme = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"    \$ hexnpu generate \$MODEL -p \"([^\"]+)\" -n 32\n((?:    .*\n|\n)+)", readme)
    prompt, shown = block
    result = hexnpu("generate", demo_gguf, "-p", prompt, "-n", "32", "--strict")
    assert result.returncode == 0, result.stderr
    assert [line.strip() for line in result.stdout.splitlines()] == [
        line.strip() for line in shown.strip("\n").splitlines()
    ]


def test_readme_shows_what_plan_prints(demo_gguf: Path) -> None:
    (shown,) = re.findall(r"    \$ hexnpu plan \$MODEL\n((?:    .*\n)+)", (ROOT / "README.md").read_text())
    result = hexnpu("plan", demo_gguf)
    assert [line.rstrip() for line in result.stdout.splitlines()] == [line[4:] for line in shown.splitlines()]


def test_stats_count_every_op_on_the_npu(tiny: Path) -> None:
    result = hexnpu("generate", tiny, "-p", "the thing", "-n", "5", "--stats", "--strict")
    assert result.returncode == 0, result.stderr
    assert re.search(r"generation +\d+ tokens +[\d.]+ tokens/s", result.stderr)
    assert re.search(r"NPU +\d+ ops, 0 fell back to numpy", result.stderr)


def test_same_seed_same_text(tiny: Path) -> None:
    def sampled(seed: int) -> str:
        flags = ("-n", "12", "--temp", "1.5", "--top-k", "0", "--top-p", "1", "--seed", seed)
        result = hexnpu("generate", tiny, "-p", "the", *flags)
        assert result.returncode == 0, result.stderr
        return result.stdout

    assert sampled(1) == sampled(1)
    assert sampled(1) != sampled(2)


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
def test_text_does_not_depend_on_threads(tmp_path: Path, kv_type: str) -> None:
    model = Tiny(n_embd=128).write(tmp_path / "m.gguf")  # heads of 32, so that a Q8_0 cache row is whole blocks
    flags = ("-p", "the end", "-n", "16", "--kv-type", kv_type)
    runs = [hexnpu("generate", model, *flags, "-t", n) for n in (1, 3, 4)]
    assert [run.returncode for run in runs] == [0, 0, 0], runs[0].stderr
    assert len({run.stdout for run in runs}) == 1 and len(runs[0].stdout) > 10


def test_profile_lines_go_to_the_log(tiny: Path, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    result = hexnpu("generate", tiny, "-p", "the", "-n", "3", "--profile", "3", "--log", log)
    assert result.returncode == 0, result.stderr
    text = log.read_text()
    assert "HTP0:0 profile-op OPBATCH|" in text and "profile-op MUL_MAT+MUL_MAT+MUL_MAT|" in text
    assert re.search(r"trace-evt HVX_COMP: thread \d+ info \d+ start \d+", text)
    report = hexnpu("profile", log)
    assert report.returncode == 0 and "MUL_MAT" in report.stdout


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("{tiny}",), "Missing option '-p'", 2),
        (("{tiny}", "-p", "x", "--frobnicate"), "No such option: --frobnicate", 2),
        (("{tiny}", "-p", "x", "-n", "0"), "'-n'", 2),
        (("{tiny}", "-p", "x", "--temp", "-1"), "--temp is -1.0", 2),
        (("{tiny}", "-p", "x", "--top-p", "0"), "--top-p is 0.0", 2),
        (("{tiny}", "-p", "x", "--kv-type", "q3"), "--kv-type is 'q3'; it must be one of f16, q8_0", 2),
        (("{tiny}", "-p", "x", "--profile", "7"), "--profile is 7", 2),
        (("{tiny}", "-p", "x", "--devices", "GPU0"), "GPU0", 2),
        (("{tiny}", "-p", "x", "--target", "toaster"), "toaster", 2),
        (("{tiny}", "-p", "x", "--target", "tcp:localhost:99999"), "tcp:localhost:99999", 2),
        (("{tiny}", "-p", "x", "--log", "run.log"), "--profile", 2),
        (("{tiny}", "-p", "\udcff\udcfe"), "the prompt is not UTF-8", 2),
        (("{tiny}", "-p", "the " * 300, "--ctx", "64"), "shorten the prompt, or raise --ctx (up to 1024)", 2),
        (("{tiny}", "-p", "the " * 1200), "shorten the prompt: the model was trained for no more", 2),
        (("{tiny}", "-p", "x", "--ctx", "100000000"), "--ctx is 100000000", 2),
        (("{tiny}", "-p", ""), "the prompt is empty", 2),
        (("{tiny}", "-p", "x", "--chat"), "holds no chat template", 1),
        (("/no/such.gguf", "-p", "x"), "no such file: /no/such.gguf", 1),
        (("{here}", "-p", "x"), "is a folder", 1),
        (("{cut}", "-p", "x"), "cut short", 1),
        (("{nan}", "-p", "x"), "blk.1.ffn_up.weight: 1 elements are NaN", 1),
        (("{tiny}", "-p", "x", "--profile", "1", "--log", "/no/such/folder/f.log"), "/no/such/folder/f.log", 1),
    ],
)
def test_bad_input_is_one_line(
    tiny: Path, tmp_path: Path, arguments: tuple[str, ...], words: str, code: int
) -> None:
    cut, nan = tmp_path / "cut.gguf", tmp_path / "nan.gguf"
    cut.write_bytes(tiny.read_bytes()[:-1000])
    Tiny(nan_in="blk.1.ffn_up.weight").write(nan)
    places = {"tiny": tiny, "here": tmp_path, "cut": cut, "nan": nan}
    result = hexnpu("generate", *(a.format(**places) for a in arguments))
    assert result.returncode == code, result.stderr
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.startswith("hexnpu: ")


def test_output_that_cannot_be_written(tiny: Path) -> None:
    """A full disk is one line, a closed stdout is nowhere, a terminal without the characters shows question marks."""

    def shell(redirection: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = f"exec {sys.executable} -m hexnpu generate {tiny} -p 'the thing' -n 4 {redirection}"
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, env=os.environ | environment)

    full = shell("> /dev/full")
    assert (full.returncode, full.stderr) == (1, "hexnpu: cannot write the output: No space left on device\n")
    for redirection in (">&-", "2>&-"):
        closed = shell(redirection)
        assert (closed.returncode, closed.stderr) == (0, "")
    result = subprocess.run(
        [sys.executable, "-c", "from hexnpu.cli import _open_streams; _open_streams(); print('naïve 日本')"],
        capture_output=True, env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert result.stdout == b"na?ve ??\n"


def test_a_log_on_a_full_disk_is_named(tiny: Path, full_disk: Path) -> None:
    log = full_disk / "run.log"
    result = hexnpu("generate", tiny, "-p", "the", "-n", "3", "--profile", "3", "--log", log)
    assert result.returncode == 1
    assert result.stderr == f"hexnpu: cannot write {log}: No space left on device\n"


def test_plan_totals(demo_gguf: Path) -> None:
    result = hexnpu("plan", demo_gguf)
    assert result.returncode == 0
    assert "363 ops, 363 on the NPU, 0 in numpy" in result.stdout
    shapes = r"576 x 576:576 x 576:192 x 576:192 -> 576 \+ 192 \+ 192"
    assert re.search(rf"30  MUL_MAT_NX +{shapes} .* hvx-tiled-q4_1", result.stdout)


def test_plan_for_a_small_vtcm_says_what_it_takes(demo_gguf: Path) -> None:
    result = hexnpu("plan", demo_gguf, "--tokens", "512", "--vtcm", "2", "-t", "1")
    assert result.returncode == 0
    assert int(re.search(r"most VTCM of an op (\d+) KiB", result.stdout)[1]) <= 2048  # type: ignore[index]


def test_plan_takes_an_arch_as_people_write_it(tiny: Path) -> None:
    for arch in ("75", "v75"):
        assert "27 ops, 27 on the NPU" in hexnpu("plan", tiny, "--arch", arch).stdout
    wrong = hexnpu("plan", tiny, "--arch", "68")
    assert (wrong.returncode, wrong.stderr) == (2, "hexnpu: --arch is 68; it must be one of v73, v75, v79, v81\n")


def test_ops_in_a_pipe_are_a_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    heading, *lines, total = hexnpu("ops", "--all").stdout.splitlines()
    assert heading.split() == ["code", "op", "types", "kernels"]
    assert all(re.match(r"\d+ +[A-Z]", line.strip()) for line in lines)
    assert total.endswith(f"of {len(lines)} ops have an NPU kernel")


def test_ops_lists_what_the_issue_of_the_first_version_asked_for() -> None:
    lines = {line.split()[1]: line for line in hexnpu("ops").stdout.splitlines() if line[:1].isdigit()}
    for op in ("MUL_MAT", "MUL_MAT_NX", "MUL_MAT_ADD"):
        assert all(t in lines[op].split() for t in ("f32", "f16", "q4_0", "q4_1", "q8_0"))
    rows = ("RMS_NORM", "RMS_NORM_MUL", "ADD", "SUB", "MUL", "DIV", "SCALE", "SOFTMAX", "ROPE", "CPY")
    gates = ("GLU_SWIGLU", "GLU_SWIGLU_OAI", "GLU_GEGLU", "UNARY_SILU", "UNARY_GELU", "UNARY_SIGMOID")
    for op in (*rows, *gates, "SET_ROWS", "GET_ROWS", "FLASH_ATTN_EXT"):
        assert op in lines
