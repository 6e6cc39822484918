"""Chooses the next token from logits: greedy, or temperature with top-k and top-p."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hexnpu.errors import HexnpuError, UsageError


@dataclass(frozen=True, slots=True)
class Sampling:
    """temperature 0 = greedy; top_k 0 and top_p 1 = all tokens."""

    temperature: float = 0.0
    top_k: int = 40
    top_p: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.temperature >= 0:
            raise UsageError(f"--temp is {self.temperature}; it must be 0 (greedy) or more")
        if self.top_k < 0:
            raise UsageError(f"--top-k is {self.top_k}; it must be 0 (all) or more")
        if not 0 < self.top_p <= 1:
            raise UsageError(f"--top-p is {self.top_p}; it must be over 0 and at most 1")


class Sampler:
    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._random = np.random.default_rng(sampling.seed)

    def next_token(self, logits: NDArray[np.float32]) -> int:
        """The token for logits [n_vocab]. Raises HexnpuError where they are NaN or infinite."""
        best = int(logits.argmax())
        # argmax gives the first NaN if there is one, so this one look finds NaN and inf alike.
        if not np.isfinite(logits[best]):
            raise HexnpuError("the model's output is not finite; the weights or an NPU op are broken (try --strict)")
        if self._sampling.temperature == 0:
            return best
        tokens, probabilities = self._candidates(logits)
        return int(self._random.choice(tokens, p=probabilities))

    def _candidates(self, logits: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        k = self._sampling.top_k or len(logits)
        tokens = np.argpartition(logits, -k)[-k:] if k < len(logits) else np.arange(len(logits))
        tokens = tokens[np.argsort(-logits[tokens], kind="stable")]
        scaled = logits[tokens].astype(np.float64) / self._sampling.temperature
        weights = np.exp(scaled - scaled[0])
        probabilities = weights / weights.sum()
        # The smallest set of likely tokens that holds top_p of the mass; at least one.
        keep = int(np.searchsorted(np.cumsum(probabilities), self._sampling.top_p)) + 1
        kept = probabilities[:keep]
        return tokens[:keep], kept / kept.sum()
