"""`hexnpu doctor` and `hexnpu devices`: what they see here and on a real SSH or ADB target, whatever happens there."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hexnpu.deploy import container, doctor_here, doctor_there
from hexnpu.deploy.checks import Check, State, ok, run_checks
from hexnpu.deploy.device import Result, open_device
from hexnpu.deploy.doctor_there import TargetDoctor
from hexnpu.deploy.environment import FLAGS
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.inventory import soc_arch
from hexnpu.deploy.posix import PosixDevice
from hexnpu.deploy.targets import parse_target
from hexnpu.errors import UsageError
from tests.deploy.conftest import Adb
from tests.deploy.sshd import Sshd
from tests.processes import HANG_S


def hexnpu(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hexnpu", *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
    )  # fmt: skip


class TestChecks:
    def test_a_check_that_hangs_is_a_finding_and_the_next_goes_on(self) -> None:
        never = threading.Event()
        checks = [
            Check("slow", 0.05, lambda: ok("slow", "") if never.wait() else []),
            Check("next", HANG_S, lambda: ok("next", "done")),
        ]
        slow, after = run_checks(checks)
        never.set()
        assert (slow.state, slow.text) == (State.WRONG, "no answer within 0.05 s") and slow.remedy
        assert (after.what, after.state) == ("next", State.OK)

    def test_a_check_that_fails_is_a_finding(self) -> None:
        def user_error() -> list[None]:
            raise UsageError("what the user sees")

        def bug() -> list[None]:
            raise RuntimeError("oops")

        first, second = run_checks([Check("a", HANG_S, user_error), Check("b", HANG_S, bug)])  # type: ignore[arg-type]
        assert first.text == "what the user sees" and "oops" in second.text
        assert first.state is second.state is State.WRONG


class TestHere:
    def test_variables(self) -> None:
        found = doctor_here.variables(
            {"GGML_HEXAGON_NDEV": "2", "GGML_HEXAGON_NHVX": "4", "GGML_HEXAGON_NHXV": "4", "PATH": "/bin"}
        )
        assert [(f.state, f.text.split()[0]) for f in found] == [
            (State.WRONG, "GGML_HEXAGON_NDEV"), (State.NOTE, "GGML_HEXAGON_NHXV"),
        ]  # fmt: skip
        assert "GGML_HEXAGON_DEVICES" in found[0].remedy

    def test_no_flag_sets_a_retired_variable(self) -> None:
        known = {v for f in FLAGS for v in f.variables}
        assert not known & set(doctor_here.RETIRED)
        assert doctor_here.variables({v: "1" for v in known})[0].state is State.OK

    @pytest.mark.parametrize(
        ("script", "state", "words"),
        [
            (None, State.NOTE, "neither docker nor podman"),
            ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", State.NOTE, "Cannot connect"),
            ("exit 0", State.OK, "docker answers"),
            ('[ "$1" = version ]', State.OK, "docker answers"),
            ("exec sleep 60", State.NOTE, "no answer for 0.3 s"),
        ],
    )
    def test_container(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, state: State, words: str
    ) -> None:
        if script:
            (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / "docker").chmod(0o755)
            (tmp_path / "sleep").symlink_to(str(shutil.which("sleep")))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(doctor_here, "ENGINE_TIMEOUT_S", 0.3 if script and "sleep" in script else HANG_S)
        first, *images = doctor_here.container_engine()
        assert (first.state, words in first.text) == (state, True)
        assert bool(images) == bool(script and "version" in script)
        assert all(container.VERSION in f.text for f in images)

    def test_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(doctor_here, "MIN_FREE_BYTES", 1 << 60)
        assert {f.state for f in doctor_here.disk()} == {State.WRONG}


def fake_elf(machine: int, *needed: str, flags: int = 0) -> bytes:
    """A 64-bit (Hexagon: 32-bit) ELF file with a dynamic section, as small as a loader's reader takes."""
    strings = b"\0" + b"".join(n.encode() + b"\0" for n in needed)
    at, offsets = 1, []
    for n in needed:
        offsets.append(at)
        at += len(n) + 1
    wide = machine != 164
    word = "<qQ" if wide else "<iI"
    head, segment = (64, 56) if wide else (52, 32)
    dynamic_at = head + 2 * segment
    tags = [(1, o) for o in offsets] + [(5, 0), (10, len(strings)), (0, 0)]
    strings_at = dynamic_at + len(tags) * struct.calcsize(word)
    dynamic = b"".join(struct.pack(word, t, strings_at if t == 5 else v) for t, v in tags)
    end = strings_at + len(strings)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    if wide:
        header = struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, head, 0, flags, head, segment, 2, 0, 0, 0)
        table = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, end, end, 4096)
        table += struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, 0, len(dynamic), len(dynamic), 8)
    else:
        header = struct.pack("<HHIIIIIHHHHHH", 3, machine, 1, 0, head, 0, flags, head, segment, 2, 0, 0, 0)
        table = struct.pack("<IIIIIIII", 1, 0, 0, 0, end, end, 5, 4096)
        table += struct.pack("<IIIIIIII", 2, dynamic_at, dynamic_at, 0, len(dynamic), len(dynamic), 6, 4)
    return ident + header + table + dynamic + strings


