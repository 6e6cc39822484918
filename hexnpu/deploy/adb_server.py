"""The adb server: where it is, its devices, and connections to their services (AOSP's adb/OVERVIEW.TXT, SERVICES.TXT).

A request is four hex digits of its length and its bytes; the answer OKAY, or FAIL and why. (adbutils does the same, but
importing it takes longer than the whole push of a package that is already there; the tests compare with it.)
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

from hexnpu.deploy.errors import (
    ConnectionLost,
    DeployError,
    DeviceNotReady,
    NoAdbServer,
    NoDevice,
    SeveralDevices,
)
from hexnpu.deploy.quoting import decode, encode

_CONNECT_S = 5
_ANSWER_S = 15
# A request's length has four hex digits.
_MAX_REQUEST = 0xFFFF


class AdbFailed(Exception):
    """The server answered FAIL; the text is its reason."""


def server_address(environment: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Where the adb server listens, by the variables that adb itself reads."""
    host = environment.get("ANDROID_ADB_SERVER_ADDRESS") or environment.get("ANDROID_ADB_SERVER_HOST") or "127.0.0.1"
    port = environment.get("ANDROID_ADB_SERVER_PORT") or "5037"
    if not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise NoAdbServer(f"ANDROID_ADB_SERVER_PORT is {port!r}, which is no port: unset it or give the server's port")
    return host, int(port)


def attached() -> list[tuple[str, str]]:
    """(serial, state) of every device of the adb server; states are device, unauthorized, offline, recovery ..."""
    try:
        with _request("host:devices") as sock:
            lines = _text(sock).splitlines()
    except (AdbFailed, OSError) as error:
        raise NoAdbServer(f"the adb server did not list its devices ({error}): restart it (adb kill-server)") from None
    return [(serial, state) for serial, tab, state in (line.partition("\t") for line in lines) if tab]


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
    try:
        with _request(f"host-serial:{serial}:features") as sock:
            return frozenset(_text(sock).split(","))
    except (AdbFailed, OSError) as error:
        raise lost(f"android:{serial}", error) from None


def device_service(serial: str, service: str) -> socket.socket:
    """A connection to one service of the device."""
    data = encode(service)
    if len(data) > _MAX_REQUEST:
        raise DeployError(f"the command has {len(data)} bytes, adb takes {_MAX_REQUEST}: put arguments into a file")
    try:
        sock = _request(f"host:transport:{serial}")
        try:
            _ask(sock, data)
        except BaseException:
            sock.close()
            raise
    except (AdbFailed, OSError) as error:
        raise lost(f"android:{serial}", error) from None
    sock.settimeout(None)
    return sock


def lost(name: str, error: Exception) -> DeployError:
    text = str(error)
    if "unauthorized" in text or "offline" in text:
        return DeviceNotReady(f"{name}: {text.splitlines()[0]}; allow USB debugging on it, or replug it")
    return ConnectionLost(f"{name} cannot be reached ({text or 'connection closed'}): check adb devices")


def _request(text: str) -> socket.socket:
    """A new connection to the server, which has said OKAY to this. A server is never started behind the user's back."""
    host, port = server_address()
    try:
        sock = socket.create_connection((host, port), _CONNECT_S)
    except OSError:
        raise NoAdbServer(f"no adb server answers at {host}:{port}: start it (adb start-server)") from None
    try:
        sock.settimeout(_ANSWER_S)
        # Two small writes in a row must not wait 40 ms for each other (the offload path's frames).
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _ask(sock, encode(text))
    except BaseException:
        sock.close()
        raise
    return sock


def _ask(sock: socket.socket, request: bytes) -> None:
    sock.sendall(b"%04x" % len(request) + request)
    answer = _exactly(sock, 4)
    if answer != b"OKAY":
        raise AdbFailed(_text(sock) if answer == b"FAIL" else f"it answered {answer!r}")


def _text(sock: socket.socket) -> str:
    try:
        return decode(_exactly(sock, int(_exactly(sock, 4), 16)))
    except ValueError:
        raise OSError("it does not speak adb's protocol") from None


def _exactly(sock: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            raise ConnectionResetError("the adb server hung up")
        data += more
    return data
