"""What a wheel takes along: the C sources, and nothing that `hexnpu build` left beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

REPO = Path(__file__).parents[2]


def test_no_build_folders(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("hexnpu/__init__.py", "htp_kernels/include/x.h", "htp_kernels/build-adb/a.o", "htp_kernels/pkg-adb/b"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).touch()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPO / name, tree)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name}
    assert names == {"hexnpu/__init__.py", "hexnpu/_htp_kernels/include/x.h"}
