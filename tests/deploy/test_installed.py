"""What an install leaves of the one before it, by the real cmake and as a container lists it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.installed import without_former
from tests.conftest import require_tool

CMAKE = """cmake_minimum_required(VERSION 3.20)
project(x NONE)
install(FILES common "it's ${KIND}" DESTINATION lib)
"""


def test_another_presets_files_go(tmp_path: Path) -> None:
    require_tool("cmake", "cmake")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    presets = [{"name": k, "generator": "Unix Makefiles", "cacheVariables": {"KIND": k}} for k in ("a", "b")]
    (tmp_path / "CMakePresets.json").write_text(json.dumps({"version": 4, "configurePresets": presets}))
    for name in ("common", "it's a", "it's b"):
        (tmp_path / name).touch()
    package = tmp_path / "pkg-linux"
    for preset in ("a", "b", "b", "a"):
        build = ("build", "--no-docker", "--target", "linux", "--source", tmp_path, "--preset", preset)
        subprocess.run([sys.executable, "-m", "hexnpu", *build], check=True, capture_output=True)
        (package / "lib/mine").touch()
        assert {path.name for path in package.rglob("*")} == {"lib", "common", f"it's {preset}", "mine"}


def test_in_a_container(tmp_path: Path) -> None:
    """It lists the paths that it sees. What no install put there stays, and all of it where the new one fails."""
    build, package = tmp_path / "build", tmp_path / "pkg"
    build.mkdir()
    package.mkdir()

    def install(*names: str, fails: bool = False) -> set[str]:
        with without_former(build, package, "/workspace/pkg"):
            for name in names:
                (package / name).touch()
            if fails:
                raise DeployError
            paths = [f"/workspace/pkg/{name}" for name in names]
            (build / "install_manifest.txt").write_text("\n".join([*paths, "/workspace/pkg/../kept", "/elsewhere"]))
        return {path.name for path in package.iterdir()}

    (tmp_path / "kept").touch()
    (package / "mine").touch()
    assert install("a", "b") == {"a", "b", "mine"}
    with pytest.raises(DeployError):
        install("c", fails=True)
    assert install("b", "d") == {"b", "c", "d", "mine"}
    assert (tmp_path / "kept").exists()
