"""What tests of whole models share: texts, a teacher-forced run, and its distance from llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import hexnpu
from hexnpu.models.engine import Engine
from hexnpu.models.gguf_file import GgufFile
from hexnpu.models.split import Split
from tests.models.llama_cpp import LlamaCpp

DEVICES = ("HTP0:0", "HTP1:0", "HTP2:0", "HTP3:0")
TEXTS = {
    "prose": (
        "The lighthouse keeper had counted the steps so often that he no longer noticed them. There were two hundred "
        "and twelve, and on the last evening of November he climbed them with a letter in his coat, which he had not "
        "yet dared to open. The wind came from the north-west, and the lamp, when he lit it, threw a yellow circle on"
    ),
    "code": (
        "def fibonacci(n):\n    if n < 2:\n        return n\n    a, b = 0, 1\n    for _ in range(n - 1):\n"
        "        a, b = b, a + b\n    return b\n\n\nclass Stack:\n    def __init__(self):\n        self.items = []\n\n"
        "    def push(self, item):\n        self.items.append(item)\n\n    def pop(self):\n        return"
    ),
    "story": (
        "Once upon a time, there was a little girl who lived in a small house at the edge of the forest. Every "
        "morning she went to the well to fetch water, and every evening she sat by the fire with her grandmother. One "
        "day, when the snow was deep and the wind was cold, a small bird came to the window and asked to come in."
    ),
}


def logits(
    file: GgufFile, tokens: list[int], n_ranks: int, split: Split | None = None, session: hexnpu.Session | None = None
) -> NDArray[np.float32]:
    """[tokens, n_vocab], half as one prompt, half token by token."""
    opened = session or hexnpu.open(devices=DEVICES[:n_ranks], n_threads=1, strict=True)
    try:
        engine = Engine(opened, file, 512, split=split)
        half = len(tokens) // 2
        return np.concatenate([engine.evaluate(tokens[:half], half), *(engine.evaluate([t]) for t in tokens[half:])])
    finally:
        opened.close()


@dataclass(frozen=True)
class Agreement:
    """How far our distributions stand from llama.cpp's, position by position."""

    top1: float
    mean_kl: float
    worst: float
    n: int


def agreement(ours: NDArray[np.float32], oracle: LlamaCpp, tokens: list[int], first: int) -> Agreement:
    """`ours`: logits [len(tokens) - first, n_vocab] after each of tokens[first:]."""
    same, divergences, worst = 0, [], 0.0
    for row, logits in enumerate(ours.astype(np.float64)):
        q = logits - logits.max()
        q -= np.log(np.exp(q).sum())
        p = oracle.log_probabilities(tokens[: first + row + 1], len(logits))
        same += int(p.argmax() == q.argmax())
        weight = np.exp(p)
        divergences.append(float((weight * np.where(weight > 0, p - q, 0)).sum()))
        worst = max(worst, float(np.abs(p - q)[weight > 1e-4].max()))
    return Agreement(same / len(ours), float(np.mean(divergences)), worst, len(ours))
