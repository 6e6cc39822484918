"""scan.c against the grammar: on any lines, sound or damaged, both readers see the same log."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexnpu import native
from hexnpu.profile.columns import Log
from hexnpu.profile.errors import LogError
from hexnpu.profile.parse import scan
from hexnpu.profile.parse.reader import read_log
from tests.conftest import require_tool

RECORDS = [
    "profile-op MUL_MAT|blk.0.q.weight x a -> b|4:4 x 4:1 -> 4:1|q8_0 x f32 -> f32|34:34 x 4:16 -> 4:16|hvx|"
    "usec 12 cycles 345 start 678 mhz 28.8",
    "profile-op ADD: a x b -> c : 4:4 x 4:4 -> 4:4 : f32 x f32 -> f32 : 4:16 x 4:16 -> 4:16 : usec 1 cycles 2 start 3",
    "profile-op ADD: a -> c : 4:4 -> 4:4 : f32 -> f32 : 4:16 -> 4:16 : usec 1 cycles 2 pmu [1,2,3,4,5,6,7,8]",
    "profile-op X|a -> c|4:4 -> 4:4|f32 -> f32|4:16 -> 4:16|----|usec 1 cycles 2 start 3 mhz 2.0 pmu [9,8,7,6,5,4,3,2]",
    "profile-op OPBATCH|----|n-ops 2|evt-cnt 1,0,0,0,0,0,0,0,0,0,3|----|----|usec 9 cycles 99 start 7777777777 mhz 1.0",
    "profile-batch n-ops 2 batch-dur-usec 30 htp-ops-usec 20",
    "trace-evt HVX_COMP: thread 2 info 14 start 1152971022",
    "trace-evt DMA: thread 10 info 32767 stop 4294967295",
    "trace-op MUL_MAT+ADD: thread 0 event HVX_A_QUANT info 0 start 7",
    "ggml-hex: Profiling mode 2 : pmu-evt [ 0x3, 0x111 ]",
    "MUL_MAT a 4:4 x b 4:1 -> c 4:1 : total 5 us (quant 1 us, compute 3 us) cycles 99 pkts 9 (2.07) call 1 us",
]
PREFIXES = [
    "", "ggml-hex: ", "ggml-hex: HTP0 ", "ggml-hex: HTP1:0 ", "0.03.395.836 D ggml-hex: HTP0:0 ", "xggml-hex: HTP0 ",
]  # fmt: skip


@st.composite
def lines(draw: st.DrawFn) -> str:
    """A record behind a prefix, perhaps two in a line, perhaps with characters cut out, put in or repeated."""
    text = "".join(
        draw(st.sampled_from(PREFIXES)) + draw(st.sampled_from(RECORDS)) + draw(st.sampled_from(["", " ", "\t", "x"]))
        for _ in range(draw(st.integers(1, 2)))
    )
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(text) - 1))
        change = draw(st.sampled_from(["cut", "put", "digit", "tail"]))
        if change == "cut":
            text = text[:at] + text[at + draw(st.integers(1, 6)) :]
        elif change == "put":
            new = draw(st.sampled_from(["-", " ", ":", "|", "9", "é", "\x00", "usec ", " mhz ", "8" * 5000, "trace-"]))
            text = text[:at] + new + text[at:]
        elif change == "digit":
            text = text[:at] + "".join("9" * 12 if c == "7" else c for c in text[at:])
        else:
            text = text[: max(at, 1)]
        text = text or "x"
    return text.replace("\n", " ")


def read(path: Path, monkeypatch: pytest.MonkeyPatch, slow: bool) -> Log | str:
    with monkeypatch.context() as patch:
        if slow:
            patch.setattr(scan, "library", lambda: None)
        try:
            return read_log(str(path))
        except LogError as error:
            return str(error)


def as_rows(log: Log) -> dict[str, object]:
    """Comparable whatever the numbering of devices, texts and names is."""
    ops, events, batches = log.ops, log.events, log.batches
    return {
        "ops": [
            (
                log.devices[ops.device[i]],
                log.texts[ops.text[i]],
                *(int(column[i]) for column in (ops.usec, ops.cycles, ops.start, ops.line)),
                tuple(ops.pmu[i]) if ops.pmu is not None else (),
            )
            for i in range(len(ops))
        ],
        "events": [
            (
                log.devices[events.device[i]],
                log.event_names[events.name[i]],
                *(int(c[i]) for c in (events.stop, events.thread, events.info, events.cycles, events.line)),
            )
            for i in range(len(events))
        ],
        "batches": [
            (
                log.devices[batches.device[i]],
                *(int(getattr(batches, n)[i]) for n in ("kind", "n_ops", "usec", "cycles", "start", "stamp_us")),
                tuple(batches.evt_cnt[i]),
            )
            for i in range(len(batches))
        ],
        "unreadable": sorted((bad.kind, bad.count, bad.first_line) for bad in log.unreadable),
        "lines": log.lines,
        "mode": log.mode,
    }


@settings(max_examples=150, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=8))
def test_scan_agrees_with_the_grammar(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "log"
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
        fast, slow = read(path, patch, slow=False), read(path, patch, slow=True)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
    else:
        assert as_rows(fast) == as_rows(slow)


def test_blocks_larger_than_the_rows_have_room() -> None:
    library = scan.library()
    assert library is not None
    scanner = scan.Scanner(library)
    data = b"ggml-hex: HTP0 trace-evt DMA: thread 0 info 1 start 5\n" * (scan.ROOM + 10)
    parts = scanner.blocks(data, want_events=True)
    assert [len(part.events.line) for part in parts] == [scan.ROOM, 10]
    assert np.array_equal(np.concatenate([part.events.line for part in parts]), np.arange(scan.ROOM + 10))


def test_more_texts_than_the_first_table_holds(tmp_path: Path) -> None:
    path = tmp_path / "log"
    form = "ggml-hex: HTP0 profile-op A|t{0} -> u|4:4 -> 4:4|f32 -> f32|4 -> 4|hvx|usec 1 cycles 2 start {0} mhz 1.0\n"
    path.write_text("".join(form.format(i) for i in range(9000)))
    log = read_log(str(path))
    assert [log.texts[text].names for text in log.ops.text.tolist()] == [f"t{i} -> u" for i in range(9000)]


def test_many_event_names_and_devices(tmp_path: Path) -> None:
    """More than scan.c keeps go through the grammar and get the same numbers."""
    path = tmp_path / "log"
    path.write_text(
        "".join(f"ggml-hex: HTP{i}:0 trace-evt E{i}: thread 0 info 0 start {i}\n" for i in range(400))
        + "ggml-hex: HTP0:0 trace-evt E399: thread 0 info 0 stop 9\n"
    )
    log = read_log(str(path))
    assert [log.event_names[name] for name in log.events.name.tolist()] == [*(f"E{i}" for i in range(400)), "E399"]
    assert [log.devices[d] for d in log.events.device.tolist()] == [*(f"HTP{i}:0" for i in range(400)), "HTP0:0"]


@pytest.mark.slow
def test_damaged_lines_under_address_sanitizer(sample_log: Path) -> None:
    clang = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    built = native.compile_program("logscan", [scan.SOURCE], native.Target("asan"), scan.BUILD_FLAGS)
    ask = [clang, f"-print-file-name=libclang_rt.asan-{platform.machine()}.so"]
    runtime = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    environment = os.environ | {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"}
    fuzz = [sys.executable, str(Path(__file__).with_name("fuzz_scan.py")), str(built), str(sample_log), "2000"]
    result = subprocess.run(fuzz, capture_output=True, text=True, env=environment)
    assert result.returncode == 0 and result.stdout.startswith("texts "), result.stderr[-3000:]
