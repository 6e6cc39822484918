"""A link of a given speed before a server of this machine: what USB or Wi-Fi is between a laptop and a phone."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

_PIECE = 64 * 1024


@contextlib.contextmanager
def slow_link(port: int, bytes_per_s: float) -> Iterator[int]:
    """A loopback port that leads to `port`, each way of each connection at most at `bytes_per_s`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, port, bytes_per_s), daemon=True).start()
        yield listener.getsockname()[1]


def _accept(listener: socket.socket, port: int, bytes_per_s: float) -> None:
    with contextlib.suppress(OSError):
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for a, b in ((near, far), (far, near)):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=_carry, args=(a, b, bytes_per_s), daemon=True).start()


def _carry(source: socket.socket, to: socket.socket, bytes_per_s: float) -> None:
    due = time.monotonic()
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE):
            due = max(due, time.monotonic()) + len(data) / bytes_per_s
            time.sleep(max(0.0, due - time.monotonic()))
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
