"""What a manifest of the target may say: anybody can have written it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hexnpu.deploy.device import open_device
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.manifest import Manifest
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import push_folder
from tests.deploy.folders import Push, state_of, tree, write


def manifest(files: Any, **more: Any) -> bytes:
    return json.dumps({"version": 1, "files": files, **more}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{broken", b"\xff", b"[" * 200_000, b"[]", b"1", b'{"version":1}', b'{"version":[],"files":{}}',
        manifest([]), manifest("x"), b'{"version":2,"files":{"a":{}}}', b'{"version":1,"files":{"a":' + b"[" * 200_000,
    ],
)  # fmt: skip
def test_unreadable_is_as_none(data: bytes) -> None:
    assert Manifest.from_bytes(data) == Manifest()


@pytest.mark.parametrize(
    "path",
    ["", "/", "/x", "x/", "x//y", ".", "..", "../x", "x/../y", "x/./y", "a\0b", "\ud800", ".hexnpu", ".hexnpu/lock"],
)
def test_paths_that_no_push_wrote(path: str) -> None:
    read = Manifest.from_bytes(manifest({path: {}, "x": {}}, folders=[path, "f"]))
    assert (list(read.files), read.folders) == (["x"], ("f",))


@pytest.mark.parametrize("path", ["x", "a/b", "...", "..x", ".hexnpu2/x", "it's\n", "\udcff", "ä", "-rf", "a\\b"])
def test_paths_that_one_may_have_written(path: str) -> None:
    assert list(Manifest.from_bytes(Manifest({path: {}}).to_bytes()).files) == [path]


@pytest.mark.parametrize("folders", [None, "x", 1, [1, None, ["x"], {}]])
def test_folders_of_other_types(folders: Any) -> None:
    assert Manifest.from_bytes(manifest({}, folders=folders)).folders == ()


def test_values() -> None:
    whole = {"sha256": "0", "size": 1, "mode": 2, "mtime": 3}
    odd = {"sha256": 1, "size": "1", "mode": True, "mtime": [[]], "link": {}, "other": 1}
    files = {"whole": whole, "odd": odd, "none": None, "link": {"link": "x"}, "no name": {"link": "\ud800"}}
    read = Manifest.from_bytes(manifest(files))
    assert read.files == {"whole": whole, "odd": {}, "none": {}, "link": {"link": "x"}, "no name": {}}


@pytest.mark.parametrize("name", ["manifest.json", "next.json"])
@pytest.mark.parametrize(
    "data",
    [
        manifest({"../victim": {}, "x/../../victim": {}, "a\0b": {}, "\ud800": {}}, folders=["../empty"]),
        b"[" * 200_000,
        # As if the listing went on.
        b"x\n///\n\n///\n81a4 1 1 ./.hexnpu/incoming/../../../victim//\n\n///\n",
    ],
    ids=["paths", "depth", "listing"],
)
def test_nothing_outside_is_touched(pushed: Push, tmp_path: Path, name: str, data: bytes) -> None:
    write(tmp_path / "pkg/x/f", b"x")
    write(tmp_path / "victim", b"mine")
    (tmp_path / "empty").mkdir()
    pushed(tmp_path / "pkg")
    (tmp_path / "to/.hexnpu" / name).write_bytes(data)
    pushed(tmp_path / "pkg")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert (tmp_path / "empty").is_dir()
    assert tree(tmp_path / "to") == tree(tmp_path / "pkg")
    assert state_of(tmp_path / "to") == {"lock", "manifest.json"}


@pytest.mark.parametrize("make", ["file", "symlink", "folder"])
def test_a_package_with_the_name_of_our_own_folder(tmp_path: Path, make: str) -> None:
    root = tmp_path / "pkg"
    write(root / "x", b"x")
    own = root / ".hexnpu"
    if make == "file":
        own.write_text("x")
    elif make == "symlink":
        own.symlink_to("x")
    else:
        own.mkdir()
    with open_device(parse_target(None)) as device, pytest.raises(DeployError, match="remove it"):
        push_folder(device, root, f"{tmp_path}/to")
    assert not (tmp_path / "to").exists()
