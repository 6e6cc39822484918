"""Builds the FastRPC stand-in: one folder with libcdsprpc.so, its other names, and htp-pd beside it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from hexnpu.build_command import build_command
from hexnpu.cache import cache_dir, cached_folder
from hexnpu.native import DEFAULT_ARCH, Target, compile_program, compile_shared, kernels_dir

LIBRARY = "libcdsprpc.so"
# Programs ask for the library by any of these.
LIBRARY_NAMES = (LIBRARY, "libcdsprpc.so.1", "libadsprpc.so", "libadsprpc.so.1")
PROGRAM = "htp-pd"
FASTRPC = "platform/fastrpc"


def _sources(folder: str, wanted: Callable[[str], bool] = lambda _: True) -> list[Path]:
    return [source for source in sorted((kernels_dir() / folder).glob("*.c")) if wanted(source.stem)]


def client_sources() -> list[Path]:
    """The C files of libcdsprpc.so."""
    queue = _sources(f"{FASTRPC}/queue", lambda stem: not stem.endswith("-pd"))
    return [*_sources(FASTRPC), *_sources(f"{FASTRPC}/client"), *queue]


def pd_sources() -> list[Path]:
    """The C files of htp-pd: the emulator's platform, the queue's DSP side and the protection domain itself."""
    of_client = {"queue-client", "queue-multi"}
    queue = _sources(f"{FASTRPC}/queue", lambda stem: stem not in of_client)
    return [
        *_sources("platform/emu"),
        *_sources("platform/emu/hvx"),
        *_sources(FASTRPC),
        *_sources(f"{FASTRPC}/pd"),
        *queue,
    ]


def client_library(flavour: str = "release") -> Path:
    """The path of the library in the cache; it runs in any program, of any compiler, on any processor of this kind."""
    return compile_shared(LIBRARY, client_sources(), Target(flavour, plain=True), [f"-I{kernels_dir() / FASTRPC}"])


def pd_program(flavour: str = "release", arch: int = DEFAULT_ARCH) -> Path:
    """The path of htp-pd in the cache. At a fixed low address, and every function of the SDK is a name of it."""
    extra = [f"-I{kernels_dir() / FASTRPC}", "-DHEXNPU_EMU_DSP"]
    return compile_program(PROGRAM, pd_sources(), Target(flavour, arch), extra, ["-no-pie", "-rdynamic", "-ldl"])


def emulator_folder(flavour: str = "release", pd_flavour: str | None = None) -> Path:
    """The folder to put first in LD_LIBRARY_PATH, built where it has to be. Raises BuildError."""
    library = client_library(flavour)
    program = pd_program(pd_flavour or flavour)
    key = hashlib.sha256(f"{library}\n{program}".encode()).hexdigest()[:20]

    def fill(folder: Path) -> None:
        for name in LIBRARY_NAMES:
            (folder / name).symlink_to(library)
        (folder / PROGRAM).symlink_to(program)

    return cached_folder(cache_dir() / "emulator" / key, fill)


if __name__ == "__main__":
    build_command("emulator_build", lambda target: emulator_folder(target.flavour), has_arch=False)
