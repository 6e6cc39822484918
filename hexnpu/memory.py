"""Where the intermediate tensors of a graph lie in one compute buffer: memory is reused as soon as nobody reads it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass

ALIGN = 128


@dataclass(frozen=True, slots=True)
class Life:
    """A tensor's size and the steps it must survive: written at `birth`, last read at `death` (both included)."""

    bytes: int
    birth: int
    death: int


def align(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


def place(lives: Sequence[Life]) -> tuple[list[int], int]:
    """The offset of each tensor and the bytes of the buffer. `lives` stand in the order of their births.

    Two tensors that live in the same step never overlap, so an op's results are always apart from its inputs. The
    smallest free block that is large enough is taken; the buffer grows only where there is none.
    """
    offsets: list[int] = []
    heap = _FreeList()
    dying: dict[int, list[tuple[int, int]]] = {}
    step = 0
    for life in lives:
        assert life.birth >= step <= life.death, "lives are not in the order of their births"
        # What was last read before this step is free now.
        for past in sorted(s for s in dying if s < life.birth):
            for block in dying.pop(past):
                heap.give(*block)
        step = life.birth
        size = align(max(life.bytes, 1))
        offset = heap.take(size)
        offsets.append(offset)
        dying.setdefault(life.death, []).append((offset, size))
    return offsets, heap.end


class _FreeList:
    """Free blocks below `end`, by offset; neighbours are joined."""

    def __init__(self) -> None:
        self.end = 0
        self._blocks: list[tuple[int, int]] = []

    def take(self, size: int) -> int:
        fitting = [(n, i) for i, (_, n) in enumerate(self._blocks) if n >= size]
        if fitting:
            n, i = min(fitting)
            offset = self._blocks[i][0]
            if n == size:
                del self._blocks[i]
            else:
                self._blocks[i] = (offset + size, n - size)
            return offset
        last_is_free = self._blocks and sum(self._blocks[-1]) == self.end
        offset = self._blocks.pop()[0] if last_is_free else self.end
        self.end = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        i = bisect_left(self._blocks, (offset, 0))
        if i < len(self._blocks) and self._blocks[i][0] == offset + size:
            size += self._blocks.pop(i)[1]
        if i and sum(self._blocks[i - 1]) == offset:
            offset, before = self._blocks.pop(i - 1)
            size += before
        insort(self._blocks, (offset, size))
