"""Plain-text tables that fit the terminal: text columns are cut in the middle, then the least needed columns go."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hexnpu.errors import UsageError
from hexnpu.profile.report import Report, Row, Section

MIN_TEXT = 22  # text columns keep this much as long as other columns can go instead
LEAST_TEXT = 6
LAST = 100  # columns with this `drop` and more go only when text of LEAST_TEXT does not fit either


@dataclass(frozen=True)
class Column:
    """A column. text: its cell of a row; drop: the lowest goes first when the table is too wide, 0 never goes."""

    name: str
    title: str
    text: Callable[[Any], str]
    drop: int = 0
    left: bool = False


def _optional(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _time(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.1f}"


def columns(report: Report) -> list[Column]:
    """The columns a report has, in order. What was asked for (sorted by, --arch, --pmu-index) never goes."""
    keys = [
        Column(name, name.capitalize(), lambda row, i=i: row.key[i], left=True)  # type: ignore[misc]
        for i, name in enumerate(report.key_names)
    ]
    figures = [
        Column("count", "Count", lambda row: f"{row.count:,}"),
        Column("total", "Total us", lambda row: _time(row.total_usec)),
        Column("share", "Share", lambda row: f"{100 * row.share:.1f}%"),
        Column("avg", "Avg us", lambda row: _time(row.avg_usec), drop=10),
        Column("median", "Median", lambda row: _time(row.median_usec), drop=6),
        Column("max", "Max us", lambda row: _time(row.max_usec), drop=7),
        Column("avg-cycles", "Avg cycles", lambda row: _optional(row.avg_cycles, "{:,.0f}"), drop=3),
        Column("max-cycles", "Max cycles", lambda row: _optional(row.max_cycles, "{:,.0f}"), drop=2),
    ]
    rows = [row for section in report.sections for row in section.rows]
    if any(row.gbs is not None for row in rows):
        figures.append(Column("gbs", "GB/s", lambda row: _optional(row.gbs, "{:.1f}"), drop=5))
    if any(row.gflops is not None for row in rows):
        figures.append(Column("gflops", "GFLOP/s", lambda row: _optional(row.gflops, "{:,.1f}"), drop=4))
    if any(row.bandwidth_fraction is not None for row in rows):
        figures.append(Column("gbs-peak", "%DMA", lambda row: _percent(row.bandwidth_fraction)))
    if any(row.compute_fraction is not None for row in rows):
        figures.append(Column("gflops-peak", "%HMX", lambda row: _percent(row.compute_fraction)))
    for i, name in enumerate(report.pmu_names):
        figures.append(
            Column(f"pmu{i}", name, lambda row, i=i: f"{row.pmu[i]:,.0f}" if row.pmu else "")  # type: ignore[misc]
        )
    return keys + [replace(column, drop=0) if column.name == report.sort else column for column in figures]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}%"


def shown_width(text: str) -> int:
    """Terminal cells: CJK characters take two, combining marks none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) != 0 for char in text)