HERE = {"x86_64": 62, "aarch64": 183}[os.uname().machine]
OTHER = 245 - HERE


@pytest.fixture(params=["ssh", "adb"])
def target(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> str:
    if request.param == "ssh":
        return str(request.getfixturevalue("sshd").target)
    adb: Adb = request.getfixturevalue("adb")
    return f"adb:{adb.connect(tmp_path)}"


class TestThere:
    """Findings on a target, by the part after the mark."""

    def look(self, target: str, folder: Path) -> tuple[int, dict[str, list[str]]]:
        result = hexnpu("doctor", "--target", target, "--target-dir", str(folder))
        assert not result.stderr, result.stderr
        found: dict[str, list[str]] = {}
        for line in result.stdout.splitlines():
            mark, _, rest = line.partition(" ")
            what, colon, text = rest.strip().partition(": ")
            if mark in ("ok", "note", "WRONG") and colon:
                found.setdefault(what, []).append(f"{mark} {text}")
        return result.returncode, found

    def test_a_good_package(self, target: str, tmp_path: Path) -> None:
        package = tmp_path / "it's a pkg"
        (package / "bin").mkdir(parents=True)
        (package / "lib").mkdir()
        (package / "bin" / "tool").write_bytes(fake_elf(HERE, "libmine.so"))
        (package / "lib" / "libmine.so").write_bytes(fake_elf(HERE))
        (package / "lib" / "libggml-htp-v79.so").write_bytes(fake_elf(164, flags=0x79))
        (package / "bin" / "script.sh").write_text("#!/bin/sh\n")
        _, found = self.look(target, package)
        assert found["target"][0].startswith("ok ") and f" is {os.uname().machine}, Linux" in found["target"][0]
        assert found["space"][0].startswith("ok ") and "MiB are free" in found["space"][0]
        assert found["package"] == [f"ok 4 files in {package}, 3 ELF files, all for the right machine"]
        assert found["libraries"] == ["ok all 1 needed libraries are there"]
        assert found["kernels"] == [f"ok ADSP_LIBRARY_PATH=./lib gives {package}/lib/libggml-htp-v79.so"]
        assert not any(line.startswith("WRONG") for what in ("libcdsprpc", "npu") for line in found[what])

    def test_a_bad_package(self, target: str, tmp_path: Path) -> None:
        package = tmp_path / "pkg"
        (package / "bin").mkdir(parents=True)
        (package / "lib").mkdir()
        (package / "bin" / "foreign").write_bytes(fake_elf(OTHER))
        (package / "bin" / "lacks").write_bytes(fake_elf(HERE, "libnowhere.so.7", "libodd.so"))
        (package / "bin" / "broken").write_bytes(b"\x7fELF\2\1")
        (package / "lib" / "libodd.so").write_bytes(fake_elf(OTHER))  # a loader skips it
        (package / "lib" / "libhtp-v79.so").write_bytes(fake_elf(164, flags=0x73))
        (package / "lib" / "libcdsprpc.so").write_bytes(fake_elf(HERE))
        code, found = self.look(target, package)
        assert code == 1
        names = {62: "x86_64", 183: "aarch64"}
        assert f"WRONG bin/foreign is for {names[OTHER]}, and {names[HERE]} would run it" in found["package"]
        assert any("bin/broken is a broken ELF file" in line for line in found["package"])
        assert "WRONG lib/libhtp-v79.so holds code for v73" in found["package"]
        assert found["libraries"] == [
            f"WRONG bin/lacks needs {name}, which is nowhere that the loader looks"
            for name in ("libnowhere.so.7", "libodd.so")
        ]
        assert found["libcdsprpc"] == [
            f"WRONG the loader takes {package}/lib/libcdsprpc.so, from the package and not the device's own"
        ]

    def test_a_real_program_of_this_machine(self, sshd: Sshd, tmp_path: Path) -> None:
        (tmp_path / "pkg" / "bin").mkdir(parents=True)
        shutil.copy(str(shutil.which("ls")), tmp_path / "pkg" / "bin")
        _, found = self.look(sshd.target, tmp_path / "pkg")
        assert found["libraries"][0].startswith("ok all ")

    def test_nothing_is_asked_twice(self, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for folder in ("bin", "lib"):
            (tmp_path / "pkg" / folder).mkdir(parents=True)
        for n in range(4):
            (tmp_path / "pkg/bin" / f"tool{n}").write_bytes(fake_elf(HERE, "libmine.so", "libnowhere.so"))
        (tmp_path / "pkg/lib/libmine.so").write_bytes(fake_elf(HERE))
        device = open_device(parse_target(sshd.target))
        asked, shell = [], device.shell

        def counted(script: str, *arguments: str, timeout_s: float = 60) -> Result:
            asked.append((script, *arguments))
            return shell(script, *arguments, timeout_s=timeout_s)

        monkeypatch.setattr(device, "shell", counted)
        doctor = TargetDoctor(lambda: device, str(tmp_path / "pkg"))
        found = run_checks(doctor.checks())
        doctor.close()
        assert sum("needs libnowhere.so" in f.text for f in found) == 4
        assert len(asked) == len(set(asked))

    def test_nothing_pushed(self, target: str, tmp_path: Path) -> None:
        code, found = self.look(target, tmp_path / "none")
        assert code == 1 and found["package"] == [f"WRONG no folder {str(tmp_path / 'none')!r}"]
        for what in ("libraries", "kernels"):
            assert found[what] == ["note not looked at: no package could be read"]

    def test_only_so_many_files_are_looked_at(
        self, sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(doctor_there, "MAX_FILES", 2)
        (tmp_path / "pkg" / "bin").mkdir(parents=True)
        for name in "abc":
            (tmp_path / "pkg" / "bin" / name).write_text("#!/bin/sh\n")
        doctor = TargetDoctor(lambda: open_device(parse_target(sshd.target)), str(tmp_path / "pkg"))
        found = {f.what: f for f in run_checks(doctor.checks())}
        doctor.close()
        assert found["package"].state is State.NOTE and "only 2 of its 3 files" in found["package"].text


class Silent(PosixDevice):
    """A device that answers what `says` has a word for, and nothing else."""

    def __init__(self, says: dict[str, str]) -> None:
        self.target = parse_target("linux:box")
        self.name = "linux:box"
        self._says = says

    def shell(self, script: str, *arguments: str, timeout_s: float = 60) -> Result:
        for word, answer in self._says.items():
            if word in script:
                return Result(0, answer.encode(), b"")
        raise DeployError("linux:box: a shell command did not end")

    def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("says", "wrong", "libraries"),
    [
        ({}, {"target"}, None),
        ({"uname": ""}, {"target"}, None),
        ({"uname": "aarch64\n"}, {"space", "package", "libcdsprpc", "npu"}, State.NOTE),
        ({"uname": "aarch64\n", "bin/*": "/x\nbin/a\n"}, {"space", "package", "libcdsprpc", "npu"}, State.NOTE),
        ({"uname": "aarch64\n", "bin/*": "/x\nbin/a\n", "tail": "#!"}, {"libcdsprpc", "npu"}, State.OK),
    ],
    ids=["nothing", "no machine", "no package", "no file", "a script"],
)
def test_a_device_that_falls_silent(says: dict[str, str], wrong: set[str], libraries: State | None) -> None:
    doctor = TargetDoctor(lambda: Silent(says), "/x")  # type: ignore[abstract]
    found = {f.what: f.state for f in run_checks(doctor.checks())}
    assert {what for what, state in found.items() if state is State.WRONG} >= wrong
    assert found.get("libraries") is libraries and (found.get("package") is State.OK) == (libraries is State.OK)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--target", "windows"], "this machine runs no Windows"),
        (["--target", "emu", "--target-dir", "/x"], "name that by --target"),
        (["--target-dir", "/x"], "name that by --target"),
    ],
)
def test_what_cannot_be_looked_into(flags: list[str], words: str) -> None:
    result = hexnpu("doctor", *flags)
    assert (result.returncode, result.stdout) == (2, "") and words in result.stderr


