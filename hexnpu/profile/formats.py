"""A report for other programs: JSON, CSV, Markdown. Numbers are not rounded, times in microseconds."""

from __future__ import annotations

import json
from typing import Any

from hexnpu.profile.report import Report, Row, Section
from hexnpu.profile.table import clean, columns, markdown, section_title, split_rows

SCHEMA = "hexnpu-profile/1"
_FIGURES = (
    "count", "total_usec", "share", "avg_usec", "median_usec", "max_usec", "avg_cycles", "max_cycles", "gbs", "gflops",
    "bandwidth_fraction", "compute_fraction",
)  # fmt: skip


def _row(report: Report, row: Row) -> dict[str, Any]:
    item: dict[str, Any] = {"kind": row.kind}
    item.update({name: clean(part) for name, part in zip(report.key_names, row.key, strict=True)})
    item.update({name: getattr(row, name) for name in _FIGURES})
    item.update(zip(report.pmu_names, row.pmu, strict=False))
    return item


def _shown(section: Section, top: int) -> list[Row]:
    rows, left_out = split_rows(section, top)
    return [*rows, left_out] if left_out else rows


def to_json(report: Report, top: int) -> str:
    """One object: schema, source, sections with their rows; the rows' total_usec sum to the section's."""
    sections = [
        {
            "phase": section.phase,
            "device": section.device,
            "batches": section.batches,
            "steps": section.steps,
            "tokens": section.tokens,
            "total_usec": section.total_usec,
            "wall_usec": section.wall_usec,
            "rows": [_row(report, row) for row in _shown(section, top)],
        }
        for section in report.sections
    ]
    whole = {
        "schema": SCHEMA,
        "source": report.source,
        "by": report.by,
        "devices": report.devices,
        "notes": report.notes,
        "sections": sections,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def to_csv(report: Report, top: int) -> str:
    """One line a row, with phase and device in front."""
    extra = [name for name in ("device",) if name not in report.key_names]
    names = ["phase", *extra, "kind", *report.key_names, *_FIGURES, *report.pmu_names]
    items = [
        {"phase": section.phase, "device": section.device or "", **_row(report, row)}
        for section in report.sections
        for row in _shown(section, top)
    ]
    return csv_text(names, items)


def csv_text(names: list[str], items: list[dict[str, Any]]) -> str:
    """CSV with a header line; None becomes an empty field."""
    import csv
    import io

    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: "" if value is None else value for name, value in item.items()} for item in items)
    return out.getvalue()


def to_markdown(report: Report, top: int) -> str:
    """A heading and a table a section."""
    titles = columns(report)
    parts = []
    for section in report.sections:
        parts.append(f"### {section_title(section)}\n\n{markdown(titles, _shown(section, top))}")
    parts.extend(f"> {note}" for note in report.notes)
    return "\n\n".join(parts) + "\n"
