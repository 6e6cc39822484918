"""What is written and where: never over what is read, and whole or not at all."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"

OVER_THE_INPUT = [
    ("profile", "a.log", "-o", "a.log"),
    ("profile", "a.log", "-o", "./sub/../a.log"),
    ("profile", "a.log", "-o", "symlink"),
    ("profile", "symlink", "-o", "a.log"),
    ("profile", "a.log", "-o", "hardlink"),
    ("profile", "a.log", "--html", "a.log"),
    ("profile", "a.log", "--timeline", "summary", "-o", "a.log"),
    ("profile", "a.log", "--export", "out", "-o", "a.log"),
    ("profile", "exported", "--export", "exported"),
    ("profile", "exported", "--export", "sub/../exported"),
    ("profile", "exported", "-o", "exported/ops.parquet"),
    ("trace", "a.log", "-o", "a.log"),
    ("trace", "a.log", "--chrome", "a.log"),
    ("trace", "a.log", "-o", "out", "--chrome", "a.log"),
    ("trace", "t.HTP0-0.log", "-o", "t.log", "--device", "split"),
    ("audit", "a.log", "-o", "a.log"),
    ("compare", "run.log", "a.log", "-o", "a.log"),
    ("compare", "run.log", "a.log", "-o", "run.log"),
]


@pytest.fixture
def folder(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # type: ignore[no-untyped-def]
    """The folder a user works in, with logs under several names and an exported one."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.log", "run.log", "t.HTP0-0.log"):
        Path(name).write_bytes((GOLDEN / "g5.log").read_bytes())
    Path("sub").mkdir()
    Path("symlink").symlink_to("a.log")
    os.link("a.log", "hardlink")
    assert run("profile", "a.log", "--export", "exported").code == 0
    return tmp_path


def _contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", OVER_THE_INPUT, ids=" ".join)
def test_an_output_is_never_what_is_read(run, folder: Path, words: tuple[str, ...]) -> None:  # type: ignore[no-untyped-def]
    before = _contents(folder)
    result = run(*words)
    assert result.code == 2 and not result.out
    told = [line for line in result.err.splitlines() if not line.startswith("note:")]
    assert len(told) == 1 and told[0].startswith("hexnpu: ") and "is read: give another name" in told[0]
    assert _contents(folder) == before


def test_an_output_is_never_the_file_that_stdin_comes_from(folder: Path) -> None:
    before = _contents(folder)
    with Path("a.log").open("rb") as log:
        result = subprocess.run(
            [sys.executable, "-m", "hexnpu", "profile", "-", "-o", "a.log"], stdin=log, capture_output=True, timeout=60
        )
    assert result.returncode == 2 and b"a.log is read" in result.stderr
    assert _contents(folder) == before


def test_a_log_of_generate_is_never_its_model(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF: read only after the flags")
    (tmp_path / "link").symlink_to(model)
    for log in (model, tmp_path / "link"):
        result = run("generate", model, "-p", "Hi", "--profile", 1, "--log", log)
        assert result.code == 2 and result.err == f"hexnpu: {log} is read: give another name to write to\n"
    assert model.read_bytes() == b"GGUF: read only after the flags"


def test_a_folder_named_by_a_dot_is_one_line(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("trace", "a.log", "-o", ".")
    assert result.code == 1 and result.err.endswith("hexnpu: . is a directory: give a file name to write to\n")


@pytest.mark.parametrize("which", ["events", "batches"])
def test_an_export_on_a_full_disk_leaves_no_part_of_itself(run, tmp_path: Path, which: str) -> None:  # type: ignore[no-untyped-def]
    """A limit on the size of files stands for the disk: it lets the smaller files be written, and not the largest."""
    log = tmp_path / "log"
    log.write_bytes((GOLDEN / "g5.log").read_bytes())
    with log.open("a") as more:
        for i in range(20_000 if which == "events" else 0):
            more.write(f"ggml-hex: HTP0:0 trace-evt DMA: thread 2 info {i * i} start {1152971022 + i**2 % 999}\n")
        for i in range(2000 if which == "batches" else 0):
            more.write(f"ggml-hex: HTP0:0 profile-op N{i}|a|1:1|f32|4:4|----|usec 1 cycles 1 start {i} mhz 1.0\n")
    assert run("profile", log, "--export", tmp_path / "whole").code == 0
    sizes = {path.stem: path.stat().st_size for path in (tmp_path / "whole").iterdir()}
    limit = sizes.pop(which) - 1
    assert max(sizes.values()) < limit
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        result = run("profile", log, "--export", tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert result.code == 1 and f"{which}.parquet cannot be written" in result.err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "words", ["profile a.log -o pipe", "profile a.log --html pipe", "audit a.log -o pipe", "trace a.log -o pipe"]
)
def test_a_pipe_is_written_into_not_replaced(run, folder: Path, words: str) -> None:  # type: ignore[no-untyped-def]
    """As /dev/null and all devices are: root, who may replace them, would be left without."""
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(*words.split()).code == 0
        assert stat.S_ISFIFO(Path("pipe").stat().st_mode)
        assert os.read(reader, 1 << 16)
    finally:
        os.close(reader)


def test_an_output_that_is_a_symlink_stays_one(run, folder: Path) -> None:  # type: ignore[no-untyped-def]
    """As /dev/stdout is, which root could replace."""
    (folder / "link").symlink_to("file")
    assert run("profile", "a.log", "-o", folder / "link").code == 0
    assert (folder / "link").is_symlink() and (folder / "file").stat().st_size > 0