def test_target_out_of_reach(home: Path) -> None:
    result = hexnpu("doctor", "--target", "linux:me@127.0.0.1:1")
    assert result.returncode == 1
    assert "WRONG target: me@127.0.0.1:1 refused the connection" in result.stdout
    assert "space:" not in result.stdout


def test_malformed_target_is_said_first() -> None:
    result = hexnpu("doctor", "--target", "linux")
    assert (result.returncode, result.stdout) == (2, "") and "is none of" in result.stderr


def test_what_is_found_is_shown_letter_for_letter() -> None:
    result = hexnpu("doctor", ADB_SERVER_SOCKET="tcp:x:[b]y")
    assert "note adb: ADB_SERVER_SOCKET is 'tcp:x:[b]y'" in result.stdout


def test_codes_on_the_command_line() -> None:
    result = hexnpu("doctor", "0x80000414", "0x2e")
    assert result.returncode == 0
    assert result.stdout.startswith("0x80000414: AEE_EUNSUPPORTED (NPU): not supported")
    assert "\n0x2e: AEE_EINTERRUPTED" in result.stdout and "qualcomm/fastrpc inc/AEEStdErr.h" in result.stdout
    assert hexnpu("doctor", "0x203").returncode == 1
    refused = hexnpu("doctor", "0x14", "soup")
    assert (refused.returncode, refused.stdout) == (2, "") and "'soup' is no error code" in refused.stderr
    for flag in ("--target=linux:box", "--target-dir=x"):
        refused = hexnpu("doctor", "0x14", flag)
        assert (refused.returncode, refused.stdout) == (2, "") and "leave --target out" in refused.stderr


