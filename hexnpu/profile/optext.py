"""What an op's text says: layer, role, engine, kernel, dims as numbers, bytes moved and arithmetic done.

dims are ggml's `ne0:ne1:ne2:ne3`, fastest first; a type's row size is ggml's block layout.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hexnpu.profile.columns import I64, OpText

# (elements a block, bytes a block) as ggml stores them.
BLOCKS: dict[str, tuple[int, int]] = {
    "f32": (1, 4), "f16": (1, 2), "bf16": (1, 2), "i8": (1, 1), "i16": (1, 2), "i32": (1, 4), "i64": (1, 8),
    "f64": (1, 8), "q4_0": (32, 18), "q4_1": (32, 20), "q5_0": (32, 22), "q5_1": (32, 24), "q8_0": (32, 34),
    "q8_1": (32, 36), "q2_k": (256, 84), "q3_k": (256, 110), "q4_k": (256, 144), "q5_k": (256, 176),
    "q6_k": (256, 210), "q8_k": (256, 292), "iq4_nl": (32, 18), "iq4_xs": (256, 136), "mxfp4": (32, 17),
    "iq2_xxs": (256, 66), "iq2_xs": (256, 74), "iq3_xxs": (256, 98), "iq1_s": (256, 50), "iq3_s": (256, 110),
    "iq2_s": (256, 82), "iq1_m": (256, 56), "tq1_0": (256, 54), "tq2_0": (256, 66),
}  # fmt: skip

_LAYER_WEIGHT = re.compile(
    r"(?:blk|layers?)\.(\d{1,9})\.([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*?)(?:\.(?:weight|bias))?(?=$|[^A-Za-z0-9_.])"
)
_TOP_WEIGHT = re.compile(r"(?:^|[ >])([A-Za-z][A-Za-z0-9_.]*)\.(?:weight|bias)\b")
_LAYER_NAME = re.compile(r"(?:^|[ >])([A-Za-z_][A-Za-z0-9_]*?)-(\d{1,9})(?=$|[^0-9A-Za-z])")
_CACHE_NAME = re.compile(r"(cache_[a-z]+)_l(\d{1,9})")
NO_LAYER = -1


@dataclass(frozen=True)
class Tensor:
    ne: tuple[int, int, int, int]
    type: str

    @property
    def elements(self) -> int:
        return self.ne[0] * self.ne[1] * self.ne[2] * self.ne[3]

    @property
    def rows(self) -> int:
        return self.ne[1] * self.ne[2] * self.ne[3]

    def bytes(self, rows: int | None = None) -> int | None:
        """Size in bytes (of `rows` rows), None for a type of unknown layout."""
        block = BLOCKS.get(self.type.lower())
        if block is None:
            return None
        return -(-self.ne[0] // block[0]) * block[1] * (self.rows if rows is None else rows)


@dataclass(frozen=True)
class OpFacts:
    """Everything a report groups by. bytes, flops: of one run, None where they are not known."""

    op: str
    dims: str
    types: str
    layer: int
    role: str
    engine: str
    kernel: str
    tokens: int  # of a matrix product or attention, else 0
    weighted: bool  # the product's first input is a weight
    bytes: int | None
    flops: int | None


def _sides(text: str) -> tuple[list[str], str]:
    inputs, arrow, output = text.rpartition("->")
    if not arrow:
        return [], text.strip()
    return [part for part in inputs.strip().split(" x ") if part], output.strip()


def _tensor(dims: str, type_: str) -> Tensor | None:
    dims = dims.rstrip("!")
    if not re.fullmatch(r"\d{1,18}(?::\d{1,18}){0,3}", dims):
        return None
    ne = [int(part) for part in dims.split(":")]
    ne += [1] * (4 - len(ne))
    return Tensor((ne[0], ne[1], ne[2], ne[3]), type_)


def tensors(text: OpText) -> tuple[list[Tensor | None], Tensor | None]:
    """(inputs, output); None for a missing input, or where dims and types do not tell."""
    dims, out_dims = _sides(text.dims)
    types, out_type = _sides(text.types)
    if len(types) != len(dims):
        types = [""] * len(dims)
    return [_tensor(d, t) for d, t in zip(dims, types, strict=True)], _tensor(out_dims, out_type)


def layer_and_role(names: str) -> tuple[int, str]:
    """From the weight's name if there is one (blk.3.attn_q.weight: 3, attn_q), else from the output's (kqv_out-3)."""
    weight = _LAYER_WEIGHT.search(names)
    if weight:
        return int(weight.group(1)), weight.group(2)
    top = _TOP_WEIGHT.search(names)
    if top:
        return NO_LAYER, top.group(1)
    cache = _CACHE_NAME.search(names)
    output = names.rpartition("->")[2].strip()
    named = _LAYER_NAME.search(output)
    if named is None or named.group(1) == "fence":  # fences between devices have numbers of their own
        named = _LAYER_NAME.search(names)
    if named and named.group(1) != "fence":
        return int(named.group(2)), named.group(1)
    if cache:
        return int(cache.group(2)), cache.group(1)
    return NO_LAYER, "-"


def kernel_and_engine(text: OpText) -> tuple[str, str]:
    """The kernel's name and the engine it runs on, from the kernel params; '-' where the line does not say."""
    buffers = " -> " in text.params  # the oldest lines name the buffers there
    kernel = text.params.split(" ", 1)[0] if text.params and text.params != "----" and not buffers else "-"
    for engine in ("hmx", "hvx", "dma"):
        if kernel.lower().startswith(engine):
            return kernel, engine
    return kernel, "-"


