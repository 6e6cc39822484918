"""Where both `hexnpu` and `python -m hexnpu` begin: Ctrl-C is silent from here on, also while modules are loaded."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    try:
        from hexnpu.cli import main as command_line

        command_line(arguments)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
