"""A Windows host to talk to: a real sshd whose commands go to wine's cmd.exe; SFTP works on wine's drive C."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from hexnpu.deploy import windows_install
from tests.deploy.sshd import Sshd

# What sshd on Windows does: cmd.exe /c "COMMAND" in the user's home, and SFTP from there.
_SESSION = """#!/bin/bash
export WINEPREFIX={prefix} WINEDEBUG=-all DISPLAY= LANG=C.UTF-8
cd {home}
case $SSH_ORIGINAL_COMMAND in
    *sftp*) exec {sftp} ;;
esac
exec {wine} cmd /c "$SSH_ORIGINAL_COMMAND"
"""
SFTP_SERVER = "/usr/lib/openssh/sftp-server"


@dataclass
class WineHost:
    """`home` is where the user's folder lies for us."""

    server: Sshd
    wine: str
    prefix: Path
    home: Path = Path()
    idle: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "WINEPREFIX": str(self.prefix), "WINEDEBUG": "-all", "DISPLAY": ""}

    @property
    def target(self) -> str:
        return self.server.target.replace("linux:", "windows:")

    def start(self) -> None:
        subprocess.run([self.wine, "wineboot", "-i"], env=self.environment, check=True, capture_output=True)
        # As long as one program runs the next starts at once.
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.idle = subprocess.Popen([self.wine, "cmd"], env=self.environment, stdin=subprocess.PIPE, **silent)
        users = self.prefix / "drive_c/users"
        (self.home,) = (folder for folder in users.iterdir() if folder.name != "Public")
        script = self.server.folder / "session"
        self.server.folder.mkdir(parents=True, exist_ok=True)
        script.write_text(_SESSION.format(prefix=self.prefix, home=self.home, sftp=SFTP_SERVER, wine=self.wine))
        script.chmod(0o755)
        self.server.start(f"ForceCommand {script}\n")

    def stop(self) -> None:
        self.server.stop()
        assert self.idle
        self.idle.communicate()
        subprocess.run(["wineserver", "-k"], env=self.environment, check=False)


def build_program(source: str, out: Path) -> Path:
    """A Windows program without a C library, which starts at `runner`."""
    file = out.with_suffix(".c")
    file.write_text(source)
    windows_install.compile_program(file, "x86_64", out, libraries=("kernel32", "shell32"))
    return out
