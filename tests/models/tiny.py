"""Small random llama models, written by the gguf package, in every shape that the demo model does not have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

BYTES = [f"<0x{b:02X}>" for b in range(256)]


@dataclass(frozen=True)
class Tiny:
    """A model's shape; the defaults are grouped-query attention with a separate output head."""

    n_layers: int = 2
    n_embd: int = 64
    n_ff: int = 96
    n_heads: int = 4
    n_kv_heads: int = 2
    tied: bool = False
    weights: gguf.GGMLQuantizationType = gguf.GGMLQuantizationType.F32
    rope_freqs: bool = False
    scaling: str | None = None
    factor: float = 1.0
    arch: str = "llama"
    leave_out: str | None = None
    nan_in: str | None = None
    biases: bool = False

    def write(self, path: Path, seed: int = 0) -> Path:
        writer = gguf.GGUFWriter(path, self.arch)
        tokens, scores, types = sentencepiece_vocabulary()
        self._metadata(writer, len(tokens))
        writer.add_tokenizer_model("llama")
        writer.add_token_list(tokens)
        writer.add_token_scores(scores)
        writer.add_token_types(types)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_unk_token_id(0)
        for name, shape in self.shapes(len(tokens)).items():
            if name != self.leave_out:
                self._tensor(writer, name, shape, np.random.default_rng([seed, len(name), sum(map(ord, name))]))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def shapes(self, n_vocab: int) -> dict[str, tuple[int, ...]]:
        """Tensor name -> numpy shape."""
        dim = self.n_embd // self.n_heads
        layer = {
            "attn_norm": (self.n_embd,),
            "attn_q": (self.n_embd, self.n_embd),
            "attn_k": (dim * self.n_kv_heads, self.n_embd),
            "attn_v": (dim * self.n_kv_heads, self.n_embd),
            "attn_output": (self.n_embd, self.n_embd),
            "ffn_norm": (self.n_embd,),
            "ffn_gate": (self.n_ff, self.n_embd),
            "ffn_up": (self.n_ff, self.n_embd),
            "ffn_down": (self.n_embd, self.n_ff),
        }
        shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (n_vocab, self.n_embd)}
        for i in range(self.n_layers):
            shapes |= {f"blk.{i}.{part}.weight": shape for part, shape in layer.items()}
            if self.biases:
                shapes |= {f"blk.{i}.{part}.bias": shape[:1] for part, shape in layer.items() if len(shape) > 1}
        shapes["output_norm.weight"] = (self.n_embd,)
        if not self.tied:
            shapes["output.weight"] = (n_vocab, self.n_embd)
        if self.rope_freqs:
            shapes["rope_freqs.weight"] = (dim // 2,)
        return shapes

    def _metadata(self, writer: gguf.GGUFWriter, n_vocab: int) -> None:
        writer.add_block_count(self.n_layers)
        writer.add_context_length(1024)
        writer.add_embedding_length(self.n_embd)
        writer.add_feed_forward_length(self.n_ff)
        writer.add_head_count(self.n_heads)
        writer.add_head_count_kv(self.n_kv_heads)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_rope_dimension_count(self.n_embd // self.n_heads)
        writer.add_rope_freq_base(10000.0)
        writer.add_vocab_size(n_vocab)
        if self.scaling:
            writer.add_rope_scaling_type(gguf.RopeScalingType(self.scaling))
            writer.add_rope_scaling_factor(self.factor)
            writer.add_rope_scaling_orig_ctx_len(256)

    def _tensor(
        self, writer: gguf.GGUFWriter, name: str, shape: tuple[int, ...], random: np.random.Generator
    ) -> None:
        if len(shape) == 1:
            data = random.uniform(0.5, 4.0 if "rope" in name else 1.5, shape).astype(np.float32)
        else:
            data = (random.standard_normal(shape) / np.sqrt(shape[-1]) * 2).astype(np.float32)
        if name == self.nan_in:
            data.flat[3] = np.nan
        if len(shape) == 1 or self.weights == gguf.GGMLQuantizationType.F32:
            writer.add_tensor(name, data)
        else:
            writer.add_tensor(name, gguf.quants.quantize(data, self.weights), raw_dtype=self.weights)


def sentencepiece_vocabulary() -> tuple[list[str], list[float], list[int]]:
    """Tokens, scores and types: three special ones, the 256 bytes, letters, and words merged from them."""
    letters = [*"▁abcdefghijklmnopqrstuvwxyz.,ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789é"]
    words = ["▁t", "he", "th", "▁the", "in", "▁a", "er", "on", "re", "▁w", "at", "en", "or", "▁of", "is", "it"]
    words += ["▁in", "▁and", "an", "nd", "ed", "es", "▁s", "ll", "ing", "▁b", "▁c"]
    tokens = ["<unk>", "<s>", "</s>", *BYTES, *words, *letters]
    scores = [0.0] * (3 + 256) + [-float(i) for i in range(len(words) + len(letters))]
    kinds = [gguf.TokenType.UNKNOWN, gguf.TokenType.CONTROL, gguf.TokenType.CONTROL]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * (len(words) + len(letters))
    return tokens, scores, [int(k) for k in kinds]
