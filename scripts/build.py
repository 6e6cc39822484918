"""`hexnpu build` under the name that llama.cpp's users know."""

from __future__ import annotations

import sys

from hexnpu.__main__ import main

if __name__ == "__main__":
    main(["build", *sys.argv[1:]])
