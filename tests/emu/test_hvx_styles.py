"""Idioms of third parties' HVX sources compile without a warning and work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hexnpu.native import ARCHS, IS_X86, Target, compile_program

HERE = Path(__file__).parent


@pytest.mark.parametrize("arch", ARCHS)
def test_styles(arch: int) -> None:
    extra = ["-no-pie", "-fno-pie"] if IS_X86 else []
    program = compile_program("hvx-styles", [HERE / "hvx_styles.c"], Target(arch=arch), extra)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr
