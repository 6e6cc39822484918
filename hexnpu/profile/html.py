"""`--html FILE`: one page that needs no network, drawn by page.html from the figures put into it here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hexnpu.errors import UsageError
from hexnpu.profile import busy
from hexnpu.profile.errors import LogError
from hexnpu.profile.optext import NO_LAYER, facts
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.report import Report, Row, Section, Shape, batch_times, make_report
from hexnpu.profile.select import Chosen, Selection, choose
from hexnpu.profile.table import clean, duration, section_title
from hexnpu.profile.timeline import Timeline

TEMPLATE = Path(__file__).with_name("page.html")
MOST_STEPS = 400  # bars that can be told apart; more steps are averaged in groups

_FIGURES = (
    ("count", "Count", 0), ("total_usec", "Total µs", 0), ("share", "Share", 3), ("avg_usec", "Avg µs", 1),
    ("median_usec", "Median µs", 1), ("max_usec", "Max µs", 0),
    ("gbs", "GB/s", 1), ("gflops", "GFLOP/s", 1),
)  # fmt: skip


def page(line: Timeline, steps: Steps, want: Selection, shape: Shape) -> str:
    """The whole page."""
    if want.partial:
        raise UsageError("--html shows whole batches: leave out --head and --tail, use --skip-batches or --phase")
    chosen = choose(line, steps, want)
    report = make_report(line, steps, want, shape)
    if not report.sections:
        raise LogError(f"nothing of {line.log.source} is left to show: widen --phase or --skip-batches")
    phases = [_phase(line, steps, chosen, report, section) for section in report.sections]
    longest = max(range(len(phases)), key=lambda i: report.sections[i].total_usec)
    data = {
        "subtitle": f"{line.log.source} · {', '.join(line.log.devices)} · {line.log.lines:,} log lines",
        "tiles": _tiles(line, steps, chosen, report),
        "notes": report.notes,
        "keys": len(report.key_names),
        "columns": _columns(report),
        "phases": phases,
        "start": longest,
        "steps": _step_bars(line, steps, chosen),
        "threads": _threads(line, chosen),
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", text)


def _columns(report: Report) -> list[dict[str, Any]]:
    keys = [{"name": name, "title": name.capitalize(), "left": True, "digits": 0} for name in report.key_names]
    return keys + [{"name": n, "title": title, "left": False, "digits": d} for n, title, d in _FIGURES]


def _cells(row: Row) -> list[Any]:
    figures = [getattr(row, name) for name, _, _ in _FIGURES]
    return [*(clean(part) for part in row.key), *(None if f is None else round(f, 4) for f in figures)]


def _phase(line: Timeline, steps: Steps, chosen: Chosen, report: Report, section: Section) -> dict[str, Any]:
    label = section.phase if section.phase != "other" else "all ops"
    if section.device:
        label += f" {section.device}"
    return {
        "name": section.phase,
        "label": label,
        "title": section_title(section),
        "total_usec": section.total_usec,
        "rows": [{"kind": row.kind, "cells": _cells(row)} for row in section.rows],
        "tiles": _layer_tiles(line, steps, chosen, section),
    }


def _layer_tiles(line: Timeline, steps: Steps, chosen: Chosen, section: Section) -> list[list[Any]]:
    """[layer, op, usec] of the section, what makes the treemap."""
    in_phase = steps.batch_phase[line.op_batch] == PHASES.index(section.phase)
    mine = chosen.matching & in_phase
    if section.device is not None:
        mine &= line.log.ops.device == line.log.devices.index(section.device)
    rows = np.flatnonzero(mine)
    per_text = np.bincount(line.log.ops.text[rows], line.log.ops.usec[rows], len(line.log.texts))
    sums: dict[tuple[int, str], float] = {}
    for number in np.flatnonzero(per_text).tolist():
        fact = facts(line.log.texts[number])
        key = (fact.layer, fact.op)
        sums[key] = sums.get(key, 0.0) + float(per_text[number])
    return [["-" if layer == NO_LAYER else str(layer), clean(op), usec] for (layer, op), usec in sorted(sums.items())]


def _tiles(line: Timeline, steps: Steps, chosen: Chosen, report: Report) -> list[list[str]]:
    """The figures on top of the page: [value, what it is]."""
    b = line.batches
    rows = np.flatnonzero(chosen.batches)
    span = float(b.end_ns[rows].max() - b.begin_ns[rows].min()) / 1000.0
    tiles = [[duration(span), "from the first batch to the last"]]
    for section in report.sections:
        wall = section.wall_usec
        if section.phase in ("prefill", "decode") and section.device is None and section.tokens and wall:
            rate = f"{section.tokens / wall * 1e6:,.{0 if section.tokens / wall > 1e-3 else 1}f}"
            tiles.append([f"{rate} tok/s", f"{section.phase}, {section.tokens:,} tokens in {duration(wall)}"])
    npu = float(b.usec[rows].sum())
    ops = float(line.log.ops.usec[chosen.ops].sum())
    tiles.append([f"{100 * ops / npu if npu else 0:.1f} %", "of the batches' time is in ops"])
    names = " and ".join(line.log.devices[device] for device in np.unique(b.device[rows]))
    tiles.append([f"{len(rows):,}", f"batches on {names}"])
    clocks = b.mhz[rows][b.known[rows]]
    if len(clocks):
        tiles.append([f"{np.median(clocks):,.0f} MHz", f"median clock, {clocks.min():,.0f} to {clocks.max():,.0f}"])
    return tiles


def _step_bars(line: Timeline, steps: Steps, chosen: Chosen) -> list[dict[str, Any]]:
    times, b = batch_times(line), line.batches
    rows = np.flatnonzero(chosen.batches)
    number = steps.batch_step[rows]
    n = int(number.max()) + 1
    used = np.bincount(line.op_batch, line.log.ops.usec, len(b))[: len(b)]
    between = times.prologue + times.gaps + times.epilogue
    ops, gaps, host = (np.bincount(number, part[rows], n) for part in (used, between, times.host))
    first = {int(step): int(row) for step, row in zip(number[::-1], rows[::-1], strict=True)}
    shown = sorted(first)
    size = -(-len(shown) // MOST_STEPS)
    bars: list[dict[str, Any]] = []
    for at in range(0, len(shown), size):
        group = shown[at : at + size]
        row = first[group[0]]
        means = [round(float(part[group].mean()), 2) for part in (ops, gaps, host)]
        bar = dict(zip(("ops", "gaps", "host"), means, strict=True)) | {"first": group[0], "count": len(group)}
        bars.append(bar | {"phase": PHASES[int(steps.batch_phase[row])], "tokens": int(steps.batch_tokens[row])})
    return bars


def _threads(line: Timeline, chosen: Chosen) -> list[dict[str, Any]]:
    if not len(line.log.events):
        return []
    threads: dict[tuple[str, str], dict[str, Any]] = {}
    for item in busy.summary(line, chosen):
        key = (item.device, item.thread)
        thread = threads.setdefault(
            key, {"device": item.device, "thread": item.thread, "events": [], "compute": 0.0, "dma": 0.0}
        )
        if item.event == "(any compute)":
            thread["compute"] = item.share
        elif item.event == "(any DMA)":
            thread["dma"] = item.share
        else:
            thread["events"].append([clean(item.event), item.share, item.total_usec, item.count])
    return list(threads.values())
