"""Figures of the report against sums made here from the log's own lines, and the rules of grouping and selection."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from hexnpu.errors import UsageError
from hexnpu.profile import busy
from hexnpu.profile.columns import OpText
from hexnpu.profile.errors import LogError
from hexnpu.profile.optext import facts, layer_and_role
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.peaks import PEAKS, peak_of
from hexnpu.profile.phases import Steps, find_steps
from hexnpu.profile.report import KEYS, Report, Section, Shape, make_report
from hexnpu.profile.select import Selection, choose
from hexnpu.profile.timeline import Timeline, build

GOLDEN = Path(__file__).parent / "golden"
Sample = tuple[Timeline, Steps]


def of_kind(section: Section, kind: str) -> float:
    return sum(row.total_usec for row in section.rows if row.kind == kind)


def op_usec(report: Report) -> float:
    return sum(of_kind(section, "op") for section in report.sections)


def printed_usec(path: Path) -> tuple[int, int]:
    """(sum over op lines, sum over OPBATCH lines) of the log's text, by a regular expression of its own."""
    ops = batches = 0
    for line in path.read_text().splitlines():
        found = re.search(r"profile-op (\w+).*\|usec (\d+) cycles", line)
        if found and found.group(1) == "OPBATCH":
            batches += int(found.group(2))
        elif found:
            ops += int(found.group(2))
    return ops, batches


@pytest.mark.parametrize("device", [None, "split"])
@pytest.mark.parametrize("by", list(KEYS))
def test_every_grouping_has_the_sum_of_the_printed_lines(
    sample: Sample, sample_log: Path, by: str, device: str | None
) -> None:
    report = make_report(*sample, Selection(device=device), Shape(by))
    ops, batches = printed_usec(sample_log)
    assert op_usec(report) == ops
    inside = sum(of_kind(section, kind) for section in report.sections for kind in ("prologue", "gaps", "epilogue"))
    assert op_usec(report) + inside == pytest.approx(batches, abs=1e-6)  # an OPBATCH is its ops and its gaps
    for section in report.sections:
        assert sum(row.share for row in section.rows) == pytest.approx(1.0)
        assert sum(row.total_usec for row in section.rows) == pytest.approx(section.total_usec)
    assert sum(row.count for section in report.sections for row in section.rows if row.kind == "op") == len(
        sample[0].log.ops
    )


def test_figures_of_a_group(sample: Sample) -> None:
    line, steps = sample
    report = make_report(line, steps, Selection(phase="decode"), Shape())
    rows = {row.key: row for row in report.sections[0].rows if row.kind == "op"}
    key = ("MUL_MAT+ADD", "576:576 x 576:1 x 576:1 -> 576:1", "q4_1 x f32 x f32 -> f32")
    texts = np.array([(text.op, text.dims, text.types) == key for text in line.log.texts])
    mine = texts[line.log.ops.text]
    usec, cycles = line.log.ops.usec[mine], line.log.ops.cycles[mine]
    row = rows[key]
    assert (row.count, row.total_usec, row.max_usec, row.max_cycles) == (
        len(usec), usec.sum(), usec.max(), cycles.max(),
    )  # fmt: skip
    assert row.avg_usec == pytest.approx(usec.mean())
    assert row.median_usec == pytest.approx(np.median(usec))
    assert row.avg_cycles == pytest.approx(cycles.mean())
    seconds = (cycles / line.batches.mhz[line.op_batch[mine]]).sum() * 1e-6
    moved = 576 * 576 // 32 * 20 + 3 * 576 * 4
    assert row.gbs == pytest.approx(len(usec) * moved / seconds / 1e9)
    assert row.gflops == pytest.approx(len(usec) * 2 * 576 * 576 / seconds / 1e9)


