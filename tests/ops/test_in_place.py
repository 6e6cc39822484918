"""Ops that read more of a source than they have written of the result refuse to work in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hexnpu.batch import BatchBuilder, Placed
from hexnpu.errors import DeviceError
from hexnpu.plan import op_table, plan
from hexnpu.tensor import Type
from tests.ops.harness import FAST, Arg, session_for, spec_of

ROWS = np.ones((8, 64), np.float32)
HEADS = np.ones((1, 8, 8, 64), np.float32)  # as many heads as tokens: the result has the shape of q
CACHE = Arg(np.ones((1, 8, 16, 64), np.float32), Type.F16)


@pytest.mark.parametrize(
    ("op", "src", "params"),
    [
        ("GET_ROWS", [Arg(ROWS), Arg(np.arange(8, dtype=np.int32)[::-1].copy(), Type.I32)], {}),
        ("FLASH_ATTN_EXT", [Arg(HEADS), CACHE, CACHE], {"scale": 1.0}),
    ],
    ids=["GET_ROWS", "FLASH_ATTN_EXT"],
)
def test_result_over_the_first_source_is_refused(op: str, src: list[Arg], params: dict[str, Any]) -> None:
    spec = spec_of(op, src, params)
    session = session_for(FAST[0])
    buffer = session.alloc(1 << 20)
    placed = [None if d is None else Placed(d, buffer, i << 17, 0) for i, d in enumerate(spec.src)]
    builder = BatchBuilder(session.max_map_bytes)
    words = plan(spec, FAST[0].device).pack()
    builder.add(op_table()[op][0], spec.params, words, placed, [Placed(spec.dst[0], buffer, 0, 0)], op)
    with pytest.raises(DeviceError, match="shares memory with src0, and this op does not work in place"):
        session.submit(builder.finish())
