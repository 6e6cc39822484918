"""windows:host, against a real sshd with wine's cmd.exe and drive behind it: what arrives, what runs, how it ends."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hexnpu.deploy.device import Command, open_device
from hexnpu.deploy.download import download
from hexnpu.deploy.errors import ConnectionLost, DeployError, NoSpace, TimedOut
from hexnpu.deploy.push import Report, Watcher
from hexnpu.deploy.run import run
from hexnpu.deploy.targets import parse_target
from hexnpu.deploy.windows import WindowsDevice, WindowsProcess
from hexnpu.errors import HexnpuError
from tests.conftest import require_tool
from tests.deploy.conftest import push_folder
from tests.deploy.sshd import Sshd, make_key
from tests.deploy.wine import WineHost, build_program
from tests.processes import HANG_S, Handles

REPO = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
# A word that no process has but those that this run of the tests starts.
TREE = f"tree-of-{os.getpid()}"

# Prints what it is told to: `argv`: the arguments in hexadecimal, one a line; `env NAMES`; `code N` in hexadecimal;
# `both`; `where`; `cat`: its input; `tree`: itself again as a child; each says an empty line and sleeps.
PROGRAM = r"""
#include <windows.h>
#include <shellapi.h>

static void put(DWORD stream, const WCHAR *text) {
    char hex[4];
    DWORD n;
    for (; *text; text++) {
        for (int i = 0; i < 4; i++) hex[i] = "0123456789abcdef"[*text >> (12 - 4 * i) & 15];
        WriteFile(GetStdHandle(stream), hex, 4, &n, 0);
    }
    WriteFile(GetStdHandle(stream), "\n", 1, &n, 0);
}

static DWORD hex(const WCHAR *text) {
    DWORD value = 0;
    for (; *text; text++) value = value * 16 + (*text <= '9' ? *text - '0' : *text - 'a' + 10);
    return value;
}

static void cat(void) {
    static char data[65536];
    DWORD n, m;
    while (ReadFile(GetStdHandle(STD_INPUT_HANDLE), data, sizeof data, &n, 0) && n)
        WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), data, n, &m, 0);
}

static void tree(const WCHAR *name) {
    static STARTUPINFOW streams;
    PROCESS_INFORMATION child;
    static WCHAR self[512], line[512] = L"x nap ";
    streams.cb = sizeof streams;
    streams.dwFlags = STARTF_USESTDHANDLES;
    streams.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    lstrcatW(line, name);
    GetModuleFileNameW(0, self, 512);
    CreateProcessW(self, line, 0, 0, TRUE, 0, 0, 0, &streams, &child);
}