def test_names_of_the_target_are_on_one_line(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bad\x1b[2J[red]").write_bytes(b"\x7fELF")
    result = hexnpu("doctor", "--target", sshd.target, "--target-dir", str(tmp_path))
    assert result.returncode == 1
    assert "\nWRONG package: bin/bad\\x1b[2J[red] is a broken ELF file" in result.stdout


def test_devices(sshd: Sshd, adb: Adb, home: Path, tmp_path: Path) -> None:
    serials = [adb.connect(tmp_path), adb.connect(tmp_path, "--no-shell-v2")]
    box = f"Host box *.lan\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {sshd.user}\n"
    (home / ".ssh" / "config").write_text(box + "Host = gone\n  HostName 127.0.0.1\n  Port 1\n")
    result = hexnpu("devices")
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    for serial in serials:  # they have no getprop; what the second one's shell says of that comes as its output
        assert rows[f"android:{serial}"].split() == [f"android:{serial}", "ready"]
    assert rows["linux:box"].rstrip().endswith("ready")
    assert "refused the connection" in rows["linux:gone"]
    assert "linux:*.lan" not in rows


def test_devices_of_a_configuration_that_cannot_be_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    (home / ".ssh/config").write_text('Host gone\n  HostName 127.0.0.1\nUser\nHost box\n')
    result = hexnpu("devices")
    rows = {line.split()[0]: line for line in result.stdout.splitlines()}
    assert result.returncode == 0 and rows.keys() == {"target", "android", "linux", "linux:gone"}
    assert all("config line 3: not `Option value`; mend" in rows[name] for name in ("linux", "linux:gone"))


def test_devices_without_any(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    result = hexnpu("devices")
    assert result.returncode == 0 and "no adb server answers at 127.0.0.1:1" in result.stdout


@pytest.mark.parametrize(
    ("text", "found"),
    [("SM8750", ("SM8750", 79)), ("SM8550-AB", ("SM8550", 73)), ("qcom,sm8650 x", ("SM8650", 75)), ("Tensor", ("", 0))],
)
def test_soc(text: str, found: tuple[str, int]) -> None:
    assert soc_arch(text) == found
