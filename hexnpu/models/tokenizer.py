"""Text <-> tokens from the vocabulary and merges inside a GGUF file, on the `tokenizers` package.

`tokenizer.ggml.model` gpt2 is byte-level BPE, whose pre-tokenizer `tokenizer.ggml.pre` names; llama is SentencePiece
BPE with scores. The split patterns are those that the models' own tokenizer.json files publish.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import jinja2
import jinja2.sandbox
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from hexnpu.errors import HexnpuError
from hexnpu.models.gguf_file import GgufFile

# tokenizer.ggml.token_type
_CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 3, 4, 5, 6

_LLAMA3_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = _LLAMA3_SPLIT.replace(r"\p{N}{1,3}", r"\p{N}")


def _byte_level() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _digits_then_byte_level() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _byte_level()])


def _split(pattern: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


_PRE_TOKENIZERS: dict[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "gpt-2": _byte_level,
    "default": _byte_level,
    "smollm": _digits_then_byte_level,
    "llama-bpe": functools.partial(_split, _LLAMA3_SPLIT),
    "llama3": functools.partial(_split, _LLAMA3_SPLIT),
    "qwen2": functools.partial(_split, _QWEN2_SPLIT),
}


class TokenizerError(HexnpuError):
    """The file's tokenizer is of a kind that is not known here, or its chat template cannot be used."""


class ChatTokenizer:
    """The tokenizer of one model.

    `encode` gives token ids, `stream` turns ids into text as they come (never half a character), `chat` renders the
    file's chat template.
    """

    def __init__(self, file: GgufFile) -> None:
        self._file = file
        self.tokens = file.texts("tokenizer.ggml.tokens")
        kind = file.text("tokenizer.ggml.model")
        builders = {"gpt2": _byte_level_bpe, "llama": _sentencepiece_bpe}
        if kind not in builders:
            raise TokenizerError(f"{file.path}: tokenizer model {kind!r} is not supported; {', '.join(builders)} are")
        self._tokenizer = builders[kind](file, self.tokens)
        special = _special_tokens(file, self.tokens)
        self._tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t in special])
        self.bos = file.integer("tokenizer.ggml.bos_token_id", -1)
        self.add_bos = bool(file.fields.get("tokenizer.ggml.add_bos_token", kind == "llama"))
        ends = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}
        self.stops = {file.integer(k) for k in ends if k in file.fields}
        self.stops |= {i for i, t in enumerate(self.tokens) if t in ("<|im_end|>", "<|eot_id|>", "<|end_of_text|>")}

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self.bos, *ids] if self.add_bos and self.bos >= 0 and ids[:1] != [self.bos] else ids

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True)
        return text

    def stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text of `ids` piece by piece; a piece is held back while it ends inside a character."""
        pending: list[int] = []
        context: list[int] = []
        for token in ids:
            pending.append(token)
            before = self.decode(context)
            text = self.decode([*context, *pending])
            if text.endswith("�"):
                continue
            yield text[len(before) :]
            # The last piece is context enough for the decoder to know whether a leading space counts.
            context, pending = pending, []
        if pending:
            yield self.decode([*context, *pending])[len(self.decode(context)) :]

    def chat(self, messages: Sequence[dict[str, str]]) -> str:
        """The messages ({"role", "content"}) as the model's prompt, ready for its answer."""
        template = self._file.fields.get("tokenizer.chat_template")
        if not isinstance(template, str):
            raise TokenizerError(f"{self._file.path} holds no chat template; leave --chat out")
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _template_error
        special = {"bos_token": self._text_of("bos"), "eos_token": self._text_of("eos")}
        try:
            rendered = environment.from_string(template).render(
                messages=list(messages), add_generation_prompt=True, **special
            )
        except (jinja2.TemplateError, TypeError) as error:
            raise TokenizerError(f"{self._file.path}: the chat template failed: {error}") from None
        return rendered

    def _text_of(self, name: str) -> str:
        index = self._file.integer(f"tokenizer.ggml.{name}_token_id", -1)
        return self.tokens[index] if 0 <= index < len(self.tokens) else ""


def _template_error(message: str) -> None:
    raise TokenizerError(f"the chat template refused the messages: {message}")


def _token_types(file: GgufFile) -> list[int]:
    types = file.fields.get("tokenizer.ggml.token_type")
    return [int(t) for t in types if isinstance(t, int)] if isinstance(types, list) else []


def _special_tokens(file: GgufFile, tokens: list[str]) -> list[str]:
    return [t for t, kind in zip(tokens, _token_types(file), strict=False) if kind in (_CONTROL, _USER_DEFINED)]


def _byte_level_bpe(file: GgufFile, tokens: list[str]) -> Tokenizer:
    pre = file.text("tokenizer.ggml.pre", "default")
    if pre not in _PRE_TOKENIZERS:
        raise TokenizerError(f"{file.path}: pre-tokenizer {pre!r} is not known; {', '.join(_PRE_TOKENIZERS)} are")
    merges = [(a, b) for a, _, b in (m.partition(" ") for m in file.texts("tokenizer.ggml.merges"))]
    try:
        tokenizer = Tokenizer(models.BPE(vocab=_vocabulary(tokens), merges=merges))
    except Exception as error:  # the package raises plain Exception
        raise TokenizerError(f"{file.path}: its vocabulary and merges do not go together: {error}") from None
    tokenizer.pre_tokenizer = _PRE_TOKENIZERS[pre]()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece_bpe(file: GgufFile, tokens: list[str]) -> Tokenizer:
    scores = file.fields.get("tokenizer.ggml.scores")
    if not isinstance(scores, list) or len(scores) != len(tokens):
        raise TokenizerError(f"{file.path}: tokenizer.ggml.scores must hold a number for each of {len(tokens)} tokens")
    vocabulary = _vocabulary(tokens)
    ranked = sorted((-float(s), i) for i, s in enumerate(scores) if isinstance(s, int | float))
    merges = [
        (token[:cut], token[cut:])
        for token in (tokens[i] for _, i in ranked)
        for cut in range(1, len(token))
        if token[:cut] in vocabulary and token[cut:] in vocabulary
    ]
    unknown = file.integer("tokenizer.ggml.unknown_token_id", 0)
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token=tokens[unknown], fuse_unk=True, byte_fallback=True)
    )
    prefix = [normalizers.Prepend("▁")] if file.fields.get("tokenizer.ggml.add_space_prefix", True) else []
    tokenizer.normalizer = normalizers.Sequence([*prefix, normalizers.Replace(" ", "▁")])
    strip = [decoders.Strip(" ", 1, 0)] if prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    return tokenizer


def _vocabulary(tokens: list[str]) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokens)}
