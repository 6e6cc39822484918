"""The Python side of the wire against the C compiler's view of the same structures (htp-server --layout)."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import numpy as np
import pytest

from hexnpu import wire
from hexnpu.plan import base, op_table
from hexnpu.server_build import server_program
from hexnpu.tensor import BLOCKS, Type
from hexnpu.wire import FrameType, ProfileMode, Status


@pytest.fixture(scope="module")
def layout() -> dict[str, Any]:
    result = subprocess.run([server_program(), "--layout"], capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("name", wire.STRUCTS)
def test_structure(layout: dict[str, Any], name: str) -> None:
    dtype = wire.STRUCTS[name]
    theirs = (layout["wire"] | layout["frames"])[name]
    assert dtype.itemsize == theirs["size"]
    assert {n: [o, d.itemsize] for n, (d, o, *_) in (dtype.fields or {}).items()} == theirs["fields"]


def test_every_structure_of_the_headers_is_here(layout: dict[str, Any]) -> None:
    assert set(layout["wire"]) | set(layout["frames"]) == set(wire.STRUCTS)


OURS = {
    "HTP_MAGIC": wire.MAGIC, "HTP_VERSION": wire.VERSION, "HTP_FRAME_MAGIC": wire.FRAME_MAGIC,
    "HTP_FRAME_VERSION": wire.FRAME_VERSION, "HTP_REPLY": wire.REPLY, "HTP_MAX_FRAME_BYTES": wire.MAX_FRAME_BYTES,
    "HTP_MAX_BUFS": wire.MAX_BUFS, "HTP_MAX_TENSORS": wire.MAX_TENSORS, "HTP_MAX_OPS": wire.MAX_OPS,
    "HTP_MAX_SRC": wire.MAX_SRC, "HTP_MAX_DST": wire.MAX_DST, "HTP_TRACE_SLOTS": wire.TRACE_SLOTS,
    "HTP_ABSENT": wire.ABSENT, "HTP_TRACE_STOP": wire.TRACE_STOP, "HTP_MAX_TRACES": wire.MAX_TRACES,
    "HTP_TENSOR_WEIGHT": wire.TENSOR_WEIGHT, "HTP_TENSOR_REPACK": wire.TENSOR_REPACK,
    "HTP_TENSOR_FENCE": wire.TENSOR_FENCE, "HTP_N_PARAMS": base.N_PARAMS, "HTP_N_KPARAMS": base.N_KPARAMS,
    "HTP_N_KARGS": base.N_ARGS, "HTP_N_REGIONS": base.N_REGIONS, "HTP_VTCM_GAP": base.VTCM_GAP,
    "HTP_REGION_PER_THREAD": base.PER_THREAD,
}  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_constant(layout: dict[str, Any], name: str) -> None:
    assert layout["constants"][name] == OURS[name]


def test_numbers(layout: dict[str, Any]) -> None:
    assert {n: layout["constants"][f"HTP_{n}"] for n in Status.__members__} == dict(Status.__members__)
    assert layout["types"] == {f"HTP_{n}": int(t) for n, t in Type.__members__.items()}
    assert layout["frame_types"] == {f"HTP_F_{n}": int(t) for n, t in FrameType.__members__.items()}
    assert layout["traces"] == {f"HTP_TR_{n}": i for i, n in wire.TRACE_NAMES.items()}
    assert layout["ops"] == {n: code for n, (code, _) in op_table().items()}
    assert [int(m) for m in ProfileMode] == [0, 1, 2, 3]


@pytest.mark.parametrize("type", BLOCKS)
def test_block_sizes_are_those_of_gguf(type: Type) -> None:
    import gguf

    if type < Type.TILE_F32:
        assert BLOCKS[type] == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType(int(type))]


@pytest.mark.parametrize("name", wire.STRUCTS)
def test_struct_packing_gives_the_bytes_of_the_dtype(name: str) -> None:
    dtype = wire.STRUCTS[name]
    raw = np.random.default_rng(len(name)).integers(1, 127, dtype.itemsize, np.uint8).tobytes()
    (row,) = np.frombuffer(raw, dtype)
    values = wire.packer(dtype).unpack(raw)
    flat = [v for n in dtype.names or () for v in np.ravel(row[n]).tolist()]
    assert list(values) == flat
    assert wire.packer(dtype).pack(*values) == raw


def test_offsets_that_are_patched() -> None:
    fields = wire.REQUEST.fields
    assert fields is not None
    assert (fields["seq"][1], fields["n_traces"][1]) == (wire.SEQ_OFFSET, wire.N_TRACES_OFFSET)