void runner(void) {
    static WCHAR text[32768];
    int n;
    WCHAR **argv = CommandLineToArgvW(GetCommandLineW(), &n);
    switch (argv[1][0]) {
    case 'a':
        for (int i = 2; i < n; i++) put(STD_OUTPUT_HANDLE, argv[i]);
        break;
    case 'e':
        for (int i = 2; i < n; i++) {
            GetEnvironmentVariableW(argv[i], text, 32768);
            put(STD_OUTPUT_HANDLE, text);
        }
        break;
    case 'w':
        GetCurrentDirectoryW(32768, text);
        put(STD_OUTPUT_HANDLE, text);
        break;
    case 'b':
        put(STD_OUTPUT_HANDLE, L"out");
        put(STD_ERROR_HANDLE, L"err");
        break;
    case 'c':
        if (argv[1][1] == 'a') cat();
        else ExitProcess(hex(argv[2]));
        break;
    case 't': tree(argv[1]); // fall through
    default:
        put(STD_OUTPUT_HANDLE, L"");
        Sleep(INFINITE);
    }
    ExitProcess(0);
}
"""


def text(line: bytes) -> str:
    return bytes.fromhex(line.decode()).decode("utf-16-be", "surrogatepass")


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build_program(PROGRAM, tmp_path_factory.mktemp("program") / "tool.exe").read_bytes()


@pytest.fixture(scope="session")
def wine_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WineHost]:
    wine, sshd = require_tool("wine", "wine"), require_tool("sshd", "openssh-server")
    host = WineHost(Sshd(tmp_path_factory.mktemp("wine-sshd"), sshd), wine, tmp_path_factory.mktemp("wine"))
    host.start()
    yield host
    host.stop()


@pytest.fixture
def host(wine_host: WineHost, home: Path) -> WineHost:
    public = make_key(home / ".ssh" / "id_ed25519")
    (wine_host.server.folder / "authorized_keys").write_text(public)
    (home / ".ssh" / "known_hosts").write_text(wine_host.server.known_hosts_line())
    return wine_host


@pytest.fixture
def package(tmp_path: Path, program: bytes) -> Path:
    root = tmp_path / "pkg"
    (root / "bin").mkdir(parents=True)
    (root / "lib/deep er").mkdir(parents=True)
    (root / "empty folder").mkdir()
    (root / "bin/htp-server.exe").write_bytes(program)
    (root / "lib/deep er/ä & b%PATH%^.dll").write_bytes(b"name")
    (root / "big").write_bytes(os.urandom(3 << 20))
    (root / "nothing").write_bytes(b"")
    return root


HOSTILE = [
    "", " ", '"', '""', 'a"b', "\\", "a\\", 'a\\"', 'a\\\\"b\\\\', "%PATH%", "%%", "^", "!PATH!", "&", "| < >",
    "&& exit",
    "new\nline", "\r\n", "\t", "ä€😀", "*", "?.exe", "'", "$(id) `id`", "/c", "--", "(", ")", "a=b", ";", ",",
    "\x01\x1a", "C:\\Program Files\\x\\", "x" * 8192,
]  # fmt: skip


def ran(
    host: WineHost, *argv: str, directory: str = "~/hostile", stdin: bytes = b"",
    environment: dict[str, str] | None = None,
) -> tuple[int, bytes, bytes]:  # fmt: skip
    with open_device(parse_target(host.target)) as device:
        return device.open(Command(argv, directory, environment or {})).communicate(stdin, HANG_S)


@pytest.fixture
def tool(host: WineHost, program: bytes) -> str:
    """In a folder that has to be quoted as well."""
    folder = host.home / "hostile"
    folder.mkdir(exist_ok=True)
    (folder / "to&ol %PATH%.exe").write_bytes(program)
    return "./to&ol %PATH%.exe"


@pytest.fixture
def device(host: WineHost) -> Iterator[WindowsDevice]:
    with open_device(parse_target(host.target)) as device:
        assert isinstance(device, WindowsDevice)
        yield device


def test_hostile_arguments(host: WineHost, tool: str) -> None:
    letters = random.Random(3)
    mixed = ["".join(letters.choices('"\\%^&|<>!() \t\nä', k=letters.randrange(12))) for _ in range(400)]
    code, out, err = ran(host, tool, "argv", *HOSTILE, *mixed)
    assert (code, err) == (0, b"")
    assert [text(line) for line in out.splitlines()] == [*HOSTILE, *mixed]


def test_hostile_variables(host: WineHost, tool: str) -> None:
    values = {"A": "a b", "B": "%PATH%^&|\"'", "C": "new\nline=", "D": "ä€😀", "E": "\\", "LAST": "2"}
    code, out, _ = ran(host, tool, "env", *values, environment=values)
    assert (code, [text(line) for line in out.splitlines()]) == (0, list(values.values()))


def test_directory_streams_and_input(host: WineHost, tool: str) -> None:
    (host.home / "ä%x% & y").mkdir(exist_ok=True)
    shutil.copy(host.home / "hostile" / tool, host.home / "ä%x% & y")
    assert text(ran(host, tool, "where", directory="~\\ä%x% & y")[1].strip()).endswith("\\ä%x% & y")
    drive = f"C:/users/{host.home.name}/hostile/{tool[2:]}"
    assert text(ran(host, drive, "where", directory="C:/windows")[1].strip()).lower() == "c:\\windows"
    code, out, err = ran(host, tool, "both")
    assert (code, text(out.strip()), text(err.strip())) == (0, "out", "err")
    data = random.Random(4).randbytes(3 << 20)
    assert ran(host, tool, "cat", stdin=data) == (0, data, b"")


def test_exit_codes(device: WindowsDevice, tool: str) -> None:
    for code, seen in ((7, 7), (255, 255), (0x100, 255), (0xC0000005, 255)):
        said = f"the program ended with exit code {code}\n".encode() if code > 255 else b""
        command = Command((tool, "code", f"{code:x}"), "~/hostile")
        assert device.open(command).communicate(timeout_s=HANG_S) == (seen, b"", said)


def test_what_cannot_run(device: WindowsDevice, host: WineHost, tool: str) -> None:
    (host.home / "hostile/text.exe").write_bytes(b"no program")
    for code, says, argv in (
        (127, "neither in the package nor in PATH", ("./none.exe",)),
        (127, "neither in the package nor in PATH", ("none",)),
        (126, "Windows error", ("./text.exe",)),
        (2, "cmd /c", ("x.BAT. ", "&")),
        (2, "has a quote", ('x"',)),
        (2, "NUL", (tool, "a\0b")),
        (2, "not UTF-8", (tool, "\udcff")),
        (2, "32766", (tool, "x" * 32768)),
    ):
        with pytest.raises(HexnpuError, match=says) as error:
            device.open(Command(argv, "hostile")).communicate(timeout_s=HANG_S)
        assert error.value.exit_code == code
    with pytest.raises(DeployError, match="push first"):
        device.open(Command((tool,), "none")).communicate(timeout_s=HANG_S)


def test_programs_of_the_system(host: WineHost, tool: str) -> None:
    code, out, _ = ran(host, "cmd", "/c", "echo it runs")
    assert (code, out.strip().strip(b'"')) == (0, b"it runs")


def hexnpu(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "hexnpu", *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def sleepers() -> Handles:
    """The two programs of wine that `tree` is."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if folder.name.isdecimal() and TREE.encode() in words and b"hexnpu" not in words:
                found.append(int(folder.name))
    assert len(found) == 2
    return Handles(found)


