"""The table of `hexnpu run`: every flag, the caller's variables, the tools' arguments. By --print, as users see it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.cli import main
from hexnpu.deploy.environment import FLAGS, device_names, known_variables
from hexnpu.deploy.tools import TOOLS
from hexnpu.errors import UsageError

BASE = {
    "LD_LIBRARY_PATH": "./lib",
    "ADSP_LIBRARY_PATH": "./lib",
    "GGML_HEXAGON_DEVICES": "HTP0",
    "GGML_HEXAGON_OPPOLL": "1",
}

# Flag and its words -> variables; None: one that is not set.
CASES: list[tuple[list[str], dict[str, str | None]]] = [
    ([], {}),
    (["--devices", "HTP1,GPUOpenCL,HTP2"], {"GGML_HEXAGON_DEVICES": "HTP1,HTP2", "GGML_OPENCL_DEVICE": "GPUOpenCL"}),
    (["--device", "GPUOpenCL"], {"GGML_HEXAGON_DEVICES": None, "GGML_OPENCL_DEVICE": "GPUOpenCL"}),
    (["-d", "3"], {"GGML_HEXAGON_DEVICES": "HTP0,HTP1,HTP2"}),
    (["--verbose", "2"], {"GGML_HEXAGON_VERBOSE": "2", "GGML_OPENCL_KERNEL_CACHE_DEBUG": "2"}),
    (
        ["--verbose", "2", "--hex-verbose", "1"],
        {"GGML_HEXAGON_VERBOSE": "1", "GGML_OPENCL_KERNEL_CACHE_DEBUG": "2"},
    ),
    (
        ["--cl-cache-debug", "0", "--verbose", "2"],
        {"GGML_HEXAGON_VERBOSE": "2", "GGML_OPENCL_KERNEL_CACHE_DEBUG": "0"},
    ),
    (["--profile", "3"], {"GGML_HEXAGON_PROFILE": "3", "GGML_OPENCL_FA_TUNE": "1"}),
    (["--profile", "3", "--hex-profile", "1"], {"GGML_HEXAGON_PROFILE": "1", "GGML_OPENCL_FA_TUNE": "1"}),
    (["--sched-debug"], {"GGML_SCHED_DEBUG": "2"}),
    (["--mtmd-device", "HTP1"], {"MTMD_BACKEND_DEVICE": "HTP1"}),
    *[
        ([f"--hex-{name}", "7"], {f"GGML_HEXAGON_{variable}": "7"})
        for name, variable in (
            ("nhvx", "NHVX"), ("nhmx", "NHMX"), ("hostbuf", "HOSTBUF"), ("opbatch", "OPBATCH"), ("opqueue", "OPQUEUE"),
            ("opfilter", "OPFILTER"), ("opfusion", "OPFUSION"), ("vmem", "VMEM"), ("mbuf", "MBUF"),
            ("mm-select", "MM_SELECT"), ("fa-select", "FA_SELECT"), ("ar-select", "AR_SELECT"), ("etm", "ETM"),
            ("arch", "ARCH"), ("optrace", "OPTRACE"), ("oppoll", "OPPOLL"),
        )
    ],
    (["--cl-platform", "P q"], {"GGML_OPENCL_PLATFORM": "P q"}),
    (["--cl-device", "x"], {"GGML_OPENCL_DEVICE": "x"}),
    (["--cl-opfilter", "a|b"], {"GGML_OPENCL_OPFILTER": "a|b"}),
    (["--cl-cache-dir", "/tmp/$x"], {"GGML_OPENCL_KERNEL_CACHE_DIR": "/tmp/$x"}),
    (["--cl-disable-fusion"], {"GGML_OPENCL_DISABLE_FUSION": "1"}),
    (["--cl-fa-tune"], {"GGML_OPENCL_FA_TUNE": "1"}),
    (["--cl-adreno-xmem"], {"GGML_OPENCL_ADRENO_XMEM_GEMM": "1"}),
    (["--cl-adreno-large-buffer"], {"GGML_OPENCL_ADRENO_USE_LARGE_BUFFER": "1"}),
    (["--env", "A=1 2=3", "--env", "B="], {"A": "1 2=3", "B": ""}),
    (["--hex-nhvx", "4", "--env", "GGML_HEXAGON_NHVX=5"], {"GGML_HEXAGON_NHVX": "5"}),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in known_variables():
        monkeypatch.delenv(name, raising=False)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, str], list[str], str]:
    """Variables, command and directory of the remote command that --print shows."""
    with pytest.raises(SystemExit) as done:
        main(["run", "--target", "linux:box", "--print", *arguments])
    assert not done.value.code
    sh, c, _script, directory, *words = shlex.split(capsys.readouterr().out)
    assert (sh, c) == ("sh", "-c")
    n = next(n for n, word in enumerate(words) if "=" not in word)
    return dict(word.split("=", 1) for word in words[:n]), words[n:], directory


@pytest.mark.parametrize(("flags", "changes"), CASES, ids=[" ".join(flags) for flags, _ in CASES])
def test_flags(capsys: pytest.CaptureFixture[str], flags: list[str], changes: dict[str, str | None]) -> None:
    variables, command, directory = printed(capsys, *flags, "--", "true")
    assert variables == {name: value for name, value in (BASE | changes).items() if value is not None}
    assert (command, directory) == (["true"], "~/hexnpu")


def test_every_flag_of_the_table_has_a_case() -> None:
    tested = {word for flags, _ in CASES for word in flags if word.startswith("--")}
    assert {f"--{flag.name}" for flag in FLAGS} <= tested


@pytest.mark.parametrize("name", known_variables())
def test_the_callers_variables_are_passed_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "HTP1")
    assert printed(capsys, "--", "true")[0][name] == "HTP1"


def test_a_flag_overrides_the_callers_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GGML_HEXAGON_NHVX", "2")
    monkeypatch.setenv("GGML_HEXAGON_OPPOLL", "0")
    monkeypatch.setenv("GGML_HEXAGON_DEVICES", "HTP3")
    monkeypatch.setenv("OTHER", "1")
    variables, command, _ = printed(capsys, "--hex-nhvx", "8", "--", "llama-bench")
    assert variables == BASE | {
        "GGML_HEXAGON_NHVX": "8", "GGML_HEXAGON_OPPOLL": "0", "GGML_HEXAGON_DEVICES": "HTP3",
    }  # fmt: skip
    assert command[1:3] == ["--device", "HTP3"]
    assert printed(capsys, "-d", "2", "--", "true")[0]["GGML_HEXAGON_DEVICES"] == "HTP0,HTP1"


@pytest.mark.parametrize(
    ("callers", "flags", "changes", "device"),
    [
        # As they are, whatever they hold; --device has the sessions there will be.
        ({"GGML_HEXAGON_DEVICES": "HTP1,HTP2"}, [], {}, "HTP1,HTP2"),
        ({"GGML_HEXAGON_DEVICES": "2"}, [], {}, "HTP0,HTP1"),
        ({"GGML_HEXAGON_DEVICES": ""}, [], {}, None),
        ({"GGML_HEXAGON_DEVICES": "HTP0, HTP1"}, [], {}, None),
        ({"GGML_HEXAGON_DEVICES": "17"}, [], {}, None),
        ({"GGML_OPENCL_DEVICE": "0"}, [], {}, "HTP0"),
        ({"GGML_OPENCL_DEVICE": "Adreno 750"}, [], {}, "HTP0"),
        ({"GGML_OPENCL_DEVICE": "GPUOpenCL"}, [], {}, "HTP0"),
        ({"GGML_OPENCL_DEVICE": ""}, [], {}, "HTP0"),
        ({"GGML_OPENCL_DEVICE": "1", "GGML_HEXAGON_DEVICES": "HTP1"}, [], {}, "HTP1"),
        # A flag overrides what it sets.
        ({"GGML_OPENCL_DEVICE": "1"}, ["-d", "2"], {"GGML_HEXAGON_DEVICES": "HTP0,HTP1"}, "HTP0,HTP1"),
        ({"GGML_OPENCL_DEVICE": "1"}, ["-d", "G,HTP1"], {"GGML_OPENCL_DEVICE": "G", "GGML_HEXAGON_DEVICES": "HTP1"},
         "G,HTP1"),
        ({"GGML_HEXAGON_DEVICES": ""}, ["-d", "HTP1"], {"GGML_HEXAGON_DEVICES": "HTP1"}, "HTP1"),
        ({"GGML_HEXAGON_DEVICES": "HTP1"}, ["--env", "GGML_HEXAGON_DEVICES=HTP2"], {"GGML_HEXAGON_DEVICES": "HTP2"},
         "HTP2"),
        ({"GGML_OPENCL_DEVICE": "1"}, ["--cl-device", "2"], {"GGML_OPENCL_DEVICE": "2"}, "HTP0"),
    ],
)  # fmt: skip
def test_the_callers_devices(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, callers: dict[str, str], flags: list[str],
    changes: dict[str, str], device: str | None,
) -> None:  # fmt: skip
    for name, value in callers.items():
        monkeypatch.setenv(name, value)
    variables, command, _ = printed(capsys, *flags, "--", "test-backend-ops")
    assert variables == BASE | callers | changes
    assert command == ["./bin/test-backend-ops", *([] if device is None else ["-b", device])]


GENERATE = ["-ngl", "99", "--ubatch-size", "1024", "-fa", "on", "-t", "6"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["llama-cli", "-m", "x"], ["./bin/llama-cli", "--device", "HTP0", *GENERATE, "-m", "x"]),
        (["llama-completion"], ["./bin/llama-completion", "--device", "HTP0", *GENERATE]),
        (["llama-server"], ["./bin/llama-server", "--device", "HTP0", *GENERATE]),
        (["llama-bench"], ["./bin/llama-bench", "--device", "HTP0", "-t", "6"]),
        (["llama-mtmd-cli"], ["./bin/llama-mtmd-cli", "--device", "HTP0"]),
        (["htp-server", "-x"], ["./bin/htp-server", "-x"]),
        (["llama-cli", "--device", "none", *GENERATE], ["./bin/llama-cli", "--device", "none", *GENERATE]),
        (
            ["llama-cli", "-dev", "HTP1", "--gpu-layers", "1", "-ub", "2", "--flash-attn", "off", "--threads", "3"],
            [
                "./bin/llama-cli", "-dev", "HTP1", "--gpu-layers", "1", "-ub", "2", "--flash-attn", "off",
                "--threads", "3",
            ],
        ),
        (["test-backend-ops", "-o", "MUL"], ["./bin/test-backend-ops", "-b", "HTP0", "-o", "MUL"]),
        (
            ["test-backend-ops", "-b", "HTP1", "-p", r"ne=[1,2\],x"],
            ["./bin/test-backend-ops", "-b", "HTP1", "-p", r"ne=\[1,2\],x"],
        ),
        (["echo", "-p", "[x]"], ["echo", "-p", "[x]"]),
        (["./bin/other", "x"], ["./bin/other", "x"]),
    ],
)  # fmt: skip
def test_tools(capsys: pytest.CaptureFixture[str], given: list[str], expected: list[str]) -> None:
    assert printed(capsys, "--", *given)[1] == expected


@pytest.mark.parametrize(
    "flags",
    [
        ["--verbose", "1"], ["--profile", "1"], ["--sched-debug"], ["--hex-verbose", "1"], ["--hex-profile", "1"],
        ["--hex-optrace", "1"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_talkative_flags_add_v(capsys: pytest.CaptureFixture[str], flags: list[str], tool: str) -> None:
    assert ("-v" in printed(capsys, *flags, "--", tool)[1]) == tool.startswith("llama-")
    assert printed(capsys, *flags, "--", tool, "-v")[1].count("-v") == 1


def test_bytes_that_are_no_text_are_printed_as_they_are() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hexnpu", "run", "--target", "linux:box", "--print", "--", "tool", b"\xff \xc3\xa9"],
        stdout=subprocess.PIPE, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=True,
    )  # fmt: skip
    assert done.stdout.endswith(b" tool '\xff \xc3\xa9'\n")


def test_windows_tools_end_in_exe() -> None:
    from hexnpu.deploy.tools import arguments_for

    assert arguments_for(["llama-mtmd-cli"], ["HTP0"], False, True)[0] == "./bin/llama-mtmd-cli.exe"
    assert arguments_for(["llama-mtmd-cli.exe"], ["HTP0"], False, True)[0] == "./bin/llama-mtmd-cli.exe"


@pytest.mark.parametrize("devices", ["", "0", "17", "9" * 5000, "a,,b", "a b", ","])
def test_bad_devices(devices: str) -> None:
    with pytest.raises(UsageError, match="--devices"):
        device_names(devices)


@pytest.mark.parametrize("text", ["A", "=1", "1A=2", "A B=1", "A-B=1", ""])
def test_bad_env(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", "--target", "linux:box", "--print", "--env", text, "--", "true"])
    assert done.value.code == 2
    assert "NAME=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("target", "tree", "directory"),
    [
        ("adb", "own", "/data/local/tmp/hexnpu"),
        ("adb", "llama", "/data/local/tmp/llama.cpp"),
        ("linux:box", "own", "~/hexnpu"),
        ("lnx:box", "llama", "~/llama.cpp"),
    ],
)
def test_target_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, tree: str, directory: str
) -> None:
    (tmp_path / "llama/ggml").mkdir(parents=True)
    (tmp_path / "llama/ggml/CMakeLists.txt").touch()
    (tmp_path / "llama/include").mkdir()
    (tmp_path / "llama/include/llama.h").touch()
    (tmp_path / "own").mkdir()
    shown = printed(capsys, "--target", target, "--source", str(tmp_path / tree), "--", "true")
    assert shown[2] == directory
    assert printed(capsys, "--target", target, "--target-dir", "x y", "--", "true")[2] == "x y"


def test_without_a_command_help_and_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["run", "--target", "adb"])
    assert done.value.code == 2
    assert "--hex-nhvx" in capsys.readouterr().out


def test_the_script_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/run.py", "--target", "adb", "--print", "--", "true"],
        cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert b"exec 2>&1" in done.stdout
