"""Builds our kernel library as FastRPC loads it: a device's lib/libhtp-v79.so, for the emulator's stand-in."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hexnpu.build_command import build_command
from hexnpu.cache import cache_dir, cached_folder
from hexnpu.emucc import driver
from hexnpu.errors import BuildError
from hexnpu.idl import compile_idl
from hexnpu.native import Target, compile_objects, kernels_dir
from hexnpu.server_build import device_sources


def npu_library(target: Target | None = None) -> Path:
    """The path of libhtp-vARCH.so, in a folder of its own that ADSP_LIBRARY_PATH can name. Raises BuildError."""
    target = target or Target()
    hexagon = kernels_dir() / "platform/hexagon"
    interface = _interface(hexagon / "htp_npu.idl")
    sources = [*device_sources(), hexagon / "npu.c", interface / "htp_npu_skel.c"]
    objects = compile_objects(sources, target, ["-fPIC", f"-I{interface}", "-DHEXNPU_EMU_DSP"], label="libhtp")
    name = f"libhtp-v{target.arch}.so"
    parts = [*(o.name for o in objects), hex(driver.image_base(name))]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]

    def fill(folder: Path) -> None:
        command = ["-shared", f"-Wl,-soname,{name}", *map(str, objects), "-o", str(folder / name)]
        if driver.main(command):
            raise BuildError(f"{name} could not be linked; what the linker says stands above")

    return cached_folder(cache_dir() / "npu" / key, fill) / name


def _interface(idl: Path) -> Path:
    """A folder of the cache with the header and the skel of our own interface."""
    files = compile_idl(idl)
    key = hashlib.sha256("".join(files.values()).encode()).hexdigest()[:20]

    def fill(folder: Path) -> None:
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")

    return cached_folder(cache_dir() / "idl" / key, fill)


if __name__ == "__main__":
    build_command("npu_library", npu_library)
