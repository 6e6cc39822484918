"""One NPU session: its buffers, its batches, the graphs compiled for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType

from hexnpu import wire
from hexnpu.batch import Batch, Response, parse_response
from hexnpu.errors import DeviceError, HexnpuError, SessionLost, UsageError
from hexnpu.plan.base import Device
from hexnpu.transport import Buffer, Connection, connect

DEFAULT_THREADS = 4


def open(
    target: str | None = None,
    devices: Sequence[str] = ("HTP0:0",),
    *,
    n_threads: int | None = None,
    vtcm_mib: int | None = None,
    arch: int | None = None,
    flavour: str | None = None,
    strict: bool = False,
    env: dict[str, str] | None = None,
) -> Session:
    """Opens an NPU session on `target` (None: this machine's emulator).

    `n_threads` is the number of HVX threads (default: 4, or the CPUs there are), `vtcm_mib` the VTCM (default: what
    the device has). `arch` and `flavour` choose the emulator's build. `strict` makes an op that the NPU cannot take an
    error instead of a numpy fallback. Use the session in a `with` block, or close it.
    """
    if isinstance(devices, str) or len(devices) != 1 or devices[0] not in ("HTP0:0", "HTP0"):
        raise UsageError(f"unknown devices {devices!r}; a session has one device: ('HTP0:0',)")
    threads = n_threads or min(DEFAULT_THREADS, os.cpu_count() or 1)
    connection = connect(target, arch=arch, flavour=flavour, env=env)
    try:
        return Session(connection, devices[0], threads, vtcm_mib or 0, strict=strict)
    except BaseException:
        connection.close()
        raise


class Session:
    """One NPU session. `device` is what plans may use of it."""

    def __init__(
        self, connection: Connection, name: str, n_threads: int, vtcm_mib: int, *, strict: bool = False
    ) -> None:
        hello = connection.hello
        if n_threads > hello.n_threads:
            raise UsageError(f"{connection.name} has {hello.n_threads} HVX threads, {n_threads} were asked for")
        self.name = name if ":" in name else f"{name}:0"
        self.connection = connection
        self.strict = strict
        self.device = Device(hello.arch, n_threads, vtcm_mib << 20 or hello.vtcm_bytes)
        self.max_map_bytes = hello.max_map_bytes
        self.number = connection.open_session(self.name, n_threads, vtcm_mib)
        self._seq = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Session {self.number} {self.name} on {self.connection.name}>"

    def close(self) -> None:
        """Ends the session and its server. Safe to call twice."""
        self.connection.close()

    def alloc(self, n_bytes: int) -> Buffer:
        """A zeroed buffer that this session can map."""
        return self.connection.alloc(self.number, n_bytes)

    def submit(self, batch: Batch, n_traces: int = 0) -> Response:
        """Runs a batch. Raises DeviceError where an op was refused, SessionLost where the server died over it."""
        self._seq += 1
        batch.stamp(self._seq, n_traces)
        raw = self.connection.submit(self.number, batch.data, lambda: self._doing(batch))
        try:
            response = parse_response(raw)
        except ValueError as error:
            raise HexnpuError(f"{self.name}: the server answered batch {self._seq} with {error}") from None
        if response.seq != self._seq:
            raise SessionLost(f"{self.name}: the server answered batch {response.seq} instead of {self._seq}")
        if response.status != wire.Status.OK:
            raise DeviceError(self._refusal(batch, response))
        return response

    def _doing(self, batch: Batch) -> str:
        names = [str(op) for op in batch.ops[:4]]
        rest = len(batch.ops) - len(names)
        return f"batch {self._seq}: {', '.join(names)}" + (f" and {rest} more ops" if rest else "")

    def _refusal(self, batch: Batch, response: Response) -> str:
        status = response.status
        name = wire.Status(status).name if status in wire.Status.__members__.values() else f"status {status}"
        n = response.failing_op
        where = f"op {n} ({batch.ops[n]})" if n < len(batch.ops) else "the batch"
        return f"{self.name} batch {self._seq}: {where}: {name}: {response.detail}"
