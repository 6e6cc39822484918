"""A device that has a shell and nothing else: files travel as one tar stream on a program's input.

(SFTP would wait for an answer per file.)
"""

from __future__ import annotations

import contextlib
import tarfile
from abc import abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath

from hexnpu.deploy.device import Command, Upload
from hexnpu.deploy.download import download
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.posix import EXPAND, PosixDevice, PosixProcess, remote_error
from hexnpu.deploy.process import STDOUT
from hexnpu.deploy.quoting import decode

# GNU tar reads 10 KiB at a time unless told otherwise; others take what comes.
_RECEIVE = f"""
d=$1; {EXPAND}
command -v tar >/dev/null || {{ echo "tar: not found" >&2; exit 1; }}
case $(tar --version 2>/dev/null) in *GNU*) b='-b 128';; *) b=;; esac
mkdir -p "$d" && cd "$d" && exec tar $b -xof -
"""

_TAR_BLOCK = 512
# Of the tar stream, handed on at once.
_PIECE = 256 << 10


class StreamProcess(PosixProcess):
    @property
    @abstractmethod
    def writable(self) -> bool:
        """False once the program is gone, or the connection."""


class StreamDevice(PosixDevice):
    @abstractmethod
    def open(self, command: Command) -> StreamProcess: ...

    def upload(self, directory: str, files: Iterable[Upload], sent: Callable[[int], None]) -> None:
        receive = ("sh", "-c", _RECEIVE, "sh", directory)
        process = self.open(Command(receive, title=f"the push to {directory}"))
        try:
            for piece, of_file in _tar(files):
                if not process.writable:
                    break
                process.write(piece)
                sent(of_file)
            process.close_stdin()
            errors = b"".join(piece[1] for piece in iter(process.read, None))
            if process.exit_code() != 0:
                raise _upload_error(self.name, directory, decode(errors))
        except BaseException:
            # It must not go on writing what it has already read while the next push looks.
            with contextlib.suppress(DeployError):
                process.kill()
            raise
        finally:
            process.close()

    def pull(self, path: str, to: Path) -> None:
        copy = ("sh", "-c", f'd=$1; {EXPAND}; exec cat "$d"', "sh", path)
        process = self.open(Command(copy, has_input=False, title=f"the copy of {path}"))
        errors = b""
        try:
            with download(to) as write:
                while piece := process.read():
                    if piece[0] == STDOUT:
                        write(piece[1])
                    else:
                        errors += piece[1]
                if process.exit_code() != 0:
                    raise remote_error(f"{self.name}: {path}", decode(errors))
        finally:
            process.close()


def _upload_error(name: str, directory: str, errors: str) -> DeployError:
    if "tar: " in errors and "not found" in errors:
        return DeployError(f"{name} has no tar, which push needs: install tar or busybox there")
    return remote_error(f"{name}: {directory}", errors)


def _tar(files: Iterable[Upload]) -> Iterable[tuple[bytes, int]]:
    """A tar stream in pieces of some size, each with how many bytes of files it holds."""
    pending, of_file = bytearray(), 0
    folders: set[PurePosixPath] = set()
    for file in files:
        # toybox refuses a file whose folder it would have to make after a symlink that leads outside.
        for folder in reversed(PurePosixPath(file.path).parents[:-2]):
            if folder not in folders:
                folders.add(folder)
                pending += _folder_header(folder)
        pending += _tar_header(file)
        if not file.symlink:
            for chunk in file.chunks():
                pending += chunk
                of_file += len(chunk)
                if len(pending) >= _PIECE:
                    yield bytes(pending), of_file
                    pending, of_file = bytearray(), 0
            pending += bytes(-file.size % _TAR_BLOCK)
    yield bytes(pending) + bytes(2 * _TAR_BLOCK), of_file


def _folder_header(folder: PurePosixPath) -> bytes:
    info = tarfile.TarInfo(f"./{folder}")
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _tar_header(file: Upload) -> bytes:
    info = tarfile.TarInfo(f"./{file.path}")
    info.mode, info.mtime = 0o600, file.mtime
    if file.symlink:
        info.type, info.linkname = tarfile.SYMTYPE, decode(b"".join(file.chunks()))
    else:
        info.size = file.size
    # GNU headers: long names and files above 8 GiB, which busybox and toybox read too.
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
