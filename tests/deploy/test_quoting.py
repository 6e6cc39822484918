"""Nothing that a user passes is read by a shell: any words come back byte for byte, through every transport."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexnpu.deploy.device import Command, Device, open_device
from hexnpu.deploy.quoting import batches, decode, encode, join, quote
from hexnpu.deploy.targets import parse_target
from hexnpu.errors import UsageError

# All of Unicode that UTF-8 can carry, single bytes that are not UTF-8, and what shells care about more often.
_character = st.one_of(
    st.sampled_from("'\"\\$`!*?[]{}()<>|&;~#=%^ \t\n\r-@:,+é\udcff\udc80"),
    st.characters(min_codepoint=1, exclude_categories=["Cs"]),
)
# As a file name or argument would arrive in Python: two single bytes that make a character are that character.
_words = st.lists(st.text(_character, max_size=12).map(lambda text: decode(encode(text))), max_size=8)


def expected(words: list[str]) -> bytes:
    """What printf prints: with no argument its format is used once."""
    return b"".join(encode(word) + b"\n" for word in words or [""])


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "mksh", "busybox sh"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=_words)
def test_shells_of_this_machine(shell: str, words: list[str]) -> None:
    program = shell.split()
    if shutil.which(program[0]) is None:
        pytest.skip(f"no {shell} here")
    line = encode(f"printf '%s\\n' {join(words)}")
    done = subprocess.run([*program, "-c", line], stdout=subprocess.PIPE, check=True)
    assert done.stdout == expected(words)


@pytest.fixture
def device(transport: str | None) -> Iterator[Device]:
    with open_device(parse_target(transport)) as opened:
        yield opened


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=_words)
def test_through_every_transport(device: Device, words: list[str]) -> None:
    assert device.open(Command(("printf", "%s\\n", *words), "/")).communicate() == (0, expected(words), b"")


def test_a_nul_is_refused() -> None:
    with pytest.raises(UsageError, match="NUL"):
        quote("a\0b")


def test_plain_words_stay_readable() -> None:
    assert join(["./bin/llama-cli", "-m", "a.gguf", "X=1", "it's"]) == "./bin/llama-cli -m a.gguf X=1 'it'\\''s'"


def test_batches_are_of_bytes() -> None:
    """Not of characters, of which the longest here has four."""
    words = ["x" * 39_000, "\U0001f600" * 900, *["y" * 1000] * 39, "ä" * 900]
    assert [word for batch in batches(words) for word in batch] == words
    assert all(len(encode(join(batch))) <= 40_000 for batch in batches(words))
