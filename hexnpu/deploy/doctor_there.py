"""What `hexnpu doctor --target T` looks at on the target: the package, what loaders would take, the NPU's door, room.

Everything is read by small shell scripts; of ELF files only their headers travel.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable
from functools import partial

from hexnpu.deploy import elf
from hexnpu.deploy.checks import Check, Finding, note, ok, wrong
from hexnpu.deploy.device import Device
from hexnpu.deploy.elf import Elf
from hexnpu.deploy.posix import EXPAND
from hexnpu.deploy.quoting import decode

CONNECT_S, SCRIPT_S, ELF_S = 60.0, 15.0, 60.0
RPC_LIBRARY = "libcdsprpc.so"
RPC_NODES = ("/dev/fastrpc-cdsp", "/dev/fastrpc-cdsp-secure", "/dev/adsprpc-smd", "/dev/adsprpc-smd-secure")
# Where loaders look after LD_LIBRARY_PATH and the run path.
SYSTEM_FOLDERS = {
    "android": (
        "/system/lib64", "/vendor/lib64", "/odm/lib64", "/product/lib64", "/system_ext/lib64",
        "/apex/com.android.runtime/lib64/bionic", "/apex/com.android.art/lib64",
    ),
    "linux": (
        "/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
    ),
}  # fmt: skip
MIN_FREE_BYTES = 1 << 30
MAX_FILES = 200

_ORIGIN = re.compile(r"\$ORIGIN|\$\{ORIGIN\}")

_LIST = f'd=$1; {EXPAND}; cd "$d" || exit 1; pwd; for f in bin/* lib/*; do [ -f "$f" ] && echo "$f"; done; exit 0'
_READ = 'tail -c +"$2" "$1" | head -c "$3"'
_EXIST = 'for f; do [ -e "$f" ] && printf "%s\\n" "$f"; done; exit 0'
_FREE = f'd=$1; {EXPAND}; while [ ! -d "$d" ]; do d=$(dirname "$d"); done; df -Pk "$d" | tail -n 1'
_NODES = 'for f; do if [ -r "$f" ] && [ -w "$f" ]; then echo "open $f"; elif [ -e "$f" ]; then echo "shut $f"; fi; done'


def _run_paths(by: Elf | None, android: bool, musl: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The folders of a file that come before LD_LIBRARY_PATH, and those after it."""
    if by is None:
        return (), ()
    if android:  # bionic ignores DT_RPATH
        return (), by.run_path
    return ((), (*by.rpath, *by.run_path)) if musl else (by.rpath, by.run_path)


