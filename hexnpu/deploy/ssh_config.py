"""What ~/.ssh/config and /etc/ssh/ssh_config say of a host, as ssh_config(5) has it: an option's first value counts.

Read are Host, Match and Include, and of the options those of `SshHost`. `Match` takes all, canonical, final, host,
originalhost, user, localuser and exec; what else could decide about a host is an error rather than a guess.
"""

from __future__ import annotations

import getpass
import glob
import hashlib
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hexnpu.deploy.errors import DeployError

_OPTIONS = frozenset({
    "hostname", "user", "port", "identityfile", "identitiesonly", "proxyjump", "proxycommand", "controlpath",
    "hostkeyalias", "userknownhostsfile", "globalknownhostsfile",
})  # fmt: skip
# Of these, the value is as many words as one likes.
_FILE_LISTS = ("userknownhostsfile", "globalknownhostsfile")
_MAX_DEPTH = 16
_EXEC_S = 20
_WORD = re.compile(r"""[ \t]*(?:(\#.*)|((?:[^\s"'\\]|\\.|\\$|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')+))""")
# A backslash counts before these only.
_ESCAPE = re.compile(r"""\\(["'\\ ])|["']""")


@dataclass(frozen=True)
class SshHost:
    """One host as the configuration resolves it. `alias` is what the user called it; known_hosts has the address."""

    alias: str
    user: str
    address: str
    port: int
    # Key files of the configuration that are on this machine.
    keys: tuple[str, ...] = ()
    agent: bool = True
    jump: str | None = None
    command: str | None = None
    # Where a master connection of OpenSSH would listen: its versions differ in what %C is the hash of.
    control_paths: tuple[str, ...] = ()
    # Its name in known_hosts, in place of address and port.
    key_alias: str | None = None
    # The first of these takes new keys.
    user_known_hosts: tuple[str, ...] = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
    global_known_hosts: tuple[str, ...] = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")

    @property
    def known_as(self) -> str:
        if self.key_alias:
            return self.key_alias
        return self.address if self.port == 22 else f"[{self.address}]:{self.port}"

    def __str__(self) -> str:
        address = f"[{self.address}]" if ":" in self.address else self.address
        return f"{self.user}@{address}:{self.port}"


def ssh_host(alias: str, user: str | None = None, port: int | None = None) -> SshHost:
    """A user and a port that are given come before what the files say. Raises DeployError."""
    found = _Options(alias)
    found.first.update({name: str(value) for name, value in (("user", user), ("port", port)) if value is not None})
    files = config_files()
    for file in files:
        found.read(file)
    if found.wants_final:
        found.settle_address()
        found.final = True
        for file in files:
            found.read(file)
    return found.host()


def config_files() -> tuple[Path, Path]:
    return Path("~/.ssh/config").expanduser(), Path("/etc/ssh/ssh_config")


