"""Two logs side by side: the same groups, median durations, ratio, and how much of the difference is noise.

Durations are cycles at the clock of their batch (not the rounded usec). The noise of a median of n repeats is
1.2533 * 1.4826 * MAD / sqrt(n), the standard error of a median for a normal spread, of both sides together; with fewer
than three repeats it is unknown.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

import numpy as np

from hexnpu.errors import HexnpuError
from hexnpu.profile.columns import F64
from hexnpu.profile.formats import csv_text
from hexnpu.profile.optext import facts
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.report import KEYS
from hexnpu.profile.select import Chosen
from hexnpu.profile.table import LAST, Column, duration, markdown, plain, widths_by_name
from hexnpu.profile.timeline import Timeline

SCHEMA = "hexnpu-compare/1"
_STANDARD_ERROR = 1.2533 * 1.4826
_FEWEST = 3  # repeats from which a spread says something
_SIGNIFICANT = 2.0  # differences within so many times the noise are none
_ROUNDING = 1e-9  # percent: 110 over 100 is not more than 10 %
_LEAST_SHARE = 0.001  # of the phase's op time in B; a group below it fails no build

Key = tuple[str, ...]


@dataclass(frozen=True)
class Pair:
    """One group in both logs. usec: medians; noise: as a fraction of A's median; impact: difference over B's count."""

    phase: str
    key: Key
    verdict: str  # slower, faster, same, new, gone
    count_a: int
    count_b: int
    median_a: float | None
    median_b: float | None
    difference: float | None
    ratio: float | None
    noise: float | None
    impact: float
    share_b: float


@dataclass(frozen=True)
class PhaseTotal:
    """The op time of a phase in both logs, in all and a step."""

    phase: str
    total_a: float
    total_b: float
    steps_a: int
    steps_b: int

    @property
    def ratio(self) -> float | None:
        """Op time a step, B over A."""
        if not self.steps_a or not self.steps_b or not self.total_a:
            return None
        return (self.total_b / self.steps_b) / (self.total_a / self.steps_a)


@dataclass
class Comparison:
    source_a: str
    source_b: str
    key_names: Key
    pairs: list[Pair]
    totals: list[PhaseTotal]


@dataclass
class Side:
    """One log, read and cut."""

    line: Timeline
    steps: Steps
    chosen: Chosen


def _groups(side: Side, by: str) -> tuple[dict[tuple[int, Key], F64], dict[int, tuple[float, int]]]:
    """(durations in microseconds by (phase, key); op time and steps by phase)."""
    line, ops = side.line, side.line.log.ops
    rows = np.flatnonzero(side.chosen.matching)
    keys: list[Key]
    if by == "device":
        keys = [(name,) for name in line.log.devices]
        key = ops.device[rows].astype(np.int64)
    else:
        index: dict[Key, int] = {}
        of_text = [index.setdefault(KEYS[by][1](facts(text)), len(index)) for text in line.log.texts]
        keys, key = list(index), np.array(of_text, np.int64)[ops.text[rows]]
    batch = line.op_batch[rows]
    usec = np.where(ops.cycles[rows] > 0, ops.cycles[rows] / line.batches.mhz[batch], ops.usec[rows].astype(np.float64))
    phase = side.steps.batch_phase[batch].astype(np.int64)
    group = phase * len(keys) + key
    order = np.argsort(group, kind="stable")
    bounds = np.flatnonzero(np.diff(group[order])) + 1
    durations: dict[tuple[int, Key], F64] = {}
    for part in np.split(order, bounds) if len(order) else []:
        where, which = divmod(int(group[part[0]]), len(keys))
        durations[where, keys[which]] = usec[part]
    totals = {}
    for which in np.unique(phase).tolist():
        in_phase = side.chosen.batches & (side.steps.batch_phase == which)
        totals[which] = (float(usec[phase == which].sum()), len(np.unique(side.steps.batch_step[in_phase])))
    return durations, totals


def _median_noise(values: F64) -> tuple[float, float | None]:
    median = float(np.median(values))
    if len(values) < _FEWEST:
        return median, None
    return median, _STANDARD_ERROR * float(np.median(np.abs(values - median))) / float(np.sqrt(len(values)))


def _pair(phase: int, key: Key, a: F64 | None, b: F64 | None, total_b: float) -> Pair:
    name, n_a, n_b = PHASES[phase], 0 if a is None else len(a), 0 if b is None else len(b)
    share = float(b.sum()) / total_b if b is not None and total_b else 0.0
    if a is None or b is None:
        median = float(np.median(a if b is None else b))  # type: ignore[arg-type]
        if b is None:
            return Pair(name, key, "gone", n_a, 0, median, None, None, None, None, -median * n_a, share)
        return Pair(name, key, "new", 0, n_b, None, median, None, None, None, median * n_b, share)
    (median_a, noise_a), (median_b, noise_b) = _median_noise(a), _median_noise(b)
    difference = median_b - median_a
    noise = float(np.hypot(noise_a, noise_b)) if noise_a is not None and noise_b is not None else None
    real = difference != 0 and (noise is None or abs(difference) > _SIGNIFICANT * noise)
    verdict = "same" if not real else "slower" if difference > 0 else "faster"
    ratio = median_b / median_a if median_a else None
    relative = noise / median_a if noise is not None and median_a else None
    return Pair(name, key, verdict, n_a, n_b, median_a, median_b, difference, ratio, relative, difference * n_b, share)


def compare(a: Side, b: Side, by: str) -> Comparison:
    """Regressions first, by what they cost in B; then what is new, the same, faster, gone; whatever their phase."""
    groups_a, totals_a = _groups(a, by)
    groups_b, totals_b = _groups(b, by)
    pairs = [
        _pair(phase, key, groups_a.get((phase, key)), groups_b.get((phase, key)), totals_b.get(phase, (0.0, 0))[0])
        for phase, key in {**groups_a, **groups_b}
    ]
    rank = {"slower": 0, "new": 1, "same": 2, "faster": 3, "gone": 4}
    pairs.sort(key=lambda pair: (rank[pair.verdict], -pair.impact, PHASES.index(pair.phase)))
    totals = [
        PhaseTotal(
            PHASES[phase],
            totals_a.get(phase, (0.0, 0))[0],
            totals_b.get(phase, (0.0, 0))[0],
            totals_a.get(phase, (0.0, 0))[1],
            totals_b.get(phase, (0.0, 0))[1],
        )
        for phase in sorted({*totals_a, *totals_b})
    ]
    return Comparison(a.line.log.source, b.line.log.source, KEYS[by][0], pairs, totals)


def over_limit(found: Comparison, percent: float) -> list[Pair]:
    """The groups that count and are slower by more than `percent` and by more than noise, the worst first."""
    over = [
        pair
        for pair in found.pairs
        if pair.verdict == "slower" and _slower_by(pair) > percent + _ROUNDING and pair.share_b >= _LEAST_SHARE
    ]
    return sorted(over, key=_slower_by, reverse=True)


def fail(over: list[Pair], percent: float) -> NoReturn:
    """Raises HexnpuError (exit 1)."""
    worst = over[0]
    raise HexnpuError(
        f"{len(over)} group{'s are' if len(over) > 1 else ' is'} slower by more than {percent:g} %, the worst by "
        f"{_slower_by(worst):.1f} %: {worst.phase} {' '.join(worst.key)}"
    )


def _slower_by(pair: Pair) -> float:
    """Percent; infinite from a median of 0."""
    return float("inf") if pair.ratio is None else (pair.ratio - 1) * 100


def _figure(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _columns(found: Comparison) -> list[Column]:
    keys = [
        Column(name, name.capitalize(), lambda pair, i=i: pair.key[i], left=True)  # type: ignore[misc]
        for i, name in enumerate(found.key_names)
    ]
    return [
        Column("phase", "Phase", lambda pair: pair.phase, left=True),
        *keys,
        Column("verdict", "B is", lambda pair: pair.verdict, left=True),
        Column("ratio", "Ratio", lambda pair: _figure(pair.ratio, "{:.3f}")),
        Column("noise", "Noise", lambda pair: "" if pair.noise is None else f"±{100 * pair.noise:.1f}%", drop=LAST),
        Column("median-a", "A us", lambda pair: _figure(pair.median_a, "{:,.2f}"), drop=LAST + 1),
        Column("median-b", "B us", lambda pair: _figure(pair.median_b, "{:,.2f}"), drop=LAST + 2),
        Column("difference", "B-A us", lambda pair: _figure(pair.difference, "{:+,.2f}"), drop=LAST + 3),
        Column("count-a", "Count A", lambda pair: f"{pair.count_a:,}", drop=1),
        Column("count-b", "Count B", lambda pair: f"{pair.count_b:,}", drop=2),
        Column("impact", "In all us", lambda pair: f"{pair.impact:+,.0f}", drop=3),
    ]


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"


def _total_lines(found: Comparison) -> list[str]:
    lines = []
    for total in found.totals:
        ratio = "" if total.ratio is None else f", a step x{total.ratio:.3f}"
        lines.append(
            f"{total.phase}: ops take {duration(total.total_a)} in {_steps(total.steps_a)} -> "
            f"{duration(total.total_b)} in {_steps(total.steps_b)}{ratio}"
        )
    return lines


def render(found: Comparison, form: str, top: int, width: int, fixed: dict[str, int]) -> str:
    """The comparison in the wanted format; top 0: all groups."""
    shown = found.pairs[:top] if top else found.pairs
    if form == "json":
        items: list[dict[str, Any]] = [
            {**asdict(pair), "key": dict(zip(found.key_names, pair.key, strict=True))} for pair in shown
        ]
        totals = [asdict(total) | {"ratio": total.ratio} for total in found.totals]
        whole = {"schema": SCHEMA, "a": found.source_a, "b": found.source_b, "totals": totals, "pairs": items}
        return json.dumps(whole, indent=1) + "\n"
    if form == "csv":
        rows = [{**asdict(pair), **dict(zip(found.key_names, pair.key, strict=True))} for pair in shown]
        figures = [name for name in Pair.__dataclass_fields__ if name not in ("phase", "key")]
        names = ["phase", *found.key_names, *figures]
        return csv_text(names, [{name: row[name] for name in names} for row in rows])
    titles = _columns(found)
    head = [f"A: {found.source_a}", f"B: {found.source_b}", *_total_lines(found)]
    if form == "markdown":
        return "\n".join(f"- {line}" for line in head) + "\n\n" + markdown(titles, shown) + "\n"
    fixed = widths_by_name(titles, fixed)
    more = f"\n… {len(found.pairs) - len(shown)} more groups (-n 0 shows all)" if len(shown) < len(found.pairs) else ""
    return "\n".join(head) + "\n\n" + plain(titles, shown, width, fixed) + more + "\n"
