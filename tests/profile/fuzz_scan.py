"""Run by test_scan.py with AddressSanitizer preloaded: scan.c (the library given) on damaged lines of a log."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from hexnpu.profile.parse import scan

PIECES = [b"profile-op ", b"trace-evt ", b"ggml-hex: ", b"usec ", b" pmu [1,2,3", b"9" * 25, b"-", b"\0", b"OPBATCH|"]


def damaged(line: bytes, rnd: random.Random) -> bytes:
    text = bytearray(line)
    for _ in range(rnd.choice((0, 1, 3))):
        if text:
            at = rnd.randrange(len(text))
            choice = rnd.random()
            if choice < 0.3:
                del text[at : at + rnd.randint(1, 40)]
            elif choice < 0.6:
                text[at] = rnd.randrange(256)
            else:
                text[at:at] = rnd.choice(PIECES)
    return bytes(text).replace(b"\n", b"")


def main(library: str, log: str, rounds: int) -> None:
    scan._library_path = lambda: Path(library)  # type: ignore[assignment]
    loaded = scan.library()
    assert loaded is not None
    scanner, rnd = scan.Scanner(loaded), random.Random(1)
    lines = Path(log).read_bytes().splitlines()
    for _ in range(rounds):
        block = b"".join(damaged(rnd.choice(lines), rnd) + b"\n" for _ in range(20))
        scanner.blocks(block, want_events=True)
    print("texts", loaded.scan_count(scanner._scan, 2))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
