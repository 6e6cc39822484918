"""What the graphs of one session share: weights (uploaded and repacked once), states, and compute buffers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hexnpu.batch import Placed
from hexnpu.errors import UsageError
from hexnpu.graph import Tensor
from hexnpu.memory import align
from hexnpu.plan import family
from hexnpu.tensor import Desc
from hexnpu.transport import Buffer
from hexnpu.weights import check_finite, read_source
from hexnpu.wire import TENSOR_WEIGHT

MAX_BUFFER_BYTES = 1 << 30
# A session maps whole buffers, and an op's weight, states, compute and input buffers at the same time.
WINDOW_SHARE = 4

Alloc = Callable[[int], Buffer]
WeightKey = tuple[str, int, int]


@dataclass(eq=False)
class StoredWeight:
    """A weight in the form an op wants it; its memory goes with the last graph that holds it."""

    placed: Placed
    source: Any  # kept, so that its id() stays its own


@dataclass(frozen=True, slots=True)
class WantedWeight:
    """A weight as `op` takes it: `desc` is its own descriptor, or that of the tiles it is repacked to."""

    tensor: Tensor
    desc: Desc
    op: str

    @property
    def key(self) -> WeightKey:
        return (self.tensor.name, id(self.tensor.source), int(self.desc.type))


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes of a session's buffers."""

    weight_bytes: int
    state_bytes: int
    compute_bytes: int


class Store:
    """The shared memory of one session."""

    def __init__(self, alloc: Alloc, max_map_bytes: int) -> None:
        self._alloc = alloc
        self._chunk = min(MAX_BUFFER_BYTES, max_map_bytes // WINDOW_SHARE)
        self._weights: weakref.WeakValueDictionary[WeightKey, StoredWeight] = weakref.WeakValueDictionary()
        self._states: dict[str, Placed] = {}
        self._compute: list[weakref.ref[Buffer]] = []

    def weights(self, wanted: Sequence[WantedWeight]) -> dict[WeightKey, StoredWeight]:
        """Uploads those that are not there yet; gives all of them. Raises WeightError for one that holds NaN."""
        result = {w.key: stored for w in wanted if (stored := self._weights.get(w.key)) is not None}
        new = {w.key: w for w in wanted if w.key not in result}
        places = self._pack([w.desc.span_bytes for w in new.values()])
        for (key, w), (buffer, offset) in zip(new.items(), places, strict=True):
            _upload(w, buffer, offset)
            stored = StoredWeight(Placed(w.desc, buffer, offset, TENSOR_WEIGHT), w.tensor.source)
            result[key] = self._weights[key] = stored
        return result

    def states(self, wanted: Sequence[Tensor]) -> dict[str, Placed]:
        """Makes the states that are not there yet, zeroed; gives all of them by name."""
        for t in wanted:
            known = self._states.get(t.name)
            if known is not None and known.desc != t.desc:
                raise UsageError(f"state {t.name} is {known.desc} in this session, the graph has it as {t.desc}")
        new = [t for t in wanted if t.name not in self._states]
        for t, (buffer, offset) in zip(new, self._pack([t.desc.span_bytes for t in new]), strict=True):
            self._states[t.name] = Placed(t.desc, buffer, offset)
        return {t.name: self._states[t.name] for t in wanted}

    def use(self) -> MemoryUse:
        """What is allocated now. A buffer of weights stays whole while one of them is used."""
        weights = {w.placed.buffer.handle: w.placed.buffer.bytes for w in list(self._weights.values())}
        states = {p.buffer.handle: p.buffer.bytes for p in self._states.values()}
        compute = [b.bytes for ref in self._compute if (b := ref()) is not None]
        return MemoryUse(sum(weights.values()), sum(states.values()), sum(compute))

    def clear_states(self) -> None:
        """Zeroes every state."""
        for placed in self._states.values():
            placed.buffer.write(placed.offset, np.zeros(placed.desc.span_bytes, np.uint8))

    def compute(self, n_bytes: int) -> Buffer:
        """A buffer for the intermediates of a graph; graphs of a session never run at once, so they share it."""
        alive = [b for ref in self._compute if (b := ref()) is not None]
        for buffer in alive:
            if buffer.bytes >= n_bytes:
                return buffer
        buffer = self._alloc(n_bytes)
        self._compute = [weakref.ref(b) for b in (*alive, buffer)]
        return buffer

    def _pack(self, sizes: Sequence[int]) -> list[tuple[Buffer, int]]:
        """Places for so many bytes each, in as few buffers as the window allows."""
        groups: list[list[int]] = []
        room = 0
        for size in map(align, sizes):
            if size > room or not groups:
                groups.append([])
                room = self._chunk
            groups[-1].append(size)
            room -= size
        places = []
        for group in groups:
            buffer = self._alloc(max(sum(group), 1))
            offset = 0
            for size in group:
                places.append((buffer, offset))
                offset += size
        return places


def _upload(w: WantedWeight, buffer: Buffer, offset: int) -> None:
    raw = read_source(w.tensor.source)
    if raw.size != w.tensor.desc.span_bytes:
        raise UsageError(f"weight {w.tensor.name}: {raw.size} bytes, {w.tensor.desc} has {w.tensor.desc.span_bytes}")
    check_finite(w.tensor.name, w.tensor.type, raw)
    if w.desc.type != w.tensor.type:
        raw = np.frombuffer(family(w.op).repack(w.tensor.desc, raw), np.uint8)
    buffer.write(offset, raw)
