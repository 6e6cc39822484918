"""How a connection to an SSH host is made: ~/.ssh/config, jump hosts, host keys, the agent and key files.

No password is ever asked for, and nothing secret is printed. Every stage has a time-out of its own.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib
import logging
import shlex
import socket
import sys
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hexnpu.deploy.errors import AuthFailed, DeployError, HostKeyRefused, HostNotFound, PortRefused
from hexnpu.deploy.ssh_config import SshHost, ssh_host
from hexnpu.deploy.targets import Target
from hexnpu.errors import UsageError

if TYPE_CHECKING:
    from paramiko import SSHClient

_TCP_S, _BANNER_S, _AUTH_S = 10, 15, 20
_KEEPALIVE_S = 10
# A peer that acknowledges nothing for this long is gone.
_DEAD_AFTER_MS = 30_000
_MAX_JUMPS = 8
_GOODBYE_S = 5


def _paramiko() -> ModuleType:
    """paramiko without `invoke`, which its own reader of ssh_config needs and which doubles the time of the import."""
    # What it logs as errors we say ourselves.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    if "paramiko" not in sys.modules and "invoke" not in sys.modules:
        sys.modules["invoke"] = None  # type: ignore[assignment]
        try:
            return importlib.import_module("paramiko")
        finally:
            del sys.modules["invoke"]
    return importlib.import_module("paramiko")


def connect(host: SshHost, target: Target, accept_new_host_key: bool) -> list[SSHClient]:
    """The connection to the target's host, and behind it those to its jump hosts, last first."""
    return _connect(host, target, accept_new_host_key, 0)


def _connect(hop: SshHost, target: Target, accept: bool, depth: int) -> list[SSHClient]:
    if depth > _MAX_JUMPS:
        raise DeployError(f"{target}: more than {_MAX_JUMPS} jump hosts in ~/.ssh/config; do they go in a circle?")
    return _open_through(_jumps(hop.jump, target, accept, depth) if hop.jump else [], hop, target, accept)


def _jumps(jump: str, target: Target, accept: bool, depth: int) -> list[SSHClient]:
    """The connections to the hosts of a ProxyJump line, the last (nearest to the target) first."""
    *before, last = jump.split(",")
    hop = ssh_host(*_split_jump(last))
    if not before:
        return _connect(hop, target, accept, depth + 1)
    # Several hosts in one line: each is reached through the one before it, whatever its own entry says.
    return _open_through(_jumps(",".join(before), target, accept, depth + 1), hop, target, accept)


def _open_through(through: list[SSHClient], hop: SshHost, target: Target, accept: bool) -> list[SSHClient]:
    try:
        return [_open(hop, _socket(hop, through), target, accept), *through]
    except BaseException:
        for client in through:
            close(client)
        raise


def _split_jump(text: str) -> tuple[str, str | None, int | None]:
    from hexnpu.deploy.targets import parse_target

    try:
        target = parse_target(f"linux:{text.strip().removeprefix('ssh://')}")
    except UsageError:
        raise DeployError(f"ProxyJump {text!r} in ~/.ssh/config is not [user@]host[:port]") from None
    assert target.host
    return target.host, target.user, target.port


def _socket(hop: SshHost, through: list[SSHClient]) -> Any:
    """What carries the SSH connection: a TCP socket, a channel of the jump host, or a ProxyCommand's pipes."""
    if through:
        return _channel(hop, through[0])
    if hop.command:
        # By a shell, as OpenSSH does. Ctrl-C must leave it alone: the program there is ended through it.
        script = f"trap '' INT; exec {hop.command}"
        return _paramiko().ProxyCommand(f"sh -c {shlex.quote(script)}")
    try:
        sock = socket.create_connection((hop.address, hop.port), _TCP_S)
    except socket.gaierror as error:
        raise HostNotFound(
            f"host {hop.address!r} is unknown ({error.strerror}): check its name, or set its HostName in ~/.ssh/config"
        ) from None
    except UnicodeError:
        raise HostNotFound(f"host {hop.address!r} is no valid name: check its spelling") from None
    except TimeoutError:
        raise PortRefused(f"{hop} did not answer within {_TCP_S} s: is the host up, and this its SSH port?") from None
    except ConnectionRefusedError:
        raise PortRefused(f"{hop} refused the connection: is sshd running there, and this its port?") from None
    except OSError as error:
        raise HostNotFound(f"host {hop.address} cannot be reached: {error.strerror}; check the network") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _DEAD_AFTER_MS)
    return sock


def _channel(hop: SshHost, jump: SSHClient) -> Any:
    transport = jump.get_transport()
    assert transport
    try:
        return transport.open_channel("direct-tcpip", (hop.address, hop.port), ("127.0.0.1", 0), timeout=_TCP_S)
    except Exception as error:
        raise PortRefused(f"{hop} cannot be reached from its jump host: {error}") from None