class TargetDoctor:
    """The checks share one connection and what they have read. `directory`: where the package is."""

    def __init__(self, connect: Callable[[], Device], directory: str) -> None:
        self._connect = connect
        self._directory = directory
        self._device: Device | None = None
        self._machine = ""
        self._home = directory
        self._files: dict[str, Elf] | None = None  # None: not looked at, or not to the end
        self._cache: list[str] | None = None  # of ldconfig -p
        # Asked of the target once each: most programs need the same libraries.
        self._elf = functools.cache(self._read_elf)
        self._existing = functools.cache(lambda *paths: self._lines(_EXIST, *paths))

    def checks(self) -> list[Check]:
        """In the order in which they depend on each other."""
        return [
            Check("target", CONNECT_S, self.reach),
            Check("space", SCRIPT_S, partial(self._if_reached, self.space)),
            Check("package", ELF_S, partial(self._if_reached, self.package)),
            Check("libraries", ELF_S, partial(self._if_package, "libraries", self.libraries)),
            Check("kernels", SCRIPT_S, partial(self._if_package, "kernels", self.kernels)),
            Check("libcdsprpc", SCRIPT_S, partial(self._if_reached, self.rpc_library)),
            Check("npu", SCRIPT_S, partial(self._if_reached, self.npu_node)),
        ]

    def close(self) -> None:
        if self._device is not None:
            self._device.close()

    def _if_reached(self, check: Callable[[], list[Finding]]) -> list[Finding]:
        """Nothing where the first check has said that the target is out of reach, or does not answer."""
        return check() if self._machine else []

    def _if_package(self, what: str, check: Callable[[dict[str, Elf]], list[Finding]]) -> list[Finding]:
        if self._machine and self._files is None:
            return note(what, "not looked at: no package could be read", "see what is said of the package above")
        return self._if_reached(partial(check, self._files or {}))

    def _lines(self, script: str, *arguments: str) -> list[str]:
        assert self._device is not None
        return decode(self._device.shell(script, *arguments, timeout_s=SCRIPT_S).stdout).splitlines()

    def reach(self) -> list[Finding]:
        """Connects, and asks what machine it is."""
        device = self._connect()
        if not device.posix:
            device.close()
            return note("target", f"{device.name} is a Windows host", "only POSIX targets are looked into")
        self._device = device
        machine, system = [*self._lines("uname -m; uname -s -r"), "", ""][:2]
        if not machine:
            return wrong("target", f"{device.name} does not say what machine it is", "see what `uname -m` says there")
        self._machine = {"arm64": "aarch64"}.get(machine, machine)
        return ok("target", f"{device.name} is {machine}, {system}")

    def space(self) -> list[Finding]:
        fields = " ".join(self._lines(_FREE, self._directory)).split()
        if len(fields) < 4 or not fields[3].isdecimal():
            return note("space", f"df says {' '.join(fields) or 'nothing'}", f"look yourself: df {self._directory}")
        free = int(fields[3]) << 10
        text = f"{free >> 20} MiB are free at {self._directory}"
        if free < MIN_FREE_BYTES:
            return wrong("space", text, "remove files there, or push elsewhere by --target-dir")
        return ok("space", text)

    def package(self) -> list[Finding]:
        """Every program and library of the package is for the machine that would run it."""
        home, *names = self._lines(_LIST, self._directory) or [""]
        if not names:
            what = f"{home} has no file in bin/ or lib/" if home else f"no folder {self._directory!r}"
            return wrong("package", what, "push first: hexnpu push --target ...")
        self._home = home
        findings: list[Finding] = []
        files: dict[str, Elf] = {}
        for name in names[:MAX_FILES]:
            findings += self._look_at(name, files)
        self._files = files
        if len(names) > MAX_FILES:
            findings += note(
                "package", f"only {MAX_FILES} of its {len(names)} files were looked at", "remove what is not of it"
            )  # fmt: skip
        text = f"{len(names)} files in {home}, {len(files)} ELF files, all for the right machine"
        return findings or ok("package", text)

    def _look_at(self, name: str, files: dict[str, Elf]) -> list[Finding]:
        try:
            file = self._elf(posixpath.join(self._home, name))
        except ValueError as error:
            return wrong("package", f"{name} is a broken ELF file: {error}", "push again")
        if file is None:
            return []
        files[name] = file
        wanted = elf.HEXAGON if re.search(r"htp.*-v\d+", name) else self._machine
        if file.machine != wanted:
            return wrong(
                "package", f"{name} is for {file.machine}, and {wanted} would run it",
                f"build for this target (it is {self._machine}) and push again",
            )  # fmt: skip
        arch = re.search(r"-v(\d+)", name)
        if arch and file.arch and int(arch[1]) != file.arch:
            return wrong("package", f"{name} holds code for v{file.arch}", "build again: its name says another arch")
        return []

    def libraries(self, files: dict[str, Elf]) -> list[Finding]:
        """Every needed library is found where the loader looks: LD_LIBRARY_PATH=./lib, run path, system folders."""
        findings: list[Finding] = []
        for name, file in files.items():
            if file.machine != self._machine:
                continue
            for needed in file.needed:
                if self._taken(needed, file, posixpath.dirname(posixpath.join(self._home, name))) is None:
                    findings += wrong(
                        "libraries", f"{name} needs {needed}, which is nowhere that the loader looks",
                        "add it to the package's lib/, or install it on the target",
                    )  # fmt: skip
        n = sum(len(f.needed) for f in files.values())
        return findings or ok("libraries", f"all {n} needed libraries are there" if n else "no program needs any")

    def kernels(self, files: dict[str, Elf]) -> list[Finding]:
        """The kernel libraries that FastRPC would take along ADSP_LIBRARY_PATH=./lib."""
        found = sorted(n for n, f in files.items() if f.machine == elf.HEXAGON)
        if not found:
            return note(
                "kernels", "the package has no Hexagon library: the NPU itself cannot be used",
                "the server with the emulated NPU needs none; a llama.cpp package has lib/libggml-htp-v*.so",
            )  # fmt: skip
        return ok("kernels", f"ADSP_LIBRARY_PATH=./lib gives {', '.join(posixpath.join(self._home, n) for n in found)}")

    def rpc_library(self) -> list[Finding]:
        """Which libcdsprpc.so the loader would really take."""
        path = self._taken(RPC_LIBRARY, None, self._home)
        if path is None:
            return note(
                "libcdsprpc", f"{RPC_LIBRARY} is nowhere that the loader looks: no way to the NPU",
                "it comes with the device (Android: /vendor/lib64) or Debian's libfastrpc; the emulated NPU needs none",
            )  # fmt: skip
        if path.startswith(self._home):
            return wrong(
                "libcdsprpc", f"the loader takes {path}, from the package and not the device's own",
                "remove it from lib/: it must be the one that fits the device's firmware",
            )  # fmt: skip
        return ok("libcdsprpc", f"the loader takes {path}")

    def npu_node(self) -> list[Finding]:
        """The device node of the NPU's domain, and whether this user may open it."""
        states = [line.split(" ", 1) for line in self._lines(_NODES, *RPC_NODES)]
        opened = [node for state, node in states if state == "open"]
        if opened:
            return ok("npu", f"{opened[0]} may be opened")
        if states:
            return wrong(
                "npu", f"{', '.join(node for _, node in states)} may not be opened by this user",
                "add the user to the node's group (ls -l tells it), or use another user",
            )  # fmt: skip
        return note("npu", f"none of {', '.join(RPC_NODES)}", "this machine has no NPU that FastRPC reaches")

    def _taken(self, library: str, by: Elf | None, origin: str) -> str | None:
        """The file that the loader takes for a library: the first of the right machine, as it skips the others."""
        assert self._device is not None
        for path in self._existing(*self._candidates(library, by, origin)):
            try:
                file = self._elf(path)
            except ValueError:
                continue
            if file is not None and file.machine == self._machine:
                return path
        return None

    def _candidates(self, library: str, by: Elf | None, origin: str) -> list[str]:
        """In the loader's order: glibc's and, without what it knows not, bionic's and musl's."""
        assert self._device is not None
        android = self._device.target.kind == "android"
        musl = by is not None and "ld-musl" in by.interpreter
        rpath, run_path = ([_ORIGIN.sub(lambda _: origin, p) for p in paths] for paths in _run_paths(by, android, musl))
        system = SYSTEM_FOLDERS.get(self._device.target.kind, SYSTEM_FOLDERS["linux"])
        first = [posixpath.join(folder, library) for folder in (*rpath, posixpath.join(self._home, "lib"), *run_path)]
        cached = [] if android or musl else self._cached(library)
        return [*first, *cached, *(posixpath.join(folder, library) for folder in system)]

    def _cached(self, library: str) -> list[str]:
        """The paths that ld.so.cache has for a library."""
        if self._cache is None:
            self._cache = self._lines("PATH=$PATH:/sbin:/usr/sbin; ldconfig -p 2>/dev/null")
        return [line.split("=>")[1].strip() for line in self._cache if line.split(" ")[0].strip() == library]

    def _read_elf(self, path: str) -> Elf | None:
        device = self._device
        assert device is not None

        def read(offset: int, size: int) -> bytes:
            return device.shell(_READ, path, str(offset + 1), str(size), timeout_s=SCRIPT_S).stdout

        head = read(0, 4096)  # header, segments and often all that is asked for
        return elf.read_elf(lambda at, n: head[at : at + n] if at + n <= len(head) else read(at, n))
