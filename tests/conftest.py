"""What every test may need: the tools from outside, and the demo model."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.demo_model import demo_model

# Debian's clang-19 looks for a symbolizer of its own version only; without one a sanitizer's report names no file.
_symbolizer = shutil.which("llvm-symbolizer-19") or shutil.which("llvm-symbolizer")
if _symbolizer:
    os.environ.setdefault("ASAN_SYMBOLIZER_PATH", _symbolizer)


def require_tool(name: str, package: str) -> str:
    """The path of a program. Without it the test is skipped on a developer's machine and fails in CI."""
    # Servers lie where only root's PATH leads.
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found:
        return found
    message = f"{name} is not installed (apt-get install {package})"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def demo_gguf() -> Path:
    """SmolLM2-135M-Instruct Q4_1."""
    return demo_model()


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system with no space left."""
    folder = tmp_path / "full"
    folder.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]).returncode:
        pytest.skip("mounting a small file system needs root")
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4 << 10)):
            pass
    yield folder
    subprocess.run(["umount", folder], check=True)
