"""The toolchain container: which engine runs it, whether its image is there, and the command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hexnpu.deploy.command import CommandFailed, at_terminal, echo, run_echoed
from hexnpu.deploy.errors import DeployError
from hexnpu.errors import UsageError

URL = "ghcr.io/snapdragon-toolchain"
VERSION = "v0.7"
PLATFORM = "linux/amd64"
WORKSPACE = "/workspace"
ENGINES = ("docker", "podman")
# What an engine whose daemon runs has an answer to.
_QUESTIONS = {"docker": ("version", "--format", "{{.Server.Version}}"), "podman": ("info",)}
ANSWER_TIMEOUT_S = 20.0


class NoContainerEngine(DeployError):
    """Neither docker nor podman is installed."""

    exit_code = 23


class EngineNotRunning(DeployError):
    """The command is there, its daemon does not answer."""

    exit_code = 24


class ImageMissing(DeployError):
    """The toolchain image is not here and cannot be pulled."""

    exit_code = 25


def image(url: str, version: str, kind: str, preset: str) -> str:
    """The image for what is built: of the system that the preset names, or else the target's."""
    systems = ("android", "linux")
    system = next((system for system in systems if f"-{system}-" in f"-{preset}-"), kind)
    system = system if system in systems else "linux"
    return f"{url.rstrip('/')}/arm64-{system}:{version}"


def engine() -> str:
    """`docker`, or else `podman`. Raises NoContainerEngine."""
    for name in ENGINES:
        if shutil.which(name):
            return name
    raise NoContainerEngine("neither docker nor podman is installed: install one of them, or build with --no-docker")


def check(engine: str, image: str) -> None:
    """Pulls an image that is not here. Raises EngineNotRunning where the daemon does not answer, or ImageMissing."""
    check_daemon(engine, echoed=True)
    if has_image(engine, image, echoed=True):
        return
    try:
        run_echoed([engine, "pull", "--platform", PLATFORM, image])
    except CommandFailed:
        raise ImageMissing(
            f"the image {image} is not here and cannot be pulled: check the network, --toolchain-url and "
            "--toolchain-version, or build with --no-docker"
        ) from None


def check_daemon(engine: str, timeout_s: float = ANSWER_TIMEOUT_S, *, echoed: bool = False) -> None:
    """Raises EngineNotRunning, which names the other engine if that answers."""

    def answer(engine: str) -> tuple[int, str]:
        return ask([engine, *_QUESTIONS[engine]], timeout_s, echoed=echoed)

    code, words = answer(engine)
    if code == 0:
        return
    others = [other for other in ENGINES if other != engine and shutil.which(other) and answer(other)[0] == 0]
    raise EngineNotRunning(
        f"{engine} does not answer ({words or f'exit code {code}'}): start its daemon, see that you may use it "
        "(group docker), or build with --no-docker"
        + "".join(f"; {other} answers, and is taken where no {engine} is in PATH" for other in others)
    )


def has_image(engine: str, image: str, *, echoed: bool = False) -> bool:
    return ask([engine, "image", "inspect", "--format", "{{.Id}}", image], echoed=echoed)[0] == 0


def ask(command: Sequence[str], timeout_s: float = ANSWER_TIMEOUT_S, *, echoed: bool = False) -> tuple[int, str]:
    """Exit code of a short question, and the last line of what it said on stderr. `echoed`: as builds do."""
    if echoed:
        echo(command)
    try:
        result = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False, timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"no answer for {timeout_s:g} s"
    except OSError as error:
        return 127, str(error.strerror)
    return result.returncode, (result.stderr.strip().splitlines() or [""])[-1]


def command(engine: str, image: str, source: Path, steps: Sequence[Sequence[str]]) -> list[str]:
    """The command that runs `steps`, one after the other, in the source folder as this user."""
    if ":" in str(source) and os.name != "nt":
        raise UsageError(
            f"{source} has a colon in its name, which {engine} cannot mount; use another folder, or --no-docker"
        )
    user: list[str] = []
    if hasattr(os, "getuid"):
        user = ["-u", f"{os.getuid()}:{os.getgid()}"]
        # Without it podman maps the caller's id to another one; root's podman maps none, and refuses it.
        if engine == "podman" and os.getuid() != 0:
            user = ["--userns=keep-id", *user]
    terminal = ["-it"] if at_terminal() and sys.stdout.isatty() else []
    script = " && ".join(shlex.join(step) for step in steps)
    return [
        engine, "run", "--rm", "--init", *terminal, *user, "--volume", f"{source}:{WORKSPACE}", "--workdir", WORKSPACE,
        "--platform", PLATFORM, image, "sh", "-c", script,
    ]  # fmt: skip