def test_rates_of_a_fused_product_with_its_activation_last() -> None:
    """At 1000 MHz 250 us for Q, K and V (960 rows of 576 weights, 360 bytes each) and 268 us for gate and up (3072)."""
    line = build(read_log(str(GOLDEN / "mul-mat-nx.log")))
    report = make_report(line, find_steps(line), Selection(), Shape(peak=peak_of("v79")))
    gate_up, qkv = (row for section in report.sections for row in section.rows if row.kind == "op")
    assert qkv.gflops == pytest.approx(2 * 576 * 960 / 250e3)  # 4.4
    assert qkv.gbs == pytest.approx((960 * 360 + 576 * 4 + 960 * 4) / 250e3)
    assert gate_up.gflops == pytest.approx(2 * 576 * 3072 / 268e3)  # 13.2
    assert gate_up.gbs == pytest.approx((3072 * 360 + 576 * 4 + 3072 * 4) / 268e3)
    assert qkv.compute_fraction == pytest.approx(2 * 576 * 960 / 250e3 / 16384.0)


def test_phases_are_kept_apart() -> None:
    line = build(read_log(str(GOLDEN / "tokens.log")))
    report = make_report(line, find_steps(line), Selection(), Shape())
    shown = [(section.phase, section.batches, section.steps, section.tokens) for section in report.sections]
    assert shown == [("warm-up", 2, 1, 2), ("prefill", 2, 1, 9), ("decode", 4, 2, 2)]
    decode = make_report(line, find_steps(line), Selection(phase="decode"), Shape())
    assert [section.phase for section in decode.sections] == ["decode"]


def test_prologue_gaps_epilogue_and_host() -> None:
    """1000 cycles a microsecond: 1 us before each op, 50 us op, 49 us after it; and two host gaps."""
    line = build(read_log(str(GOLDEN / "tokens.log")))
    section = make_report(line, find_steps(line), Selection(phase="prefill"), Shape()).sections[0]
    found = {row.kind: row.total_usec for row in section.rows}
    assert found == pytest.approx({"op": 100.0, "prologue": 2.0, "epilogue": 98.0, "host": 999_700.0 + 100.0})


def test_filter_leaves_the_rest_in_a_row(sample: Sample, sample_log: Path) -> None:
    report = make_report(*sample, Selection(filter=r"^ROPE\|Qcur"), Shape())
    ops = {row.key[0] for section in report.sections for row in section.rows if row.kind == "op"}
    assert ops == {"ROPE"}
    rest = sum(of_kind(section, "other") for section in report.sections)
    assert op_usec(report) + rest == printed_usec(sample_log)[0]


def test_head_and_tail_count_per_device(sample: Sample) -> None:
    for want in (Selection(head=7), Selection(tail=7)):
        report = make_report(*sample, want, Shape(by="device"))
        counts = {row.key: row.count for section in report.sections for row in section.rows}
        assert set(counts) == {("HTP0:0",), ("HTP1:0",)}
        assert sum(counts.values()) == 14


def test_skip_batches_counts_per_device(sample: Sample) -> None:
    line, steps = sample
    every = make_report(line, steps, Selection(), Shape())
    fewer = make_report(line, steps, Selection(skip_batches=2), Shape())
    assert sum(s.batches for s in every.sections) - sum(s.batches for s in fewer.sections) == 4


def test_devices(sample: Sample) -> None:
    one = make_report(*sample, Selection(device="HTP1"), Shape(by="device"))
    assert {row.key[0] for section in one.sections for row in section.rows if row.kind == "op"} == {"HTP1:0"}
    with pytest.raises(LogError, match=r"device 'HTP7' is not in .*: it has HTP0:0, HTP1:0"):
        make_report(*sample, Selection(device="HTP0,HTP7"), Shape())


@pytest.mark.parametrize(
    "want",
    [
        Selection(head=1, tail=1),
        Selection(head=0),
        Selection(filter="("),
        Selection(phase="x"),
        Selection(skip_batches=-1),
    ],
)
def test_impossible_selections(want: Selection) -> None:
    with pytest.raises(UsageError):
        want.check()


@pytest.mark.parametrize("shape", [Shape(by="x"), Shape(sort="x"), Shape(sort="pmu"), Shape(pmu=((8, "a"),))])
def test_impossible_shapes(shape: Shape) -> None:
    with pytest.raises(UsageError):
        shape.check()