def shorten(text: str, width: int) -> str:
    """The text in at most `width` cells, its middle replaced by an ellipsis."""
    if shown_width(text) <= width:
        return text
    if width < 4:
        return text[:width]
    head, tail = text[: (width - 1) * 2 // 3], text[-((width - 1) - (width - 1) * 2 // 3) :]
    while shown_width(head) + shown_width(tail) + 1 > width:
        head, tail = (head[:-1], tail) if len(head) >= len(tail) else (head, tail[1:])
    return f"{head}…{tail}"


def _pad(text: str, width: int, left: bool) -> str:
    room = " " * (width - shown_width(text))
    return text + room if left else room + text


def clean(text: str) -> str:
    """What a name holds that a terminal must not get: bytes that are not UTF-8, control characters."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "?" for char in text)


def parse_widths(wanted: list[str]) -> dict[str, int]:
    """`COL:N` settings; UsageError for another shape."""
    widths = {}
    for item in wanted:
        name, colon, number = item.rpartition(":")
        if not colon or not number.isdecimal() or int(number) < 1:
            raise UsageError(f"--width {item}: give COLUMN:CHARACTERS, as in --width dims:40")
        widths[name] = int(number)
    return widths


def render(titles: list[Column], body: list[list[str]], width: int, fixed: dict[str, int], rule_before: int) -> str:
    """Aligned lines. width 0: unlimited. rule_before: a line is drawn before this row of the body."""
    keep = list(range(len(titles)))
    sizes = [
        max([shown_width(column.title), *(shown_width(row[i]) for row in body)]) for i, column in enumerate(titles)
    ]
    for i, column in enumerate(titles):
        if column.name in fixed:
            sizes[i] = min(sizes[i], fixed[column.name])

    def total() -> int:
        return sum(sizes[i] for i in keep) + 2 * (len(keep) - 1)

    def texts() -> list[int]:
        return [i for i in keep if titles[i].left and titles[i].name not in fixed]

    for least, last in ((MIN_TEXT, LAST), (LEAST_TEXT, 2 * LAST)):
        while width and total() - sum(max(sizes[i] - least, 0) for i in texts()) > width:
            droppable = [i for i in keep if 0 < titles[i].drop < last]
            if not droppable:
                break
            keep.remove(min(droppable, key=lambda i: titles[i].drop))
    while width and total() > width:
        longest = max(texts(), key=lambda i: sizes[i], default=None)
        if longest is None or sizes[longest] <= LEAST_TEXT:
            break
        sizes[longest] -= 1
    lines = ["  ".join(_pad(shorten(titles[i].title, sizes[i]), sizes[i], titles[i].left) for i in keep).rstrip()]
    lines.append("  ".join("─" * sizes[i] for i in keep))
    for number, row in enumerate(body):
        if number == rule_before and number:
            lines.append("  ".join("─" * sizes[i] for i in keep))
        lines.append("  ".join(_pad(shorten(row[i], sizes[i]), sizes[i], titles[i].left) for i in keep).rstrip())
    return "\n".join(lines)


def duration(usec: float) -> str:
    """300us, 12.34ms, 1.23s, 1m 03s."""
    if usec >= 60_000_000:
        minutes, seconds = divmod(round(usec / 1e6), 60)
        return f"{minutes}m {seconds:02d}s"
    if usec >= 1_000_000:
        return f"{usec / 1e6:.2f}s"
    return f"{usec / 1000:.2f}ms" if usec >= 1000 else f"{usec:.0f}us"


def section_title(section: Section, width: int = 0) -> str:
    """Phase, device, batches, tokens; time in all (of all devices, host included), and on the clock."""
    parts = [section.phase if section.phase != "other" else "all ops"]
    if section.device:
        parts.append(section.device)
    parts.append(f"{section.batches:,} batch{'es' * (section.batches != 1)}")
    if section.steps and section.phase != "other":
        parts.append(f"{section.steps:,} step{'s' * (section.steps != 1)}")
    if section.tokens:
        parts.append(f"{section.tokens:,} token{'s' * (section.tokens != 1)}")
    parts.append(f"{duration(section.total_usec)} in all")
    parts.append(f"{duration(section.wall_usec)} from first to last")
    if section.phase == "decode" and section.steps > 1:
        parts.append(f"{duration(section.wall_usec / section.steps)} a step")
    return _wrapped(parts, width)


def _wrapped(parts: list[str], width: int) -> str:
    """The parts joined by ` · `, with line breaks where `width` needs them (0: unlimited)."""
    lines = parts[:1]
    for part in parts[1:]:
        joined = f"{lines[-1]} · {part}"
        if width and shown_width(joined) > width:
            lines.append(part)
        else:
            lines[-1] = joined
    return "\n".join(lines)


def split_rows(section: Section, top: int) -> tuple[list[Row], Row | None]:
    """(the rows to show: the first `top` ops and all others, what the ops left out sum to)."""
    ops = [row for row in section.rows if row.kind == "op"]
    rest = [row for row in section.rows if row.kind != "op"]
    if not top or len(ops) <= top:
        return section.rows, None
    more = ops[top:]
    usec = sum(row.total_usec for row in more)
    label = (f"({len(more)} more groups)", *("" for _ in ops[0].key[1:]))
    left_out = Row(label, "more", sum(row.count for row in more), usec, usec / section.total_usec if usec else 0.0)
    return ops[:top] + rest, left_out


def widths_by_name(titles: list[Column], wanted: dict[str, int]) -> dict[str, int]:
    """--width by the columns' names, given these or the titles in any case; UsageError for one that is neither."""
    names = {column.title.lower(): column.name for column in titles} | {column.name: column.name for column in titles}
    for name, size in wanted.items():
        if name.lower() not in names:
            known = ", ".join(column.name for column in titles)
            raise UsageError(f"--width {name}:{size}: there is no such column, only {known}")
    return {names[name.lower()]: size for name, size in wanted.items()}


def plain(titles: list[Column], rows: Sequence[Any], width: int, fixed: dict[str, int] | None = None) -> str:
    """A table of rows without sums."""
    return render(titles, [[clean(column.text(row)) for column in titles] for row in rows], width, fixed or {}, 0)


def markdown(titles: list[Column], rows: Sequence[Any]) -> str:
    """The same as a Markdown table."""
    lines = ["| " + " | ".join(column.title for column in titles) + " |"]
    lines.append("|" + "|".join(" --- " if column.left else " ---: " for column in titles) + "|")
    for row in rows:
        cells = [clean(column.text(row)).replace("|", "\\|") for column in titles]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table(report: Report, width: int, top: int, fixed: dict[str, int]) -> str:
    """The whole report as text; top 0: all rows."""
    titles = columns(report)
    fixed = widths_by_name(titles, fixed)
    parts = []
    for section in report.sections:
        rows, left_out = split_rows(section, top)
        n_ops = sum(row.kind == "op" for row in rows)
        if left_out:
            rows = [*rows[:n_ops], left_out, *rows[n_ops:]]
            n_ops += 1
        total = Row(("total", *("" for _ in report.key_names[1:])), "total", 0, section.total_usec, 1.0)
        body = [[clean(column.text(row)) for column in titles] for row in [*rows, total]]
        body[-1][len(report.key_names)] = ""
        parts.append(section_title(section, width) + "\n\n" + render(titles, body, width, fixed, n_ops))
    if report.notes:
        parts.append("\n".join(f"note: {note}" for note in report.notes))
    return "\n\n".join(parts) + "\n"
