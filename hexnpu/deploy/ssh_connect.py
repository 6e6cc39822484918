"""How a connection to an SSH host is made: ~/.ssh/config, jump hosts, host keys, the agent and key files.

No password is ever asked for, and nothing secret is printed. Every stage has a time-out of its own.
"""

from __future__ import annotations

import functools
import importlib
import logging
import re
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hexnpu.deploy.errors import AuthFailed, ConnectionLost, DeployError, HostNotFound, PortRefused
from hexnpu.deploy.known_hosts import KnownHosts, known_hosts
from hexnpu.deploy.ssh_config import SshHost, ssh_host
from hexnpu.deploy.ssh_proxy import Proxy
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
    """What carries the SSH connection: a TCP socket, a channel of the jump host, or a ProxyCommand."""
    if through:
        return _channel(hop, through[0])
    if hop.command:
        try:
            return Proxy(hop.command)
        except OSError as error:
            raise PortRefused(f"{hop}: its ProxyCommand does not start: {error.strerror}") from None
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
        why = str(error) or type(error).__name__
        raise PortRefused(f"{hop} cannot be reached from its jump host: {why}") from None


@dataclass(frozen=True)
class _HostKeyPolicy:
    """What paramiko asks about a host key."""

    known: KnownHosts
    target: Target
    accept: bool

    def missing_host_key(self, client: SSHClient, hostname: str, key: Any) -> None:
        self.known.check(key.get_name(), key.asbytes(), self.target, self.accept)


def _open(hop: SshHost, sock: Any, target: Target, accept: bool) -> SSHClient:
    paramiko = _paramiko()
    client = paramiko.SSHClient()
    known = known_hosts(hop)
    # paramiko knows no host key by itself, so it asks for every one.
    client.set_missing_host_key_policy(_HostKeyPolicy(known, target, accept))
    try:
        client.connect(
            hop.address, hop.port, hop.user, sock=sock, key_filename=list(hop.keys), allow_agent=hop.agent,
            look_for_keys=not hop.keys, timeout=_TCP_S, banner_timeout=_BANNER_S, auth_timeout=_AUTH_S,
            transport_factory=functools.partial(_transport, known.key_types),
        )  # fmt: skip
    except BaseException as error:
        transport = client.get_transport()
        encrypted = transport is not None and transport.initial_kex_done
        alive = transport is not None and transport.is_active()
        close(client)
        sock.close()
        if isinstance(error, Exception) and not isinstance(error, DeployError):
            raise _connection_error(hop, error, encrypted, alive, sock) from None
        raise
    transport = client.get_transport()
    assert transport
    transport.set_keepalive(_KEEPALIVE_S)
    return client  # type: ignore[no-any-return, unused-ignore]


def close(client: SSHClient) -> None:
    transport = client.get_transport()
    with suppress(OSError, AttributeError):
        # Wakes paramiko's thread, which else looks ten times a second.
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


def _connection_error(hop: SshHost, error: Exception, encrypted: bool, alive: bool, sock: Any) -> DeployError:
    paramiko = _paramiko()
    why = str(error) or type(error).__name__
    # After the key exchange only authentication is left.
    if encrypted and (not alive or "timeout" in why):
        return ConnectionLost(
            f"the connection to {hop} was lost during the login ({why}): repeat; "
            "if it always is, look at its log, and whether the agent holds more keys than its MaxAuthTries"
        )
    # What is wrong with one key file comes as many exceptions.
    if encrypted and isinstance(error, paramiko.SSHException | ValueError):
        tried = ", ".join([*(["the agent"] if hop.agent else []), *(hop.keys or ["~/.ssh/id_*"])])
        return AuthFailed(
            f"{hop} accepted no key (tried {tried}): add a public key to its authorized_keys; "
            "a key with a passphrase needs ssh-add first"
        )
    said = ""
    if isinstance(sock, Proxy):
        line = sock.last_line
        said = f"; the ProxyCommand says: {line}" if line else ""
        if sock.code is not None and not encrypted:
            how = f"exit code {sock.code}" if sock.code >= 0 else f"signal {-sock.code}"
            return PortRefused(
                f"{hop}: its ProxyCommand ended with {how}, before an SSH server answered: try it by hand{said}"
            )
    if isinstance(error, TimeoutError) or re.search("banner|protocol version", str(error)):
        return PortRefused(f"{hop} does not speak SSH, or not in time: is this its SSH port? ({why}){said}")
    return PortRefused(f"{hop}: the SSH connection failed ({why}): look at the server's log{said}")
