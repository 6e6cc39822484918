"""Tokens and chat prompts are those of llama.cpp."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.tokenizer import ChatTokenizer
from tests.models.llama_cpp import LlamaCpp
from tests.models.tiny import Tiny

TEXTS = [
    "Hello, world!",
    "The year 2026, 3.14159 and 1,000,000.",
    "  two  spaces\n\nand\tlines  ",
    "été, naïve, Straße, 東京, 🙂🙃",
    "def f(x):\n    return x ** 2  # square\n",
    "It's we're I'd they'll O'Neill",
    "<|im_start|>user\nhi<|im_end|>",
    " leading",
    "\n",
]


@pytest.fixture(scope="module", params=["byte-level", "sentencepiece"])
def pair(
    request: pytest.FixtureRequest, demo_gguf: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ChatTokenizer, LlamaCpp]:
    path = demo_gguf
    if request.param == "sentencepiece":
        path = Tiny(n_layers=1).write(tmp_path_factory.mktemp("spm") / "spm.gguf")
    return ChatTokenizer(read_gguf(path)), LlamaCpp(path)


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_of_llama_cpp(pair: tuple[ChatTokenizer, LlamaCpp], text: str) -> None:
    ours, oracle = pair
    assert ours.encode(text) == oracle.tokenize(text)


@pytest.mark.parametrize("text", [t for t in TEXTS if "<|" not in t])
def test_streamed_text_is_the_text(pair: tuple[ChatTokenizer, LlamaCpp], text: str) -> None:
    ours, _ = pair
    pieces = list(ours.stream(ours.encode(text)))
    assert "".join(pieces) == ours.decode(ours.encode(text))
    assert not any("�" in p for p in pieces)


def test_chat_prompt_of_llama_cpp(demo_gguf: Path) -> None:
    messages = [{"role": "user", "content": "What is {{ 1 + 1 }}?"}]
    ours = ChatTokenizer(read_gguf(demo_gguf)).chat(messages)
    assert ours == LlamaCpp(demo_gguf).post("/apply-template", {"messages": messages})["prompt"]
