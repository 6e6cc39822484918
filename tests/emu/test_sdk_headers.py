"""Our SDK headers: the public values and layout, and that each works alone, in C and in C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hexnpu.native import Target, kernels_dir

HERE = Path(__file__).parent
SDK = kernels_dir() / "platform/hexagon/sdk"
DSP_SIDE = ((), ("-DHEXNPU_EMU_DSP",))


def check(language: str, source: str, defines: tuple[str, ...], scratch: Path) -> str:
    """What the compiler says about `source`; nothing where it takes it."""
    flags = ["-Wall", "-Wextra", "-Werror", "-x", language, f"-I{SDK}", *defines]
    (scratch / "source").write_text(source)
    command = [*Target().compiler(), *flags, "-c", str(scratch / "source"), "-o", str(scratch / "object")]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.parametrize("defines", DSP_SIDE)
def test_values_and_layout(defines: tuple[str, ...], tmp_path: Path) -> None:
    assert check("c", (HERE / "sdk_abi.c").read_text(), defines, tmp_path) == ""


@pytest.mark.parametrize("defines", DSP_SIDE)
@pytest.mark.parametrize("language", ("c", "c++"))
def test_headers_need_no_others(language: str, defines: tuple[str, ...], tmp_path: Path) -> None:
    """In either order: what a header forgets to include is missing in one of them."""
    names = sorted(h.name for h in SDK.glob("*.h"))
    assert {"remote.h", "HAP_farf.h", "qurt.h"} <= set(names)
    for order in (names, names[::-1]):
        source = "".join(f'#include "{name}"\n' for name in order)
        assert check(language, source, defines, tmp_path) == ""
