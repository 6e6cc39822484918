"""`hexnpu generate` and `plan` over several NPUs."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import pytest

from tests.cli.test_generate import hexnpu
from tests.models.tiny import Tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Tiny(weights=gguf.GGMLQuantizationType.Q4_0, n_layers=3).write(tmp_path_factory.mktemp("cli") / "tiny.gguf")


@pytest.mark.parametrize("devices", ["HTP0:0,HTP1:0", "HTP0:0,HTP0:1,HTP1:0"])
@pytest.mark.parametrize("mode", ["layer", "tensor"])
def test_generate(tiny: Path, devices: str, mode: str, tmp_path: Path) -> None:
    log = tmp_path / "profile.log"
    alone = hexnpu("generate", tiny, "-p", "the wind", "-n", 4)
    result = hexnpu(
        "generate", tiny, "-p", "the wind", "-n", 4, "-t", 1, "-d", devices, "--split-mode", mode, "--stats",
        "--strict", "--profile", 1, "--log", log,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert mode == "tensor" or result.stdout == alone.stdout
    assert re.search(rf"a token in {devices.count(',') + 1} batch\(es\)", result.stderr)
    assert all(f"ggml-hex: {device} profile-op " in log.read_text() for device in devices.split(","))


def test_plan_shows_the_split(tiny: Path) -> None:
    result = hexnpu("plan", tiny, "-d", "HTP0:0,HTP1:0", "--split-mode", "tensor", "--devices-weights", "2,1")
    assert result.returncode == 0, result.stderr
    assert "HTP0:0: 2 heads over 1 KV head, 64 FFN columns" in result.stdout
    assert "HTP1:0: 2 heads over 1 KV head, 32 FFN columns" in result.stdout
    assert len(re.findall(r"^ *6 +ALLREDUCE_ADD ", result.stdout, re.MULTILINE)) == 2
    layers = hexnpu("plan", tiny, "-d", "HTP0:0,HTP0:1")
    assert "HTP0:0: layers 0 to 1" in layers.stdout and "HTP0:1: layers 2 to 2" in layers.stdout


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("-d", "HTP0:0,HTP0:0"), "2 to 4 different devices"),
        (("-d", "HTP0:0,HTP0"), "2 to 4 different devices"),
        (("-d", "HTP0,HTP1,HTP2,HTP3,HTP4"), "2 to 4 different devices"),
        (("-d", "HTP0:0,CPU"), "'CPU' is no device; one is HTPn, or HTPn:m"),
        (("-d", "2"), "HTP0:0,HTP0:1 two sessions of one"),
        (("-d", "HTP0:0,HTP1:0", "--split-mode", "row"), "--split-mode is 'row'; it must be one of layer, tensor"),
        (("-d", "HTP0:0,HTP1:0", "--devices-weights", "1,2,3"), "shares 1, 2, 3 of 2 devices"),
        (("-d", "HTP0:0,HTP1:0", "--devices-weights", "0,0"), "not all of them 0"),
        (("--devices-weights", "3,1"), "--devices-weights is for several devices"),
        (("--split-mode", "tensor"), "--split-mode tensor is for several devices"),
        (("-d", "HTP0:0,HTP1:0", "--fence-timeout", "0"), "fence_timeout_s is 0.0"),
    ],
)
def test_mistakes(tiny: Path, flags: tuple[str, ...], says: str) -> None:
    commands: list[tuple[object, ...]] = [("generate", tiny, "-p", "a", "-n", 1)]
    if "--fence-timeout" not in flags:
        commands.append(("plan", tiny))
    for command in commands:
        result = hexnpu(*command, *flags)
        assert result.returncode == 2 and says in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
