"""Hand-written logs, one a generation and one an oddity, and what each must be read as.

`golden/NAME.expected` is the log and its timeline as `dump` writes them, checked by hand against the log. Every log is
read twice: by scan.c and by the grammar alone.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import zstandard

from hexnpu.profile.errors import LogError
from hexnpu.profile.pairs import pair
from hexnpu.profile.parse import scan, source
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.report import notes
from hexnpu.profile.timeline import build
from tests.profile.dump import dump

GOLDEN = Path(__file__).parent / "golden"
LOGS = sorted(path.stem for path in GOLDEN.glob("*.expected"))


@pytest.mark.parametrize("reader", ["scan.c", "grammar"])
@pytest.mark.parametrize("name", LOGS)
def test_golden(name: str, reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if reader == "grammar":
        monkeypatch.setattr(scan, "library", lambda: None)
    log = read_log(str(GOLDEN / f"{name}.log"))
    expected = (GOLDEN / f"{name}.expected").read_bytes().decode("utf-8", "surrogateescape")
    assert dump(log) == expected


def test_every_golden_log_is_used() -> None:
    assert {path.stem for path in GOLDEN.glob("*.log")} == {*LOGS, "no-profile", "verbose"}


@pytest.mark.parametrize("suffix", ["gz", "zst"])
def test_compressed_logs_read_the_same(tmp_path: Path, suffix: str) -> None:
    data = (GOLDEN / "g5.log").read_bytes()
    packed = gzip.compress(data) if suffix == "gz" else zstandard.ZstdCompressor().compress(data)
    path = tmp_path / f"log.{suffix}"
    path.write_bytes(packed)
    assert dump(read_log(str(path))) == (GOLDEN / "g5.expected").read_text()


@pytest.mark.parametrize("cut", [10, 40])
def test_damaged_gzip_is_a_user_error(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress((GOLDEN / "g5.log").read_bytes())[:-cut])
    with pytest.raises(LogError, match="gzip data end early"):
        read_log(str(path))


def test_same_key_started_twice() -> None:
    """Nested for compute (the stop ends the latest start), in order for DMA; without partner: lone."""
    log = read_log(str(GOLDEN / "same-key-twice.log"))
    line = build(log)
    found = pair(line, np.arange(len(log.events)))
    lines = log.events.line
    pairs = sorted(zip(lines[found.start].tolist(), lines[found.stop].tolist(), strict=True))
    assert pairs == [(3, 6), (4, 5), (7, 9), (8, 10), (12, 13)]
    assert lines[found.lone].tolist() == [11, 14]


def test_full_buffer_is_reported() -> None:
    found = notes(build(read_log(str(GOLDEN / "full-buffer.log"))))
    assert found == [
        "full trace buffer (16 events) 1 times on T0, first in the batch of line 1: later events are lost"
    ]


def test_unreadable_lines_are_reported_with_their_first_line() -> None:
    found = notes(build(read_log(str(GOLDEN / "unreadable.log"))))
    assert found[:3] == [
        "3 trace-evt lines not readable, the first at line 4",
        "3 profile-op lines not readable, the first at line 5",
        "1 profile-batch line not readable, the first at line 8",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty: run the tool with --profile 1"),
        (b"Hello\n", "has no profile line: run the tool with --profile 1"),
        (b"ggml-hex: Loaded 1 session\n", "lines of the NPU backend but no profile line: --profile 1"),
        (b"ggml-hex: Profiling mode 1 : pmu-evt [ ]\n", "although profiling was on (mode 1): -v was missing"),
        (b"x\nenv: './bin/llama-cli': No such file\n \n", "; its last line: env: './bin/llama-cli': No such file"),
        (b"ggml-hex: Loaded\nno \x07room \xff\n", "was missing, or -v; its last line: no  room \ufffd"),
        (b"\n" + b"y" * 999, f"and -v; its last line: {'y' * 200}..."),
        (b"\x7fELF\0\0\0\n\0", "is a binary file"),
        (b"x\nggml-hex: HTP0 profile-op ADD|\n", "1 lines that look like profile records, none readable: the first at"),
    ],
)
def test_a_log_without_a_usable_line_says_what_is_missing(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(text)
    with pytest.raises(LogError) as error:
        read_log(str(path))
    assert message in str(error.value)


def test_a_line_without_end_neither_fills_the_memory_nor_hides_the_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    g5 = (GOLDEN / "g5.log").read_bytes()
    path.write_bytes(b"x" * (3 * source.MAX_LINE_BYTES) + b"ggml-hex: " + g5.split(b"ggml-hex: ", 1)[1])
    assert dump(read_log(str(path))).count("\n") == (GOLDEN / "g5.expected").read_text().count("\n")
    assert max(len(block) for block in source.read_blocks(str(path))) <= source.MAX_LINE_BYTES + 2 * source.BLOCK_BYTES
    path.write_bytes(bytes(source.MAX_LINE_BYTES + source.BLOCK_BYTES + 1))
    with pytest.raises(LogError, match="is a binary file"):
        read_log(str(path))


def test_closed_stdin_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(LogError, match="stdin is closed"):
        read_log("-")


def test_without_a_compiler_the_log_is_read_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HEXNPU_CACHE", "/dev/null/none")
    assert dump(read_log(str(GOLDEN / "g5.log"))) == (GOLDEN / "g5.expected").read_text()
    assert "reading slowly, the fast log scanner could not be built" in capsys.readouterr().err