def _products(op: str) -> int:
    return sum(part.startswith("MUL_MAT") for part in op.split("+"))


def _weights(op: str, inputs: list[Tensor | None], output: Tensor) -> list[Tensor]:
    """The weights of an op's matrix products; none where the line does not tell them from the activation.

    A fused op has its activation before its weights (hexnpu), after the first (`A+B`) or after all of them (`_NX`):
    it is the one of another type, or, where all are of one, the one with the output's rows.
    """
    operands = [tensor for tensor in inputs if tensor is not None and tensor.type != "i32"]  # without expert numbers
    count = len(operands) - 1 if "_NX" in op else _products(op)
    if count < 2:
        return operands[:1]
    operands = operands[: count + 1]
    types = Counter(tensor.type for tensor in operands)
    odd = [i for i, tensor in enumerate(operands) if types[tensor.type] == 1]
    if len(odd) != 1:
        odd = [i for i, tensor in enumerate(operands) if tensor.ne[1:] == output.ne[1:]]
    return [tensor for i, tensor in enumerate(operands) if i != odd[0]] if len(odd) == 1 else []


def _flops(op: str, inputs: list[Tensor | None], output: Tensor | None) -> int | None:
    """Two per multiply-add of matrix products and attention; other ops have no figure."""
    if output is None or not inputs or inputs[0] is None:
        return None
    if op.startswith("FLASH_ATTN"):
        q, k, v = (*inputs, None, None)[:3]
        if q is None or k is None or v is None:
            return None
        return 2 * q.ne[1] * q.ne[2] * q.ne[3] * k.ne[1] * (q.ne[0] + v.ne[0])
    if not _products(op):
        return None
    weights = _weights(op, inputs, output)
    if len(weights) == 1:
        return 2 * weights[0].ne[0] * output.elements
    return sum(2 * weight.ne[0] * weight.ne[1] * output.rows for weight in weights) or None


def _bytes(op: str, inputs: list[Tensor | None], output: Tensor | None) -> int | None:
    """What one run must move at least: each input and output once; only the rows that a gather or scatter touches."""
    if output is None:
        return None
    weights = _weights(op, inputs, output) if _products(op) else []
    experts = next((tensor.elements for tensor in inputs if tensor is not None and tensor.type == "i32"), 0)
    sizes: list[int | None] = []
    for index, tensor in enumerate(inputs):
        if tensor is None:
            continue
        rows = None
        if op == "GET_ROWS" and index == 0:
            rows = output.rows
        elif op.startswith("MUL_MAT_ID") and tensor in weights and experts:
            rows = tensor.ne[1] * min(tensor.ne[2], experts)
        sizes.append(tensor.bytes(rows))
    source = inputs[0] if inputs else None
    if op == "SET_ROWS" and source is not None:
        sizes.append(output.bytes(source.rows))
    else:
        sizes.append(output.bytes())
    if _products(op) and not weights:
        return None
    for weight in weights[:-1]:  # a fused product prints only its last output
        sizes.append(4 * weight.ne[1] * output.rows)
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _tokens(op: str, inputs: list[Tensor | None], output: Tensor | None) -> int:
    if op.startswith("FLASH_ATTN"):
        return inputs[0].ne[1] if inputs and inputs[0] else 0
    if output is None or not _products(op):
        return 0
    return output.ne[2] if op.startswith("MUL_MAT_ID") else output.ne[1]


@lru_cache(maxsize=1 << 16)
def facts(text: OpText) -> OpFacts:
    """All that is derived from one op text."""
    inputs, output = tensors(text)
    layer, role = layer_and_role(text.names)
    kernel, engine = kernel_and_engine(text)
    return OpFacts(
        text.op,
        text.dims,
        text.types,
        layer,
        role,
        engine,
        kernel,
        _tokens(text.op, inputs, output),
        ".weight" in text.names,
        _bytes(text.op, inputs, output),
        _flops(text.op, inputs, output),
    )


def identities(texts: list[OpText]) -> I64:
    """Per text a number for its op and names: the same op of the model, whatever its dims are this time."""
    index: dict[tuple[str, str], int] = {}
    return np.array([index.setdefault((text.op, text.names), len(index)) for text in texts], np.int64)
