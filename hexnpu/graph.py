"""Tensors and ops as the user writes them, with ggml's shapes: `ne` fastest dimension first, `nb` in bytes.

A graph only describes. Its nodes stand in the order in which they were made, which is the order in which they run; a
state (a KV cache) is written by set_rows and read by whatever comes after. `session.run(graph, {name: array})` runs it.
Numpy arrays have their axes the other way round: a tensor of ne (4, 3) is an array of shape (3, 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hexnpu.errors import UsageError
from hexnpu.plan import family, op_table
from hexnpu.plan.base import Refusal, ShapeError
from hexnpu.tensor import BLOCKS, DTYPES, Desc, Shape, Type
from hexnpu.weights import WeightSource, dense, describe_source, wieldy

ROPE_MODES = {"normal": 0, "neox": 2}


class Kind(Enum):
    """Where a tensor's memory comes from."""

    INPUT = "input"
    WEIGHT = "weight"
    STATE = "state"
    RESULT = "result"
    FENCE = "fence"


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor of a graph. A view has another tensor as `root` and lies `offset` bytes from the start of its memory."""

    graph: Graph
    name: str
    desc: Desc
    kind: Kind
    root: Tensor = field(init=False, repr=False)
    offset: int = 0
    source: WeightSource = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.root = self

    @property
    def ne(self) -> Shape:
        return self.desc.ne

    @property
    def nb(self) -> Shape:
        return self.desc.nb

    @property
    def type(self) -> Type:
        return self.desc.type

    def __str__(self) -> str:
        return f"{self.name} {self.desc}"


@dataclass(slots=True, eq=False)
class Node:
    """One op: its name in htp-ops.def, the 16 words of its parameters, inputs (None = absent) and outputs.

    `sequence`: of an op between the graphs of a group (hexnpu.group), the number of its fence within a run.
    """

    op: str
    params: tuple[int, ...]
    src: tuple[Tensor | None, ...]
    dst: tuple[Tensor, ...]
    sequence: int | None = None

    def __str__(self) -> str:
        return f"{self.op} -> {self.dst[-1].name}"


class Graph:
    """A graph of tensor ops. Every method gives a new Tensor; shapes that do not fit raise ShapeError at once."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: dict[str, Tensor] = {}
        self.weights: dict[str, Tensor] = {}
        self.states: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        # What sessions made of this graph, by session; hexnpu.session's own.
        self.compiled: dict[int, Any] = {}

    # Leaves

    def input(self, name: str, ne: Sequence[int], type: Type = Type.F32) -> Tensor:
        """A tensor that every run is given. F32, F16, I32 or I64."""
        self._free_name(name)
        if type not in DTYPES:
            raise ShapeError(
                f"input {name}: an input is F32, F16, I32 or I64, not {type.name}; a weight may be quantized"
            )
        self.inputs[name] = Tensor(self, name, dense(f"input {name}", type, ne), Kind.INPUT)
        return self.inputs[name]

    def weight(self, name: str, source: WeightSource) -> Tensor:
        """A constant, kept in its own type: a numpy array, a GGUF tensor, or (Type, ne, bytes).

        Graphs of one session that name the same weight with the same source object share its memory.
        """
        known = self.weights.get(name)
        if known is not None:
            if known.source is not source:
                raise UsageError(f"weight {name} was made from another source in this graph; use another name")
            return known
        self._free_name(name)
        type, ne = describe_source(name, source)
        self.weights[name] = Tensor(self, name, dense(f"weight {name}", type, ne), Kind.WEIGHT, source=source)
        return self.weights[name]

    def state(self, name: str, ne: Sequence[int], type: Type = Type.F32) -> Tensor:
        """Memory that outlives a run, zero at first; graphs of one session that name the same state share it."""
        desc = dense(f"state {name}", type, ne)
        known = self.states.get(name)
        if known is not None:
            if known.desc != desc:
                raise UsageError(f"state {name} is {known.desc} in this graph, not {desc}")
            return known
        self._free_name(name)
        self.states[name] = Tensor(self, name, desc, Kind.STATE)
        return self.states[name]

    def output(self, t: Tensor, name: str) -> Tensor:
        """Names a tensor that `run` gives back."""
        self._own("output", (t,))
        if name in self.outputs:
            raise UsageError(f"output {name} is named twice")
        self.outputs[name] = t
        return t

    # Ops

    def op(self, op: str, *src: Tensor | None, dst: Tensor | None = None, name: str = "", **params: Any) -> Tensor:
        """Any op of htp-ops.def, by name. `dst`: the state (or a view of one) it writes, which the family's `infer`
        sees as the last source; otherwise the op makes its own result."""
        if op not in op_table():
            raise UsageError(f"no op {op!r}; `hexnpu ops` lists them")
        self._own(op, (*src, dst))
        operands = src if dst is None else (*src, dst)
        try:
            module = family(op)
            results = module.infer(op, tuple(None if t is None else t.desc for t in operands), params)
            words = module.pack(op, params)
        except Refusal as error:
            raise UsageError(f"{error} and no fallback in this version") from None
        except ShapeError as error:
            raise ShapeError(
                f"{error} ({op} of {', '.join('nothing' if t is None else str(t) for t in src)})"
            ) from None
        if dst is not None:
            if dst.root.kind is not Kind.STATE:
                raise UsageError(f"{op} can only write into a state, and {dst.name} is a {dst.root.kind.value}")
            outs = [self._view(dst, dst.desc, 0, name)]
        else:
            label = name or f"{op.lower()}_{len(self.nodes)}"
            outs = [Tensor(self, label, wieldy(op, d), Kind.RESULT) for d in results]
        self.nodes.append(Node(op, words, src, tuple(outs)))
        return outs[0]

    def mul_mat(self, w: Tensor, x: Tensor, *, section: int = 0, pair: bool = False, name: str = "") -> Tensor:
        """dst[n, m] = sum_k w[k, n] * x[k, m]: w [K, N], x [K, M] F32 -> F32 [N, M].

        `section`: of a quantized weight, so many k (in whole tiles of 32) are summed as floats, and the sections' sums
        so that the result hardly depends on their order. `pair`: gives such a sum as F32 [N, M, 2], the float and what
        it lacks: one rank's part for `GroupGraph.allreduce(pairs=True)`.
        """
        params: dict[str, Any] = {"section": section, "pair": pair} if section or pair else {}
        return self.op("MUL_MAT", w, x, name=name, **params)

    def add(self, a: Tensor, b: Tensor, *, name: str = "") -> Tensor:
        """a + b, b repeated over a as ggml broadcasts; so do sub, mul and div."""
        return self.op("ADD", a, b, name=name)

    def sub(self, a: Tensor, b: Tensor, *, name: str = "") -> Tensor:
        return self.op("SUB", a, b, name=name)

    def mul(self, a: Tensor, b: Tensor, *, name: str = "") -> Tensor:
        return self.op("MUL", a, b, name=name)

    def div(self, a: Tensor, b: Tensor, *, name: str = "") -> Tensor:
        return self.op("DIV", a, b, name=name)

    def scale(self, x: Tensor, scale: float, bias: float = 0.0, *, name: str = "") -> Tensor:
        """x * scale + bias."""
        return self.op("SCALE", x, s=scale, b=bias, name=name)

    def rms_norm(self, x: Tensor, *, eps: float = 1e-5, name: str = "") -> Tensor:
        """x / sqrt(mean(x^2) + eps) of each row; a following mul by a weight becomes one op with it."""
        return self.op("RMS_NORM", x, eps=eps, name=name)

    def rope(
        self,
        x: Tensor,
        pos: Tensor,
        freq_factors: Tensor | None = None,
        *,
        mode: str = "normal",
        n_dims: int | None = None,
        freq_base: float = 10000.0,
        freq_scale: float = 1.0,
        n_ctx_orig: int = 0,
        ext_factor: float = 0.0,
        attn_factor: float = 1.0,
        beta_fast: float = 32.0,
        beta_slow: float = 1.0,
        name: str = "",
    ) -> Tensor:
        """Rotary embedding of x [D, heads, tokens] at pos I32 [tokens]. `mode`: "normal" (neighbours are a pair) or
        "neox" (halves are)."""
        if mode not in ROPE_MODES:
            raise UsageError(f"rope mode {mode!r}: there are {' and '.join(ROPE_MODES)}")
        return self.op(
            "ROPE", x, pos, freq_factors, name=name, n_dims=n_dims or x.ne[0], mode=ROPE_MODES[mode],
            n_ctx_orig=n_ctx_orig, freq_base=freq_base, freq_scale=freq_scale, ext_factor=ext_factor,
            attn_factor=attn_factor, beta_fast=beta_fast, beta_slow=beta_slow,
        )  # fmt: skip

    def silu(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.op("UNARY_SILU", x, name=name)

    def gelu(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.op("UNARY_GELU", x, name=name)

    def sigmoid(self, x: Tensor, *, name: str = "") -> Tensor:
        return self.op("UNARY_SIGMOID", x, name=name)

    def swiglu(self, a: Tensor, b: Tensor | None = None, *, swapped: bool = False, name: str = "") -> Tensor:
        """silu(a) * b; without b, a row's first half is a and its second b (the other way round with `swapped`)."""
        return self.op("GLU_SWIGLU", a, b, swapped=swapped, name=name)

    def swiglu_oai(
        self, a: Tensor, b: Tensor | None = None, *, alpha: float = 1.702, limit: float = 7.0, swapped: bool = False,
        name: str = "",
    ) -> Tensor:  # fmt: skip
        """gpt-oss's gate: x = min(a, limit), x * sigmoid(alpha * x) * (clamp(b, -limit, limit) + 1)."""
        return self.op("GLU_SWIGLU_OAI", a, b, alpha=alpha, limit=limit, swapped=swapped, name=name)

    def geglu(self, a: Tensor, b: Tensor | None = None, *, swapped: bool = False, name: str = "") -> Tensor:
        """gelu(a) * b, tanh form."""
        return self.op("GLU_GEGLU", a, b, swapped=swapped, name=name)

    def softmax(
        self, x: Tensor, mask: Tensor | None = None, sinks: Tensor | None = None, *, scale: float = 1.0,
        max_bias: float = 0.0, name: str = "",
    ) -> Tensor:  # fmt: skip
        """softmax(x * scale + mask) of each row."""
        return self.op("SOFTMAX", x, mask, sinks, scale=scale, max_bias=max_bias, name=name)

    def flash_attn(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, sinks: Tensor | None = None, *,
        scale: float | None = None, max_bias: float = 0.0, logit_softcap: float = 0.0, name: str = "",
    ) -> Tensor:  # fmt: skip
        """Attention: q [D, T, H], k [D, KV, Hkv], v [Dv, KV, Hkv], mask F16 [KV, T] -> F32 [Dv, H, T].
        `scale` is 1 / sqrt(D) where not given."""
        return self.op(
            "FLASH_ATTN_EXT", q, k, v, mask, sinks, name=name,
            scale=1.0 / math.sqrt(q.ne[0]) if scale is None else scale, max_bias=max_bias, logit_softcap=logit_softcap,
        )  # fmt: skip

    def get_rows(self, table: Tensor, idx: Tensor, type: Type | None = None, *, name: str = "") -> Tensor:
        """Rows idx (I32 or I64) of `table`, as F32 or as `type`."""
        params: dict[str, Any] = {} if type is None else {"type": type}
        return self.op("GET_ROWS", table, idx, name=name, **params)

    def set_rows(self, state: Tensor, rows: Tensor, idx: Tensor, *, name: str = "") -> Tensor:
        """Writes rows (F32) into the rows idx (I32 or I64) of a state; gives the state as it is afterwards."""
        return self.op("SET_ROWS", rows, idx, dst=state, name=name)

    def cpy(self, x: Tensor, type: Type, *, name: str = "") -> Tensor:
        """A contiguous copy of x as `type`."""
        return self.op("CPY", x, type=type, name=name)

    def cont(self, x: Tensor, *, name: str = "") -> Tensor:
        """x itself where it is contiguous, otherwise a contiguous copy."""
        return x if x.desc.is_contiguous else self.cpy(x, x.type, name=name)

    # Views: they cost nothing

    def reshape(self, x: Tensor, ne: Sequence[int], *, name: str = "") -> Tensor:
        """The same elements in another shape; x must be contiguous."""
        self._own("reshape", (x,))
        desc = dense(f"reshape of {x}", x.type, ne)
        if desc.n_elements != x.desc.n_elements:
            raise ShapeError(f"reshape of {x}: {desc.n_elements} elements in {tuple(ne)}, it has {x.desc.n_elements}")
        if not x.desc.is_contiguous:
            raise ShapeError(f"reshape of {x}: it is not contiguous (strides {x.nb}); use cont first")
        return self._view(x, desc, 0, name)

    def permute(self, x: Tensor, axes: Sequence[int], *, name: str = "") -> Tensor:
        """Dimension i of x becomes dimension axes[i], as ggml_permute."""
        self._own("permute", (x,))
        if sorted(axes) != [0, 1, 2, 3]:
            raise ShapeError(f"permute of {x}: {tuple(axes)} is no order of 0, 1, 2, 3")
        if axes[0] != 0 and BLOCKS[x.type][0] > 1:
            raise ShapeError(f"permute of {x}: the rows of a {x.type.name} tensor are blocks and stay dimension 0")
        ne, nb = [0] * 4, [0] * 4
        for i, axis in enumerate(axes):
            ne[axis], nb[axis] = x.ne[i], x.nb[i]
        return self._view(x, Desc(x.type, _shape(ne), _shape(nb)), 0, name)

    def transpose(self, x: Tensor, *, name: str = "") -> Tensor:
        """Swaps the first two dimensions."""
        return self.permute(x, (1, 0, 2, 3), name=name)

    def slice(self, x: Tensor, dim: int, start: int, stop: int, *, name: str = "") -> Tensor:
        """Elements start..stop of a dimension."""
        self._own("slice", (x,))
        if not 0 <= dim < 4 or not 0 <= start <= stop <= x.ne[dim]:
            raise ShapeError(f"slice of {x}: {start}:{stop} of dimension {dim} is not inside it")
        elements = BLOCKS[x.type][0] if dim == 0 else 1
        if start % elements or stop % elements:
            raise ShapeError(f"slice of {x}: {start}:{stop} cuts a {x.type.name} block of {elements}")
        ne = list(x.ne)
        ne[dim] = stop - start
        return self._view(x, Desc(x.type, _shape(ne), x.nb), start // elements * x.nb[dim], name)

    def _view(self, x: Tensor, desc: Desc, offset: int, name: str) -> Tensor:
        view = Tensor(self, name or x.name, desc, x.kind, offset=x.offset + offset)
        view.root = x.root
        return view

    def _own(self, what: str, tensors: Sequence[Tensor | None]) -> None:
        for t in tensors:
            if t is None:
                continue
            if not isinstance(t, Tensor):
                raise UsageError(f"{what} takes tensors of the graph, not {type(t).__name__}; see Graph.weight")
            if t.graph is not self:
                raise UsageError(f"{what}: {t.name} belongs to another graph")

    def _free_name(self, name: str) -> None:
        for leaves in (self.inputs, self.weights, self.states):
            if name in leaves:
                raise UsageError(f"the graph has a tensor named {name} already")


def _shape(values: Sequence[int]) -> Shape:
    a, b, c, d = values
    return (a, b, c, d)
