"""Host keys against OpenSSH: `ssh` and we refuse the same ones, and `ssh-keygen -F` and we find the same lines."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.errors import HostKeyRefused
from hexnpu.deploy.known_hosts import known_hosts
from hexnpu.deploy.ssh_config import SshHost
from hexnpu.deploy.targets import parse_target
from tests.conftest import require_tool
from tests.deploy.sshd import Sshd, make_key

# Well-formed keys of nobody.
ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJZQSU8PyK1wo64NRYV3xNYnpTo9zlXlvvVRPqqiA2Zn"
SHORT = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAEJZQSU8PyK1wo64NRYV3xNY="


@dataclass(frozen=True)
class Box:
    """A server with two host keys, and the client's files. `keys`: what the words of a table stand for."""

    sshd: Sshd
    home: Path
    keys: dict[str, str]

    def known(self, text: str, file: str = "known_hosts") -> Path:
        """Writes known_hosts: HOST has the port, ADDR not; HASH is HOST's. KEY and RSA are the server's keys."""
        words = {"HOST": f"[127.0.0.1]:{self.sshd.port}", "ADDR": "127.0.0.1", "PORT": str(self.sshd.port), **self.keys}
        path = self.home / ".ssh" / file
        full = re.sub("|".join(words), lambda match: words[match[0]], text)
        path.write_bytes(full.encode("utf-8", "surrogateescape"))
        return path

    def configure(self, *options: str) -> None:
        lines = [
            "Host *", "HostName 127.0.0.1", f"Port {self.sshd.port}", f"IdentityFile {self.home}/.ssh/id_ed25519",
            *(option.replace("DIR", str(self.home / ".ssh")) for option in options),
            f"UserKnownHostsFile {self.home}/.ssh/known_hosts", "GlobalKnownHostsFile none",
        ]  # fmt: skip
        (self.home / ".ssh/config").write_text("\n".join(lines) + "\n")

    def theirs(self) -> bool:
        strict = ["-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"]
        command = ["ssh", "-F", self.home / ".ssh/config", *strict, "box", "true"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == 0 or b"Host key verification failed" in done.stderr, done.stderr
        return done.returncode == 0

    def ours(self, accept: bool = False) -> str:
        """Empty, or why the key is refused."""
        try:
            with open_device(parse_target("linux:box"), accept_new_host_key=accept) as device:
                assert device.open(Command(("true",))).exit_code() == 0
        except HostKeyRefused as error:
            assert "\n" not in str(error) and error.exit_code == 17
            return str(error)
        return ""


@pytest.fixture(scope="module")
def two_keys(sshd_server: Sshd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    require_tool("ssh", "openssh-client")
    server = Sshd(tmp_path_factory.mktemp("two-keys"), sshd_server.program)
    make_key(server.folder / "host_key")
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-N", "", "-f", server.folder / "rsa_key"], check=True)
    server.start(f"HostKey {server.folder}/rsa_key\n")
    yield server
    server.stop()


@pytest.fixture
def box(two_keys: Sshd, home: Path) -> Box:
    folder = two_keys.folder
    (folder / "authorized_keys").write_text(make_key(home / ".ssh/id_ed25519"))
    keys = {
        "KEY": " ".join((folder / "host_key.pub").read_text().split()[:2]),
        "RSA": " ".join((folder / "rsa_key.pub").read_text().split()[:2]),
        "OTHER": ED25519,
        "SHORT": SHORT,
        "HASH": hashed(f"[127.0.0.1]:{two_keys.port}", home),
    }
    box = Box(two_keys, home, keys)
    box.configure()
    return box


def hashed(name: str, folder: Path) -> str:
    file = folder / "hashed"
    file.write_text(f"{name} {ED25519}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, stderr=subprocess.DEVNULL)
    return file.read_text().split()[0]


UNKNOWN, CHANGED, REVOKED = "is unknown", "has changed", "is revoked by"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("HOST KEY\n", ""), ("HOST KEY", ""), ("HOST KEY a comment\r\n", ""), ("HOST KEY\r\n", ""), ("HOST\tKEY\n", ""),
        ("# x\n\n \t HOST  KEY\n", ""), ("#HOST KEY\n", UNKNOWN), ("", UNKNOWN), ("HASH KEY\n", ""),
        ("HASH OTHER\n", CHANGED), ("HASH,HOST KEY\n", UNKNOWN), ("a,HOST,b KEY\n", ""), ("|1|HOST|x KEY\n", UNKNOWN),
        # Patterns.
        ("* KEY\n", ""), ("[127.0.0.?]:* KEY\n", ""), ("[127.*]:22 KEY\n", UNKNOWN), ("ADDR,!HOST KEY\n", ""),
        ("*,!HOST,!ADDR KEY\n", UNKNOWN), ("!HOST,[*:* KEY\n", UNKNOWN), ("!ADDR,* KEY\n", ""),
        ("!10.*,* KEY\n", ""), ("!10.* KEY\n", UNKNOWN), ("****x KEY\n", UNKNOWN),
        # The address alone serves where no key is listed with the port.
        ("ADDR KEY\n", ""), ("ADDR OTHER\n", UNKNOWN), ("ADDR KEY\nHOST OTHER\n", CHANGED), ("[ADDR]:1 KEY\n", UNKNOWN),
        # Any listed key does, and is asked for.
        ("HOST OTHER\nHOST KEY\n", ""), ("HOST KEY\nHOST OTHER\n", ""), ("HOST RSA\n", ""), ("ADDR RSA\n", UNKNOWN),
        ("HOST OTHER\n* OTHER\nHOST RSA\n", CHANGED), ("HOST OTHER\n", CHANGED), ("HOST RSA\nHOST SHORT\n", ""),
        # Marks.
        ("HOST KEY\n@revoked * KEY\n", REVOKED), ("@revoked HOST KEY\n", REVOKED), ("HOST KEY\n@revoked * OTHER\n", ""),
        ("HOST RSA\n@revoked * KEY\n", ""), ("@revoked HASH KEY\nHOST KEY\n", REVOKED), ("@revoked a KEY\n* KEY\n", ""),
        ("@cert-authority * OTHER\nHOST KEY\n", ""), ("@cert-authority * KEY\n", UNKNOWN), ("@x HOST KEY\n", UNKNOWN),
        ("@revoked @revoked * KEY\nHOST KEY\n", ""), ("@cert-authority * ssh-ed25519 AAAA\nHOST KEY\n", ""),
        ("@revoked\nHOST KEY\n", ""), ("@cert-authority x\nHOST KEY\n", ""),
        # What is no line is skipped.
        ("\udcff\udcfe\n\udce9 \udce9 \udce9\nHOST KEY\udce9\nHOST KEY \udce9\n", ""), ("HOST SHORT\nHOST KEY\n", ""),
        ("HOST SHORT\n", UNKNOWN), ("HOST ssh-ed25519 AAAA\n", UNKNOWN), ("HOST ssh-ed25519 \n", UNKNOWN),
        ("HOST ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=\nHOST KEY\n", ""), ("HOST nonsense %%%\nHOST KEY\n", ""),
        ("HOST\nKEY\n\0\0\nHOST KEY\n", ""), ("HOST 1024 35 123456789\nHOST KEY\n", ""),
        (f"{'- ' * 9999}\nHOST KEY\n", ""),
    ],
)  # fmt: skip
def test_as_ssh(box: Box, text: str, refused: str) -> None:
    known = box.known(text)
    before = known.read_bytes()
    ours = box.ours()
    assert (refused in ours) if refused else not ours
    assert box.theirs() == (not refused)
    assert known.read_bytes() == before


@pytest.mark.parametrize(
    ("options", "text", "refused"),
    [
        (["UserKnownHostsFile DIR/a DIR/b"], "HOST KEY\n", ""),
        (["UserKnownHostsFile none"], "HOST KEY\n", UNKNOWN),
        (["UserKnownHostsFile /dev/null", "GlobalKnownHostsFile DIR/none DIR/b"], "HOST KEY\n", ""),
        (["UserKnownHostsFile DIR/%n-%p"], "HOST KEY\n", UNKNOWN),
        (['UserKnownHostsFile "DIR/known hosts" "DIR/b"'], "HOST KEY\n", ""),
        (["GlobalKnownHostsFile DIR/b"], "@revoked * KEY\n", REVOKED),
        (["GlobalKnownHostsFile DIR"], "HOST KEY\n", UNKNOWN),
        (["HostKeyAlias Box", "UserKnownHostsFile DIR/b"], "box KEY\n", ""),
        (["HostKeyAlias box", "UserKnownHostsFile DIR/b"], "HOST,ADDR,[box]:PORT KEY\n", UNKNOWN),
        (["HostKeyAlias box", "UserKnownHostsFile DIR/b"], "HOST KEY\nbox OTHER\n", CHANGED),
    ],
)
def test_the_options(box: Box, options: list[str], text: str, refused: str) -> None:
    box.configure(*options)
    box.known(text, "b")
    ours = box.ours()
    assert (refused in ours) if refused else not ours
    assert box.theirs() == (not refused)


def test_a_jump_host_is_held_to_the_same(box: Box) -> None:
    """Twice the same server, under two names."""
    box.configure("Host hop", "HostKeyAlias hop", "Host box", "HostKeyAlias box", "ProxyJump hop", "Host *")
    for text, refused in (
        ("box,hop KEY\n", ""), ("box KEY\n@revoked hop KEY\n", "hop is revoked by"), ("box KEY\n", "hop is unknown"),
        ("box KEY\nhop OTHER\n", "hop has changed"), ("hop KEY\n", "box is unknown"),
    ):  # fmt: skip
        box.known(text)
        ours = box.ours()
        assert (refused in ours) if refused else not ours


@pytest.fixture
def certified(box: Box, tmp_path: Path) -> Iterator[Box]:
    """A server with a host certificate. CA is who signed it."""
    server = Sshd(tmp_path / "certified", box.sshd.program)
    server.folder.mkdir()
    key, ca = server.folder / "host_key", server.folder / "ca"
    keys = {"KEY": " ".join(make_key(key).split()[:2]), "CA": " ".join(make_key(ca).split()[:2]), "OTHER": ED25519}
    subprocess.run(["ssh-keygen", "-q", "-s", ca, "-I", "x", "-h", key.with_suffix(".pub")], check=True)
    (server.folder / "authorized_keys").write_text((box.sshd.folder / "authorized_keys").read_text())
    server.start(f"HostCertificate {key}-cert.pub\n")
    certified = Box(server, box.home, keys)
    certified.configure()
    yield certified
    server.stop()


def test_a_certificate(certified: Box) -> None:
    """The one thing that ssh takes and we do not, and say so. A plain key that is known does for both."""
    known = certified.known("@cert-authority *.lan OTHER\n@cert-authority * CA\n")
    assert f"({known} line 2 is for host certificates, which hexnpu does not support)" in certified.ours()
    assert certified.theirs()
    certified.known("@cert-authority * CA\nHOST KEY\n")
    assert not certified.ours() and certified.theirs()


@pytest.mark.parametrize("text", ["", "# kept", "@cert-authority * OTHER\n", "ADDR OTHER\n", "HOST SHORT\n"])
def test_a_new_key_is_kept(box: Box, text: str) -> None:
    known = box.known(text)
    before = known.read_text()
    assert not box.ours(accept=True)
    added = f"[127.0.0.1]:{box.sshd.port} {box.keys['KEY']}\n"
    assert known.read_text() == before + ("\n" if before and before[-1] != "\n" else "") + added
    assert not box.ours() and box.theirs()


@pytest.mark.parametrize(("text", "refused"), [("@revoked * KEY\n", REVOKED), ("HOST OTHER\n", CHANGED)])
def test_accepting_accepts_no_bad_key(box: Box, text: str, refused: str) -> None:
    known = box.known(text)
    assert refused in box.ours(accept=True)
    assert known.read_text().count("\n") == 1


def test_a_new_key_is_kept_under_the_name_and_in_the_first_file(box: Box) -> None:
    box.configure("HostKeyAlias box", "UserKnownHostsFile DIR/a DIR/b")
    assert not box.ours(accept=True)
    assert (box.home / ".ssh/a").read_text() == f"box {box.keys['KEY']}\n"
    assert not (box.home / ".ssh/b").exists() and not box.ours() and box.theirs()


def test_a_name_that_would_be_a_pattern_is_not_kept(box: Box) -> None:
    box.configure("HostKeyAlias b*")
    assert "stands for other hosts" in box.ours(accept=True)
    assert not (box.home / ".ssh/known_hosts").exists()


def test_a_file_that_cannot_be_used(box: Box) -> None:
    known = box.home / ".ssh/known_hosts"
    # Root may read all files, but not this one.
    for make, why in ((known.mkdir, "Is a directory"), (lambda: known.symlink_to(known), "Too many levels")):
        make()
        assert f"{known} cannot be read: {why}" in box.ours() and not box.theirs()
        assert "cannot be kept" in box.ours(accept=True) and why in box.ours(accept=True)
        known.rmdir() if known.is_dir() else known.unlink()
    box.configure("UserKnownHostsFile none")
    assert "UserKnownHostsFile is none" in box.ours(accept=True)


def test_the_file_that_has_another_key_is_named(box: Box) -> None:
    box.configure("UserKnownHostsFile DIR/a DIR/b")
    known = box.known("# x\nHOST OTHER\n", "b")
    name = f"[127.0.0.1]:{box.sshd.port}"
    assert f"({known} line 2). If the host was reinstalled: ssh-keygen -R '{name}' -f {known}; otherwise" in box.ours()


_HASHES = [
    "|1|U3xQTSmZ1Fb9bhH2oZIqHXn9QCo=|JrMtQGqDbSLW1Zdu7jXJ3P9ePUs=", "|1||", "|1|x", "|2|AAAA|AAAA", "|", "|1|é|é",
]  # fmt: skip
_name = st.sampled_from(["a", "b", "A", "!a", "*", "?", "**", "!*b", "a*", "", "!", "é", *_HASHES])
_hosts = st.lists(_name, min_size=1, max_size=3).map(",".join)
_marker = st.sampled_from(["", "", "", "@revoked ", "@cert-authority  ", "@", "@other ", " ", "# "])
_known_key = st.sampled_from([
    ED25519, ED25519, SHORT, ED25519.replace(" ", "\t "), ED25519[:-1], f"{ED25519}=", f"{ED25519} # c", f"{ED25519}\r",
    ED25519.replace("ed25519", "rsa", 1), "ssh-ed25519", "ssh-rsa AAAA", "", f"# {ED25519}", f"x{ED25519}",
])  # fmt: skip
_known_line = st.tuples(_marker, _hosts, st.sampled_from([" ", "\t", "  ", ""]), _known_key).map("".join)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_known_line, max_size=12))
def test_any_file(tmp_path: Path, lines: list[str]) -> None:
    file = tmp_path / "any"
    file.write_text("\n".join(lines), newline="")
    keygen = require_tool("ssh-keygen", "openssh-client")
    done = subprocess.run([keygen, "-l", "-F", "a", "-f", file], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    theirs = re.findall(r"^# Host a found: line (\d+) ?(CA|REVOKED)?", done.stdout.decode(), re.MULTILINE)
    marks = {"": "", "CA": "cert-authority", "REVOKED": "revoked"}
    found = known_hosts(SshHost("a", "me", "a", 22, user_known_hosts=(str(file),), global_known_hosts=())).lines
    assert [(line.number, line.marker) for line in found] == [(int(number), marks[mark]) for number, mark in theirs]