def test_pmu_means() -> None:
    line = build(read_log(str(GOLDEN / "g4.log")))
    report = make_report(line, find_steps(line), Selection(), Shape(sort="pmu", pmu=((0, "cycles"), (7, "stalls"))))
    rows = [(row.key[0], row.pmu) for row in report.sections[0].rows if row.kind == "op"]
    assert rows == [("MUL_MAT", (11.0, 4294967295.0)), ("SWIGLU", (1.0, 8.0))]


@pytest.mark.parametrize(
    ("names", "layer", "role"),
    [
        ("blk.3.attn_q.weight x attn_norm-3 -> Qcur-3", 3, "attn_q"),
        ("inp x blk.12.ffn_gate_inp.weight -> y", 12, "ffn_gate_inp"),
        # one fused product, of hexnpu and of llama.cpp: compare --by role brings them together
        ("attn_norm-3 x blk.3.attn_q.weight x blk.3.attn_k.weight -> Kcur-3", 3, "attn_q"),
        ("blk.3.attn_q.weight x blk.3.attn_k.weight x attn_norm-3 -> Kcur-3", 3, "attn_q"),
        ("Qcur-7 x inp_pos -> Qcur-7", 7, "Qcur"),
        ("Kcur-4 (view) x leaf_4 -> cache_k_l4 (view)", 4, "Kcur"),
        ("leaf_1 -> cache_v_l11 (view)", 11, "cache_v"),
        ("output.weight x result_norm -> result_output", -1, "output"),
        ("token_embd.weight x inp_tokens -> inp_embd", -1, "token_embd"),
        ("", -1, "-"),
    ],
)
def test_layer_and_role(names: str, layer: int, role: str) -> None:
    assert layer_and_role(names) == (layer, role)


@pytest.mark.parametrize(
    ("op", "dims", "types", "flops", "bytes_"),
    [
        ("MUL_MAT", "64:32 x 64:4 -> 32:4", "f16 x f32 -> f32", 2 * 64 * 32 * 4, 64 * 32 * 2 + 64 * 4 * 4 + 32 * 4 * 4),
        ("MUL_MAT", "256:8 x 256:1 -> 8:1", "q6_K x f32 -> f32", 2 * 256 * 8, 8 * 210 + 1024 + 32),
        # a fused product lists weight, activation, weight, weight and prints its last output only
        ("MUL_MAT+MUL_MAT+MUL_MAT", "64:32 x 64:4 x 64:16 x 64:16 -> 16:4", "f16 x f32 x f16 x f16 -> f32",
         2 * 64 * (32 + 16 + 16) * 4, 64 * (32 + 16 + 16) * 2 + 64 * 4 * 4 + (32 + 16 + 16) * 4 * 4),
        ("MUL_MAT+MUL_MAT", "64:4 x 64:32 x 64:16 -> 16:4", "f32 x q8_0 x q8_0 -> f32",
         2 * 64 * (32 + 16) * 4, (32 + 16) * 68 + 64 * 4 * 4 + (32 + 16) * 4 * 4),  # the activation first
        ("MUL_MAT_NX", "64:32 x 64:16 x 64:4 -> 16:4", "q8_0 x q8_0 x f32 -> f32",
         2 * 64 * (32 + 16) * 4, (32 + 16) * 68 + 64 * 4 * 4 + (32 + 16) * 4 * 4),  # the activation last
        ("MUL_MAT_NX", "64:32 x 64:16 x 64:4 -> 16:4", "f32 x f32 x f32 -> f32",
         2 * 64 * (32 + 16) * 4, (32 + 16 + 4) * 256 + (32 + 16) * 4 * 4),  # of the weights' type: it has the rows
        ("MUL_MAT+MUL_MAT", "64:4 x 64:4 x 64:4 -> 4:4", "f32 x f32 x f32 -> f32", None, None),  # any may be it
        # experts: 2 of 8 for each of 3 tokens, their numbers last
        ("MUL_MAT_ID", "64:32:8 x 64:1:3 x 2:3 -> 32:2:3", "f16 x f32 x i32 -> f32",
         2 * 64 * 32 * 6, 32 * 6 * 128 + 3 * 256 + 24 + 32 * 6 * 4),
        ("MUL_MAT_ID_NX", "64:32:8 x 64:16:8 x 64:1:3 x 2:3 -> 16:2:3", "q8_0 x q8_0 x f32 x i32 -> f32",
         2 * 64 * (32 + 16) * 6, (32 + 16) * 6 * 68 + 3 * 256 + 24 + (32 + 16) * 6 * 4),
        ("GET_ROWS", "64:1000 x 2 -> 64:2", "f16 x i32 -> f32", None, 2 * 128 + 8 + 512),
        ("SET_ROWS", "64:2 x 2 -> 64:1000", "f32 x i64 -> f16", None, 512 + 16 + 2 * 128),
        ("FLASH_ATTN_EXT", "64:3:9 x 64:256:3 x 64:256:3 x 256:3 -> 64:9:3", "f32 x f16 x f16 x f16 -> f32",
         2 * 3 * 9 * 256 * 128, 4 * 64 * 27 + 2 * 2 * 64 * 256 * 3 + 2 * 256 * 3 + 4 * 64 * 27),
        ("SOFT_MAX", "64:4 x NONE -> 64:4", "f32 x NONE -> f32", None, 2 * 1024),
        ("ADD", "4:4 x 4:4 -> 4:4", "weird x f32 -> f32", None, None),
        ("FENCE", "----", "----", None, None),
    ],
)  # fmt: skip
def test_bytes_and_flops(op: str, dims: str, types: str, flops: int | None, bytes_: int | None) -> None:
    fact = facts(OpText("", op, "", dims, types))
    assert (fact.flops, fact.bytes) == (flops, bytes_)


