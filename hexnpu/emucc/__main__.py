"""`python -m hexnpu.emucc [c++] ARGUMENTS`: what hexagon-clang and hexagon-clang++ of the SDK folder run."""

from __future__ import annotations

import sys

from hexnpu.emucc.command import run

if __name__ == "__main__":
    try:
        sys.exit(run(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
