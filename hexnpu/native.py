"""Builds the C parts on first use into a content-addressed cache.

An object's name is the hash of everything that went into it (its source, every header, the flags, the
compiler and the processor), so an edited kernel is rebuilt by itself, two processes may build at the same
time, and nothing in the cache is ever stale. A finished file appears by an atomic rename.

Environment: `CC` (compiler command for the release and tsan flavours), `HEXNPU_CACHE` (cache folder,
default `~/.cache/hexnpu`).
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hexnpu.cache import cache_dir, cache_error
from hexnpu.cache import cpu_features as _cpu_features
from hexnpu.errors import BuildError, UsageError

ARCHS = (73, 75, 79, 81)
DEFAULT_ARCH = 79
FLAVOURS = ("release", "asan", "tsan")

COMMON_FLAGS = (
    "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread",
)  # fmt: skip
# Every object of one program gets the same -m flags: 128-byte vectors are returned differently without them.
IS_X86 = platform.machine() in ("x86_64", "AMD64")
X86_FLAGS = (
    "-march=native", "-mprefer-vector-width=512", "-Wno-psabi",
    # clang 19 finds fault with what its own `native` says of processors with AVX10.1.
    "-Wno-unknown-warning-option", "-Wno-invalid-feature-combination",
)  # fmt: skip
HOST_FLAGS = X86_FLAGS if IS_X86 else ("-mcpu=native", "-Wno-psabi")
FLAVOUR_FLAGS = {
    "release": ("-O3", "-fno-sanitize=undefined"),
    "asan": ("-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    "tsan": ("-O1", "-g", "-fsanitize=thread", "-fno-sanitize=undefined"),
}
HEXAGON_FLAGS = ("-O2", "-fno-sanitize=undefined")  # the vector length is a feature of -mcpu

# What x86-64-v3 asks for, by the names of /proc/cpuinfo.
X86_64_V3 = frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"})


@dataclass(frozen=True)
class Target:
    """What a set of objects is built for: a host flavour of the emulator, or a real Hexagon arch.

    With `plain` they run on any processor of this machine's kind, as a library in other people's programs must.
    """

    flavour: str = "release"
    arch: int = DEFAULT_ARCH
    hexagon: bool = False
    plain: bool = False

    def compiler(self) -> list[str]:
        if self.hexagon:
            return _zig()
        if self.flavour == "asan":
            found = shutil.which("clang-19")
            if not found:
                raise BuildError(
                    "the asan build needs Debian's clang-19 (ziglang has no ASan run-time): "
                    "apt-get install clang-19 libclang-rt-19-dev"
                )
            return [found]
        return _users_compiler() or _zig()

    def flags(self) -> list[str]:
        root = kernels_dir()
        include = [f"-I{root / 'include'}"]
        if self.hexagon:
            cpu = f"hexagonv{self.arch}+hvxv{self.arch}+hvx_length128b+hvx_qfloat"
            if self.arch >= 79:
                cpu += "+hvx_ieee_fp"
            return [
                *COMMON_FLAGS, *HEXAGON_FLAGS, "-target", "hexagon-linux-musl", f"-mcpu={cpu}",
                *include, f"-I{root / 'platform/hexagon/sdk'}",
            ]  # fmt: skip
        arch = [f"-D__HVX_ARCH__={self.arch}", f"-D__HEXAGON_ARCH__={self.arch}", "-D__HVX_LENGTH__=128"]
        return [
            *COMMON_FLAGS, *self._processor_flags(), *FLAVOUR_FLAGS[self.flavour], *arch, *include,
            f"-I{root / 'platform/emu'}", f"-I{root / 'platform/hexagon/sdk'}",
        ]  # fmt: skip

    def _processor_flags(self) -> Sequence[str]:
        if not self.plain:
            return HOST_FLAGS
        return ("-mcpu=baseline",) if self.compiler() == _zig() else ()  # zig's default is this very processor


def parse_arch(text: str | int, name: str = "--arch") -> int:
    """An arch as people write it, 79 or v79; `name` is what the error calls it. Raises UsageError."""
    number = str(text).removeprefix("v")
    if number not in map(str, ARCHS):
        raise UsageError(f"{name} is {text}; it must be one of {', '.join(f'v{arch}' for arch in ARCHS)}")
    return int(number)


def parse_flavour(text: str) -> str:
    """A flavour, if there is one of that name. Raises UsageError."""
    if text not in FLAVOURS:
        raise UsageError(f"no flavour {text!r}; there are {', '.join(FLAVOURS)}")
    return text


def kernels_dir() -> Path:
    """The folder of the C sources: inside an installed wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    for folder in (here / "_htp_kernels", here.parent / "htp_kernels"):
        if (folder / "include").is_dir():
            return folder
    raise BuildError(f"the C sources are missing: neither {here}/_htp_kernels nor {here.parent}/htp_kernels exists")


def compile_program(
    name: str,
    sources: Sequence[Path],
    target: Target | None = None,
    extra: Sequence[str] = (),
    link: Sequence[str] = (),
) -> Path:
    """The path of the program linked from `sources`, built if it is not in the cache yet.

    `extra` are flags of every step, `link` of the last one.
    """
    target = target or Target()
    objects = compile_objects(sources, target, extra, label=name)
    command = [*target.compiler(), *target.flags(), *extra, *link]
    program = cache_dir() / "bin" / f"{name}-{_digest([*_named(command), *(o.name for o in objects)])}"
    if not program.exists():
        _run_into(program, lambda out: [*command, *map(str, objects), "-o", str(out), "-lm"])
    return program


