"""What the tests of the row-wise families share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from hexnpu.plan.base import Plan
from tests.ops.harness import Config, View

ieee_only = pytest.mark.skipif(Config().arch < 79, reason="qfloat has no infinities and no NaN")

COLUMNS = [1, 2, 4, 5, 31, 32, 33, 65, 128, 576, 1000]
VIEWS = [
    View(pad=(64, 0, 0)), View(pad=(4, 12, 20), offset=4), View(order=(0, 2, 1, 3)), View(order=(0, 3, 2, 1)),
    View(order=(0, 3, 1, 2), pad=(128, 4, 0)), View(offset=60),
]  # fmt: skip
EMPTY = [(0, 3), (3, 0), (3, 2, 0, 4), (3, 2, 4, 0)]


def normal(ne: tuple[int, ...], seed: int = 1, scale: float = 1.0) -> npt.NDArray[np.float32]:
    """Random numbers of shape ne, in numpy order."""
    return (np.random.default_rng([seed, *ne]).standard_normal(ne[::-1]) * scale).astype(np.float32)


@dataclass
class FalsePlan:
    """A plan whose kernel_params were tampered with: {word: value}."""

    plan: Plan
    change: dict[int, int]

    @property
    def kernel_name(self) -> str:
        return self.plan.kernel_name

    def pack(self) -> tuple[int, ...]:
        words = list(self.plan.pack())
        for word, value in self.change.items():
            words[word] = value
        return tuple(words)


def as_f32(outcome: Any) -> npt.NDArray[np.float32]:
    """What a run left in its first destination."""
    assert outcome.error is None and not outcome.strayed
    result: npt.NDArray[np.float32] = outcome.dst[0].view(np.float32)
    return result
