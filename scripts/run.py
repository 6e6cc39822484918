"""`hexnpu run` under the name that llama.cpp's users know."""

from __future__ import annotations

import sys

sys.path.pop(0)  # profile.py and trace.py of this folder must not stand in for the standard library's

from hexnpu.__main__ import main

if __name__ == "__main__":
    main(["run", *sys.argv[1:]])
