"""A package folder on its way to a target: what it holds, and the sha256 sums of its files.

Sums are kept from push to push in the cache folder, by size, inode and times, so that a push of nothing new reads no
file. Those that nobody knows yet are taken by a thread from the beginning on, beside the login and the transfer.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hexnpu.cache import cache_dir
from hexnpu.deploy.manifest import PackageFile, read_package
from hexnpu.deploy.process import start_thread

if TYPE_CHECKING:
    from concurrent.futures import Future

# A file changed this recently can change again without a new time.
_RACY_NS = 2_000_000_000


class Source:
    """Use as a context manager: entering it reads the folder, leaving it keeps the sums for the next push.

    Raises DeployError where the folder holds what cannot be pushed.
    """

    def __init__(self, root: Path) -> None:
        self._cache = cache_dir() / "push" / f"{hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:16]}.json"
        self.package = read_package(root)
        self._old = self._read_cache()
        self._new: dict[str, list[Any]] = {}
        # Of this push: they count, but are not kept for the next.
        self._fresh: dict[str, str] = {}
        self._coming: dict[str, Future[str]] = {}
        self._left = threading.Event()

    def _read_cache(self) -> dict[str, list[Any]]:
        try:
            cached = json.loads(self._cache.read_bytes())
        except (OSError, ValueError):
            return {}
        entries = cached.items() if isinstance(cached, dict) else ()
        return {path: entry for path, entry in entries if isinstance(entry, list) and len(entry) == 5}

    def sha256(self, file: PackageFile) -> str:
        """The sum of one of the package's files, waiting for it if need be. Raises DeployError if the file changed."""
        known = self._known(file)
        if known is None:
            known = self._fresh[file.path] = self._coming[file.path].result()
            if time.time_ns() - max(file.stamp[2:]) > _RACY_NS:
                self._new[file.path] = [*file.stamp, known]
        return known

    def _known(self, file: PackageFile) -> str | None:
        for sums in (self._new, self._old):
            found = sums.get(file.path)
            if found and tuple(found[:4]) == file.stamp:
                self._new[file.path] = found
                return str(found[4])
        return self._fresh.get(file.path)

    def _take(self, files: list[PackageFile]) -> None:
        for file in files:
            if self._left.is_set():
                return
            try:
                self._coming[file.path].set_result(file.digest())
            except Exception as error:
                # For whoever asks for this sum.
                self._coming[file.path].set_exception(error)

    def __enter__(self) -> Source:
        unknown = [file for file in self.package.files if file.link is None and self._known(file) is None]
        if unknown:
            from concurrent.futures import Future

            self._coming = {file.path: Future() for file in unknown}
            start_thread(lambda: self._take(unknown))
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        if self._new == self._old:
            return
        try:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            beside = self._cache.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self._new))
            beside.replace(self._cache)
        except OSError:
            # The next push takes the sums again.
            return
