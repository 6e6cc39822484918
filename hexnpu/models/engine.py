"""Runs a llama model token by token: prefill in ubatches, a KV cache, decode on replayed graphs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hexnpu.errors import UsageError
from hexnpu.group import Group
from hexnpu.models.gguf_file import GgufFile
from hexnpu.models.llama import KV_STEP, KvType, Llama
from hexnpu.models.sampler import Sampler
from hexnpu.models.split import Split, SplitLlama
from hexnpu.session import Session

UBATCH = 512
# Graphs of a prompt's odd last ubatch are rarely met again; decode graphs are, so a few of each are kept.
MAX_GRAPHS = 16


@dataclass(slots=True)
class Timing:
    """Wall time of the two phases."""

    n_prompt: int = 0
    prompt_s: float = 0.0
    n_generated: int = 0
    generate_s: float = 0.0


class Engine:
    """One sequence of tokens in one session, or in a group that the model is split over. `position` is how many tokens
    the KV cache holds."""

    def __init__(
        self, session: Session | Group, file: GgufFile, n_ctx: int, kv_type: KvType = "f16", split: Split | None = None
    ) -> None:
        model = Llama(file, -(-n_ctx // KV_STEP) * KV_STEP, kv_type)
        self._runner: Any = session
        if isinstance(session, Group):
            self.model: Llama | SplitLlama = SplitLlama(model, len(session.sessions), split or Split())
        else:
            self.model = model
        self.session, self.n_ctx, self.position = session, n_ctx, 0
        self.timing = Timing()
        self._graphs: dict[tuple[int, int, int], Any] = {}  # Graph, or GroupGraph in a group
        self._masks: dict[int, NDArray[np.float16]] = {}

    def evaluate(self, tokens: Sequence[int], n_outputs: int = 1) -> NDArray[np.float32]:
        """Appends `tokens` to the sequence; gives the logits [n_outputs, n_vocab] of the last `n_outputs` of them."""
        if not 1 <= n_outputs <= len(tokens):
            raise UsageError(f"{n_outputs} outputs asked of {len(tokens)} tokens")
        if self.position + len(tokens) > self.n_ctx:
            most = self.model.config.n_ctx_train
            remedy = f", or raise --ctx (up to {most})" if self.n_ctx < most else ": the model was trained for no more"
            raise UsageError(
                f"{self.position + len(tokens)} tokens do not fit the context of {self.n_ctx}; "
                f"shorten the prompt{remedy}"
            )
        if max(tokens) >= self.model.config.n_vocab or min(tokens) < 0:
            raise UsageError(f"token ids must be 0 to {self.model.config.n_vocab - 1}")
        outputs = []
        for first in range(0, len(tokens), UBATCH):
            part = tokens[first : first + UBATCH]
            wanted = min(len(part), max(0, n_outputs - (len(tokens) - first - len(part))))
            # A ubatch that no output is wanted of still needs one for the graph to end in.
            logits = self._step(part, max(wanted, 1))
            outputs.append(logits[len(logits) - wanted :])
        return outputs[0] if len(outputs) == 1 else np.concatenate(outputs)

    def generate(self, prompt: Sequence[int], n_tokens: int, sampler: Sampler, stops: set[int]) -> Iterator[int]:
        """Prefills `prompt` and yields up to `n_tokens` sampled tokens, until a stop token or the context's end."""
        start = time.perf_counter()
        logits = self.evaluate(prompt)[0]
        self.timing.n_prompt, self.timing.prompt_s = len(prompt), time.perf_counter() - start
        for i in range(n_tokens):
            start = time.perf_counter()
            token = sampler.next_token(logits)
            if token in stops:
                return
            self.timing.n_generated += 1
            yield token
            if i + 1 == n_tokens or self.position == self.n_ctx:
                return
            logits = self.evaluate([token])[0]
            self.timing.generate_s += time.perf_counter() - start

    def _step(self, tokens: Sequence[int], n_outputs: int) -> NDArray[np.float32]:
        n, first = len(tokens), self.position
        n_kv = -(-(first + n) // KV_STEP) * KV_STEP
        rows = np.arange(first, first + n)
        inputs: dict[str, NDArray[np.generic]] = {
            "tokens": np.asarray(tokens, np.int32),
            "pos": rows.astype(np.int32),
            "kv_rows": rows.astype(np.int64),
            "mask": self._mask(first, n, n_kv),
        }
        if n_outputs < n:
            inputs["out_rows"] = np.arange(n - n_outputs, n, dtype=np.int32)
        result = self._runner.run(self._graph(n, n_kv, n_outputs), inputs)
        self.position += n
        return self.model.logits(result, n_outputs)

    def _graph(self, n_tokens: int, n_kv: int, n_outputs: int) -> Any:
        key = (n_tokens, n_kv, n_outputs)
        graph = self._graphs.pop(key, None) or self.model.graph(*key)
        self._graphs[key] = graph  # at the end: the least recently used stands first
        if len(self._graphs) > MAX_GRAPHS:
            oldest = next(iter(self._graphs))
            self._runner.forget(self._graphs.pop(oldest))
        return graph

    def _mask(self, first: int, n: int, n_kv: int) -> NDArray[np.float16]:
        """[n, n_kv]: token first + i sees the rows 0 to first + i."""
        if n > 1:
            visible = np.arange(n_kv) <= np.arange(first, first + n)[:, None]
            return np.where(visible, 0, -np.inf).astype(np.float16)
        # The decode mask of a step differs from the last step's in one element.
        mask = self._masks.get(n_kv)
        if mask is None:
            self._masks = {n_kv: (mask := np.full((1, n_kv), -np.inf, np.float16))}
        mask[0, : first + 1] = 0
        return mask
