"""Which ops, batches and events a command looks at: devices, phases, regex, head and tail, skipped batches."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from hexnpu.errors import UsageError
from hexnpu.profile.columns import Bool, Log
from hexnpu.profile.errors import LogError
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.timeline import Timeline


@dataclass(frozen=True)
class Selection:
    """What the user asked for. device: None, 'split', or names joined by commas."""

    device: str | None = None
    phase: str = "all"
    filter: str | None = None
    head: int | None = None
    tail: int | None = None
    skip_batches: int = 0
    batch_range: tuple[int, int] | None = None  # of each device, the end not included

    @property
    def split(self) -> bool:
        return self.device == "split"

    @property
    def partial(self) -> bool:
        """Single ops are cut out of their batches: time between them has no meaning."""
        return self.head is not None or self.tail is not None

    def check(self) -> None:
        """Raises UsageError for what cannot be taken together or at all; reads no log."""
        if self.head is not None and self.tail is not None:
            raise UsageError("--head and --tail exclude each other: give one of them")
        for flag, value in (("--head", self.head), ("--tail", self.tail)):
            if value is not None and value < 1:
                raise UsageError(f"{flag} {value}: give a number of ops from 1 on")
        if self.skip_batches < 0:
            raise UsageError(f"--skip-batches {self.skip_batches}: give a number from 0 on")
        if self.phase not in ("all", *PHASES[:3]):
            raise UsageError(f"--phase {self.phase}: give prefill, decode, warm-up or all")
        self.regex()

    def regex(self) -> re.Pattern[str] | None:
        if self.filter is None:
            return None
        try:
            return re.compile(self.filter)
        except re.error as error:
            raise UsageError(f"--filter {self.filter!r} is not a regular expression: {error}") from None


@dataclass
class Chosen:
    """batches, ops: what counts. matching: the ops of these that the filter lets through. follows: batches whose
    predecessor was not cut off, so that the host time before them counts."""

    batches: Bool
    ops: Bool
    matching: Bool
    follows: Bool


def devices_of(log: Log, wanted: str | None) -> list[int]:
    """Device numbers; HTP0 also means HTP0:0. LogError lists the log's devices when one is not there."""
    if wanted is None or wanted == "split":
        return list(range(len(log.devices)))
    found: list[int] = []
    for name in (part.strip() for part in wanted.split(",")):
        mine = [i for i, device in enumerate(log.devices) if device == name or device.startswith(name + ":")]
        if not mine or not name:
            raise LogError(f"device {name!r} is not in {log.source}: it has {', '.join(sorted(log.devices))}")
        found.extend(mine)
    return sorted(set(found))


def choose(line: Timeline, steps: Steps, want: Selection) -> Chosen:
    """The rows that `want` selects."""
    log, n = line.log, len(line.batches)
    devices = devices_of(log, want.device)
    batches = np.isin(line.batches.device, devices)
    if want.phase != "all":
        batches &= steps.batch_phase == PHASES.index(want.phase)
    place = np.zeros(n, np.int64)  # number of the batch on its device
    for device in range(len(log.devices)):
        rows = np.flatnonzero(line.batches.device == device)
        place[rows] = np.arange(len(rows))
    first, end = want.batch_range or (0, n)
    first = max(first, want.skip_batches)
    batches &= (place >= first) & (place < end)
    ops = batches[line.op_batch] if n else np.zeros(len(log.ops), np.bool_)
    pattern = want.regex()
    matching = ops
    if pattern is not None:
        text_matches = np.array([bool(pattern.search(text.raw)) for text in log.texts], np.bool_)
        matching = ops & text_matches[log.ops.text]
    if want.partial:
        matching = _ends(log, matching, want.head, want.tail)
        ops = matching if matching.any() else ops
        batches &= np.bincount(line.op_batch[ops], minlength=n)[:n] > 0
    return Chosen(batches, ops, matching, place > first)


def check_filter(chosen: Chosen, want: Selection, log: Log) -> None:
    """LogError when the filter fits no op of what else is chosen."""
    if want.filter is not None and chosen.ops.any() and not chosen.matching.any():
        raise LogError(f"--filter {want.filter!r} matches no op of {log.source}")


def _ends(log: Log, ops: Bool, head: int | None, tail: int | None) -> Bool:
    kept = np.zeros(len(ops), np.bool_)
    for device in range(len(log.devices)):
        rows = np.flatnonzero(ops & (log.ops.device == device))
        kept[rows[:head] if head is not None else rows[-(tail or 0) :]] = True
    return kept