def compile_shared(
    name: str, sources: Sequence[Path], target: Target, extra: Sequence[str] = (), link: Sequence[str] = ()
) -> Path:
    """The path of the shared library `name`, which is its soname as well; built if it is not in the cache yet.

    Hidden visibility: only what a source marks is a name of the library. It is never unloaded, as it may have threads.
    """
    flags = ["-fPIC", "-fvisibility=hidden", *extra]
    shared = ["-shared", f"-Wl,-soname,{name}", "-Wl,-z,nodelete", *link]
    return compile_program(name, sources, target, flags, shared)


def compile_objects(
    sources: Sequence[Path], target: Target, extra: Sequence[str] = (), label: str = "kernels"
) -> list[Path]:
    """The object files of `sources`, each built if it is not in the cache yet. Progress goes to stderr."""
    check_host(target)
    command = [*target.compiler(), *target.flags(), *extra]
    version = _compiler_version(tuple(target.compiler()))
    seed = _digest([*_named(command), version, _cpu_features(), _headers_digest(sources)])
    objects = [cache_dir() / "obj" / f"{s.stem}-{_digest([seed, s.read_bytes()])}.o" for s in sources]
    missing = [(s, o) for s, o in zip(sources, objects, strict=True) if not o.exists()]
    done = 0

    def one(job: tuple[Path, Path]) -> None:
        nonlocal done
        source, obj = job
        _run_into(obj, lambda out: [*command, "-c", str(source), "-o", str(out)])
        done += 1
        _progress(f"building {label} ({target.flavour}, v{target.arch}): {done}/{len(missing)} {source.name}")

    if missing:
        first = f"building {label} ({target.flavour}, v{target.arch}): 0/{len(missing)}"
        _progress(first)
        if len(missing) > 4:
            _announce(first)
        with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
            list(pool.map(one, missing))
        _progress(None)
    return objects


def check_host(target: Target) -> None:
    """Raises BuildError where the emulator cannot run: 128-byte vectors need the x86-64-v3 instructions."""
    if target.hexagon or target.plain or not IS_X86:
        return
    missing = X86_64_V3 - set(_cpu_features().split())
    if missing:
        raise BuildError(
            f"the emulator needs an x86-64-v3 processor; this one lacks {' '.join(sorted(missing))}. "
            "Use a machine from 2015 or later, or enable these instructions in the virtual machine's settings"
        )


def _zig() -> list[str]:
    spec = importlib.util.find_spec("ziglang")
    if spec is None:
        raise BuildError("no C compiler: pip install ziglang, or set CC to a clang")
    return [sys.executable, "-m", "ziglang", "cc"]


def _named(command: list[str]) -> list[str]:
    """The same, whatever this Python was called by: `python` and `python3` of one environment share their builds."""
    zig = _zig() if importlib.util.find_spec("ziglang") else []
    return ["zig", *command[len(zig) :]] if zig and command[: len(zig)] == zig else command


def _users_compiler() -> list[str]:
    """The words of CC; none where it is unset or empty."""
    try:
        return shlex.split(os.environ.get("CC", ""))
    except ValueError as error:
        raise BuildError(f"CC is {os.environ['CC']!r}: {error}; set it to a clang, or unset it") from None


@functools.lru_cache
def _compiler_version(command: tuple[str, ...]) -> str:
    if list(command) == _zig():
        import importlib.metadata  # slow to import, and most commands build nothing

        return "ziglang " + importlib.metadata.version("ziglang")  # asking zig itself costs a noticeable start
    try:
        result = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError as error:
        raise BuildError(
            f"cannot run the compiler {shlex.join(command)}: {error.strerror}; set CC to a clang, or unset it"
        ) from None
    if "clang" not in result.stdout:
        raise BuildError(
            f"{shlex.join(command)} is not a clang, and the kernels are written with clang's vector types; "
            "set CC to a clang, or unset it"
        )
    return result.stdout


def _headers_digest(sources: Iterable[Path]) -> str:
    folders = {kernels_dir(), *(s.parent for s in sources)}
    headers = sorted({h for folder in folders for h in folder.rglob("*") if h.suffix in (".h", ".def", ".inc")})
    return _digest([part for h in headers for part in (h.name, h.read_bytes())])


def _digest(parts: Iterable[str | bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:20]


def _run_into(path: Path, command: Callable[[Path], list[str]]) -> None:
    """Runs the command that `command(temporary)` gives, then renames the temporary file to `path`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".build-") as folder:
            out = Path(folder) / path.name
            _compile(command(out), Path(folder))
            out.replace(path)
    except OSError as error:
        raise cache_error(error) from None


def _compile(command: list[str], scratch: Path) -> None:
    # zig keeps its libc in the global cache; what it makes of our sources goes away with the scratch folder, since
    # two zigs that compile the same source at once have been seen to read each other's half-written files.
    environment = os.environ | {
        "ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(scratch / "zig"),
    }
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
    if result.returncode:
        _progress(None)
        # A compiler says "No space left" or "NoSpaceLeft" in its own ways; what counts is whether there is any.
        if shutil.disk_usage(cache_dir()).free < 1 << 20:
            raise cache_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        raise BuildError(f"the compiler failed (exit {result.returncode}): {shlex.join(command)}\n{result.stderr}")


def _announce(text: str) -> None:
    """Where there is no terminal to redraw a line on, a build says once what takes a while."""
    if not sys.stderr.isatty():
        print(f"hexnpu: {text}", file=sys.stderr, flush=True)


def _progress(text: str | None) -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K" + (text or ""))
        sys.stderr.flush()
