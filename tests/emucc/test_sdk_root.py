"""The folder in the SDK's shape: CMake trees that were written for the SDK build with it, unchanged."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.emucc.sdk_root import sdk_root
from tests.conftest import require_tool

IDL = """
#include "AEEStdDef.idl"
#include "remote.idl"
interface toy : remote_handle64 {
    AEEResult add(in int32 a, in int32 b, rout int32 sum);
};
"""

DSP = """
#include "toy.h"
#include "HAP_farf.h"
#include <hexagon_protos.h>
AEEResult toy_open(const char *uri, remote_handle64 *h) { (void) uri; *h = 1; return 0; }
AEEResult toy_close(remote_handle64 h) { (void) h; return 0; }
AEEResult toy_add(remote_handle64 h, int32 a, int32 b, int32 *sum) {
    (void) h;
    asm volatile("%0 = add(%1, %2)" : "=r"(*sum) : "r"(a), "r"(b));
    return 0;
}
int arch(void) { return __HEXAGON_ARCH__; }
"""

LISTS = """
cmake_minimum_required(VERSION 3.22)
project(toy C)
include(${HEXAGON_SDK_ROOT}/build/cmake/hexagon_fun.cmake)
include_directories(${HEXAGON_SDK_ROOT}/incs ${HEXAGON_SDK_ROOT}/incs/stddef)
add_library(toy-${DSP_VERSION} SHARED toy.c toy_skel.c)
build_idl(toy.idl toy-${DSP_VERSION})
set(LIB ${HEXAGON_TOOLS_ROOT}/Tools/target/hexagon/lib/${HEXAGON_ARCH}/G0/pic)
target_link_libraries(toy-${DSP_VERSION} ${LIB}/libgcc.so)
install(TARGETS toy-${DSP_VERSION})
"""

# As toolchain files of SDK users look: compilers by path, a link line of their own, start files of the DSP.
TOOLCHAIN = """
set(CMAKE_SYSTEM_NAME QURT)
set(CMAKE_SYSTEM_PROCESSOR Hexagon)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT)
include(${HEXAGON_SDK_ROOT}/build/cmake/hexagon_arch.cmake)
set(CMAKE_C_COMPILER ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-clang)
set(CMAKE_AR ${HEXAGON_TOOLS_ROOT}/Tools/bin/hexagon-ar)
set(CMAKE_SHARED_LIBRARY_SONAME_C_FLAG "-Wl,-soname,")
set(FLAGS "-mcpu=${HEXAGON_ARCH} -m${HEXAGON_ARCH} -mhvx=${HEXAGON_ARCH} -mhmx")
set(LIB "${HEXAGON_TOOLS_ROOT}/Tools/target/hexagon/lib/${HEXAGON_ARCH}/G0")
set(CMAKE_C_FLAGS_RELEASE "${FLAGS} -fvectorize -flto -Wall -Werror -G0 -fdata-sections -fpic -O2")
set(CMAKE_C_CREATE_SHARED_LIBRARY "${CMAKE_C_COMPILER} ${FLAGS} -G0 -fpic -Wl,-Bsymbolic -Wl,-L${LIB} -Wl,--no-threads \
-Wl,--wrap=malloc -shared -o <TARGET> <SONAME_FLAG><TARGET_SONAME> ${LIB}/init.o <LINK_FLAGS> -Wl,--start-group \
<OBJECTS> <LINK_LIBRARIES> -Wl,--end-group -lc ${LIB}/fini.o")
"""


def test_the_folder_is_made_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_CACHE", str(tmp_path))
    root = sdk_root()
    assert sdk_root() == root
    assert [p.name for p in (tmp_path / "sdk").iterdir()] == [root.name]
    for name in ("incs/remote.h", "incs/stddef/AEEStdDef.h", "incs/AEEStdDef.idl", "incs/HAP_farf.h"):
        assert (root / name).read_text()
    for name in ("hexagon-clang", "hexagon-clang++", "hexagon-ar", "hexagon-ranlib"):
        assert os.access(root / "tools/Tools/bin" / name, os.X_OK)


@pytest.mark.parametrize(("arch", "own_toolchain"), [(75, False), (81, True)])
def test_a_project_builds_with_its_own_cmake_files(arch: int, own_toolchain: bool, tmp_path: Path) -> None:
    cmake = require_tool("cmake", "cmake")
    require_tool("ninja", "ninja-build")
    source, build = tmp_path / "source", tmp_path / "build"
    source.mkdir()
    for name, text in {"toy.idl": IDL, "toy.c": DSP, "CMakeLists.txt": LISTS, "toolchain.cmake": TOOLCHAIN}.items():
        (source / name).write_text(text)
    root = subprocess.run(
        [sys.executable, "-m", "hexnpu", "emu-cc", "--sdk-root"], check=True, capture_output=True, text=True
    ).stdout.strip()
    toolchain = source / "toolchain.cmake" if own_toolchain else Path(root) / "hexnpu-emu.cmake"
    configure = [
        cmake, "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", f"-DDSP_VERSION=v{arch}",
        f"-DHEXAGON_SDK_ROOT={root}", f"-DHEXAGON_TOOLS_ROOT={root}/tools", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
    ]  # fmt: skip
    for command in (configure, [cmake, "--build", build]):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
    library = ctypes.CDLL(str(build / f"libtoy-v{arch}.so"))
    assert library.arch() == arch
    total = ctypes.c_int()
    assert library.toy_add(ctypes.c_uint64(1), 20, 22, ctypes.byref(total)) == 0 and total.value == 42
    assert library.toy_skel_handle_invoke
    # Nothing to do the second time: dependencies are right.
    again = subprocess.run([cmake, "--build", build], capture_output=True, text=True, check=True).stdout
    assert "no work to do" in again
