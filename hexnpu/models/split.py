"""A llama model over the ranks of a group: layers in turn, or every layer's heads and FFN columns side by side.

Tensor split: rank r has some query heads with the KV heads they read, and some columns of the FFN; what the ranks'
output projections give is summed by ALLREDUCE, twice a layer. With quantized weights, which round the activations that
they meet, a last bit of a sum could grow; so their parts of sums are pairs (plan.matmul), cut between sections, and
their sum is the one of one NPU. Layer split: rank r has some layers, and hands over to the next. Shares need not be
even. A cut through the K of a quantized weight lies between two of its blocks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hexnpu.errors import UsageError
from hexnpu.graph import Graph, Tensor
from hexnpu.group_graph import GroupGraph
from hexnpu.models.gguf_file import GgufTensor
from hexnpu.models.llama import FFN_SECTION, Llama, Step
from hexnpu.repack import TILED
from hexnpu.tensor import BLOCKS, TILE, Shape, Type, row_bytes

SplitMode = Literal["layer", "tensor"]
SPLIT_MODES: tuple[SplitMode, ...] = ("layer", "tensor")


@dataclass(frozen=True, slots=True)
class Split:
    """How a model is split. `weights`: each rank's share (None: equal shares)."""

    mode: SplitMode = "layer"
    weights: tuple[float, ...] | None = None


def parse_split(mode: str, weights: str | None, n_ranks: int) -> Split:
    """A split as it is written on the command line: `layer` or `tensor`, and shares as in `3,1`."""
    modes = [m for m in SPLIT_MODES if m == mode]
    if not modes:
        raise UsageError(f"--split-mode is {mode!r}; it must be one of {', '.join(SPLIT_MODES)}")
    if n_ranks == 1 and (modes[0] != "layer" or weights is not None):
        flag = "--devices-weights" if weights is not None else f"--split-mode {mode}"
        raise UsageError(f"{flag} is for several devices; name them, as in --devices HTP0:0,HTP1:0")
    try:
        return Split(modes[0], tuple(map(float, weights.split(","))) if weights is not None else None)
    except ValueError:
        raise UsageError(f"--devices-weights is {weights!r}; it must be numbers, as 3,1") from None


@dataclass(frozen=True, slots=True)
class Share:
    """Elements first..end of something that is split."""

    first: int
    end: int

    @property
    def n(self) -> int:
        return self.end - self.first

    def times(self, size: int) -> Share:
        return Share(self.first * size, self.end * size)


def cut(n: int, weights: Sequence[float], allowed: Sequence[int]) -> list[Share]:
    """Shares of 0..n in proportion to `weights`, cut at the nearest of the `allowed` places (sorted, with 0 and n)."""
    total = sum(weights)
    bounds = [0]
    for sum_so_far in list(accumulate(weights))[:-1]:
        ideal = n * sum_so_far / total
        at = bisect_left(allowed, ideal)
        near = [allowed[i] for i in (at, at - 1) if 0 <= i < len(allowed)]
        bounds.append(max(bounds[-1], min(near, key=lambda place: abs(place - ideal))))
    return [Share(a, b) for a, b in zip(bounds, [*bounds[1:], n], strict=True)]


def cut_heads(n_heads: int, n_kv_heads: int, weights: Sequence[float], fits: Callable[[int], bool]) -> list[Share]:
    """Query heads of each rank. A rank has whole groups (the query heads of one KV head), or part of a single one,
    whose KV head it then shares with others. `fits`: whether the output projection may be cut before a head."""
    group = n_heads // n_kv_heads
    places = [h for h in range(n_heads + 1) if h == n_heads or fits(h)]
    if n_kv_heads >= len(weights):
        return cut(n_heads, weights, [h for h in places if h % group == 0])
    shares = []
    for kv, ranks in enumerate(cut(len(weights), [1.0] * n_kv_heads, range(len(weights) + 1))):
        first, end = kv * group, (kv + 1) * group
        inside = [0, *(h - first for h in places if first < h < end), group]
        mine = weights[ranks.first : ranks.end]
        # A group whose edge cannot be cut would need a rank with parts of two groups.
        if not all(h in places for h in (first, end)):
            raise UsageError(
                f"{n_heads} heads over {n_kv_heads} KV heads cannot be split over {len(weights)} ranks between blocks "
                "of attn_output; use --split-mode layer"
            )
        shares += [Share(first + s.first, first + s.end) for s in cut(group, mine, inside)]
    return shares


@dataclass(frozen=True, eq=False)
class WeightSlice:
    """Rows and columns of a tensor of the file, read when they are uploaded."""

    source: GgufTensor
    rows: Share | None = None
    cols: Share | None = None

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def type(self) -> Type:
        return self.source.type

    @property
    def ne(self) -> Shape:
        ne = self.source.ne
        return (self.cols.n if self.cols else ne[0], self.rows.n if self.rows else ne[1], *ne[2:])

    def read(self) -> NDArray[np.uint8]:
        source = self.source
        step = row_bytes(source.type, source.ne[0])
        rows = self.rows or Share(0, source.ne[1])
        part = replace(source, offset=source.offset + rows.first * step, n_bytes=rows.n * step)
        data = part.read().reshape(rows.n, step)
        if self.cols is None:
            return data.reshape(-1)
        first, end = (row_bytes(source.type, c) for c in (self.cols.first, self.cols.end))
        return np.ascontiguousarray(data[:, first:end]).reshape(-1)


