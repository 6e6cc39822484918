"""How bytes reach a device server: a child process on the emulator or this machine's NPU, a pushed server, a socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from hexnpu import native
from hexnpu.errors import HexnpuError, UsageError
from hexnpu.native import DEFAULT_ARCH, Target
from hexnpu.transport import child
from hexnpu.transport.buffer import Buffer
from hexnpu.transport.connection import Connection

__all__ = ["ACCEPTED", "Buffer", "Connection", "connect"]

ACCEPTED = (
    "emu (this machine's emulator, the default), npu (this machine's NPU through libcdsprpc.so), "
    "linux:[user@]host[:port] or android[:serial] (a pushed server), "
    "tcp:HOST:PORT or unix:PATH"
)
CONNECT_TIMEOUT_S = 10.0
DEVICE_WORDS = ("android", "adb", "linux", "lnx", "ubuntu")
MAX_THREADS = 10  # HTP_MAX_THREADS: how many of them a session gets is for it to say


def connect(
    target: str | None,
    *,
    arch: int | str | None = None,
    flavour: str | None = None,
    env: Mapping[str, str] | None = None,
) -> Connection:
    """Connects to the device server of `target`; see ACCEPTED. `arch`, `flavour` and `env` are for the emulator, which
    is built first where it has to be."""
    kind, _, rest = ("emu" if target is None else target).partition(":")
    if kind == "emu" and not rest:
        return _emulator(arch, flavour, env)
    if kind == "npu" and not rest and not arch:
        return _npu(flavour, env)
    if arch or flavour:
        raise UsageError(f"arch and flavour are the emulator's: a server at {target} is what it was built as")
    if kind == "unix" and rest:
        return _socket(socket.AF_UNIX, rest, f"unix:{rest}")
    host, _, port = rest.rpartition(":")
    if kind == "tcp" and host and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 1 << 16:
        return _socket(socket.AF_INET, (host, int(port)), f"tcp:{rest}")
    if kind in DEVICE_WORDS:
        from hexnpu import pushed_server

        return pushed_server.connect(target or "")
    if kind == "qemu":
        raise UsageError(f"target {target!r} is not there yet; these are: {ACCEPTED}")
    raise UsageError(f"unknown target {target!r}; use {ACCEPTED}")


def _emulator(arch: int | str | None, flavour: str | None, env: Mapping[str, str] | None) -> Connection:
    number, flavour = native.parse_arch(arch or DEFAULT_ARCH, "arch"), native.parse_flavour(flavour or "release")
    from hexnpu.server_build import server_program

    program = server_program(Target(flavour, number))
    return child.start([str(program), "--stdio", "--threads", str(MAX_THREADS)], f"emulator v{number}", env)


def _npu(flavour: str | None, env: Mapping[str, str] | None) -> Connection:
    """The same server, on the NPU. Under `hexnpu emulate` our kernel library is built for the emulated arch; a
    Snapdragon machine has the one that was pushed, in ADSP_LIBRARY_PATH."""
    from hexnpu.server_build import server_program

    emulated = os.environ.get("HEXNPU_EMU_ARCH", "")
    if emulated and emulated not in map(str, native.ARCHS):
        known = ", ".join(map(str, native.ARCHS))
        raise UsageError(f"HEXNPU_EMU_ARCH={emulated}: there are {known}; `hexnpu emulate --arch` sets it")
    target = Target(flavour or "release", int(emulated or DEFAULT_ARCH))
    env = dict(env or {})
    if emulated:
        from hexnpu.npu_library import npu_library

        folders = [str(npu_library(target).parent), os.environ.get("ADSP_LIBRARY_PATH", "")]
        env["ADSP_LIBRARY_PATH"] = ";".join(filter(None, folders))
    command = [str(server_program(target)), "--stdio", "--threads", str(MAX_THREADS), "--backend", "fastrpc"]
    return child.start(command, "the NPU", env)


class _Remote:
    """A server that is not our child: it outlives us, and dies without telling why."""

    def obituary(self) -> str:
        return "the server closed the line"

    def last_words(self) -> str:
        return ""

    def end(self) -> None:
        pass


def _socket(family: socket.AddressFamily, address: str | tuple[str, int], name: str) -> Connection:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(CONNECT_TIMEOUT_S)
        sock.connect(address)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        sock.close()
        raise HexnpuError(
            f"no device server answers at {name}: {error.strerror or error}; start one there with htp-server"
        ) from None
    return Connection(sock, _Remote(), name)