def _open(hop: SshHost, sock: Any, target: Target, accept: bool) -> SSHClient:
    paramiko = _paramiko()
    client = paramiko.SSHClient()
    for file in (Path("/etc/ssh/ssh_known_hosts"), _known_hosts()):
        with suppress(OSError):
            client.load_system_host_keys(str(file))
    client.set_missing_host_key_policy(_policy(hop, target, accept))
    known_types = set(client._system_host_keys.lookup(hop.known_as) or ())
    try:
        client.connect(
            hop.address, hop.port, hop.user, sock=sock, key_filename=list(hop.keys), allow_agent=hop.agent,
            look_for_keys=not hop.keys, timeout=_TCP_S, banner_timeout=_BANNER_S, auth_timeout=_AUTH_S,
            transport_factory=functools.partial(_transport, known_types),
        )  # fmt: skip
    except BaseException as error:
        transport = client.get_transport()
        encrypted = transport is not None and transport.initial_kex_done
        close(client)
        sock.close()
        if isinstance(error, Exception) and not isinstance(error, DeployError):
            raise _connection_error(hop, error, encrypted) from None
        raise
    transport = client.get_transport()
    assert transport
    transport.set_keepalive(_KEEPALIVE_S)
    return client  # type: ignore[no-any-return, unused-ignore]


def close(client: SSHClient) -> None:
    transport = client.get_transport()
    with suppress(OSError, AttributeError):
        # Wakes paramiko's thread, which else looks ten times a second; a ProxyCommand has no such call.
        transport.sock.shutdown(socket.SHUT_RDWR)
    client.close()
    if transport is not None:
        # It may still say goodbye to a jump host, whose connection is closed next.
        transport.join(_GOODBYE_S)


def _transport(known_types: set[str], sock: Any, **options: Any) -> Any:
    transport = _paramiko().Transport(sock, **options)
    offered = transport.get_security_options()
    # AES-GCM needs no second pass for the digest: twice as fast.
    offered.ciphers = sorted(offered.ciphers, key=lambda name: "gcm" not in name)
    # The server shall show a key that known_hosts can have; RSA keys have other names there.
    offered.key_types = sorted(offered.key_types, key=lambda name: _key_type(name) not in known_types)
    return transport


def _key_type(algorithm: str) -> str:
    return "ssh-rsa" if algorithm.startswith("rsa-sha2") else algorithm


def _connection_error(hop: SshHost, error: Exception, encrypted: bool) -> DeployError:
    paramiko = _paramiko()
    if isinstance(error, paramiko.BadHostKeyException):
        return _changed(hop, error.key, _fingerprint(error.expected_key))
    # After the key exchange only authentication is left; what is wrong with one key file comes as many exceptions.
    if encrypted and isinstance(error, paramiko.SSHException | ValueError):
        tried = ", ".join(hop.keys) or "~/.ssh/id_*"
        return AuthFailed(
            f"{hop} accepted no key (tried the agent and {tried}): add a public key to its authorized_keys; "
            "a key with a passphrase needs ssh-add first"
        )
    if isinstance(error, TimeoutError) or "banner" in str(error):
        return PortRefused(f"{hop} does not speak SSH in time: is this its SSH port? ({error})")
    return PortRefused(f"{hop}: the SSH connection failed ({error or type(error).__name__}): look at the server's log")


def _known_hosts() -> Path:
    return Path("~/.ssh/known_hosts").expanduser()


def _fingerprint(key: Any) -> str:
    digest = base64.b64encode(hashlib.sha256(key.asbytes()).digest()).decode().rstrip("=")
    return f"{key.get_name()} SHA256:{digest}"


def _changed(hop: SshHost, key: Any, expected: str) -> HostKeyRefused:
    return HostKeyRefused(
        f"the host key of {hop.known_as} has changed: it is {_fingerprint(key)}, known_hosts has {expected}. "
        f"If the host was reinstalled: ssh-keygen -R {shlex.quote(hop.known_as)}; otherwise someone is in between"
    )


def _policy(hop: SshHost, target: Target, accept: bool) -> Any:
    """What happens to a host key that known_hosts has no entry for."""
    paramiko = _paramiko()

    class Policy(paramiko.MissingHostKeyPolicy):  # type: ignore[misc, name-defined, unused-ignore]
        def missing_host_key(self, client: SSHClient, hostname: str, key: Any) -> None:
            if not accept:
                raise HostKeyRefused(
                    f"the host key of {hop.known_as} is unknown: {_fingerprint(key)}. To accept it: "
                    f"hexnpu run --target {target} --accept-new-host-key -- true"
                )
            _remember(hop.known_as, key)

    return Policy()


def _remember(known_as: str, key: Any) -> None:
    file = _known_hosts()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    before = file.read_bytes() if file.exists() else b""
    with file.open("ab") as out:
        # The last line may lack its end.
        out.write(b"\n" if before and not before.endswith(b"\n") else b"")
        out.write(f"{known_as} {key.get_name()} {key.get_base64()}\n".encode())