def local_user() -> str:
    """Raises DeployError where this user has no name, as in a container that was given a number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise DeployError(f"user {os.getuid()} has no name on this machine: set USER") from None


def host_names() -> Iterator[str]:
    """The hosts that `Host` lines name, those of included files too, without patterns, in their order. Raises
    DeployError at what cannot be read."""
    seen = set()
    for name in _named(config_files()[0], 0):
        if name not in seen and re.fullmatch(r"[\w.-]+", name):
            seen.add(name)
            yield name


def _named(file: Path, depth: int) -> Iterator[str]:
    for number, keyword, rest in _file_lines(file):
        try:
            if keyword == "include" and depth < _MAX_DEPTH:
                for other in _included(file, split(rest)):
                    yield from _named(other, depth + 1)
            elif keyword == "host":
                yield from split(rest)
        except ValueError as error:
            raise DeployError(f"{file} line {number}: {error}") from None


def _file_lines(file: Path) -> Iterator[tuple[int, str, str]]:
    """(number, keyword in small letters, the rest). Raises DeployError."""
    try:
        text = file.read_text("utf-8", "surrogateescape")
    except (FileNotFoundError, IsADirectoryError):
        return
    except OSError as error:
        raise DeployError(f"{file}: {error.strerror}; make it a file that you may read") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = re.fullmatch(r'\s*"?([A-Za-z0-9]+)"?(?:\s*=\s*|\s+)([^\0]*?)\s*', line)
        if not found or not found[2]:
            # Without the line: an Include may have led to a file of secrets.
            raise DeployError(f"{file} line {number}: not `Option value`; mend or remove it")
        yield number, found[1].lower(), found[2]


def split(text: str) -> list[str]:
    """The words of a line, up to a comment. Raises ValueError for a quote without its end."""
    words, at = [], 0
    while text[at:].strip():
        found = _WORD.match(text, at)
        if not found:
            raise ValueError("a quote has no end")
        if found[1]:
            break
        words.append(_ESCAPE.sub(lambda match: match[1] or "", found[2]))
        at = found.end()
    return words


def _included(by: Path, patterns: list[str]) -> Iterator[Path]:
    folder = Path("/etc/ssh") if by.is_relative_to("/etc/ssh") else Path("~/.ssh").expanduser()
    for pattern in patterns:
        yield from map(Path, sorted(glob.glob(str(folder / expand_user(pattern)))))  # noqa: PTH207 - absolute


def matches(text: str, pattern: str) -> bool:
    if not re.search("[*?]", pattern):
        return text == pattern
    words = {"*": ".*", "?": "."}
    # Several * in a row mean no more than one, and would take a regular expression long.
    parts = (words.get(part) or re.escape(part) for part in re.split(r"([*?])", re.sub(r"\*+", "*", pattern)))
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def any_matches(text: str, patterns: list[str]) -> bool:
    """One pattern does, and none with a ! before it."""
    if any(matches(text, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
        return False
    return any(matches(text, pattern) for pattern in patterns if not pattern.startswith("!"))


@dataclass
class _Options:
    """The options as they are found; `first` has the value of each that counts."""

    alias: str
    final: bool = False
    wants_final: bool = False
    first: dict[str, str] = field(default_factory=dict)
    key_files: list[str] = field(default_factory=list)

    def read(self, file: Path, active: bool = True, depth: int = 0) -> None:
        """`active`: whether the Host or Match block that includes the file applies to the host."""
        if depth > _MAX_DEPTH:
            raise DeployError(f"{file}: Include goes deeper than {_MAX_DEPTH} files; does it go in a circle?")
        applies = active
        # Host lines are about the name that was given, and in the second pass about the address.
        name = self.address() if self.final else self.alias
        for number, keyword, rest in _file_lines(file):
            try:
                if keyword == "host":
                    applies = active and any_matches(name, split(rest))
                elif keyword == "match":
                    applies = self._match(split(rest), active)
                elif keyword == "include":
                    for other in _included(file, split(rest)):
                        self.read(other, applies, depth + 1)
                elif applies and keyword in _OPTIONS:
                    self._take(keyword, rest)
            except ValueError as error:
                raise DeployError(f"{file} line {number}: {error}") from None

    def _take(self, keyword: str, rest: str) -> None:
        value = rest
        if keyword in _FILE_LISTS:
            _file_list(rest)
        elif keyword != "proxycommand":
            words = split(rest)
            if len(words) != 1:
                raise ValueError(f"{keyword} takes one value")
            value = words[0].lower() if keyword == "hostkeyalias" else words[0]
        if keyword == "identityfile":
            if value not in self.key_files:
                self.key_files.append(value)
        # Of these two, the one that comes first rules out the other.
        elif not (keyword.startswith("proxy") and ("proxyjump" in self.first or "proxycommand" in self.first)):
            self.first.setdefault(keyword, value)

    def _match(self, words: list[str], holds: bool) -> bool:
        """Whether all criteria of a Match line hold, if the block around it does (else only `final` is looked for).

        Raises ValueError for a criterion that cannot be told.
        """
        words = [part for word in words for part in (word.split("=", 1) if re.match(r"!?[a-z]+=", word) else [word])]
        unknown = ""
        while words:
            name = words.pop(0)
            criterion = name.removeprefix("!").lower()
            if criterion in ("all", "canonical", "final"):
                self.wants_final |= criterion == "final"
                found = criterion == "all" or self.final
            elif not words:
                raise ValueError(f"Match {name} lacks its value")
            elif criterion == "exec":
                value = words.pop(0)
                # Like OpenSSH: not run where the line cannot hold any more.
                found = holds and self._run(value)
            elif criterion in ("host", "originalhost", "user", "localuser"):
                value = words.pop(0)
                patterns = (value.lower() if criterion.endswith("host") else value).split(",")
                found = any_matches(self._subject(criterion), patterns)
            else:
                words.pop(0)
                unknown = criterion
                continue
            holds &= found != name.startswith("!")
        if holds and unknown:
            raise ValueError(f"Match {unknown} is not known to hexnpu: use Match host, user or exec, or a Host line")
        return holds

    def _subject(self, criterion: str) -> str:
        if criterion == "localuser":
            return local_user()
        if criterion == "user":
            return self.first.get("user") or local_user()
        return (self.address() if criterion == "host" else self.alias).lower()

    def _run(self, command: str) -> bool:
        line = [os.environ.get("SHELL") or "/bin/sh", "-c", expand_tokens(command, self._tokens(), "Match exec")]
        null = subprocess.DEVNULL
        try:
            return subprocess.run(line, stdin=null, stdout=null, stderr=null, timeout=_EXEC_S).returncode == 0
        except OSError as error:
            raise ValueError(f"Match exec: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise ValueError(f"Match exec does not end within {_EXEC_S} s") from None

    def address(self) -> str:
        name = self.first.get("hostname")
        return self.alias if name is None else expand_tokens(name, {"h": self.alias, "%": "%"}, "HostName")

    def settle_address(self) -> None:
        self.first["hostname"] = self.address().lower().replace("%", "%%")

    def _tokens(self) -> dict[str, str]:
        here = socket.gethostname()
        jump = self.first.get("proxyjump", "none")
        tokens = {
            "%": "%", "h": self.address(), "p": self.first.get("port", "22"), "n": self.alias,
            "r": self.first.get("user") or local_user(), "u": local_user(), "l": here,
            "L": here.partition(".")[0], "d": str(Path.home()), "k": self.first.get("hostkeyalias", self.alias),
            "i": str(os.getuid()) if hasattr(os, "getuid") else "", "j": "" if jump == "none" else jump,
        }  # fmt: skip
        return {**tokens, "C": _hash(tokens, "lhprj")}

    def _control_paths(self, tokens: dict[str, str]) -> tuple[str, ...]:
        path = self.first.get("controlpath", "none")
        if path.lower() == "none":
            return ()
        before_9_6 = {**tokens, "C": _hash(tokens, "lhpr")}
        return tuple(dict.fromkeys(expand_path(path, known, "ControlPath") for known in (tokens, before_9_6)))

    def _known_hosts(self, tokens: dict[str, str]) -> dict[str, tuple[str, ...]]:
        """Where they are set, the files of SshHost."""
        found = {}
        if "userknownhostsfile" in self.first:
            names = _file_list(self.first["userknownhostsfile"])
            found["user_known_hosts"] = tuple(expand_path(name, tokens, "UserKnownHostsFile") for name in names)
        if "globalknownhostsfile" in self.first:
            found["global_known_hosts"] = tuple(map(expand_user, _file_list(self.first["globalknownhostsfile"])))
        return found

    def host(self) -> SshHost:
        port = self.first.get("port", "22")
        if not re.fullmatch("[0-9]{1,5}", port, re.ASCII) or not 1 <= int(port) <= 65535:
            raise DeployError(f"Port {port!r} of {self.alias} in ~/.ssh/config is not from 1 to 65535")
        try:
            self.settle_address()
            tokens = self._tokens()
            keys = [expand_path(name, tokens, "IdentityFile") for name in self.key_files]
            command = self.first.get("proxycommand", "none")
            jump = self.first.get("proxyjump", "none")
            return SshHost(
                alias=self.alias,
                user=tokens["r"],
                address=tokens["h"],
                port=int(port),
                keys=tuple(key for key in keys if Path(key).is_file()),
                agent=self.first.get("identitiesonly", "no").lower() not in ("yes", "true"),
                jump=None if jump.lower() == "none" else jump,
                command=None if command.lower() == "none" else expand_tokens(command, tokens, "ProxyCommand"),
                control_paths=self._control_paths(tokens),
                key_alias=self.first.get("hostkeyalias"),
                **self._known_hosts(tokens),
            )
        except ValueError as error:
            raise DeployError(f"~/.ssh/config, {self.alias}: {error}") from None


def _file_list(text: str) -> list[str]:
    """Raises ValueError."""
    names = split(text)
    if not all(names) or not names:
        raise ValueError("a file name is empty")
    if "none" in [name.lower() for name in names]:
        if len(names) > 1:
            raise ValueError("none is not the only file")
        return []
    return names


def _hash(tokens: dict[str, str], letters: str) -> str:
    text = "".join(tokens[letter] for letter in letters)
    return hashlib.sha1(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def expand_tokens(text: str, tokens: dict[str, str], what: str) -> str:
    def value(found: re.Match[str]) -> str:
        if found[1] not in tokens:
            raise ValueError(f"{what} has %{found[1]}, which hexnpu does not know")
        return tokens[found[1]]

    return re.sub("%(.?)", value, text, flags=re.DOTALL)


def expand_path(text: str, tokens: dict[str, str], what: str) -> str:
    """With ~ and ${VARIABLE} too."""

    def part(found: re.Match[str]) -> str:
        if found[1] is None:
            return expand_tokens(found[0], tokens, what)
        if found[1] not in os.environ:
            raise ValueError(f"{what} has {found[0]}, which is not set")
        return os.environ[found[1]]

    return expand_user(re.sub(r"\$\{(\w+)\}|%.?", part, text, flags=re.DOTALL))


def expand_user(path: str) -> str:
    try:
        return str(Path(path).expanduser())
    except RuntimeError:
        raise ValueError(f"{path}: there is no such user") from None
