"""The presets for real: the open ones built by cmake and ziglang, and the arm64 server at work under QEMU.

The vendor's presets are built against stand-ins of the SDK and the NDK, which proves our CMake files and not the
vendor's tools: those are not here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gguf
import pytest

from hexnpu.cache import cache_dir
from hexnpu.deploy.elf import Elf, read_elf
from hexnpu.emucc.sdk_root import sdk_root
from hexnpu.emulator_build import emulator_folder
from hexnpu.native import ARCHS, kernels_dir
from hexnpu.server_build import device_sources, server_program
from tests.conftest import require_tool
from tests.deploy.conftest import Adb
from tests.deploy.sshd import Sshd
from tests.models.tiny import Tiny
from tests.server_client import Server, copies

pytestmark = pytest.mark.slow

CACHE = str(cache_dir())  # before a test gets a home folder of its own


def hexnpu(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hexnpu", *map(str, arguments)], capture_output=True, text=True, check=False,
        env={**os.environ, "HEXNPU_CACHE": CACHE, **environment}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def build(preset: str, target: str, folder: Path) -> Path:
    """The package folder of a preset."""
    require_tool("cmake", "cmake")
    result = hexnpu(
        "build", "--no-docker", "--target", target, "--preset", preset, "--build-dir", folder / "build",
        "--install-dir", folder / "pkg",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return folder / "pkg"


def elf_of(data: bytes) -> Elf:
    file = read_elf(lambda offset, size: data[offset : offset + size])
    assert file is not None
    return file


@pytest.mark.parametrize("arch", ARCHS)
def test_open_hexagon(arch: int, tmp_path: Path) -> None:
    package = build(f"open-hexagon-v{arch}", "linux", tmp_path)
    assert [p.relative_to(package) for p in package.rglob("*") if p.is_file()] == [Path(f"lib/libhtp-v{arch}.a")]
    members = dict(archive_members((package / "lib" / f"libhtp-v{arch}.a").read_bytes()))
    assert set(members) == {f"{s.name}.obj" for s in device_sources()}
    assert {(elf_of(data).machine, elf_of(data).arch) for data in members.values()} == {("hexagon", arch)}


def archive_members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a GNU ar archive."""
    assert data[:8] == b"!<arch>\n"
    names, at = b"", 8
    while at < len(data):
        name, size = data[at : at + 16].decode().strip(), int(data[at + 48 : at + 58])
        body = data[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
        if name == "//":
            names = body
        elif name not in ("/", "/SYM64/"):
            start = int(name[1:]) if name.startswith("/") else -1
            yield (names[start:].split(b"/\n")[0].decode() if start >= 0 else name.rstrip("/")), body


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the open preset for arm64 Linux builds, with the server behind a script that runs it under QEMU."""
    folder = build("open-linux-arm64", "linux", tmp_path_factory.mktemp("arm64"))
    qemu = require_tool("qemu-aarch64", "qemu-user")
    (folder / "bin" / "htp-server").rename(folder / "bin" / "htp-server.arm64")
    (folder / "bin" / "htp-server").write_text(f'#!/bin/sh\nexec {qemu} "$0.arm64" "$@"\n')
    (folder / "bin" / "htp-server").chmod(0o755)
    return folder


def test_the_arm64_server_is_static_and_speaks_the_same_protocol(package: Path) -> None:
    file = elf_of((package / "bin" / "htp-server.arm64").read_bytes())
    assert (file.machine, file.needed, file.interpreter) == ("aarch64", (), "")
    for question in ("--version", "--layout"):
        here = subprocess.check_output([server_program(), question])
        assert subprocess.check_output([package / "bin" / "htp-server", question]) == here


@pytest.fixture(params=["ssh", "adb"])
def target(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> str:
    if request.param == "ssh":
        sshd: Sshd = request.getfixturevalue("sshd")
        return sshd.target
    adb: Adb = request.getfixturevalue("adb")
    return f"android:{adb.connect(tmp_path)}"


def test_generate_and_smoke_on_the_pushed_server(package: Path, target: str, tmp_path: Path) -> None:
    """hexnpu push, then the same tokens as on the emulator, and every kernel right."""
    model = Tiny(weights=gguf.GGMLQuantizationType.Q4_0).write(tmp_path / "tiny.gguf")
    there = {"HEXNPU_TARGET_DIR": str(tmp_path / "on the device")}
    pushed = hexnpu("push", "--target", target, "--install-dir", package, "--target-dir", there["HEXNPU_TARGET_DIR"])
    assert pushed.returncode == 0, pushed.stderr
    flags = ("generate", model, "-p", "the end of a winter", "-n", "24", "--strict")
    here, remote = hexnpu(*flags), hexnpu(*flags, "--target", target, **there)
    assert remote.returncode == 0, remote.stderr
    assert remote.stdout == here.stdout and len(here.stdout) > 10
    smoke = hexnpu("smoke", "--target", target, **there)
    assert smoke.returncode == 0, smoke.stdout + smoke.stderr
    assert f"checks passed on {target} (v79, release" in smoke.stdout


STAND_IN_AR = """#!/bin/sh
exec {python} -m ziglang ar "$@"
"""
STAND_IN_CLANG = """#!{python}
# Takes the flags of the vendor's hexagon-clang, gives zig those of its own.
import os, sys
words = sys.argv[1:]
(arch,) = {{w[3:] for w in words if w.startswith("-mv")}}
assert {{"-mhvx", "-mhvx-length=128b", "-mhmx", "-G0", "-fPIC"}} <= set(words), words
cpu = f"-mcpu=hexagonv{{arch}}+hvxv{{arch}}+hvx_length128b+hvx_qfloat" + ("+hvx_ieee_fp" if int(arch) >= 79 else "")
rest = [w for w in words if not w.startswith(("-mv", "-mh", "-G0"))]
link = ["-nostdlib"] if "-shared" in rest else []
zig = ["cc", "-target", "hexagon-linux-musl", cpu, "-fno-sanitize=undefined", *link, *rest]
os.execv(sys.executable, [sys.executable, "-m", "ziglang", *zig])
"""
# zig knows no -march=armv8.7a.
STAND_IN_NDK = """
unset(CMAKE_C_FLAGS CACHE)
set(HTP_ZIG_SYSTEM Linux)
set(HTP_ZIG_PROCESSOR aarch64)
set(HTP_ZIG_TARGET aarch64-linux-musl)
include({kernels}/cmake/zig.cmake)
"""


@pytest.fixture
def vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins of what the vendor's container has: Hexagon tools, SDK folders, the NDK's toolchain file."""
    require_tool("cmake", "cmake")
    require_tool("ninja", "ninja-build")
    tools, sdk, ndk = tmp_path / "tools", tmp_path / "sdk", tmp_path / "ndk"
    for folder in (tools / "Tools" / "bin", sdk / "incs", sdk / "build" / "cmake", ndk / "build" / "cmake"):
        folder.mkdir(parents=True)
    functions = sdk_root() / "build" / "cmake" / "hexagon_fun.cmake"
    (sdk / "build" / "cmake" / "hexagon_fun.cmake").write_text(f"include({functions})\n")
    for name, text in (("hexagon-clang", STAND_IN_CLANG), ("hexagon-ar", STAND_IN_AR)):
        program = tools / "Tools" / "bin" / name
        program.write_text(text.format(python=sys.executable))
        program.chmod(0o755)
    (ndk / "build" / "cmake" / "android.toolchain.cmake").write_text(STAND_IN_NDK.format(kernels=kernels_dir()))
    for name, folder in (("HEXAGON_TOOLS_ROOT", tools), ("HEXAGON_SDK_ROOT", sdk), ("ANDROID_NDK_ROOT", ndk)):
        monkeypatch.setenv(name, str(folder))
    return tmp_path


def cmake(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.run(
        ["cmake", *map(str, arguments)], cwd=kernels_dir(), capture_output=True, text=True, check=False, env=environment
    )


@pytest.mark.parametrize("kind", ["Release", "Debug"])
def test_vendor_preset_knows_its_build_type(vendor: Path, kind: str) -> None:
    configured = cmake("--preset", f"arm64-android-snapdragon-{kind.lower()}", "-B", vendor / "build")
    assert configured.returncode == 0, configured.stderr
    assert f"CMAKE_BUILD_TYPE:STRING={kind}\n" in (vendor / "build" / "CMakeCache.txt").read_text()


def test_vendor_preset_builds_a_kernel_library(vendor: Path) -> None:
    folder = vendor / "build"
    cmake("--preset", "arm64-android-snapdragon-release", "-B", folder)
    built = cmake("--build", folder, "--target", "htp-v79")
    assert built.returncode == 0, built.stdout + built.stderr
    library = (folder / "htp-v79" / "libhtp-v79.so").read_bytes()
    assert elf_of(library).arch == 79 and b"\0htp_npu_skel_handle_invoke\0" in library
    rules = (folder / "build.ninja").read_text()
    assert all(f"build {name}: " in rules for name in ("htp-server", *(f"htp-v{arch}" for arch in ARCHS)))


def test_the_vendors_build_runs_on_the_emulator(tmp_path: Path) -> None:
    """The CMake files of the vendor's build, with the SDK that `hexnpu emu-cc --sdk-root` makes."""
    require_tool("ninja", "ninja-build")
    root, folder = sdk_root(), tmp_path / "build"
    configured = cmake(
        "-G", "Ninja", "-B", folder, "-DHTP_PARTS=hexagon", "-DHTP_ARCH=79", f"-DHEXAGON_SDK_ROOT={root}",
        f"-DHEXAGON_TOOLS_ROOT={root}/tools", f"-DCMAKE_TOOLCHAIN_FILE={kernels_dir()}/cmake/hexagon-sdk.cmake",
    )  # fmt: skip
    assert configured.returncode == 0, configured.stderr
    built = cmake("--build", folder)
    assert built.returncode == 0, built.stdout + built.stderr
    environment = {"LD_LIBRARY_PATH": str(emulator_folder()), "ADSP_LIBRARY_PATH": str(folder)}
    with Server(args=["--backend", "fastrpc"], env=environment) as server:
        copies(server.client, server.client.open())


@pytest.mark.parametrize("system", ["android", "linux", "windows"])
def test_vendor_preset_without_an_sdk_says_so(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tool("ninja", "ninja-build")
    for name in ("HEXAGON_SDK_ROOT", "HEXAGON_TOOLS_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANDROID_NDK_ROOT", str(tmp_path))
    (tmp_path / "build" / "cmake").mkdir(parents=True)
    (tmp_path / "build" / "cmake" / "android.toolchain.cmake").write_text(STAND_IN_NDK.format(kernels=kernels_dir()))
    result = cmake("--preset", f"arm64-{system}-snapdragon-release", "-B", tmp_path / "b")
    assert result.returncode != 0
    assert "HEXAGON_SDK_ROOT is '', which is no folder" in result.stderr and "open-linux-arm64" in result.stderr
