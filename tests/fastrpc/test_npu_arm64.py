"""The arm64 server, as a Snapdragon device has it, through an arm64 libcdsprpc.so: the same text as the emulator's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gguf
import pytest

from hexnpu.emulator_build import FASTRPC, LIBRARY, PROGRAM, client_sources, emulator_folder
from hexnpu.native import kernels_dir
from hexnpu.npu_library import npu_library
from hexnpu.server_build import server_sources
from tests.conftest import require_tool
from tests.models.tiny import Tiny

SYSROOT = Path("/usr/aarch64-linux-gnu")  # Debian's libc6-arm64-cross


def zig(output: Path, sources: list[Path], *flags: str) -> None:
    root = kernels_dir()
    folders = ("include", "platform/emu", "platform/hexagon/sdk", FASTRPC)
    command = [
        sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.34", "-std=gnu11", "-O1", "-w",
        "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize=undefined", "-pthread", "-D__HVX_ARCH__=79",
        "-D__HEXAGON_ARCH__=79", "-D__HVX_LENGTH__=128", *(f"-I{root / f}" for f in folders), *flags,
        *map(str, sources), "-o", str(output), "-lm", "-ldl",
    ]  # fmt: skip
    subprocess.run(command, check=True)


def hexnpu(*arguments: str) -> bytes:
    command = [sys.executable, "-m", "hexnpu", *arguments]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=True).stdout


@pytest.mark.slow
def test_the_arm64_server_on_the_npu(tmp_path: Path) -> None:
    qemu = require_tool("qemu-aarch64", "qemu-user")
    require_tool(str(SYSROOT / "lib/ld-linux-aarch64.so.1"), "libc6-arm64-cross")
    zig(tmp_path / "htp-server", server_sources())
    zig(tmp_path / LIBRARY, client_sources(), "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}")
    model = Tiny(weights=gguf.GGMLQuantizationType.Q4_0).write(tmp_path / "tiny.gguf")
    place = f"unix:{tmp_path}/npu"
    environment = {
        **os.environ, "LD_LIBRARY_PATH": str(tmp_path), "ADSP_LIBRARY_PATH": str(npu_library().parent),
        "HEXNPU_EMU_PD": str(emulator_folder() / PROGRAM),
    }  # fmt: skip
    command = [qemu, "-L", str(SYSROOT), str(tmp_path / "htp-server"), "--backend", "fastrpc", "--listen", place]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline().startswith(b"listening")
        flags = ("generate", str(model), "-p", "the end", "-n", "8", "--strict")
        try:
            assert hexnpu(*flags, "--target", place) == hexnpu(*flags)
        finally:
            server.terminate()
