"""A server that was pushed to a device, started over SSH or ADB, its frames on the program's standard streams.

This is the one door between the offload path and hexnpu/deploy; neither knows of the other. The connection speaks to
one end of a socket pair; two threads carry bytes between the other end and the program. Memory is not shared: buffers
are copied by WRITE and READ. The server takes the device's NPU if libcdsprpc.so can be opened there, its emulated one
if not; `Hello.flavour` says which.

`HEXNPU_TARGET_DIR` is where the package was pushed, if not where `hexnpu push` puts it by default.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading

from hexnpu.deploy.adb import AdbDevice
from hexnpu.deploy.device import Command, Device, open_device
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.package import target_dir
from hexnpu.deploy.process import STDERR, STDOUT, Process, start_thread
from hexnpu.deploy.targets import parse_target
from hexnpu.errors import HexnpuError, SessionLost
from hexnpu.native import kernels_dir
from hexnpu.transport.connection import Connection

SERVER = "./bin/htp-server"
ENVIRONMENT = {"LD_LIBRARY_PATH": "./lib", "ADSP_LIBRARY_PATH": "./lib"}
MAX_THREADS = 10
PIECE_BYTES = 256 << 10
# How much of the server's stderr is kept for an error.
TAIL_BYTES = 16 << 10
END_TIMEOUT_S = 2.0
# Of exit codes after which another push of the same package does not help.
REMEDIES = {
    126: "its presets are for arm64; without --target the emulator of this machine computes",
    128 + signal.SIGILL: "its processor lacks instructions that the server is built for (docs/deploy.md)",
}


def connect(target: str) -> Connection:
    """Starts the server where it was pushed, and greets it. Raises the errors of hexnpu.deploy.errors where the device
    cannot be reached."""
    device, process = _start(target, ("--stdio", "--threads", str(MAX_THREADS), "--backend", "auto"))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    server = PushedServer(device, process, theirs)
    try:
        return Connection(ours, server, f"{device.name} {SERVER}", shares=False)
    except SessionLost as lost:
        if server.obituary() not in str(lost):  # it ran, and something else is wrong
            raise
        push = f"push it (hexnpu build --target {target} --push), or name its folder by HEXNPU_TARGET_DIR"
        raise HexnpuError(
            f"{device.name}: the server {SERVER} did not start: {server.obituary()}{_because(server)}; "
            + REMEDIES.get(server.code or 0, push)
        ) from lost
    except BaseException:
        ours.close()
        server.end()
        raise


def _start(target: str, arguments: tuple[str, ...]) -> tuple[Device, Process]:
    where = parse_target(target)
    device = open_device(where)
    try:
        if not device.posix:
            raise HexnpuError(f"{device.name}: the server {SERVER} is not built for Windows: use another target")
        if isinstance(device, AdbDevice) and "shell_v2" not in device.features():
            raise HexnpuError(f"{device.name} has no shell v2, so frames cannot pass: it takes Android 7 or later")
        directory = os.environ.get("HEXNPU_TARGET_DIR") or target_dir(where, kernels_dir())
        command = Command((SERVER, *arguments), directory, ENVIRONMENT)
        return device, device.open(command)
    except BaseException:
        device.close()
        raise


class PushedServer:
    """The program behind a connection. `theirs` is the far end of the connection's socket pair."""

    def __init__(self, device: Device, process: Process, theirs: socket.socket) -> None:
        self._device = device
        self._process = process
        self._theirs = theirs
        self._tail = b""
        self._how = ""
        self.code: int | None = None  # at its end, as a shell would say it
        self._gone = threading.Event()
        start_thread(self._carry_up)
        start_thread(self._carry_down)

    def _carry_up(self) -> None:
        """What the connection writes, to the program; the end of it is the end of the program's input."""
        with contextlib.suppress(OSError):
            while data := self._theirs.recv(PIECE_BYTES):
                self._process.write(data)
        self._process.close_stdin()

    def _carry_down(self) -> None:
        """What the program writes, to the connection; its end closes the connection's line."""
        try:
            while piece := self._process.read():
                stream, data = piece
                if stream == STDOUT:
                    self._theirs.sendall(data)
                elif stream == STDERR:
                    self._tail = (self._tail + data)[-TAIL_BYTES:]
            self.code = self._process.exit_code()
            self._how = _how(self.code)
        except (DeployError, OSError) as error:
            self._how = str(error)
            self.code = getattr(error, "exit_code", None)
        self._gone.set()
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)

    def obituary(self) -> str:
        self._gone.wait(END_TIMEOUT_S)
        return self._how or "the server closed the line"

    def last_words(self) -> str:
        return self._tail.decode("utf-8", "replace")

    def end(self) -> None:
        """Waits a moment for the server to see its input closed, then kills it, and leaves the device."""
        if not self._gone.wait(END_TIMEOUT_S):
            with contextlib.suppress(DeployError, OSError):
                self._process.kill()
        self._process.close()
        self._device.close()
        self._theirs.close()


def _how(code: int) -> str:
    return f"the server was killed by signal {code - 128}" if code > 128 else f"the server exited with status {code}"


def _because(server: PushedServer) -> str:
    lines = server.last_words().strip().splitlines()
    return f" ({lines[-1]})" if lines else ""
