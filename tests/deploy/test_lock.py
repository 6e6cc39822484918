"""Two pushes to one directory: the second is refused while the first lives, and finds no lock of one that died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.deploy import lock as lock_module
from hexnpu.deploy.device import open_device
from hexnpu.deploy.errors import DeployError
from hexnpu.deploy.lock import Lock
from hexnpu.deploy.push import Watcher
from hexnpu.deploy.targets import parse_target
from tests.deploy.folders import Push, tree, write

REPO = Path(__file__).parents[2]

# Pushes argv[2] to argv[3] of target argv[1], and dies on the way.
DIES = """
import os, signal, sys
from pathlib import Path
from hexnpu.deploy.device import open_device
from hexnpu.deploy.push import Watcher
from hexnpu.deploy.targets import parse_target
from tests.deploy.conftest import push_folder

class Dies(Watcher):
    def bytes(self, n_bytes):
        os.kill(os.getpid(), signal.SIGKILL)

with open_device(parse_target(sys.argv[1] or None)) as device:
    push_folder(device, Path(sys.argv[2]), sys.argv[3], watcher=Dies())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "pkg/a", os.urandom(4 << 20))
    write(tmp_path / "pkg/b", b"b")
    return tmp_path / "pkg"


def holder(to: Path) -> int:
    return int((to / ".hexnpu/lock").read_text())


def test_the_second_is_refused(pushed: Push, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    write(other / "a", os.urandom(4 << 20))
    refusals = []

    class Meanwhile(Watcher):
        def bytes(self, n_bytes: int) -> None:
            if n_bytes and not refusals:
                with pytest.raises(DeployError, match=f"another push.* process {holder(tmp_path / 'to')} ") as refusal:
                    pushed(other)
                refusals.append(refusal)

    monkeypatch.setattr(lock_module, "_PATIENCE_STEPS", 1)
    pushed(root, watcher=Meanwhile())
    assert refusals
    assert tree(tmp_path / "to") == tree(root)
    pushed(other)
    assert tree(tmp_path / "to") == tree(other)


def test_of_a_push_that_was_killed(transport: str | None, pushed: Push, root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIES, transport or "", str(root), f"{tmp_path}/to"]
    assert subprocess.run(command, cwd=REPO).returncode == -signal.SIGKILL
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)


def test_ended_there(pushed: Push, root: Path, tmp_path: Path) -> None:
    """As the refusal advises: the push it is about goes no further."""

    class Ends(Watcher):
        ended = False

        def bytes(self, n_bytes: int) -> None:
            if n_bytes and not self.ended:
                self.ended = True
                os.kill(holder(tmp_path / "to"), signal.SIGTERM)

    with pytest.raises(DeployError, match="ended there"):
        pushed(root, watcher=Ends())
    assert tree(tmp_path / "to") == {}
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)


def test_lost_before_the_commit(transport: str | None, tmp_path: Path) -> None:
    write(tmp_path / "to/.hexnpu/commit.sh", b"touch committed")
    with open_device(parse_target(transport)) as device:
        with Lock(device, f"{tmp_path}/to") as lock:
            os.kill(holder(tmp_path / "to"), signal.SIGTERM)
            with pytest.raises(DeployError, match="ended there"):
                lock.commit()
        assert not (tmp_path / "to/committed").exists()
        with Lock(device, f"{tmp_path}/to") as lock:
            lock.commit()
        assert (tmp_path / "to/committed").exists()


def test_where_there_is_no_flock(pushed: Push, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = lock_module._HOLD.replace("flock -n", "no-such-flock -n")
    monkeypatch.setattr(lock_module, "_HOLD", script)
    pushed(root)
    assert tree(tmp_path / "to") == tree(root)
