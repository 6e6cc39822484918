"""Runs every benchmark of this folder, one after another: `make bench`. Exits 1 if one of them fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    environment = os.environ | {"PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
    failed = []
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.stem}", flush=True)
        if subprocess.run([sys.executable, script], cwd=HERE.parent, env=environment).returncode:
            failed.append(script.stem)
    if failed:
        sys.exit(f"missed or failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