class _Shard(Llama):
    """One rank's part of a tensor-split model: a llama with fewer heads and columns, over slices of the weights."""

    def __init__(self, model: Llama, heads: Share, columns: Share, vocab: Share) -> None:
        c = model.config
        group = c.n_heads // c.n_kv_heads
        self.heads, self.columns, self.vocab = heads, columns, vocab
        self.kv = Share(heads.first // group, -(-heads.end // group)) if heads.n else Share(0, 0)
        self.file, self.n_ctx, self.kv_type = model.file, model.n_ctx, model.kv_type
        self.config = replace(c, n_heads=heads.n, n_kv_heads=self.kv.n, n_ff=columns.n)
        self._slices: dict[str, WeightSlice] = {}

    def attention_part(self, g: Graph, layer: int, x: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """This rank's part of the attention's output, and x, both of the rows that are still wanted."""
        if self.heads.n:
            attention, x = self.attention(g, layer, x, step)
            return self._part(g, f"blk.{layer}.attn_output", attention), x
        if step.out_rows is not None and layer == self.config.n_layers - 1:
            x = g.get_rows(x, step.out_rows)
        return self._nothing(g, f"blk.{layer}.attn_output", x), x

    def ffn_part(self, g: Graph, layer: int, x: Tensor) -> Tensor:
        """This rank's part of the FFN's output."""
        weight = f"blk.{layer}.ffn_down"
        return self._part(g, weight, self.gated(g, layer, x)) if self.columns.n else self._nothing(g, weight, x)

    def head_part(self, g: Graph, x: Tensor) -> Tensor:
        """The logits of this rank's part of the vocabulary."""
        x = self._norm(g, "output_norm", x, "result_norm")
        head = self._sliced(self.head_name, WeightSlice(self.file.tensor(self.head_name), rows=self.vocab))
        return g.mul_mat(g.weight("output.weight", head), x, name="result_output")

    def in_pairs(self, weight: str) -> bool:
        """Whether the parts of a projection are pairs."""
        return self.file.tensor(f"{weight}.weight").type in TILED

    def _part(self, g: Graph, weight: str, x: Tensor) -> Tensor:
        w, name = self._weight(g, f"{weight}.weight"), f"{weight}.part"
        return g.mul_mat(w, x, section=self.section(weight), pair=self.in_pairs(weight), name=name)

    def _nothing(self, g: Graph, weight: str, x: Tensor) -> Tensor:
        """What a rank without a share adds: a state that nobody writes."""
        n = 1 + self.in_pairs(weight)
        return g.state(f"nothing-{x.ne[1]}x{n}", (*x.ne[:2], n))

    def _weight(self, g: Graph, name: str) -> Tensor:
        rows, cols = self._cut_of(name)
        if rows is None and cols is None:
            return super()._weight(g, name)
        return g.weight(name, self._sliced(name, WeightSlice(self.file.tensor(name), rows, cols)))

    def _sliced(self, name: str, new: WeightSlice) -> WeightSlice:
        """The same object for all graphs, so that they share its memory."""
        return self._slices.setdefault(name, new)

    def _cut_of(self, name: str) -> tuple[Share | None, Share | None]:
        """Rows and columns of a layer's weight that are this rank's."""
        c, part = self.config, name.split(".")[-2]
        outputs = {
            "attn_q": self.heads.times(c.head_dim),
            "attn_k": self.kv.times(c.head_dim),
            "attn_v": self.kv.times(c.value_dim),
            "ffn_gate": self.columns,
            "ffn_up": self.columns,
        }
        inputs = {"attn_output": self.heads.times(c.value_dim), "ffn_down": self.columns}
        if name.endswith(".bias"):
            return None, outputs.get(part)
        return outputs.get(part), inputs.get(part)


class SplitLlama:
    """Builds the GroupGraphs of a model. They share the file's weights, each on its rank only, and the KV cache."""

    def __init__(self, model: Llama, n_ranks: int, split: Split) -> None:
        self._model, self.n_ranks, self.split, self.config = model, n_ranks, split, model.config
        self.weights = split.weights or (1.0,) * n_ranks
        if split.mode not in SPLIT_MODES:
            raise UsageError(f"split mode {split.mode!r}; there are {' and '.join(SPLIT_MODES)}")
        given = f"shares {', '.join(f'{w:g}' for w in self.weights)} of {n_ranks} devices"
        if len(self.weights) != n_ranks:
            raise UsageError(f"{given}: there must be one each")
        if min(self.weights) < 0 or not 0 < sum(self.weights) < float("inf"):
            raise UsageError(f"{given}: each must be a number, none below 0 and not all of them 0")

    def graph(self, n_tokens: int, n_kv: int, n_outputs: int = 1) -> GroupGraph:
        """The graphs of one step: inputs as of Llama.graph, outputs for `logits`."""
        build = self._tensor_split if self.split.mode == "tensor" else self._layer_split
        return build(GroupGraph(self.n_ranks), n_tokens, n_kv, n_outputs)

    def logits(self, result: Mapping[str, NDArray[np.float32]], n_outputs: int) -> NDArray[np.float32]:
        """[n_outputs, n_vocab] from the outputs of a run."""
        if "logits" in result:
            return self._model.logits(result, n_outputs)
        parts = [result[f"logits-{r}"].reshape(n_outputs, s.vocab.n) for r, s in enumerate(self.shards) if s.vocab.n]
        return np.concatenate(parts, axis=1)

    def describe(self) -> list[str]:
        """What each rank has, a line each."""
        if self.split.mode == "layer":
            return [f"layers {s.first} to {s.end - 1}" if s.n else "nothing" for s in self.layers]
        return [
            f"{_count(s.heads.n, 'head')} over {_count(s.kv.n, 'KV head')}, "
            f"{_count(s.columns.n, 'FFN column')}, {_count(s.vocab.n, 'logit')}"
            for s in self.shards
        ]

    # Layers in turn

    @cached_property
    def layers(self) -> list[Share]:
        n = self.config.n_layers
        return cut(n, self.weights, range(n + 1))

    def _layer_split(self, g: GroupGraph, n_tokens: int, n_kv: int, n_outputs: int) -> GroupGraph:
        model, x = self._model, None
        for rank, share in enumerate(self.layers):
            if not share.n:
                continue
            graph = g.ranks[rank]
            x = model.embed(graph, n_tokens) if x is None else g.hand_over(x, rank, name=f"l_in-{share.first}")
            step = model.step(graph, n_tokens, n_kv, n_outputs if share.end == self.config.n_layers else n_tokens)
            for layer in range(share.first, share.end):
                x = model.layer(graph, layer, x, step)
        assert x is not None
        x.graph.output(model.head(x.graph, x), "logits")
        return g

    # Heads and columns side by side

    @cached_property
    def shards(self) -> list[_Shard]:
        model, c = self._model, self.config
        block = self._block("attn_output")
        heads = cut_heads(c.n_heads, c.n_kv_heads, self.weights, lambda h: h * c.value_dim % block == 0)
        even = next((u for u in (FFN_SECTION, TILE) if c.n_ff >= u * self.n_ranks), 1)
        columns = cut(c.n_ff, self.weights, [*range(0, c.n_ff, max(even, self._block("ffn_down"))), c.n_ff])
        vocab = cut(c.n_vocab, self.weights, [*range(0, c.n_vocab, TILE), c.n_vocab])
        return [_Shard(model, heads[r], columns[r], vocab[r]) for r in range(self.n_ranks)]

    def _block(self, part: str) -> int:
        """Elements of the largest block along K of a weight in any layer."""
        tensors = (self._model.file.tensor(f"blk.{i}.{part}.weight") for i in range(self.config.n_layers))
        return max(BLOCKS[t.type][0] for t in tensors)

    def _tensor_split(self, g: GroupGraph, n_tokens: int, n_kv: int, n_outputs: int) -> GroupGraph:
        shards, ranks = self.shards, range(self.n_ranks)
        embedded = self._model.embed(g.ranks[0], n_tokens)
        xs = [embedded if r == 0 else g.hand_over(embedded, r) for r in ranks]
        steps = [shards[r].step(g.ranks[r], n_tokens, n_kv, n_outputs) for r in ranks]
        for layer in range(self.config.n_layers):
            parts = [shards[r].attention_part(g.ranks[r], layer, xs[r], steps[r]) for r in ranks]
            attention = [part for part, _ in parts]
            xs = self._add(g, f"blk.{layer}.attn_output", attention, [x for _, x in parts], f"ffn_inp-{layer}")
            ffn = [shards[r].ffn_part(g.ranks[r], layer, xs[r]) for r in ranks]
            xs = self._add(g, f"blk.{layer}.ffn_down", ffn, xs, f"l_out-{layer}")
        for r in ranks:
            if shards[r].vocab.n:
                g.ranks[r].output(shards[r].head_part(g.ranks[r], xs[r]), f"logits-{r}")
        return g

    def _add(
        self, g: GroupGraph, weight: str, parts: Sequence[Tensor], xs: Sequence[Tensor], name: str
    ) -> list[Tensor]:
        """On every rank the sum of the ranks' parts of a projection, its bias, and x."""
        totals = g.allreduce(parts, pairs=self.shards[0].in_pairs(weight), name=weight)
        sums = [shard.biased(graph, weight, t) for shard, graph, t in zip(self.shards, g.ranks, totals, strict=True)]
        return [graph.add(y, x, name=name) for graph, y, x in zip(g.ranks, sums, xs, strict=True)]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
