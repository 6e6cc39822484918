"""The target parser: every form and alias, what is malformed, and parse(format(x)) == x."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hexnpu.deploy.targets import LOCAL, WORDS, Target, parse_target
from hexnpu.errors import UsageError

FORMS = [
    ("android", Target("android", "android")),
    ("adb", Target("android", "adb")),
    ("android:R5CT1", Target("android", "android", serial="R5CT1")),
    ("adb:192.168.1.2:5555", Target("android", "adb", serial="192.168.1.2:5555")),
    ("adb:emulator-5554", Target("android", "adb", serial="emulator-5554")),
    ("linux:box", Target("linux", "linux", host="box")),
    ("lnx:me@box", Target("linux", "lnx", user="me", host="box")),
    ("ubuntu:me@10.0.0.1:2222", Target("linux", "ubuntu", user="me", host="10.0.0.1", port=2222)),
    ("linux:[::1]", Target("linux", "linux", host="::1")),
    ("linux:me@[fe80::1%eth0]:22", Target("linux", "linux", user="me", host="fe80::1%eth0", port=22)),
    ("linux:a@b@box", Target("linux", "linux", user="a@b", host="box")),
    ("windows", Target("windows", "windows")),
    ("wos", Target("windows", "wos")),
    ("windows:box", Target("windows", "windows", host="box")),
    ("wos:DOMAIN\\me@box:22", Target("windows", "wos", user="DOMAIN\\me", host="box", port=22)),
    ("emu", Target("emu", "emu")),
    ("qemu", Target("qemu", "qemu")),
]


@pytest.mark.parametrize(("text", "target"), FORMS)
def test_forms(text: str, target: Target) -> None:
    assert parse_target(text) == target
    assert str(target) == text


def test_nothing_is_this_machine() -> None:
    assert parse_target(None) == LOCAL
    assert LOCAL.here


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "phone", "Android", "android:", "adb: ", "adb:a b", "linux", "linux:", "lnx:@box", "linux:me@",
        "linux:box:", "linux:box:0", "linux:box:65536", "linux:box:22x", "linux:box:١", "linux:-oProxyCommand=x",
        "linux:-x@box", "linux:a:b@box", "linux:[::1", "linux:::1", "linux:bo x", "linux:box\n", "linux:[::1]x",
        "windows:", "emu:1", "qemu:", "local", "linux:$(id)", "linux:box;id", "android:a\0",
    ],
)  # fmt: skip
def test_malformed(text: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_target(text)
    assert error.value.exit_code == 2
    assert "\n" not in str(error.value)
    for form in ("android[:serial]", "linux:[user@]host[:port]", "windows", "wos", "emu", "qemu"):
        assert form in str(error.value)


_names = st.from_regex(r"[a-z0-9_][a-zA-Z0-9_.-]{0,20}", fullmatch=True)
_hosts = st.one_of(_names, st.ip_addresses().map(str))
_users = st.none() | st.from_regex(r"[a-zA-Z_\\@.][a-zA-Z0-9_\\@.$-]{0,10}", fullmatch=True)
_targets = st.one_of(
    st.builds(
        lambda word, serial: Target("android", word, serial=serial),
        st.sampled_from(["android", "adb"]),
        st.none() | st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1),
    ),
    st.builds(
        lambda word, user, host, port: Target(WORDS[word], word, user=user, host=host, port=port),
        st.sampled_from(["linux", "lnx", "ubuntu", "windows", "wos"]),
        _users,
        _hosts,
        st.none() | st.integers(1, 65535),
    ),
    st.sampled_from([Target("windows", "wos"), Target("emu", "emu"), Target("qemu", "qemu")]),
)


@settings(deadline=None)
@given(_targets)
def test_format_and_parse(target: Target) -> None:
    assert parse_target(str(target)) == target


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_target_or_a_usage_error(text: str) -> None:
    try:
        target = parse_target(text)
    except UsageError:
        return
    assert str(target) == text or target.port is not None  # 022 is port 22
