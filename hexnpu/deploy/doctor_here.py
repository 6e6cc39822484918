"""What `hexnpu doctor` looks at on this machine: container engine, adb, compilers, variables, disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from hexnpu.cache import cache_dir
from hexnpu.deploy import container
from hexnpu.deploy.checks import Check, Finding, note, ok, wrong
from hexnpu.deploy.environment import known_variables

PREFIX = "GGML_HEXAGON_"
# Variables that llama.cpp read once, and what took their place.
RETIRED = {
    "GGML_HEXAGON_NDEV": "GGML_HEXAGON_DEVICES takes names (HTP0,HTP1) or a count",
    "GGML_HEXAGON_OPMASK": "ops are kept from the NPU by GGML_HEXAGON_OPFILTER",
    "GGML_HEXAGON_OPSTAGE": "ops are kept from the NPU by GGML_HEXAGON_OPFILTER",
    "GGML_HEXAGON_OPSYNC": "batches in flight are set by GGML_HEXAGON_OPQUEUE",
    "GGML_HEXAGON_USE_HMX": "HMX is set by GGML_HEXAGON_NHMX",
    "GGML_HEXAGON_EXPERIMENTAL": "what it switched on is always on",
}
MIN_FREE_BYTES = 2 << 30
ENGINE_TIMEOUT_S = 10.0
ADB_TIMEOUT_S = 10.0
QUICK_S = 5.0


def checks() -> list[Check]:
    return [
        Check("container", 3 * ENGINE_TIMEOUT_S, container_engine),
        Check("adb", ADB_TIMEOUT_S, adb_server),
        Check("cmake", QUICK_S, cmake),
        Check("ziglang", QUICK_S, ziglang),
        Check("variables", QUICK_S, lambda: variables(os.environ)),
        Check("disk", QUICK_S, disk),
    ]


def container_engine() -> list[Finding]:
    """docker or podman, its daemon, and the images of the default toolchain."""
    what = "container"
    try:
        engine = container.engine()
    except container.NoContainerEngine:
        return note(what, "neither docker nor podman is installed", "install one of them, or build with --no-docker")
    try:
        container.check_daemon(engine, ENGINE_TIMEOUT_S)
    except container.EngineNotRunning as error:
        return note(what, str(error), "needed for builds in the container only: start it")
    findings = ok(what, f"{engine} answers")
    for system in ("android", "linux"):
        image = container.image(container.URL, container.VERSION, system, "")
        if not container.has_image(engine, image):
            findings += note(what, f"image {image} is not here", "the first build for that target pulls it")
    return findings


def adb_server() -> list[Finding]:
    """The adb server and the devices on it."""
    from hexnpu.deploy.adb_server import attached
    from hexnpu.deploy.errors import NoAdbServer

    try:
        devices = attached()
    except NoAdbServer as error:
        return note("adb", str(error), "needed for Android only: adb start-server")
    if not devices:
        return note("adb", "the server answers, no device is attached", "plug one in, or adb connect HOST:PORT")
    listed = ", ".join(f"{serial} ({state})" for serial, state in devices)
    if all(state != "device" for _, state in devices):
        return wrong("adb", f"no device can be used: {listed}", "allow USB debugging on its screen, or replug it")
    return ok("adb", listed)


def cmake() -> list[Finding]:
    found = shutil.which("cmake")
    if not found:
        return note("cmake", "not installed", "needed for --no-docker builds: apt-get install cmake")
    code, line = container.ask([found, "--version"], QUICK_S)
    if code:
        return wrong("cmake", f"{found} does not run: {line}", "reinstall it")
    return ok("cmake", found)


def ziglang() -> list[Finding]:
    if importlib.util.find_spec("ziglang") is None:
        return wrong("ziglang", "not installed in this Python", "pip install ziglang: the emulator is built with it")
    return ok("ziglang", importlib.metadata.version("ziglang"))


def variables(environment: Mapping[str, str]) -> list[Finding]:
    """GGML_HEXAGON_ variables that are set here and that nothing reads any more."""
    known = known_variables()
    findings: list[Finding] = []
    for name in sorted(environment):
        if name in RETIRED:
            findings += wrong("variables", f"{name} is set and no longer read", f"unset it; {RETIRED[name]}")
        elif name.startswith(PREFIX) and name not in known:
            findings += note("variables", f"{name} is set, and none that hexnpu knows", "check its spelling")
    return findings or ok("variables", "none that is retired or unknown")


def disk() -> list[Finding]:
    """Room for builds where they go, and for the cache."""
    findings: list[Finding] = []
    for place in (Path.cwd(), _existing(cache_dir())):
        free = shutil.disk_usage(place).free
        if free < MIN_FREE_BYTES:
            findings += wrong("disk", f"{free >> 20} MiB are free at {place}", "make room: a build takes gigabytes")
    return findings or ok("disk", f"{shutil.disk_usage(Path.cwd()).free >> 30} GiB are free here")


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
