"""The adb server, through adbutils: where it is, its devices, and connections to their services."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hexnpu.deploy.errors import (
    ConnectionLost,
    DeployError,
    DeviceNotReady,
    NoAdbServer,
    NoDevice,
    SeveralDevices,
)
from hexnpu.deploy.quoting import encode

if TYPE_CHECKING:
    from adbutils import AdbClient, AdbConnection

_CONNECT_S = 5
_ANSWER_S = 15
_PORT = re.compile("[0-9]{1,5}", re.ASCII)
_TCP = re.compile(rf"tcp:(?:(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\s]+)):)?(?P<port>{_PORT.pattern})", re.ASCII)
# A request's length has four hex digits.
_MAX_REQUEST = 0xFFFF


def server_address(environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Where the adb server listens. ADB_SERVER_SOCKET comes before the others, as in adb itself."""
    spec = environment.get("ADB_SERVER_SOCKET")
    if spec:
        found = _TCP.fullmatch(spec)
        if not found or not 1 <= int(found["port"]) <= 65535:
            raise NoAdbServer(
                f"ADB_SERVER_SOCKET is {spec!r}: only tcp:HOST:PORT and tcp:PORT can be reached; unset it"
            )
        return found["v6"] or found["host"] or "127.0.0.1", int(found["port"])
    host = environment.get("ANDROID_ADB_SERVER_ADDRESS") or environment.get("ANDROID_ADB_SERVER_HOST") or "127.0.0.1"
    port = environment.get("ANDROID_ADB_SERVER_PORT") or "5037"
    if not _PORT.fullmatch(port) or not 1 <= int(port) <= 65535:
        raise NoAdbServer(f"ANDROID_ADB_SERVER_PORT is {port!r}, which is no port: unset it or give the server's port")
    return host, int(port)


def client() -> AdbClient:
    """Raises NoAdbServer; a server is never started behind the user's back, as adbutils would."""
    host, port = server_address()
    try:
        socket.create_connection((host, port), _CONNECT_S).close()
    except OSError:
        raise NoAdbServer(f"no adb server answers at {host}:{port}: start it (adb start-server)") from None
    from adbutils import AdbClient

    return AdbClient(host, port, socket_timeout=_ANSWER_S)


def attached() -> list[tuple[str, str]]:
    """(serial, state) of every device of the adb server; states are device, unauthorized, offline, recovery ..."""
    server = client()
    from adbutils import AdbError

    try:
        return [(info.serial, info.state) for info in server.list()]
    except (AdbError, OSError, ValueError) as error:
        raise NoAdbServer(f"the adb server did not list its devices ({error}): restart it (adb kill-server)") from None


def choose(devices: list[tuple[str, str]], serial: str | None) -> str:
    """The serial of the device meant. Raises NoDevice, SeveralDevices, DeviceNotReady."""
    listed = ", ".join(f"{name} ({state})" for name, state in devices) or "none"
    if serial is None:
        ready = [name for name, state in devices if state == "device"]
        if len(ready) > 1:
            raise SeveralDevices(f"several devices are attached: {listed}; choose one by --target android:SERIAL")
        if not devices:
            raise NoDevice("no device is attached: plug one in with USB debugging on, or adb connect HOST:PORT")
        serial = ready[0] if ready else devices[0][0]
    state = dict(devices).get(serial)
    if state is None:
        raise NoDevice(f"no device {serial} is attached (attached: {listed}): check the serial and the cable")
    if state == "unauthorized":
        raise DeviceNotReady(f"device {serial} is unauthorized: allow USB debugging in the dialog on its screen")
    if state != "device":
        raise DeviceNotReady(f"device {serial} is {state}: replug or reboot it, or adb reconnect, until it is `device`")
    return serial


def device_features(serial: str) -> frozenset[str]:
    """What the device's adbd can, such as shell_v2."""
    server = client()
    from adbutils import AdbError

    try:
        with server.make_connection() as connection:
            _ask(connection, f"host-serial:{serial}:features".encode())
            return frozenset(connection.read_string_block().split(","))
    except (AdbError, OSError, ValueError) as error:
        raise lost(f"android:{serial}", error) from None


def device_service(serial: str, service: str) -> socket.socket:
    """A connection to one service of the device."""
    data = encode(service)
    if len(data) > _MAX_REQUEST:
        raise DeployError(f"the command has {len(data)} bytes, adb takes {_MAX_REQUEST}: put arguments into a file")
    server = client()
    from adbutils import AdbError

    try:
        connection = server.make_connection()
        try:
            _ask(connection, encode(f"host:transport:{serial}"))
            _ask(connection, data)
        except BaseException:
            connection.close()
            raise
    except (AdbError, OSError, ValueError) as error:
        raise lost(f"android:{serial}", error) from None
    sock: socket.socket = connection.conn
    # Two small writes in a row must not wait 40 ms for each other (the offload path's frames).
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.settimeout(None)
    return sock


def lost(name: str, error: Exception) -> DeployError:
    text = str(error)
    if "unauthorized" in text or "offline" in text:
        return DeviceNotReady(f"{name}: {text.splitlines()[0]}; allow USB debugging on it, or replug it")
    return ConnectionLost(f"{name} cannot be reached ({text or 'connection closed'}): check adb devices")


def _ask(connection: AdbConnection, request: bytes) -> None:
    """adbutils' own send_command takes text only, and a command may hold any byte."""
    connection.conn.sendall(b"%04x" % len(request) + request)
    connection.check_okay()
