"""The llama architecture as a Graph: embeddings, layers of attention over a KV cache and a gated FFN, output head.

Tensor and metadata names are those of llama.cpp's GGUF files (gguf.constants.MODEL_ARCH.LLAMA).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hexnpu.graph import Graph, Tensor
from hexnpu.models.gguf_file import GgufError, GgufFile
from hexnpu.tensor import TILE, Type

KvType = Literal["f16", "q8_0"]
KV_TYPES: dict[str, Type] = {"f16": Type.F16, "q8_0": Type.Q8_0}
# FFN columns that are summed as plain floats, where a group may split the sum (hexnpu.models.split).
FFN_SECTION = 128
# Decode graphs see the KV cache in steps of so many rows, so that one compiled graph serves as many tokens.
KV_STEP = 256


@dataclass(frozen=True, slots=True)
class Rope:
    n_dims: int
    freq_base: float
    freq_scale: float
    n_ctx_orig: int
    ext_factor: float
    attn_factor: float


@dataclass(frozen=True, slots=True)
class Config:
    n_layers: int
    n_ctx_train: int
    n_embd: int
    n_ff: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    value_dim: int
    n_vocab: int
    eps: float
    rope: Rope


def read_config(file: GgufFile) -> Config:
    """The model's shape from the file's metadata. Raises GgufError for another architecture or senseless numbers."""
    arch = file.text("general.architecture")
    if arch != "llama":
        raise GgufError(f"{file.path}: the architecture is {arch!r}; this version runs llama models")
    if file.integer("llama.expert_count", 0):
        raise GgufError(f"{file.path}: mixture-of-experts models need MUL_MAT_ID, which this version does not have")
    n_heads = file.integer("llama.attention.head_count")
    n_embd = file.integer("llama.embedding_length")
    n_kv_heads = file.integer("llama.attention.head_count_kv", n_heads)
    if n_heads < 1 or n_kv_heads < 1 or n_heads % n_kv_heads:
        raise GgufError(f"{file.path}: {n_heads} query heads cannot share {n_kv_heads} KV heads evenly")
    head_dim = file.integer("llama.attention.key_length", n_embd // n_heads)
    n_ctx_train = file.integer("llama.context_length")
    return Config(
        n_layers=file.integer("llama.block_count"),
        n_ctx_train=n_ctx_train,
        n_embd=n_embd,
        n_ff=file.integer("llama.feed_forward_length"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        value_dim=file.integer("llama.attention.value_length", head_dim),
        n_vocab=file.tensor("token_embd.weight").ne[1],
        eps=file.number("llama.attention.layer_norm_rms_epsilon"),
        rope=_read_rope(file, head_dim, n_ctx_train),
    )


def _read_rope(file: GgufFile, head_dim: int, n_ctx_train: int) -> Rope:
    scaling = file.text("llama.rope.scaling.type", "linear")
    if scaling not in ("none", "linear", "yarn"):
        raise GgufError(f"{file.path}: rope scaling {scaling!r} is not known; none, linear and yarn are")
    # Older files say llama.rope.scale_linear.
    factor = file.number("llama.rope.scaling.factor", file.number("llama.rope.scale_linear", 1.0))
    if factor <= 0 or scaling == "none":
        factor = 1.0
    return Rope(
        n_dims=file.integer("llama.rope.dimension_count", head_dim),
        freq_base=file.number("llama.rope.freq_base", 10000.0),
        freq_scale=1.0 / factor,
        n_ctx_orig=file.integer("llama.rope.scaling.original_context_length", n_ctx_train),
        ext_factor=1.0 if scaling == "yarn" else 0.0,
        attn_factor=file.number("llama.rope.scaling.attn_factor", 1.0),
    )


@dataclass(frozen=True, slots=True)
class Step:
    """The inputs of a step that every layer reads; `out_rows` where fewer rows than tokens reach the head."""

    pos: Tensor
    kv_rows: Tensor
    mask: Tensor
    out_rows: Tensor | None


class Llama:
    """Builds the graphs of one model. All graphs share the file's weights and the KV cache of `n_ctx` rows a layer."""

    def __init__(self, file: GgufFile, n_ctx: int, kv_type: KvType = "f16") -> None:
        self.file, self.n_ctx, self.kv_type = file, n_ctx, KV_TYPES[kv_type]
        self.config = read_config(file)
        self._check_shapes()

    def graph(self, n_tokens: int, n_kv: int, n_outputs: int = 1) -> Graph:
        """The graph of one step.

        Inputs: tokens and pos I32 [n_tokens], kv_rows I64 [n_tokens] (where the tokens' K and V go), mask F16
        [n_kv, n_tokens] (0 = visible, -inf = not) and, with fewer outputs than tokens, out_rows I32 [n_outputs].
        Output: logits F32 [n_vocab, n_outputs].
        """
        g = Graph()
        x = self.embed(g, n_tokens)
        step = self.step(g, n_tokens, n_kv, n_outputs)
        for layer in range(self.config.n_layers):
            x = self.layer(g, layer, x, step)
        g.output(self.head(g, x), "logits")
        return g

    def logits(self, result: Mapping[str, NDArray[np.float32]], n_outputs: int) -> NDArray[np.float32]:
        """[n_outputs, n_vocab] from the outputs of a run."""
        return result["logits"].reshape(n_outputs, self.config.n_vocab)

    def embed(self, g: Graph, n_tokens: int) -> Tensor:
        tokens = g.input("tokens", (n_tokens,), Type.I32)
        return g.get_rows(self._weight(g, "token_embd.weight"), tokens, name="inp_embd")

    def step(self, g: Graph, n_tokens: int, n_kv: int, n_outputs: int) -> Step:
        pos = g.input("pos", (n_tokens,), Type.I32)
        kv_rows = g.input("kv_rows", (n_tokens,), Type.I64)
        mask = g.input("mask", (n_kv, n_tokens), Type.F16)
        return Step(
            pos, kv_rows, mask, g.input("out_rows", (n_outputs,), Type.I32) if n_outputs < n_tokens else None
        )

    def layer(self, g: Graph, layer: int, x: Tensor, step: Step) -> Tensor:
        attention, x = self.attention(g, layer, x, step)
        x = self._project_back(g, f"blk.{layer}.attn_output", attention, f"ffn_inp-{layer}", x)
        return self._project_back(g, f"blk.{layer}.ffn_down", self.gated(g, layer, x), f"l_out-{layer}", x)

    def section(self, weight: str) -> int:
        """Of the sums that a group may split between sections: on one NPU the same, so that both give the same bits."""
        return FFN_SECTION if weight.endswith("ffn_down") else math.lcm(self.config.value_dim, TILE)

    def biased(self, g: Graph, weight: str, y: Tensor) -> Tensor:
        """y plus the weight's bias, where the file has one."""
        name = f"{weight}.bias"
        return g.add(y, self._weight(g, name), name=y.name) if name in self.file.tensors else y

    def attention(self, g: Graph, layer: int, x: Tensor, step: Step) -> tuple[Tensor, Tensor]:
        """The heads' outputs before their projection, and x; of the last layer only the rows that reach the head."""
        attention = self._attention(g, layer, x, step)
        if step.out_rows is not None and layer == self.config.n_layers - 1:
            return g.get_rows(attention, step.out_rows), g.get_rows(x, step.out_rows)
        return attention, x

    def head(self, g: Graph, x: Tensor) -> Tensor:
        x = self._norm(g, "output_norm", x, "result_norm")
        return g.mul_mat(self._weight(g, self.head_name), x, name="result_output")

    @property
    def head_name(self) -> str:
        return "output.weight" if "output.weight" in self.file.tensors else "token_embd.weight"

    def _attention(self, g: Graph, layer: int, x: Tensor, step: Step) -> Tensor:
        c, n_tokens = self.config, x.ne[1]
        pos, kv_rows, mask = step.pos, step.kv_rows, step.mask
        normed = self._norm(g, f"blk.{layer}.attn_norm", x, f"attn_norm-{layer}")
        q, k, v = (self._project(g, f"blk.{layer}.attn_{p}", normed, f"{p.upper()}cur-{layer}") for p in "qkv")
        q = self._rope(g, g.reshape(q, (c.head_dim, c.n_heads, n_tokens)), pos)
        k = self._rope(g, g.reshape(k, (c.head_dim, c.n_kv_heads, n_tokens)), pos)
        n_kv = mask.ne[0]
        k_cache = self._store(g, f"cache_k_l{layer}", g.reshape(k, (c.head_dim * c.n_kv_heads, n_tokens)), kv_rows)
        v_cache = self._store(g, f"cache_v_l{layer}", v, kv_rows)
        attention = g.flash_attn(
            g.permute(q, (0, 2, 1, 3)),
            self._cache_view(g, k_cache, c.head_dim, n_kv),
            self._cache_view(g, v_cache, c.value_dim, n_kv),
            mask,
            scale=1.0 / math.sqrt(c.head_dim),
            name=f"kqv_out-{layer}",
        )
        return g.reshape(attention, (c.value_dim * c.n_heads, n_tokens))

    def _store(self, g: Graph, name: str, rows: Tensor, kv_rows: Tensor) -> Tensor:
        cache = g.state(name, (rows.ne[0], self.n_ctx), self.kv_type)
        return g.set_rows(cache, rows, kv_rows)

    def _cache_view(self, g: Graph, cache: Tensor, dim: int, n_kv: int) -> Tensor:
        """[dim, n_kv, heads] of a cache [dim * heads, n_ctx]: the first n_kv rows, each head's rows together."""
        heads = g.reshape(cache, (dim, self.config.n_kv_heads, self.n_ctx))
        return g.permute(g.slice(heads, 2, 0, n_kv), (0, 2, 1, 3))

    def gated(self, g: Graph, layer: int, x: Tensor) -> Tensor:
        """The FFN before its last projection."""
        normed = self._norm(g, f"blk.{layer}.ffn_norm", x, f"ffn_norm-{layer}")
        gate = self._project(g, f"blk.{layer}.ffn_gate", normed, f"ffn_gate-{layer}")
        up = self._project(g, f"blk.{layer}.ffn_up", normed, f"ffn_up-{layer}")
        return g.swiglu(gate, up, name=f"ffn_swiglu-{layer}")

    def _norm(self, g: Graph, weight: str, x: Tensor, name: str) -> Tensor:
        return g.mul(g.rms_norm(x, eps=self.config.eps), self._weight(g, f"{weight}.weight"), name=name)

    def _project(self, g: Graph, weight: str, x: Tensor, name: str, section: int = 0) -> Tensor:
        """weight @ x, plus its bias where the file has one. Names are those of llama.cpp's graphs."""
        return self.biased(g, weight, g.mul_mat(self._weight(g, f"{weight}.weight"), x, section=section, name=name))

    def _project_back(self, g: Graph, weight: str, x: Tensor, name: str, residual: Tensor) -> Tensor:
        return g.add(self._project(g, weight, x, name, self.section(weight)), residual, name=name)

    def _rope(self, g: Graph, x: Tensor, pos: Tensor) -> Tensor:
        r = self.config.rope
        factors = self._weight(g, "rope_freqs.weight") if "rope_freqs.weight" in self.file.tensors else None
        return g.rope(
            x,
            pos,
            factors,
            n_dims=r.n_dims,
            freq_base=r.freq_base,
            freq_scale=r.freq_scale,
            n_ctx_orig=r.n_ctx_orig,
            ext_factor=r.ext_factor,
            attn_factor=r.attn_factor,
            name=x.name,
        )

    def _weight(self, g: Graph, name: str) -> Tensor:
        return g.weight(name, self.file.tensor(name))

    def _check_shapes(self) -> None:
        """Every tensor the graph will ask for is there and has the shape that the metadata promises."""
        c = self.config
        q, kv, v = c.head_dim * c.n_heads, c.head_dim * c.n_kv_heads, c.value_dim * c.n_kv_heads
        layer = {
            "attn_norm": (c.n_embd,),
            "attn_q": (c.n_embd, q),
            "attn_k": (c.n_embd, kv),
            "attn_v": (c.n_embd, v),
            "attn_output": (c.value_dim * c.n_heads, c.n_embd),
            "ffn_norm": (c.n_embd,),
            "ffn_gate": (c.n_embd, c.n_ff),
            "ffn_up": (c.n_embd, c.n_ff),
            "ffn_down": (c.n_ff, c.n_embd),
        }
        want = {f"blk.{i}.{part}.weight": ne for i in range(c.n_layers) for part, ne in layer.items()}
        want |= {"token_embd.weight": (c.n_embd, c.n_vocab), "output_norm.weight": (c.n_embd,)}
        if "output.weight" in self.file.tensors:
            want["output.weight"] = (c.n_embd, c.n_vocab)
        for name, ne in want.items():
            found = self.file.tensor(name).ne
            if found != (*ne, 1, 1, 1)[:4]:
                raise GgufError(f"{self.file.path}: {name} is {found[:2]}, the metadata says {ne}; the file is damaged")
