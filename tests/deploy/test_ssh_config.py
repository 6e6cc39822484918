"""~/.ssh/config against `ssh -G`, which prints what OpenSSH itself makes of the same file."""

from __future__ import annotations

import getpass
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexnpu.deploy import ssh_config
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.ssh_config import SshHost, host_names, split, ssh_host
from tests.conftest import require_tool


@pytest.fixture
def config(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one file that is read."""
    file = home / ".ssh/config"
    monkeypatch.setattr(ssh_config, "config_files", lambda: (file,))
    return file


def theirs(config: Path, *host: str) -> dict[str, str]:
    """The options as OpenSSH has them; an option that is not set is not printed."""
    ssh = require_tool("ssh", "openssh-client")
    done = subprocess.run([ssh, "-F", config, "-G", *host], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, (config.read_text(), done.stderr)
    return dict(line.split(" ", 1) for line in done.stdout.decode().splitlines() if " " in line)


def check(config: Path, alias: str, user: str | None = None, port: int | None = None) -> SshHost:
    given_ = [*(["-l", user] if user else []), *(["-p", str(port)] if port else []), alias]
    found, expected = ssh_host(alias, user, port), theirs(config, *given_)
    assert (found.address, found.user, str(found.port)) == (expected["hostname"], expected["user"], expected["port"])
    assert found.agent == (expected["identitiesonly"] == "no")
    # This one is printed without its tokens' values.
    assert (found.command is not None) == ("proxycommand" in expected)
    assert found.jump == expected.get("proxyjump")
    control = expected.get("controlpath")
    assert control in found.control_paths if control else not found.control_paths
    assert found.key_alias == expected.get("hostkeyalias")
    # OpenSSH's ~ is not that of $HOME.
    known = expected["userknownhostsfile"].replace(str(Path(f"~{getpass.getuser()}").expanduser()), "~")
    assert (" ".join(found.user_known_hosts) or "none") == known
    assert (" ".join(found.global_known_hosts) or "none") == expected["globalknownhostsfile"]
    return found


def write(config: Path, text: str, **included: str) -> None:
    config.write_text(text.replace("DIR", str(config.parent)))
    for name, content in included.items():
        (config.parent / name).write_text(content.replace("DIR", str(config.parent)))


def test_no_file(config: Path) -> None:
    assert ssh_host("box") == SshHost("box", getpass.getuser(), "box", 22)


def test_the_first_value_counts(config: Path) -> None:
    write(config, "Host box other\n User one\n  Port=2201\nHost *\n User two\n HostName = %h.lan\n Port 2\n")
    assert check(config, "box") == SshHost("box", "one", "box.lan", 2201)
    assert check(config, "x", "me", 5) == SshHost("x", "me", "x.lan", 5)


@pytest.mark.parametrize("alias", ["box", "web1", "web2", "db", "BOX", "a.b"])
def test_patterns(config: Path, alias: str) -> None:
    write(config, 'Host web? !web2\n User web\nHost "db" b[o]x\n User q\nHost !db *\n Port 9\n IdentitiesOnly yes\n')
    check(config, alias)


@pytest.mark.parametrize("alias", ["in", "out", "deep", "q"])
def test_include(config: Path, alias: str) -> None:
    """Host lines of an included file end there, and hold only where the block around the Include does."""
    (config.parent / "x0.conf").mkdir()
    write(
        config,
        'Include "DIR/one two" DIR/none* DIR/x*.conf\nHost in deep\n Include DIR/inner\n User after\nHost *\n Port 7\n',
        **{"one two": "Host q\n User q\n", "x1.conf": "Host deep\nPort 1\n", "x2.conf": "Host deep\nPort 2\n"},
        inner="ControlPath DIR/%n-%C\nHost out deep\n HostName inner\n Include DIR/inner2\n", inner2="User deepest\n",
    )  # fmt: skip
    check(config, alias)


def test_include_is_relative_to_the_folder(config: Path) -> None:
    """That of $HOME, so OpenSSH, which asks the system for it, cannot be asked."""
    (config.parent / "conf.d").mkdir()
    write(config, "Include conf.d/*\nInclude ~/.ssh/more\n", **{"conf.d/a": "User a\n", "more": "Port 3\n"})
    assert ssh_host("box") == SshHost("box", "a", "box", 3)


def test_include_in_a_circle(config: Path) -> None:
    write(config, "Include DIR/config\n")
    with pytest.raises(DeployError, match="circle"):
        ssh_host("box")
    assert list(host_names()) == []


@pytest.mark.parametrize("alias", ["box", "a", "b", "final"])
@pytest.mark.parametrize(
    "criteria",
    [
        "all", "host a,*.lan", "host !a.lan,*", "originalhost a", "originalhost !a,*", "user me", "user me,you host b*",
        "localuser LOCAL", "localuser nobody", 'exec "test %n = a"', 'exec "exit 1"', "!exec false host a*",
        "final", "final host b.lan", "canonical", "!final", "host=box.lan", "!host a.lan", "!host a.lan user me",
    ],
)  # fmt: skip
def test_match(config: Path, alias: str, criteria: str) -> None:
    criteria = criteria.replace("LOCAL", getpass.getuser())
    write(config, f"Host a b\n User me\nHost *\n HostName %h.lan\nMatch {criteria}\n Port 77\n ProxyJump hop\n")
    check(config, alias)


@pytest.mark.parametrize("criterion", ["localnetwork 10.0.0.0/8", "tagged x", "version *", "sessiontype exec"])
def test_match_that_cannot_be_told(config: Path, criterion: str) -> None:
    """An error for the hosts that depend on it, and for them only."""
    write(config, f"Host a\n User me\nMatch host a {criterion}\n Port 7\n")
    with pytest.raises(DeployError, match=f"config line 3: Match {criterion.split()[0]} is not known") as error:
        ssh_host("a")
    assert "\n" not in str(error.value)
    assert ssh_host("b").port == 22


def test_jump_and_command(config: Path) -> None:
    write(
        config,
        "Host a\n ProxyJump none\nHost b\n ProxyCommand none\nHost c\n ProxyCommand nc %h %p # kept\nHost *\n"
        " ProxyJump hop,me@hop2:22\n ProxyCommand x\n",
    )
    # OpenSSH prints none as nothing, and both rule the later lines out.
    assert [(ssh_host(name).jump, ssh_host(name).command) for name in "abcd"] == [
        (None, None), (None, None), (None, "nc c 22 # kept"), ("hop,me@hop2:22", None),
    ]  # fmt: skip
    check(config, "c")
    check(config, "d")


def test_paths(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", str(config.parent))
    (config.parent / "k box 22").touch()
    write(
        config,
        'Host box\n IdentityFile "DIR/k %h %p"\n IdentityFile DIR/none\n IdentityFile "~/.ssh/k box 22"\n'
        " ControlPath ${PLACE}/%r@%h:%p-%C-%l-%L-%u-%i-%k%%\n",
    )
    key = str(config.parent / "k box 22")
    assert check(config, "box").keys == (key, key)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("Host box\n Port 0\n", "from 1 to"), ("Host box\n Port\n", "line 2"), ("Host box\n User a b\n", "one value"),
        ("IdentityFile %y\n", "%y"), ("ControlPath ${NO_SUCH}\n", "NO_SUCH"), ('Host "box\n', "quote"),
        ("\0\x01\n", "line 1"), ("Match user\n", "value"), ("User a\0b\n", "line 1"),
        ("IdentityFile ~nobody.x/y\n", "no such"), ("Include ~nobody.x/y\n", "no such"),
        ('UserKnownHostsFile ""\n', "empty"), ("GlobalKnownHostsFile # x\n", "empty"),
        ("UserKnownHostsFile a NONE\n", "none"), ("UserKnownHostsFile %y\n", "%y"),
        ('GlobalKnownHostsFile "a\n', "quote"), ("GlobalKnownHostsFile ~nobody.x\n", "no such"),
    ],
)  # fmt: skip
def test_broken(config: Path, text: str, match: str) -> None:
    config.write_text(text)
    with pytest.raises(DeployError, match=match) as error:
        ssh_host("box")
    assert "\n" not in str(error.value) and "config" in str(error.value)


def test_no_word_of_a_secret_is_told(config: Path) -> None:
    """An Include may lead to a file that is no configuration."""
    write(config, "Include DIR/t*\n", token="glpat-hunter2hunter2\n")
    with pytest.raises(DeployError, match="token line 1: not `Option value`") as error:
        ssh_host("box")
    assert "hunter2" not in str(error.value)


def test_a_file_that_cannot_be_read(config: Path) -> None:
    # Root may read all files, but not this one.
    config.symlink_to(config)
    with pytest.raises(DeployError, match="config: Too many levels of symbolic links"):
        ssh_host("box")


@pytest.mark.parametrize("alias", ["none", "both", "global", "x"])
def test_known_hosts(config: Path, monkeypatch: pytest.MonkeyPatch, alias: str) -> None:
    monkeypatch.setenv("PLACE", str(config.parent))
    write(
        config,
        "Host none\n UserKnownHostsFile NONE # no\n HostKeyAlias NONE\nHost both\n HostKeyAlias Lab\n"
        ' UserKnownHostsFile "DIR/a b" ${PLACE}/%h-%k-%p%% # c\n'
        'Host global\n GlobalKnownHostsFile /g/%h "/g h"\n'
        "Host *\n HostName h.lan\n HostKeyAlias later\n UserKnownHostsFile /later\n GlobalKnownHostsFile /later\n",
    )
    check(config, alias)


def test_a_user_without_a_name(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 54321")

    monkeypatch.setattr("getpass.getuser", nobody)
    with pytest.raises(DeployError, match="set USER"):
        ssh_host("box", "me", 22)


def test_known_as() -> None:
    host = SshHost("x", "me", "box.lan", 22)
    assert host.known_as == "box.lan"
    assert replace(host, port=2222).known_as == "[box.lan]:2222"
    assert replace(host, port=2222, key_alias="lab").known_as == "lab"


def test_names(config: Path) -> None:
    assert list(host_names()) == []
    write(
        config, 'host a "b c" d # e\nHost=e !f *g h?\nMatch host m\nInclude DIR/more\nHost a z\n',
        more="Host from-more\n Port 1\n",
    )  # fmt: skip
    assert list(host_names()) == ["a", "d", "e", "from-more", "z"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b\t'c d' e\"f g\"h", ["a", "b", "c d", "ef gh"]), ("a # b", ["a"]), ("a#b", ["a#b"]), ("", []),
        (r"a\ b 'it\'s' C:\x", ["a b", "it's", r"C:\x"]), ("''", [""]),
    ],
)  # fmt: skip
def test_words(text: str, words: list[str]) -> None:
    assert split(text) == words


_pattern = st.sampled_from(["a", "b", "c", "?", "*", "!a", "a*", "!*b", "*.lan"])
_option = st.one_of(
    st.sampled_from(["User u1", "User=u2", "Port 1", "port 2", "HostName h1", "HostName %h.lan", "HostName B"]),
    st.sampled_from(["ProxyJump j1", "ProxyCommand x %h", "IdentitiesOnly yes", "IdentitiesOnly no", "# User no"]),
    st.sampled_from(["ControlPath /c/%n.%h.%p.%r", "ControlPath none", "ControlPath /c/%C", "Compression yes"]),
    st.sampled_from(["HostKeyAlias K", "HostKeyAlias k2", "UserKnownHostsFile /k/%h /k/2", "UserKnownHostsFile none"]),
    st.sampled_from(["GlobalKnownHostsFile /g1 /g2", "GlobalKnownHostsFile none", "UserKnownHostsFile /k/%k"]),
)
_host = st.lists(_pattern, min_size=1, max_size=3).map(lambda words: f"Host {' '.join(words)}")
_criterion = st.one_of(
    st.tuples(st.sampled_from(["host", "originalhost", "!host", "!originalhost"]), st.lists(_pattern, min_size=1)).map(
        lambda pair: f"{pair[0]} {','.join(pair[1])}"
    ),
    st.sampled_from(["user u1", "user me,u*", "!user u1", "final", "canonical", "!final", 'exec "test %h = a"']),
)
_match = st.lists(_criterion, min_size=1, max_size=3).map(lambda words: f"Match {' '.join(words)}")
_include = st.sampled_from(["one", "two", "[ot]*"]).map(lambda name: f"Include DIR/{name}")
_leaf = st.lists(st.one_of(_option, _option, _host, _match), max_size=6).map("\n".join)
_file = st.lists(st.one_of(_option, _option, _host, _match, _include), max_size=10).map("\n".join)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(_file, _leaf, _leaf, st.sampled_from(["a", "b", "ab", "A"]), st.sampled_from([None, "me"]))
def test_any_file(config: Path, text: str, one: str, two: str, alias: str, user: str | None) -> None:
    write(config, text + "\n", one=one + "\n", two=two + "\n")
    check(config, alias, user)
