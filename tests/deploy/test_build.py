"""`hexnpu build`: the container's command line word for word, defaults, presets, what can be wrong."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from hexnpu.deploy import container
from hexnpu.deploy.build import build_target, resolve
from hexnpu.deploy.command import CommandFailed, run_echoed
from hexnpu.deploy.configured import configured
from hexnpu.deploy.process import fulfil_in_thread
from hexnpu.native import kernels_dir
from tests.deploy.sshd import Sshd
from tests.processes import HANG_S, wait_until

# Writes its arguments, one a line and a blank line after each call, and does what $ENGINE_DOES says.
STAND_IN = """#!/bin/sh
for word in "$@"; do printf '%s\\n' "$word" >> "$RECORD"; done
echo >> "$RECORD"
case "$ENGINE_DOES:$1:$2" in
    no-daemon:*) echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.' >&2; exit 1;;
    no-image:image:*|no-pull:image:*|no-pull:pull:*) exit 1;;
    fails:run:*) exit 42;;
    dies:run:*) kill -9 $$;;
esac
"""
USER = f"{os.getuid()}:{os.getgid()}"


class Machine:
    """A tree with presets, and a folder of stand-ins that is all of PATH."""

    def __init__(self, folder: Path) -> None:
        self.tree = folder / "tree with space"
        self.tree.mkdir()
        (self.tree / "CMakeLists.txt").write_text("project(x)")
        names = [
            f"arm64-{system}-snapdragon-{kind}"
            for system in ("android", "linux", "windows")
            for kind in ("release", "debug")
        ]
        write_presets(self.tree / "CMakePresets.json", *names, "odd-debug")
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.record = folder / "record"
        self.does = ""

    def install(self, name: str, script: str = STAND_IN) -> None:
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def build(self, *flags: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": str(self.bin), "RECORD": str(self.record), "ENGINE_DOES": self.does}
        return subprocess.run(
            [sys.executable, "-m", "hexnpu", "build", "--source", str(self.tree), *flags],
            capture_output=True, text=True, check=False, env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def calls(self) -> list[list[str]]:
        """The recorded calls, each a list of its arguments."""
        text = self.record.read_text() if self.record.exists() else ""
        return [call.split("\n") for call in text.removesuffix("\n\n").split("\n\n")] if text else []


def write_presets(path: Path, *names: str) -> None:
    presets = [{"name": "hidden-base", "hidden": True}, *({"name": n} for n in names)]
    path.write_text(json.dumps({"version": 5, "configurePresets": presets}))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def script(preset: str, word: str, jobs: int) -> str:
    steps = f"cmake --preset {preset} -B build-{word}", f"cmake --build build-{word} -j {jobs}"
    return " && ".join((*steps, f"cmake --install build-{word} --prefix pkg-{word}"))


VENDOR = "ghcr.io/snapdragon-toolchain"


@pytest.mark.parametrize(
    ("flags", "image", "preset", "word"),
    [
        ("", f"{VENDOR}/arm64-android:v0.7", "arm64-android-snapdragon-release", "android"),
        ("--target adb:SER", f"{VENDOR}/arm64-android:v0.7", "arm64-android-snapdragon-release", "adb"),
        ("--target lnx --debug", f"{VENDOR}/arm64-linux:v0.7", "arm64-linux-snapdragon-debug", "lnx-dbg"),
        ("--target ubuntu:me@box", f"{VENDOR}/arm64-linux:v0.7", "arm64-linux-snapdragon-release", "ubuntu"),
        (
            "--preset arm64-linux-snapdragon-debug", f"{VENDOR}/arm64-linux:v0.7", "arm64-linux-snapdragon-debug",
            "android-dbg",
        ),
        ("--preset odd-debug", f"{VENDOR}/arm64-android:v0.7", "odd-debug", "android-dbg"),
        (
            "--toolchain-url here/ --toolchain-version v9",
            "here/arm64-android:v9", "arm64-android-snapdragon-release", "android",
        ),
    ],
)  # fmt: skip
def test_container_command(machine: Machine, flags: str, image: str, preset: str, word: str) -> None:
    machine.install("docker")
    result = machine.build("-j", "3", *flags.split())
    assert result.returncode == 0, result.stderr
    version, inspect, run = machine.calls()
    assert version == ["version", "--format", "{{.Server.Version}}"]
    assert inspect == ["image", "inspect", "--format", "{{.Id}}", image]
    assert run == [
        "run", "--rm", "--init", "-u", USER, "--volume", f"{machine.tree}:/workspace", "--workdir", "/workspace",
        "--platform", "linux/amd64", image, "sh", "-c", script(preset, word, 3),
    ]  # fmt: skip
    *questions, echo = [line for line in result.stderr.splitlines() if line.startswith("+ ")]
    assert questions == [f"+ docker {shlex.join(words)}" for words in (version, inspect)]
    assert echo == (
        f"+ docker run --rm --init -u {USER} --volume '{machine.tree}:/workspace' --workdir /workspace "
        f"--platform linux/amd64 {image} sh -c '{script(preset, word, 3)}'"
    )


def test_jobs_are_the_cpus(machine: Machine) -> None:
    machine.install("docker")
    machine.build()
    assert f"-j {os.cpu_count()} " in machine.calls()[-1][-1]


def test_own_folders_inside_the_tree(machine: Machine) -> None:
    machine.install("docker")
    machine.build("--build-dir", str(machine.tree / "a b"), "--install-dir", str(machine.tree / "out" / "p"))
    assert "-B 'a b' &&" in machine.calls()[-1][-1]
    assert machine.calls()[-1][-1].endswith("--prefix out/p")


def test_podman_where_there_is_no_docker(machine: Machine) -> None:
    machine.install("podman")
    assert machine.build().returncode == 0
    assert machine.calls()[0] == ["info"]
    keep_id = [] if os.getuid() == 0 else ["--userns=keep-id"]
    assert machine.calls()[-1][: 5 + len(keep_id)] == ["run", "--rm", "--init", *keep_id, "-u", USER]


@pytest.mark.parametrize("works", [True, False])
def test_a_podman_that_answers_is_mentioned(machine: Machine, works: bool) -> None:
    machine.install("docker")
    machine.install("podman", f"#!/bin/sh\nexit {0 if works else 1}\n")
    machine.does = "no-daemon"
    result = machine.build()
    assert result.returncode == 24
    assert [line.partition(" ")[0] for line in result.stderr.splitlines()] == ["+", "+", "hexnpu:"]
    assert ("podman answers" in result.stderr) == works


@pytest.mark.parametrize(("uid", "flags"), [(0, []), (1000, ["--userns=keep-id"])])
def test_podman_keeps_the_id_of_a_user_who_has_one(uid: int, flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Root's podman refuses to."""
    monkeypatch.setattr(os, "getuid", lambda: uid)
    monkeypatch.setattr(os, "getgid", lambda: uid)
    command = container.command("podman", "image", Path("/tree"), [["true"]])
    assert command[2 : command.index("--volume")] == ["--rm", "--init", *flags, "-u", f"{uid}:{uid}"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_what_ends_us_ends_the_command_and_its_children(
    machine: Machine, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    """The pipe closes when the last of them has gone."""
    machine.install("cmake", "#!/bin/sh\n/bin/sleep 1000 &\necho started\nwait\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "hexnpu", "build", "--source", machine.tree, "--no-docker"],
        env={**os.environ, "PATH": str(machine.bin)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout and process.stdout.readline() == b"started\n"
    process.send_signal(number)
    assert process.communicate(timeout=HANG_S)[0] == b""
    assert process.returncode == code


@pytest.mark.parametrize(
    ("timeout_s", "child", "said"),
    [
        (0.2, "trap '' TERM; echo started; exec sleep 1000", b""),
        (60, "trap 'echo bye; exit' TERM; echo started; while :; do sleep 0.01; done", b"bye\n"),
    ],
)
def test_children_that_outlive_the_command(timeout_s: float, child: str, said: bytes) -> None:
    """They have the same time to end by themselves as the command, and are killed then."""
    command = ["sh", "-c", f"({child}) & wait"]
    script = f"from hexnpu.deploy import command as c; c.END_TIMEOUT_S = {timeout_s}; c.run_echoed({command})"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout and process.stdout.readline() == b"started\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=HANG_S) == (said, None)
    assert process.returncode == 143


def test_a_signal_while_the_command_is_being_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the command runs already, but the thread that starts it has not been heard of."""
    pid = tmp_path / "pid"

    def interrupted(future: Future[Any], work: Callable[[], Any]) -> None:
        fulfil_in_thread(future, work)
        wait_until(pid.exists)
        raise KeyboardInterrupt

    monkeypatch.setattr("hexnpu.deploy.command.fulfil_in_thread", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_echoed(["sh", "-c", "echo $$ > new; mv new pid; exec sleep 1000"], tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_missing_image_is_pulled(machine: Machine) -> None:
    machine.install("docker")
    machine.does = "no-image"
    result = machine.build()
    assert result.returncode == 0
    image = "ghcr.io/snapdragon-toolchain/arm64-android:v0.7"
    assert machine.calls()[2] == ["pull", "--platform", "linux/amd64", image]
    assert f"+ docker pull --platform linux/amd64 {image}\n" in result.stderr
    assert machine.calls()[3][0] == "run"


@pytest.mark.parametrize(
    ("does", "flags", "code", "words"),
    [
        ("none", [], 23, "neither docker nor podman is installed"),
        ("no-daemon", [], 24, "Cannot connect to the Docker daemon"),
        ("no-pull", [], 25, "cannot be pulled"),
        ("", ["--preset", "hidden-base"], 26, "choose one by --preset (arm64-android-snapdragon-debug"),
        ("", ["--no-docker"], 27, "cmake is missing: apt-get install cmake"),
        ("fails", [], 42, "docker failed with exit code 42"),
        ("dies", [], 137, "docker failed with exit code 137"),
        ("", ["--target", "emu"], 2, "the emulator builds itself"),
        ("", ["--target", "linux:"], 2, "is none of"),
        ("", ["--target", "linux", "--push"], 2, "is none of"),
        ("", ["--target-dir", "/x"], 2, "add --push"),
        ("", ["--accept-new-host-key"], 2, "add --push"),
        ("", ["--no-docker", "--toolchain-url", "x"], 2, "leave --no-docker out"),
        ("", ["--no-docker", "--toolchain-version", "x"], 2, "leave --no-docker out"),
        ("", ["--build-dir", "/elsewhere"], 2, "is not inside"),
        ("", ["--source", "/nowhere"], 2, "has no CMakeLists.txt"),
        ("", ["-j", "0"], 2, "jobs"),
    ],
)
def test_what_can_be_wrong(machine: Machine, does: str, flags: list[str], code: int, words: str) -> None:
    if does != "none":
        machine.install("docker")
    machine.does = does
    result = machine.build(*flags)
    assert result.returncode == code, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith("hexnpu: ") and words in last
    assert "Traceback" not in result.stderr
    assert not list(machine.tree.glob("build-*"))


@pytest.mark.parametrize(
    ("preset", "set_here", "missing"),
    [
        ("arm64-android-snapdragon-release", "", "HEXAGON_SDK_ROOT, HEXAGON_TOOLS_ROOT, ANDROID_NDK_ROOT are"),
        ("arm64-android-snapdragon-release", "HEXAGON_SDK_ROOT ANDROID_NDK_ROOT", "HEXAGON_TOOLS_ROOT is"),
        ("arm64-linux-snapdragon-debug", "", "HEXAGON_SDK_ROOT, HEXAGON_TOOLS_ROOT are"),
        ("arm64-windows-snapdragon-debug", "", "HEXAGON_SDK_ROOT, HEXAGON_TOOLS_ROOT are"),
        ("arm64-linux-snapdragon-debug", "HEXAGON_SDK_ROOT HEXAGON_TOOLS_ROOT", ""),
        ("open-linux-arm64", "", ""),
        ("mine", "", ""),
        ("odd", "", ""),
    ],
)
def test_a_native_build_without_the_sdk(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, preset: str, set_here: str, missing: str
) -> None:
    """One line before cmake is started, whose own is pages above its last. A preset may set the variables itself."""
    machine.install("cmake")
    for name in ("HEXAGON_SDK_ROOT", "HEXAGON_TOOLS_ROOT", "ANDROID_NDK_ROOT"):
        monkeypatch.setenv(name, str(machine.tree) if name in set_here.split() else "")
    presets = json.loads((kernels_dir() / "CMakePresets.json").read_text())
    own = {"HEXAGON_SDK_ROOT": "/a", "HEXAGON_TOOLS_ROOT": "/b"}
    presets["configurePresets"] += [
        {"name": "mine", "inherits": "arm64-linux-snapdragon", "environment": own},
        {"name": "odd", "inherits": ["odd", "mine", 3, []], "environment": 3},
    ]
    (machine.tree / "CMakePresets.json").write_text(json.dumps(presets))
    result = machine.build("--no-docker", "--preset", preset)
    assert (result.returncode, len(machine.calls())) == ((28, 0) if missing else (0, 3)), result.stderr
    if missing:
        (line,) = result.stderr.splitlines()
        assert f"hexnpu: {preset} needs the vendor's SDK, and {missing} not set to a folder: set " in line
        assert ("without --no-docker" in line) == ("windows" not in preset) and "open-android-arm64" in line


def test_windows_is_always_native(machine: Machine) -> None:
    machine.install("docker")
    machine.install("cmake")
    result = machine.build("--target", "wos", "-j", "2")
    assert result.returncode == 0, result.stderr
    build, package = str(machine.tree / "build-wos"), str(machine.tree / "pkg-wos")
    assert machine.calls() == [
        ["--preset", "arm64-windows-snapdragon-release", "-B", build],
        ["--build", build, "-j", "2"],
        ["--install", build, "--prefix", package],
    ]
    assert f"+ cmake --build '{build}' -j 2\n" in result.stderr


def test_native_build_stops_at_the_step_that_fails(machine: Machine) -> None:
    machine.install("cmake", STAND_IN + '[ "$1" != --build ] || exit 3\n')
    result = machine.build("--no-docker")
    assert result.returncode == 3 and len(machine.calls()) == 2


def test_a_tree_without_presets(machine: Machine) -> None:
    (machine.tree / "CMakePresets.json").unlink()
    result = machine.build()
    assert result.returncode == 26 and "neither CMakePresets.json nor CMakeUserPresets.json" in result.stderr


def test_a_colon_in_the_path_cannot_be_mounted(machine: Machine) -> None:
    machine.install("docker")
    machine.tree = machine.tree.rename(machine.tree.with_name("a:b"))
    result = machine.build()
    assert result.returncode == 2 and "has a colon in its name" in result.stderr


class TestShippedPresets:
    """llama.cpp ships the presets in docs/ and wants them in its root."""

    @pytest.fixture
    def shipped(self, machine: Machine) -> Path:
        machine.install("docker")
        path = machine.tree / "docs" / "backend" / "snapdragon" / "CMakeUserPresets.json"
        path.parent.mkdir(parents=True)
        (machine.tree / "CMakePresets.json").unlink()
        write_presets(path, "arm64-android-snapdragon-release")
        return path

    def test_copied(self, machine: Machine, shipped: Path) -> None:
        assert machine.build().returncode == 0
        assert (machine.tree / "CMakeUserPresets.json").read_bytes() == shipped.read_bytes()
        assert not (machine.tree / "CMakeUserPresets.json.bak").exists()

    @pytest.mark.parametrize("age_s", [-10, 10])
    def test_the_newer_one_wins(self, machine: Machine, shipped: Path, age_s: int) -> None:
        used = machine.tree / "CMakeUserPresets.json"
        write_presets(used, "arm64-android-snapdragon-release", "mine")
        mine = used.read_bytes()
        now = shipped.stat().st_mtime
        os.utime(used, (now - age_s, now - age_s))
        assert machine.build().returncode == 0
        backup = used.with_name(used.name + ".bak")
        if age_s > 0:
            assert used.read_bytes() == shipped.read_bytes() and backup.read_bytes() == mine
        else:
            assert used.read_bytes() == mine and not backup.exists()

    def test_no_old_one_is_lost(self, machine: Machine, shipped: Path) -> None:
        used = machine.tree / "CMakeUserPresets.json"
        kept = [used.with_name(used.name + end) for end in (".bak", ".bak.1", ".bak.2")]
        for n in range(3):
            write_presets(used, "arm64-android-snapdragon-release", f"mine{n}")
            os.utime(used, (1, 1))
            assert machine.build().returncode == 0
        assert [next(n for n in "210" if f"mine{n}" in path.read_text()) for path in kept] == ["2", "0", "1"]

    def test_what_cannot_be_refreshed_stays_as_it_is(self, machine: Machine, shipped: Path) -> None:
        used = machine.tree / "CMakeUserPresets.json"
        write_presets(used, "mine")
        os.utime(used, (1, 1))
        used.with_name(used.name + ".new").symlink_to("/nowhere/x")
        result = machine.build()
        assert result.returncode == 1 and f"hexnpu: cannot refresh {used}" in result.stderr.splitlines()[-1]
        assert "mine" in used.read_text() and not used.with_name(used.name + ".bak").exists()

    def test_an_older_copy_of_the_same_is_left_alone(self, machine: Machine, shipped: Path) -> None:
        used = machine.tree / "CMakeUserPresets.json"
        used.write_bytes(shipped.read_bytes())
        os.utime(used, (1, 1))
        assert machine.build().returncode == 0
        assert not used.with_name(used.name + ".bak").exists()


def test_included_presets_count(machine: Machine) -> None:
    machine.install("docker")
    write_presets(machine.tree / "more.json", "mine")
    (machine.tree / "CMakePresets.json").write_text(json.dumps({"version": 5, "include": ["more.json"]}))
    assert machine.build("--preset", "mine").returncode == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "are no JSON object"),
        ('"x"', "are no JSON object"),
        ("{", "are no JSON: Expecting"),
        ("", "are no JSON: Expecting"),
        ("[" * 100_000, "are no JSON: "),
        (b'{"a": "\xe9"}', "are not UTF-8: invalid continuation byte at byte 7"),
        ('{"configurePresets": null}', "configurePresets is no list"),
        ('{"configurePresets": {"name": "x"}}', "configurePresets is no list"),
        ('{"configurePresets": [{}]}', "configurePresets has one without a name"),
        ('{"configurePresets": ["x"]}', "configurePresets has one without a name"),
        ('{"configurePresets": [{"name": 3}]}', "configurePresets has one without a name"),
        ('{"include": null}', "include is no list"),
        ('{"include": "x.json"}', "include is no list"),
        ('{"include": [1]}', "include has 1, which is no file name"),
        ('{"include": ["none.json"]}', "none.json: No such file or directory"),
        ('{"include": ["."]}', "Is a directory"),
        ('{"include": ["a\\u0000b"]}', "include has 'a\\x00b', which is no file name"),
        ('{"include": ["CMakePresets.json"]}', "include themselves"),
        ('{"include": ["loop.json"]}', "include themselves, through"),
    ],
)
def test_presets_of_the_wrong_shape(machine: Machine, content: str | bytes, words: str) -> None:
    file = machine.tree / "CMakePresets.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    (machine.tree / "loop.json").write_text('{"include": ["CMakePresets.json"]}')
    result = machine.build()
    assert result.returncode == 26, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("hexnpu: ") and words in line and str(machine.tree) in line


def test_a_file_included_twice_is_no_loop(machine: Machine) -> None:
    machine.install("docker")
    write_presets(machine.tree / "base.json", "mine")
    for name, other in (("CMakePresets", ["a.json", "b.json"]), ("a", ["base.json"]), ("b", ["base.json"])):
        (machine.tree / f"{name}.json").write_text(json.dumps({"version": 5, "include": other}))
    assert machine.build("--preset", "mine").returncode == 0


def test_terminal_gets_a_terminal(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from hexnpu.deploy import container

    for stream in (sys.stdin, sys.stdout):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert container.command("docker", "i", machine.tree, [["true"]])[:5] == ["docker", "run", "--rm", "--init", "-it"]


def test_defaults_of_this_project() -> None:
    build = resolve(build_target("linux"), jobs=2)
    assert build.source == kernels_dir()
    assert build.build_dir == kernels_dir() / "build-linux" and build.install_dir == kernels_dir() / "pkg-linux"


def test_script_is_the_same_door(machine: Machine) -> None:
    """scripts/build.py takes the flags of `hexnpu build`."""
    machine.install("docker")
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "PATH": str(machine.bin),
        "RECORD": str(machine.record),
        "ENGINE_DOES": "",
        "PYTHONPATH": str(root),
    }
    command = [sys.executable, str(root / "scripts" / "build.py"), "--source", str(machine.tree), "--target", "lnx"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert result.returncode == 0, result.stderr
    assert machine.calls()[-1][-1] == script("arm64-linux-snapdragon-release", "lnx", os.cpu_count() or 1)


def test_build_then_push(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    """--push sends what install made, to --target-dir; the target's word names the folders."""
    machine.install("cmake", '#!/bin/sh\n[ "$1" != --install ] || { mkdir -p "$4/bin"; echo tool > "$4/bin/tool"; }\n')
    for tool in ("mkdir", "sh"):
        (machine.bin / tool).symlink_to(f"/bin/{tool}")
    there = tmp_path / "there"
    result = machine.build("--no-docker", "--target", sshd.target, "--push", "--target-dir", str(there))
    assert result.returncode == 0, result.stderr
    assert (machine.tree / "pkg-linux" / "bin" / "tool").read_text() == "tool\n"
    assert (there / "bin" / "tool").read_text() == "tool\n"


def test_push_to_a_new_host(machine: Machine, sshd: Sshd, home: Path) -> None:
    """Only with --accept-new-host-key, as in `hexnpu push`."""
    known = home / ".ssh" / "known_hosts"
    line = known.read_text()
    known.unlink()
    machine.install("cmake", '#!/bin/sh\n[ "$1" != --install ] || { mkdir -p "$4/bin"; echo tool > "$4/bin/tool"; }\n')
    for tool in ("mkdir", "sh"):
        (machine.bin / tool).symlink_to(f"/bin/{tool}")
    command = "--no-docker", "--target", sshd.target, "--push", "--target-dir", str(home / "there")
    assert machine.build(*command).returncode == 17
    assert machine.build(*command, "--accept-new-host-key").returncode == 0
    assert (home / "there/bin/tool").exists() and line.split()[1:3] == known.read_text().split()[1:3]


def test_build_without_result_pushes_nothing(machine: Machine, sshd: Sshd, tmp_path: Path) -> None:
    machine.install("cmake", "#!/bin/sh\nexit 0\n")
    result = machine.build("--no-docker", "--target", sshd.target, "--push", "--target-dir", str(tmp_path / "there"))
    assert result.returncode == 22 and "no package folder" in result.stderr
    assert not (tmp_path / "there").exists()


class TestAnotherPreset:
    """All presets of a target share its build folder, which CMake cannot take over from one to the other."""

    CMAKE = STAND_IN + '[ "$1" != --preset ] || echo "$2" > "$4/CMakeCache.txt"\n'
    ENGINE = STAND_IN + '[ "$1:$ENGINE_DOES" != run: ] || echo x > "$FOLDER/CMakeCache.txt"\n'

    @pytest.fixture(params=["native", "container"])
    def configures(
        self, request: pytest.FixtureRequest, machine: Machine, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., tuple[int, str]]:
        """Builds a preset in build-android; gives the exit code and the line that configures."""
        native = request.param == "native"
        folder = machine.tree / "build-android"
        folder.mkdir()
        monkeypatch.setenv("FOLDER", str(folder))
        machine.install(*(("cmake", self.CMAKE) if native else ("docker", self.ENGINE)))

        def run(kind: str, does: str = "") -> tuple[int, str]:
            machine.record.unlink(missing_ok=True)
            if native and does == "fails":
                machine.install("cmake", self.CMAKE.replace("CMakeCache.txt", "none.txt") + "exit 42\n")
            machine.does = does
            preset = f"arm64-linux-snapdragon-{kind}"
            result = machine.build("--preset", preset, "--build-dir", str(folder), *["--no-docker"] * native)
            if native:
                machine.install("cmake", self.CMAKE)
            calls = machine.calls()
            return result.returncode, " ".join(calls[0]) if native else calls[-1][-1].split(" && ")[0]

        return run

    def test_is_a_fresh_start(self, configures: Callable[..., tuple[int, str]]) -> None:
        fresh = [configures(kind)[1].endswith(" --fresh") for kind in ("release", "release", "debug", "debug")]
        assert fresh == [False, False, True, False]

    def test_is_one_until_cmake_was_at_work(self, configures: Callable[..., tuple[int, str]]) -> None:
        assert configures("release")[0] == 0
        for kind in ("debug", "debug", "release"):
            code, line = configures(kind, "fails")
            assert code == 42 and line.endswith(" --fresh")

    def test_is_none_once_cmake_was_at_work(self, tmp_path: Path) -> None:
        """Though what it configured did not compile."""
        for preset, options in (("a", []), ("b", ["--fresh"]), ("b", [])):
            with pytest.raises(CommandFailed), configured(tmp_path, preset) as said:
                (tmp_path / "CMakeCache.txt").touch()
                raise CommandFailed("cmake failed", 1)
            assert said == options

    def test_in_a_folder_that_we_know_nothing_of(
        self, configures: Callable[..., tuple[int, str]], machine: Machine
    ) -> None:
        (machine.tree / "build-android" / "CMakeCache.txt").write_text("by hand")
        assert not configures("release")[1].endswith(" --fresh")


def test_in_a_llama_cpp_checkout_without_source(tmp_path: Path) -> None:
    for file in ("ggml/CMakeLists.txt", "include/llama.h"):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).touch()
    command = [sys.executable, "-m", "hexnpu", "build", "--preset", "none", "--no-docker"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stderr.splitlines()
    assert len(told) == 2 and "hexnpu's own kernels; --source . builds" in told[0] and "has no preset 'none'" in told[1]
