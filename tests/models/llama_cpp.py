"""llama.cpp (the xllamacpp package) as the oracle: its tokens and its log-probabilities over the whole vocabulary."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xllamacpp
from numpy.typing import NDArray


class LlamaCpp:
    """A server of one model on the CPU, reached over loopback."""

    def __init__(self, model: Path, *, n_ctx: int = 1024, kv_type: str = "f16", n_threads: int = 2) -> None:
        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = n_threads
        params.n_ctx, params.n_parallel, params.warmup = n_ctx, 1, False
        types = {"f16": xllamacpp.ggml_type.GGML_TYPE_F16, "q8_0": xllamacpp.ggml_type.GGML_TYPE_Q8_0}
        params.cache_type_k = params.cache_type_v = types[kv_type]
        self._server = xllamacpp.Server(params)
        self._harmless = self.tokenize("a")[-1]

    def post(self, path: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(
            self._server.listening_address + path,
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)

    def tokenize(self, text: str) -> list[int]:
        body = {"content": text, "add_special": True, "parse_special": True}
        return [int(t) for t in self.post("/tokenize", body)["tokens"]]

    def log_probabilities(self, tokens: Sequence[int], n_vocab: int) -> NDArray[np.float64]:
        """[n_vocab]: log p(next token | tokens)."""
        # The sampler is made to choose a harmless token, since one that ends the text or is half a character is
        # reported without probabilities; these are of the logits before the sampler.
        body = {"prompt": list(tokens), "n_predict": 1, "temperature": 0, "n_probs": n_vocab, "cache_prompt": True}
        body |= {"logit_bias": [[self._harmless, 1000.0]]}
        result = np.full(n_vocab, -np.inf)
        for entry in self.post("/completion", body)["completion_probabilities"][0]["top_logprobs"]:
            result[entry["id"]] = entry["logprob"]
        return result

    def completion(self, tokens: Sequence[int], n_tokens: int) -> dict[str, Any]:
        body = {"prompt": list(tokens), "n_predict": n_tokens, "temperature": 0, "ignore_eos": True}
        reply: dict[str, Any] = self.post("/completion", body)
        return reply
