"""How big the project is: lines that are neither blank nor comment, by folder, and the files over 500.

    python scripts/size.py
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

REPO = Path(__file__).parents[1]
FOLDERS = ("hexnpu", "htp_kernels", "examples", "scripts", "tests", "benchmarks", "docs")
COMMENTS = {".py": "#", ".c": "//", ".h": "//", ".md": None}
TOO_LONG = 500


def n_lines(path: Path) -> int:
    comment = COMMENTS[path.suffix]
    lines = (line.strip() for line in path.read_text().splitlines())
    return sum(bool(line) and not (comment is not None and line.startswith(comment)) for line in lines)


def main() -> None:
    long: Counter[Path] = Counter()
    for folder in FOLDERS:
        sizes = {path: n_lines(path) for path in (REPO / folder).rglob("*") if path.suffix in COMMENTS}
        long.update({path: size for path, size in sizes.items() if size > TOO_LONG})
        print(f"{folder:<12}{len(sizes):5} files{sum(sizes.values()):8} lines")
    for path, size in long.most_common():
        print(f"{size:6} {path.relative_to(REPO)}")


if __name__ == "__main__":
    main()
