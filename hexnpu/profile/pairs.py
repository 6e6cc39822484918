"""Trace events into slices: a start and its stop by (device, thread, name, info) within a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hexnpu.profile.columns import I32, I64, Bool
from hexnpu.profile.timeline import Timeline


@dataclass
class Slices:
    """One row a pair. start, stop: rows of the log's events. op: the home of the start event."""

    start: I64
    stop: I64
    lone: I64  # rows of events without a partner


def _keys(line: Timeline, rows: I64) -> I64:
    """(batch, thread, name, info) as one number; a batch belongs to one device."""
    events = line.log.events
    info = events.info[rows].astype(np.int64)
    if len(info) and info.max() >= 1 << 20:
        info = np.unique(info, return_inverse=True)[1].astype(np.int64)
    name_bits = max(len(line.log.event_names) - 1, 1).bit_length()
    key = (line.event_batch[rows].astype(np.int64) << 4) | events.thread[rows]
    key = (key << name_bits) | events.name[rows]
    return (key << 20) | info


def pair(line: Timeline, rows: I64) -> Slices:
    """Pairs the events of `rows` (in log order). Where a key is started again before it stopped, a stop ends the
    latest start, except for DMA, whose queue completes in order: there it ends the earliest."""
    events = line.log.events
    key = _keys(line, rows)
    order = np.argsort(key, kind="stable")
    key, sorted_rows = key[order], rows[order]
    stop = events.stop[sorted_rows]
    if len(key) < 2:
        return Slices(rows[:0], rows[:0], rows)
    fits = ~stop[:-1] & stop[1:] & (key[1:] == key[:-1])
    used = np.zeros(len(key), np.bool_)
    first = np.flatnonzero(fits)
    used[first] = True
    used[first + 1] = True
    if used.all():
        return Slices(sorted_rows[first], sorted_rows[first + 1], rows[:0])
    irregular = np.isin(key, np.unique(key[~used]))
    dma = {number for number, name in enumerate(line.log.event_names) if name == "DMA"}
    starts, stops, lone = _by_hand(
        key[irregular].tolist(),
        stop[irregular].tolist(),
        sorted_rows[irregular].tolist(),
        np.isin(events.name[sorted_rows[irregular]], list(dma)).tolist(),
    )
    plain = first[~irregular[first]]
    return Slices(
        np.concatenate([sorted_rows[plain], np.array(starts, np.int64)]),
        np.concatenate([sorted_rows[plain + 1], np.array(stops, np.int64)]),
        np.array(sorted(lone), np.int64),
    )


def _by_hand(
    keys: list[int], stop: list[bool], rows: list[int], in_order: list[bool]
) -> tuple[list[int], list[int], list[int]]:
    starts: list[int] = []
    stops: list[int] = []
    lone: list[int] = []
    waiting: list[int] = []
    current = None
    for key, is_stop, row, fifo in zip(keys, stop, rows, in_order, strict=True):
        if key != current:
            lone.extend(waiting)
            waiting, current = [], key
        if not is_stop:
            waiting.append(row)
        elif waiting:
            starts.append(waiting.pop(0 if fifo else -1))
            stops.append(row)
        else:
            lone.append(row)
    lone.extend(waiting)
    return starts, stops, lone


def lanes(begin: I64, end: I64) -> I32:
    """The lane of each slice, so that none overlap on a lane: the first that is free. Sorted by begin."""
    lane = np.zeros(len(begin), np.int32)
    if len(begin) < 2:
        return lane
    reach = np.maximum.accumulate(end)
    overlaps: Bool = np.concatenate([[False], begin[1:] < reach[:-1]])
    if not overlaps.any():
        return lane
    # A cluster is a run of slices that overlap by chain; only inside one can a further lane be needed.
    for first in np.flatnonzero(overlaps[1:] & ~overlaps[:-1]).tolist():
        free: list[int] = []
        index = first
        while index < len(begin) and (index == first or overlaps[index]):
            start = int(begin[index])
            for number, until in enumerate(free):
                if until <= start:
                    free[number] = int(end[index])
                    lane[index] = number
                    break
            else:
                lane[index] = len(free)
                free.append(int(end[index]))
            index += 1
    return lane
