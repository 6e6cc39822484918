"""Builds a CMake tree with presets for a target: in the vendor's toolchain container, or natively.

The tree is this project's own kernels and server, or a llama.cpp checkout. Both go the same three steps: configure by
preset, build, install into a package folder. Every command is echoed before it runs.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hexnpu.cache import cache_dir
from hexnpu.deploy import container, package
from hexnpu.deploy.command import run_echoed
from hexnpu.deploy.configured import configured
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.installed import without_former
from hexnpu.deploy.presets import check_preset, preset_names, refresh_presets, variables_read
from hexnpu.deploy.targets import WORDS, Target, parse_target
from hexnpu.errors import UsageError
from hexnpu.native import kernels_dir

PRESET_SYSTEMS = ("android", "linux", "windows")
OPEN_PREFIX = "open-"
# Folders of the vendor's tools, which its presets take from the environment.
SDK_FOLDERS = ("HEXAGON_SDK_ROOT", "HEXAGON_TOOLS_ROOT", "ANDROID_NDK_ROOT")


class NoCMake(DeployError):
    """A native build without cmake."""

    exit_code = 27


class NoSdk(DeployError):
    """A native build with a preset of the vendor's, without its tools."""

    exit_code = 28


@dataclass(frozen=True)
class Build:
    """One build, all defaults resolved. `image`: the container's, None for a native build."""

    source: Path
    preset: str
    build_dir: Path
    install_dir: Path
    jobs: int
    image: str | None


def build_target(text: str) -> Target:
    """A target to build for: as everywhere, and the bare word too (`linux`), as a build needs no host."""
    return Target(WORDS[text], text) if text in WORDS else parse_target(text)


def resolve(
    target: Target,
    *,
    source: Path | None = None,
    build_dir: Path | None = None,
    install_dir: Path | None = None,
    jobs: int | None = None,
    native: bool = False,
    preset: str | None = None,
    debug: bool = False,
    toolchain_url: str = container.URL,
    toolchain_version: str = container.VERSION,
) -> Build:
    """What to build, from the flags of `hexnpu build`. Raises UsageError where they do not go together."""
    tree = (source or kernels_dir()).resolve()
    if not (tree / "CMakeLists.txt").is_file():
        raise UsageError(f"{tree} has no CMakeLists.txt; give a CMake tree with presets by --source")
    if preset is None and target.kind not in PRESET_SYSTEMS:
        raise UsageError(
            f"there is nothing to build for {target}: the emulator builds itself on first use; "
            f"give {', '.join(PRESET_SYSTEMS)} or a --preset"
        )
    debug = debug or (preset is not None and "debug" in preset)
    preset = preset or f"arm64-{target.kind}-snapdragon-{'debug' if debug else 'release'}"
    # The vendor has no image for Windows, whose tools run on Windows only.
    native = native or target.kind == "windows" or "-windows-" in preset
    image = None if native else container.image(toolchain_url, toolchain_version, target.kind, preset)
    return Build(
        tree, preset,
        (build_dir or package.build_dir(target, tree, debug)).resolve(),
        (install_dir or package.install_dir(target, tree, debug)).resolve(),
        jobs or os.cpu_count() or 1, image,
    )  # fmt: skip


def steps(build: Build, build_dir: str, install_dir: str, options: list[str]) -> list[list[str]]:
    """Configure, build, install, as run in the source folder."""
    return [
        ["cmake", "--preset", build.preset, "-B", build_dir, *options],
        ["cmake", "--build", build_dir, "-j", str(build.jobs)],
        ["cmake", "--install", build_dir, "--prefix", install_dir],
    ]


def run(build: Build) -> None:
    """Builds. Raises CommandFailed with the exit code of the step that failed."""
    refresh_presets(build.source)
    check_preset(build.source, build.preset)
    if build.image is None:
        _run_native(build)
        return
    build_dir, install_dir = (_in_container(build.source, f) for f in (build.build_dir, build.install_dir))
    engine = container.engine()
    container.check(engine, build.image)
    renewed = without_former(build.build_dir, build.install_dir, f"{container.WORKSPACE}/{install_dir}")
    with renewed, configured(build.build_dir, build.preset) as options:
        all_steps = steps(build, build_dir, install_dir, options)
        run_echoed(container.command(engine, build.image, build.source, all_steps))


def _run_native(build: Build) -> None:
    if not shutil.which("cmake"):
        raise NoCMake("cmake is missing: apt-get install cmake (or pip install cmake)")
    _check_sdk(build)
    if not os.access(build.source, os.W_OK) and build.build_dir.is_relative_to(build.source):
        raise UsageError(
            f"{build.source} cannot be written: give --build-dir and --install-dir, or a copy of it by --source"
        )
    options = [f"-DHTP_ZIG={_zig()}"] if build.preset.startswith(OPEN_PREFIX) else []
    # Only its C library is shared between builds, see hexnpu/native.py.
    environment = {
        "ZIG_GLOBAL_CACHE_DIR": str(cache_dir() / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(build.build_dir / "zig"),
    }
    renewed = without_former(build.build_dir, build.install_dir, str(build.install_dir))
    with renewed, configured(build.build_dir, build.preset) as fresh:
        for step in steps(build, str(build.build_dir), str(build.install_dir), [*fresh, *options]):
            run_echoed(step, build.source, environment)


def _check_sdk(build: Build) -> None:
    """CMake would say so too, but pages above its last line."""
    read = variables_read(build.source, build.preset)
    missing = [name for name in SDK_FOLDERS if name in read and not Path(os.environ.get(name) or "/dev/null").is_dir()]
    if not missing:
        return
    several = len(missing) > 1
    named = f"{', '.join(missing)} {'are' if several else 'is'}"
    ways = [f"set {'them' if several else 'it'}"]
    if "-windows-" not in build.preset:
        ways.append("build in the container (without --no-docker)")
    if open_presets := [name for name in preset_names(build.source) if name.startswith(OPEN_PREFIX)]:
        ways.append(f"take a --preset that needs no SDK ({', '.join(open_presets)})")
    raise NoSdk(f"{build.preset} needs the vendor's SDK, and {named} not set to a folder: {'; or '.join(ways)}")


def _in_container(source: Path, folder: Path) -> str:
    """A folder of the source tree, as steps in the container name it."""
    if not folder.is_relative_to(source):
        raise UsageError(
            f"{folder} is not inside {source}, and the container sees nothing else; or build with --no-docker"
        )
    return folder.relative_to(source).as_posix()


def _zig() -> Path:
    """The zig program of the ziglang package that runs with this Python."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise DeployError("the open presets build with ziglang: pip install ziglang")
    return Path(spec.origin).parent / ("zig.exe" if os.name == "nt" else "zig")