@pytest.mark.parametrize("how", ["ctrl-c", "lost connection", "ctrl-c while input waits"])
def test_the_end_of_a_tree(host: WineHost, tool: str, tmp_path: Path, how: str) -> None:
    feed = tmp_path / "feed"
    feed.write_bytes(bytes(5 << 20 if "input" in how else 0))
    with feed.open("rb") as stdin:
        process = hexnpu("run", "--target", host.target, "--target-dir", "hostile", "--", tool, TREE, stdin=stdin)
    assert process.stdout and [process.stdout.readline() for _ in range(2)] == [b"\n"] * 2
    tree = sleepers()
    if "ctrl-c" in how:
        process.send_signal(signal.SIGINT)
    else:
        host.server.kill_connections()
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == (18 if "lost" in how else 130)
    assert b"Traceback" not in err and err.count(b"\n") <= 1
    assert tree.end()


def test_a_time_out_ends_a_tree(
    device: WindowsDevice, tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, trees = device.open, []

    def open_and_wait(command: Command) -> WindowsProcess:
        process, said = opened(command), b""
        while said != b"\n\n":
            piece = process.read(HANG_S)
            assert piece
            said += piece[1]
        trees.append(sleepers())
        return process

    monkeypatch.setattr(device, "open", open_and_wait)
    with (tmp_path / "out").open("wb") as out, pytest.raises(TimedOut):
        run(device, Command((tool, TREE), "hostile"), stdout=out, stderr=out, timeout_s=0.001)
    assert trees[0].end()


def test_push_and_run_as_commands(host: WineHost, package: Path) -> None:
    pushed = hexnpu("push", "--target", host.target, "--install-dir", package)
    _, err = pushed.communicate(timeout=HANG_S)
    assert pushed.returncode == 0 and b"sent 4 files" in err
    run = hexnpu("run", "--target", host.target, "--", "htp-server", "argv", "%PATH%", stdin=subprocess.DEVNULL)
    out, err = run.communicate(timeout=HANG_S)
    assert (run.returncode, text(out.strip()), err) == (0, "%PATH%", b"")
    assert text(ran(host, "./bin/htp-server.exe", "where", directory="~/hexnpu")[1].strip()).endswith("\\hexnpu")


def test_a_host_that_is_no_windows(sshd: Sshd, package: Path) -> None:
    process = hexnpu("push", "--target", sshd.target.replace("linux:", "windows:"), "--install-dir", package)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 1 and err.count(b"\n") == 1 and b"is not Windows" in err


def pushed(host: WineHost, root: Path, to: str = "~/to", watcher: Watcher | None = None, dry: bool = False) -> Report:
    with open_device(parse_target(host.target)) as device:
        return push_folder(device, root, to, dry_run=dry, watcher=watcher)


def tree(root: Path) -> dict[str, bytes | None]:
    paths = [path for path in sorted(root.rglob("*")) if ".hexnpu" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in paths}


@pytest.fixture
def to(host: WineHost) -> Path:
    folder = host.home / "to"
    shutil.rmtree(folder, ignore_errors=True)
    folder.unlink(missing_ok=True)
    return folder


def test_push(host: WineHost, package: Path, to: Path) -> None:
    assert len(pushed(host, package, dry=True).sent) == 4 and not to.exists()
    assert len(pushed(host, package).sent) == 4
    assert tree(to) == tree(package)
    assert [path.name for path in (to / ".hexnpu").iterdir()] == ["manifest.json"]
    sums = json.loads((to / ".hexnpu/manifest.json").read_bytes())["files"]
    assert sums["big"]["sha256"] == hashlib.sha256((package / "big").read_bytes()).hexdigest()
    before = (to / ".hexnpu/manifest.json").stat().st_mtime_ns
    report = pushed(host, package)
    assert (report.sent, report.removed, report.unchanged) == ((), (), 4)
    assert (to / ".hexnpu/manifest.json").stat().st_mtime_ns == before


def test_only_changes_travel(host: WineHost, package: Path, to: Path) -> None:
    pushed(host, package)
    (to / "lib/mine").write_text("nobody pushed this")
    (to / "nothing").write_text("damage")
    shutil.rmtree(package / "lib/deep er")
    (package / "big").unlink()
    (package / "big").mkdir()
    (package / "big/inside").write_bytes(b"now a folder")
    (package / "lib/new").write_bytes(b"new")
    report = pushed(host, package)
    assert sorted(report.sent) == ["big/inside", "lib/new", "nothing"]
    assert report.removed == ("big", "lib/deep er/ä & b%PATH%^.dll")
    assert tree(to) == tree(package) | {"lib/mine": b"nobody pushed this"}


def test_a_server_without_posix_rename(
    host: WineHost, device: WindowsDevice, package: Path, to: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: str) -> None:
        raise OSError("Failure")

    monkeypatch.setattr(device.sftp, "posix_rename", refuses)
    push_folder(device, package, "to")
    (package / "nothing").write_bytes(b"something")
    assert push_folder(device, package, "to").sent == ("nothing",)
    assert tree(to) == tree(package)
    device.pull("~/to/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (package / "big").read_bytes()


def test_pull(host: WineHost, device: WindowsDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over other transports: test_download.py."""
    data = os.urandom(5 << 20)
    (host.home / "big").write_bytes(data)
    device.pull("~/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    with pytest.raises(DeployError, match="missing/back cannot be written on this machine"):
        device.pull("big", tmp_path / "missing/back")
    with pytest.raises(DeployError, match="nothing: No such file"):
        device.pull("nothing", tmp_path / "back")

    @contextlib.contextmanager
    def loses(to: Path) -> Iterator[Callable[[bytes], None]]:
        with download(to) as write:

            def write_and_lose(data: bytes) -> None:
                write(data)
                host.server.kill_connections()

            yield write_and_lose

    monkeypatch.setattr("hexnpu.deploy.windows.download", loses)
    with pytest.raises(ConnectionLost):
        device.pull("big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    assert not [*tmp_path.glob("back?*")]


class Loses(Watcher):
    """The connection, at a file."""

    def __init__(self, host: WineHost) -> None:
        self.host = host

    def file(self, path: str) -> None:
        if path == "lib/deep er/ä & b%PATH%^.dll":
            self.host.server.kill_connections()


def test_a_push_that_loses_the_connection(host: WineHost, package: Path, to: Path) -> None:
    with pytest.raises(ConnectionLost, match="was lost"):
        pushed(host, package, watcher=Loses(host))
    assert tree(to) == {}
    assert sorted(pushed(host, package).sent) == ["lib/deep er/ä & b%PATH%^.dll", "nothing"]
    assert tree(to) == tree(package)


def test_space_that_runs_out_on_the_way(
    host: WineHost, package: Path, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", to], capture_output=True).returncode:
        pytest.skip("mounting needs rights that are not there")
    monkeypatch.setattr(WindowsDevice, "free_bytes", lambda *_: None)
    try:
        with pytest.raises(DeployError, match="is there space"):
            pushed(host, package)
        assert tree(to) == {}
    finally:
        subprocess.run(["umount", to], check=True)


class Interrupts(Watcher):
    """Ctrl-C at a file."""

    def file(self, path: str) -> None:
        if path == "nothing":
            raise KeyboardInterrupt


def test_an_interrupted_push_resumes(host: WineHost, package: Path, to: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        pushed(host, package, watcher=Interrupts())
    assert tree(to) == {}
    assert pushed(host, package).sent == ("nothing",)
    assert tree(to) == tree(package)


@pytest.mark.parametrize("name", ["a:b", "nul.txt", "end.", "star*", "Big"])
def test_names_that_windows_does_not_take(host: WineHost, package: Path, to: Path, name: str) -> None:
    (package / name).write_text("")
    with pytest.raises(DeployError, match="Windows"):
        pushed(host, package)
    assert not to.exists()


def test_symlinks_space_and_a_file_in_the_way(host: WineHost, device: WindowsDevice, package: Path, to: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WindowsDevice, "free_bytes", lambda *_: 1000)
        with pytest.raises(NoSpace, match="are free"):
            pushed(host, package)
    assert not to.exists()
    free = device.free_bytes(".")
    disk = os.statvfs(host.home)
    assert free is not None and abs(free - disk.f_bavail * disk.f_frsize) < 1 << 30
    to.write_text("mine")
    with pytest.raises(DeployError, match="not a folder"):
        pushed(host, package)
    to.unlink()
    (package / "link").symlink_to("big")
    with pytest.raises(DeployError, match="symlink"):
        pushed(host, package)


@pytest.mark.parametrize(
    ("put", "named"),
    [("lib", "lib"), ("LIB", "lib"), ("big/mine", "big"), ("big/a/", "big"), (".hexnpu", ".hexnpu")],
)
@pytest.mark.parametrize("before", [False, True], ids=["new", "pushed before"])
def test_what_is_in_the_way(host: WineHost, package: Path, to: Path, put: str, named: str, before: bool) -> None:
    """Is told before anything is changed, what else there would be to do included."""
    to.mkdir()
    if before:
        pushed(host, package)
        (package / "nothing").write_bytes(b"something")
        (package / "bin/htp-server.exe").unlink()
        place = to / put.lower().partition("/")[0]
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    path = to / put
    (path if put.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
    if not put.endswith("/"):
        path.write_bytes(b"mine")
    there = {path: path.is_file() and path.read_bytes() for path in to.rglob("*")}
    with pytest.raises(DeployError, match=f"'{named}'.* away"):
        pushed(host, package)
    assert {path: path.is_file() and path.read_bytes() for path in to.rglob("*")} == there


def test_a_file_where_a_pushed_folder_was(host: WineHost, package: Path, to: Path) -> None:
    pushed(host, package)
    shutil.rmtree(package / "lib")
    (package / "lib").write_bytes(b"a file")
    mine = to / "lib/deep er/mine"
    mine.write_bytes(b"nobody pushed this")
    with pytest.raises(DeployError, match="move 'lib/deep er/mine' away"):
        pushed(host, package)
    mine.unlink()
    assert pushed(host, package).sent == ("lib",)
    assert tree(to) == tree(package)


def test_a_directory_below_a_file(host: WineHost, package: Path, to: Path) -> None:
    to.write_text("mine")
    with pytest.raises(DeployError, match="to is not a folder: move it away"):
        pushed(host, package, "~/to/below")
    assert to.read_text() == "mine"


@pytest.mark.parametrize("path", ["../victim", "..\\victim", "x/..\\..\\victim", "C:victim"])
def test_a_manifest_that_leads_outside(host: WineHost, package: Path, to: Path, path: str) -> None:
    pushed(host, package)
    (host.home / "victim").write_text("mine")
    (to / ".hexnpu/manifest.json").write_text(json.dumps({"version": 1, "files": {path: {}}}))
    assert pushed(host, package).removed == ()
    assert (host.home / "victim").read_text() == "mine"
