"""Which host keys known_hosts files have for a host, read as OpenSSH reads them, and what follows for the key it shows.

Lines are `[@marker] hosts key-type base64 [comment]`; one that cannot be read is skipped. Where none is about a host,
its key is refused until it is accepted. Another key than the listed ones is always refused, and so is a `@revoked` one.
Host certificates are not supported: `@cert-authority` lines are only mentioned where they could have decided.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hexnpu.deploy.errors import HostKeyRefused
from hexnpu.deploy.quoting import decode, encode
from hexnpu.deploy.ssh_config import SshHost, any_matches
from hexnpu.deploy.targets import Target

_LINE = re.compile(
    r"[ \t]*(?:@(revoked|cert-authority)[ \t]+)?([^ \t@#][^ \t]*)[ \t]+([^ \t#][^ \t]*)[ \t]+([^ \t]+)", re.DOTALL
)


@dataclass(frozen=True)
class _Line:
    """A line about the host; `marker` is empty for a key that it may show."""

    file: Path
    number: int
    name: str
    marker: str
    kind: str
    key: bytes

    def __str__(self) -> str:
        return f"{self.file} line {self.number}"


@dataclass(frozen=True)
class KnownHosts:
    """What the files have for one host. `unreadable` says which of them could not be read, and why."""

    host: SshHost
    lines: tuple[_Line, ...]
    unreadable: tuple[str, ...]

    @property
    def key_types(self) -> set[str]:
        return {line.kind for line in self._own}

    def _marked(self, marker: str) -> list[_Line]:
        return [line for line in self.lines if line.marker == marker]

    @property
    def _own(self) -> list[_Line]:
        """Its keys at this port. One that is listed without a port serves too, but proves no other one wrong."""
        return [line for line in self._marked("") if line.name == self.host.known_as]

    def check(self, kind: str, key: bytes, target: Target, accept_new: bool) -> None:
        """Raises HostKeyRefused, unless the key is one of the host's or a new one that is accepted and kept."""
        name = self.host.known_as
        shown = _fingerprint(kind, key)
        for line in self._marked("revoked"):
            if line.key == key:
                raise HostKeyRefused(
                    f"the host key of {name} is revoked by {line}: {shown}. Whoever has this key may not be the host: "
                    "ask the host's owner for its new one"
                )
        if any(line.key == key for line in self._marked("")):
            return
        if self._own:
            # Best the one that it stands for.
            line = min(self._own, key=lambda line: line.kind != kind)
            raise HostKeyRefused(
                f"the host key of {name} has changed: it is {shown}, known is {_fingerprint(line.kind, line.key)} "
                f"({line}). If the host was reinstalled: "
                f"ssh-keygen -R {shlex.quote(name)} -f {shlex.quote(str(line.file))}; otherwise someone is in between"
            )
        if not accept_new:
            # The home is there before anything is pushed.
            program = "cmd /c ver" if target.kind == "windows" else "true"
            raise HostKeyRefused(
                f"the host key of {name} is unknown: {shown}{self._notes()}. To accept it: "
                f"hexnpu run --target {shlex.quote(str(target))} --target-dir . --accept-new-host-key -- {program}"
            )
        _remember(self.host, kind, key)

    def _notes(self) -> str:
        certificates = (
            f"{line} is for host certificates, which hexnpu does not support" for line in self._marked("cert-authority")
        )
        notes = "; ".join(dict.fromkeys((*certificates, *self.unreadable)))
        return f" ({notes})" if notes else ""


def known_hosts(host: SshHost) -> KnownHosts:
    texts: dict[Path, str] = {}
    unreadable = []
    for name in (*host.user_known_hosts, *host.global_known_hosts):
        file = Path(name).expanduser()
        try:
            texts[file] = decode(file.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            unreadable.append(f"{file} cannot be read: {error.strerror}")
    found: list[_Line] = []
    # Like OpenSSH: the name without a port serves where no key is listed with it.
    for name in [host.known_as] if host.key_alias else dict.fromkeys((host.known_as, host.address)):
        found += (line for file, text in texts.items() for line in _lines(file, text, name))
        if any(not line.marker for line in found):
            break
    return KnownHosts(host, tuple(found), tuple(unreadable))


def _lines(file: Path, text: str, name: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), 1):
        found = _LINE.match(line)
        if found and _is_about(name, found[2]):
            key = _key(found[3], found[4])
            if key:
                yield _Line(file, number, name, found[1] or "", found[3], key)


def _is_about(name: str, hosts: str) -> bool:
    """`hosts`: patterns with commas between them, or the hash of one name."""
    if not hosts.startswith("|"):
        return any_matches(name, hosts.lower().split(","))
    _, version, salt, digest = (*hosts.split("|", 3), "", "")[:4]
    try:
        expected = hmac.digest(base64.b64decode(salt), encode(name), "sha1")
    except ValueError:
        return False
    return version == "1" and base64.b64encode(expected).decode() == digest


def _key(kind: str, text: str) -> bytes | None:
    """The key as SSH sends it; None if it is none, or not of this kind."""
    import paramiko

    try:
        # Only space is overlooked, such as a carriage return at the end of the line.
        text = re.sub(r"\s", "", text, flags=re.ASCII)
        key = base64.b64decode(text)
        if base64.b64encode(key).decode() != text:
            return None
        return key if paramiko.PKey.from_type_string(kind, key).asbytes() == key else None
    except paramiko.pkey.UnknownKeyType:
        # Of a kind that only OpenSSH can check: a host that has one may not show just any other.
        name = encode(kind)
        return key if key.startswith(len(name).to_bytes(4, "big") + name) else None
    except Exception:  # Each kind of key is refused in its own way.
        return None


def _fingerprint(kind: str, key: bytes) -> str:
    digest = base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")
    return f"{kind} SHA256:{digest}"


def _remember(host: SshHost, kind: str, key: bytes) -> None:
    if not host.user_known_hosts:
        raise HostKeyRefused(f"the host key of {host.known_as} cannot be kept: UserKnownHostsFile is none for it")
    if re.search(r"[*?!,|\s]", host.known_as):
        raise HostKeyRefused(f"the name {host.known_as!r} stands for other hosts too: give it another HostKeyAlias")
    file = Path(host.user_known_hosts[0]).expanduser()
    line = f"{host.known_as} {kind} {base64.b64encode(key).decode()}\n"
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        before = file.read_bytes() if file.exists() else b""
        with file.open("ab") as out:
            # The last line may lack its end.
            out.write((b"\n" if before and not before.endswith(b"\n") else b"") + encode(line))
    except OSError as error:
        raise HostKeyRefused(
            f"the host key of {host.known_as} cannot be kept in {file} ({error.strerror}): make it a file that you may "
            "write, or name another with UserKnownHostsFile"
        ) from None
