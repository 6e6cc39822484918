"""What a Windows target is told, without one: paths, command lines, and that the runner builds for its machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexnpu.deploy.device import Command, printed_command
from hexnpu.deploy.targets import parse_target
from hexnpu.deploy.windows import folder_path, sftp_path
from hexnpu.deploy.windows_install import MACHINES, built_runner
from hexnpu.errors import UsageError

# PE machine types, from Microsoft's description of the format.
PE_MACHINES = {"aarch64": 0xAA64, "x86_64": 0x8664}


@pytest.mark.parametrize(
    ("directory", "path", "by_sftp"),
    [
        ("~", ".", "."),
        ("~/hexnpu", "hexnpu", "hexnpu"),
        ("~\\a b\\", "a b", "a b"),
        ("x/y", "x/y", "x/y"),
        ("C:\\x", "C:/x", "/C:/x"),
        ("/d:/x/", "d:/x", "/d:/x"),
        ("C:/", "C:/", "/C:/"),
    ],
)
def test_paths(directory: str, path: str, by_sftp: str) -> None:
    assert (folder_path(directory), sftp_path(folder_path(directory))) == (path, by_sftp)


@pytest.mark.parametrize("directory", ["/x", "C:x", "\\\\server\\share", "C:"])
def test_paths_without_a_drive(directory: str) -> None:
    with pytest.raises(UsageError, match="name its drive"):
        folder_path(directory)


def test_what_is_printed() -> None:
    command = Command(("./bin/a.exe", "", 'a "b\\', "%x%", "c\\"), "C:/x/y", {"A": "1", "B": ""})
    text = printed_command(parse_target("wos:me@box"), command)
    assert text == 'in C:\\x\\y\n"./bin/a.exe" "" "a \\"b\\\\" %x% c\\\nA=1\nB='


@pytest.mark.parametrize("machine", MACHINES.values())
def test_the_runner_builds(machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEXNPU_CACHE", str(tmp_path))
    data = built_runner(machine).read_bytes()
    header = int.from_bytes(data[60:64], "little")
    assert data[header : header + 4] == b"PE\0\0"
    assert int.from_bytes(data[header + 4 : header + 6], "little") == PE_MACHINES[machine]
    assert len(data) < 16384
