"""Warm-up, prefill and decode: batches make steps (one pass through the model), steps are told apart by their tokens.

The tokens of an op are its second dimension (ne1 of a matrix product's output). A step begins where the layer number
falls back, or where the op that opened the step comes again. Several batches may make one step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hexnpu.profile.columns import I32, I64, U8
from hexnpu.profile.optext import facts, identities
from hexnpu.profile.timeline import Timeline

PHASES = ("warm-up", "prefill", "decode", "other")
WARMUP, PREFILL, DECODE, OTHER = range(4)
_WARMUP_TOKENS = 2  # llama.cpp warms up with begin and end of text


@dataclass
class Steps:
    """Per batch: its step, counted from 0 on each device, and the phase and tokens of that step."""

    batch_step: I32
    batch_phase: U8
    batch_tokens: I32


def _per_batch(line: Timeline) -> tuple[I64, I64, I64, I64]:
    """(lowest layer, highest layer, tokens, first op's identity) of each batch; huge, -1, 0, -1 where unknown."""
    n, log = len(line.batches), line.log
    known = [facts(text) for text in log.texts]
    layer = np.array([fact.layer for fact in known], np.int64)[log.ops.text]
    weighted = np.array([fact.tokens if fact.weighted else 0 for fact in known], np.int64)[log.ops.text]
    tokens = np.array([fact.tokens for fact in known], np.int64)[log.ops.text]
    low, high, first = (np.full(n, unknown, np.int64) for unknown in (1 << 30, -1, -1))
    has = layer >= 0
    np.minimum.at(low, line.op_batch[has], layer[has])
    np.maximum.at(high, line.op_batch[has], layer[has])
    most_weighted, most = np.zeros(n, np.int64), np.zeros(n, np.int64)
    np.maximum.at(most_weighted, line.op_batch, weighted)
    np.maximum.at(most, line.op_batch, tokens)
    first[line.op_batch[::-1]] = identities(log.texts)[log.ops.text[::-1]]
    return low, high, np.where(most_weighted > 0, most_weighted, most), first


def find_steps(line: Timeline) -> Steps:
    """The step and the phase of each batch."""
    n = len(line.batches)
    step, phase, tokens = np.zeros(n, np.int32), np.full(n, OTHER, np.uint8), np.zeros(n, np.int32)
    if not n or not len(line.op_batch):
        return Steps(step, phase, tokens)
    low, high, per_batch, first = _per_batch(line)
    for device in range(len(line.log.devices)):
        rows = np.flatnonzero(line.batches.device == device)
        if not len(rows):
            continue
        step[rows] = _number_steps(low[rows].tolist(), high[rows].tolist(), first[rows].tolist())
        count = int(step[rows].max()) + 1
        most = np.zeros(count, np.int64)
        np.maximum.at(most, step[rows], per_batch[rows])
        tokens[rows] = np.minimum(most, np.iinfo(np.int32).max)[step[rows]]
        phase[rows] = _phases(most)[step[rows]]
    return Steps(step, phase, tokens)


def _number_steps(low: list[int], high: list[int], first: list[int]) -> list[int]:
    steps, step, highest, opening = [], 0, -1, None
    for index, (a, b, op) in enumerate(zip(low, high, first, strict=True)):
        if index == 0:
            opening = op
        elif (b >= 0 and a < highest) or (op >= 0 and op == opening):
            step += 1
            highest, opening = -1, op
        highest = max(highest, b)
        steps.append(step)
    return steps


def _phases(tokens: I64) -> U8:
    phase = np.where(tokens > 1, PREFILL, np.where(tokens == 1, DECODE, OTHER)).astype(np.uint8)
    if len(tokens) > 1 and 0 < tokens[0] <= _WARMUP_TOKENS and tokens[1] > tokens[0]:
        phase[0] = WARMUP
    return phase