def test_peaks_are_sourced_and_unknown_archs_listed() -> None:
    for peak in PEAKS.values():
        assert peak.hmx_source and peak.dma_source
    with pytest.raises(UsageError, match="v73, v75, v79, v81"):
        peak_of("v1")


def test_peak_fractions(sample: Sample) -> None:
    report = make_report(*sample, Selection(phase="prefill"), Shape(peak=peak_of("v79")))
    row = next(row for row in report.sections[0].rows if row.gflops)
    assert row.gbs is not None and row.gflops is not None
    assert row.bandwidth_fraction == pytest.approx(row.gbs / 59.0)
    assert row.compute_fraction == pytest.approx(row.gflops / 16384.0)


def test_waiting_is_not_computing(tmp_path: Path) -> None:
    """A thread that waits at a fence or flushes its cache is idle for the compute engine."""
    path = tmp_path / "log"
    text = (GOLDEN / "hmx-overlap.log").read_text()
    path.write_text(text + "".join(
        f"ggml-hex: HTP0 trace-evt FENCE: thread 3 info 0 {what} {at}\n" for what, at in (("start", 0), ("stop", 1))
    ))  # fmt: skip
    line = build(read_log(str(path)))
    found = busy.summary(line, choose(line, find_steps(line), Selection()))
    assert [item.event for item in found if item.thread == "T3"] == ["FENCE"]
    assert [item.event for item in found if item.thread == "HMX"][-1] == "(any compute)"


def test_buffers_are_no_kernel() -> None:
    text = OpText("", "ADD", "a -> b", "4:1 -> 4:1", "f32 -> f32", "4:4 -> 4:4", "HTP0-REPACK x HTP0 -> HTP0", "colons")
    assert facts(text).kernel == facts(text).engine == "-"


def test_the_number_of_a_fence_is_no_layer() -> None:
    assert layer_and_role("l_out-14 -> fence-0") == (14, "l_out")
    assert layer_and_role("fence-0 -> l_in-15") == (15, "l_in")
    assert layer_and_role("x -> fence-3")[0] == -1
