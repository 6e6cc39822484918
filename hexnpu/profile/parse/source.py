"""A log as blocks of whole lines: plain, gzip, zstandard or stdin; UTF-16 becomes UTF-8, ANSI colours and CR go."""

from __future__ import annotations

import codecs
import gzip
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hexnpu.profile.errors import LogError

BLOCK_BYTES = 1 << 19
MAX_LINE_BYTES = 8 << 20
KEPT_LINE_BYTES = 64 << 10  # of a longer line its end is kept: a record may be glued to whatever that was

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_ANSI = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class _Prefixed:
    """A stream whose first bytes have already been read (stdin cannot seek)."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read(size)
        if size < 0 or size >= len(self._head):
            head, self._head = self._head, b""
            return head
        head, self._head = self._head[:size], self._head[size:]
        return head


@contextmanager
def _opened(source: str) -> Iterator[IO[bytes]]:
    if source == "-":
        if sys.stdin is None:
            raise LogError("stdin is closed: give a log, or pipe one in")
        yield sys.stdin.buffer
        return
    path = Path(source)
    if path.is_dir():
        raise LogError(f"{source} is a directory: give a log file")
    try:
        with path.open("rb", buffering=0) as stream:
            yield stream
    except FileNotFoundError:
        raise LogError(f"{source}: no such file") from None
    except OSError as error:
        raise LogError(f"{source}: cannot be read ({error.strerror})") from None


def _decompressed(raw: IO[bytes], head: bytes, source: str) -> Iterator[bytes]:
    stream = _Prefixed(head, raw)
    reader: IO[bytes] | _Prefixed
    if head.startswith(_GZIP):
        reader = gzip.GzipFile(fileobj=stream, mode="rb")  # type: ignore[call-overload]
    elif head.startswith(_ZSTD):
        import zstandard

        reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)  # type: ignore[arg-type]
    else:
        reader = stream
    try:
        while block := reader.read(BLOCK_BYTES):
            yield block
    except (EOFError, gzip.BadGzipFile) as error:
        raise LogError(f"{source}: the gzip data end early or are damaged ({error})") from None
    except OSError as error:
        raise LogError(f"{source}: cannot be read ({error})") from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise LogError(f"{source}: the zstd data are damaged ({error})") from None


def _utf8(blocks: Iterator[bytes], first: bytes) -> Iterator[bytes]:
    """UTF-16 with a byte order mark, as PowerShell's redirection writes it, becomes UTF-8; the rest stays bytes."""
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
        yield decoder.decode(first).encode("utf-8", "replace")
        for block in blocks:
            yield decoder.decode(block).encode("utf-8", "replace")
        return
    yield first
    yield from blocks


def read_blocks(source: str) -> Iterator[bytes]:
    """Blocks of whole lines, "\\n" at each line's end; only the last block may lack it. Raises LogError."""
    with _opened(source) as raw:
        head = raw.read(4) or b""
        blocks = _decompressed(raw, head, source)
        first = next(blocks, b"")
        if len(first) < 4:  # the head came alone: let the marks be seen with what follows
            first += next(blocks, b"")
        rest = b""
        for block in _utf8(blocks, first):
            end = block.rfind(b"\n") + 1
            if not end:
                rest += block
                if len(rest) > MAX_LINE_BYTES:
                    if b"\0" in rest:
                        raise LogError(f"{source} is a binary file, not a log")
                    rest = rest[-KEPT_LINE_BYTES:]
                continue
            yield _clean(b"".join((rest, memoryview(block)[:end])))  # one copy
            rest = block[end:]
        if rest:
            yield _clean(rest)


def _clean(block: bytes) -> bytes:
    if b"\x1b" in block:
        block = _ANSI.sub(b"", block)
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    return block
