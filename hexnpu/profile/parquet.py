"""`--export DIR`: ops.parquet, events.parquet, batches.parquet; and such a folder read back in place of its log.

The schema is versioned in each file's metadata and described in docs/profile.md. Columns that are derived (full
counters, times on the axis, phase, home op) are for other tools: reading back uses what the log itself said.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from hexnpu.errors import HexnpuError
from hexnpu.profile.columns import N_PMU, N_THREADS, NAMES, AnyArray, BatchLines, Events, Log, Ops, OpText, Unreadable
from hexnpu.profile.errors import LogError
from hexnpu.profile.optext import facts
from hexnpu.profile.output import whole_file
from hexnpu.profile.phases import PHASES, Steps
from hexnpu.profile.timeline import Timeline

SCHEMA = "hexnpu-profile-columns/1"
FILES = ("ops", "events", "batches")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise HexnpuError("Parquet needs pyarrow: pip install 'hexnpu[parquet]'") from None
    return pyarrow


def _texts(pa: Any, values: list[str], index: AnyArray) -> Any:
    """A dictionary-encoded column; bytes that are not UTF-8 are shown as \\xNN."""
    shown = pa.array([_shown(value) for value in values], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), shown)


def _shown(value: str) -> str:
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _op_columns(pa: Any, line: Timeline, steps: Steps) -> dict[str, Any]:
    log, ops = line.log, line.log.ops
    known = [facts(text) for text in log.texts]
    batch = line.op_batch
    begin = line.ns_of(batch, line.op_start) if len(batch) else np.empty(0, np.int64)
    columns: dict[str, Any] = {"device": _texts(pa, log.devices, ops.device)}
    for name in ("op", "names", "dims", "types", "strides", "params", "generation"):
        columns[name] = _texts(pa, [getattr(text, name) for text in log.texts], ops.text)
    for name in ("role", "engine", "kernel"):
        columns[name] = _texts(pa, [getattr(fact, name) for fact in known], ops.text)
    layer = np.array([fact.layer for fact in known] or [0], np.int32)
    columns |= {
        "layer": pa.array(layer[ops.text]),
        "text": pa.array(ops.text),
        "usec": pa.array(ops.usec),
        "cycles": pa.array(ops.cycles),
        "start": pa.array(ops.start),
        "line": pa.array(ops.line),
        "batch": pa.array(batch),
        "phase": _texts(pa, list(PHASES), steps.batch_phase[batch]),
        "step": pa.array(steps.batch_step[batch]),
        "start_cycles": pa.array(line.op_start),
        "begin_ns": pa.array(begin),
    }
    if ops.pmu is not None:
        columns |= {f"pmu{i}": pa.array(ops.pmu[:, i]) for i in range(N_PMU)}
    return columns


def _event_columns(pa: Any, line: Timeline) -> dict[str, Any]:
    log, events = line.log, line.log.events
    batch = line.event_batch
    at = line.ns_of(batch, line.event_cycles) if len(batch) else np.empty(0, np.int64)
    return {
        "device": _texts(pa, log.devices, events.device),
        "thread": pa.array(events.thread),
        "event": _texts(pa, log.event_names, events.name),
        "stop": pa.array(events.stop),
        "info": pa.array(events.info),
        "cycles": pa.array(events.cycles),
        "line": pa.array(events.line),
        "batch": pa.array(batch),
        "op_row": pa.array(line.event_op),
        "full_cycles": pa.array(line.event_cycles),
        "at_ns": pa.array(at),
    }


def _batch_columns(pa: Any, line: Timeline, steps: Steps) -> dict[str, Any]:
    b = line.batches
    return {
        "device": _texts(pa, line.log.devices, b.device),
        "known": pa.array(b.known),
        "start_cycles": pa.array(b.start),
        "cycles": pa.array(b.cycles),
        "usec": pa.array(b.usec),
        "mhz": pa.array(b.mhz),
        "ops": pa.array(b.n_ops),
        "line": pa.array(b.line),
        "begin_ns": pa.array(b.begin_ns),
        "end_ns": pa.array(b.end_ns),
        "step": pa.array(steps.batch_step),
        "phase": _texts(pa, list(PHASES), steps.batch_phase),
        "tokens": pa.array(steps.batch_tokens),
    }


def _metadata(log: Log) -> dict[str, str]:
    """What is not a row: names by number, batch lines, what could not be read."""
    lines = log.batches
    batch_lines = {
        name: getattr(lines, name).tolist()
        for name in ("device", "kind", "n_ops", "usec", "cycles", "start", "host_usec", "stamp_us", "line", "evt_cnt")
    }
    about = {
        "source": log.source,
        "devices": log.devices,
        "event_names": log.event_names,
        "lines": log.lines,
        "bytes": log.bytes,
        "mode": log.mode,
        "pmu_events": log.pmu_events,
        "unreadable": [[bad.kind, bad.count, bad.first_line, bad.example] for bad in log.unreadable],
        "batch_lines": batch_lines,
        "texts": [[t.raw, t.op, t.names, t.dims, t.types, t.strides, t.params, t.generation] for t in log.texts],
    }
    return {"hexnpu.schema": SCHEMA, "hexnpu.log": json.dumps(about)}


def write(line: Timeline, steps: Steps, folder: Path) -> None:
    """Three files, all of them whole or none at all; the folder is made if need be. HexnpuError if it cannot be."""
    pa = _arrow()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HexnpuError(f"--export {folder}: cannot be made a folder ({error.strerror})") from None
    columns = {
        "ops": _op_columns(pa, line, steps),
        "events": _event_columns(pa, line),
        "batches": _batch_columns(pa, line, steps),
    }
    with ExitStack() as files:  # which get their names when the last one is written
        for name in FILES:
            about = _metadata(line.log) if name == "batches" else {"hexnpu.schema": SCHEMA}
            table = pa.table(columns[name]).replace_schema_metadata(about)
            stream = files.enter_context(whole_file(folder / f"{name}.parquet"))
            pa.parquet.write_table(table, stream, compression="zstd")
            stream.flush()


def read(folder: Path) -> Log:
    """The log that `write` was given. LogError for a folder that is none of ours."""
    missing = [name for name in FILES if not (folder / f"{name}.parquet").is_file()]
    if missing:
        raise LogError(f"{folder} is a directory without {missing[0]}.parquet: give a log, or a folder from --export")
    pa = _arrow()
    try:
        tables = {name: pa.parquet.read_table(folder / f"{name}.parquet") for name in FILES}
    except (OSError, pa.ArrowException) as error:
        raise LogError(f"{folder}: {str(error).splitlines()[0]}") from None
    metadata = tables["batches"].schema.metadata or {}
    found = metadata.get(b"hexnpu.schema", b"").decode()
    if found != SCHEMA:
        raise LogError(f"{folder} has the schema {found or 'of another tool'}, this program reads {SCHEMA}")
    try:
        log = _log(tables, json.loads(metadata[b"hexnpu.log"]))
    except (KeyError, ValueError, TypeError, AttributeError, OverflowError, pa.ArrowException) as error:
        cause = (str(error) or type(error).__name__).splitlines()[0]
        raise LogError(f"{folder} is not as --export wrote it ({cause}): export it again") from None
    return log


def _log(tables: dict[str, Any], about: dict[str, Any]) -> Log:
    """The log of the three tables; raises ValueError and its like where they do not fit together."""
    texts = [OpText(*fields) for fields in about["texts"]]
    log = Log(
        about["source"],
        about["devices"],
        texts,
        about["event_names"],
        _read_ops(tables["ops"], about),
        _read_events(tables["events"], about),
        _read_batches(about["batch_lines"]),
        [Unreadable(*fields) for fields in about["unreadable"]],
        about["lines"],
        about["bytes"],
        about["mode"],
        about["pmu_events"],
    )
    if len(log.ops) and not (log.ops.text.min() >= 0 and log.ops.text.max() < len(texts)):
        raise ValueError("the texts of the ops belong to another export")
    if (log.events.thread >= N_THREADS).any() or (log.batches.device >= len(log.devices)).any():
        raise ValueError("a thread or device out of range")
    return log


def _column(table: Any, name: str, dtype: type) -> AnyArray:
    return np.asarray(table[name].to_numpy(), dtype)


def _codes(table: Any, name: str, values: list[str]) -> AnyArray:
    """The number of each row's text in `values`."""
    column = table[name].combine_chunks()
    if table.num_rows == 0:
        return np.empty(0, np.int64)
    if not hasattr(column, "dictionary"):  # another tool wrote the file again
        column = column.dictionary_encode()
    index = {_shown(value): number for number, value in enumerate(values)}
    codes = np.array([index[value] for value in column.dictionary.to_pylist()], np.int64)
    return np.asarray(codes[column.indices.to_numpy()])


def _read_ops(table: Any, about: dict[str, Any]) -> Ops:
    pmu = None
    if "pmu0" in table.column_names:
        pmu = np.stack([_column(table, f"pmu{i}", np.uint32) for i in range(N_PMU)], axis=1)
    device = _codes(table, "device", about["devices"]).astype(NAMES)
    return Ops(
        device,
        _column(table, "text", np.int32),
        _column(table, "usec", np.int64),
        _column(table, "cycles", np.int64),
        _column(table, "start", np.int64),
        _column(table, "line", np.int64),
        pmu,
    )


def _read_events(table: Any, about: dict[str, Any]) -> Events:
    return Events(
        _codes(table, "device", about["devices"]).astype(NAMES),
        _column(table, "thread", np.uint8),
        _codes(table, "event", about["event_names"]).astype(NAMES),
        _column(table, "stop", np.bool_),
        _column(table, "info", np.uint32),
        _column(table, "cycles", np.uint32),
        _column(table, "line", np.int64),
    )


def _read_batches(lines: dict[str, Any]) -> BatchLines:
    figures = {name: np.array(values, np.int64) for name, values in lines.items()}
    return BatchLines(
        figures["device"].astype(NAMES),
        figures["kind"].astype(np.uint8),
        figures["n_ops"],
        figures["usec"],
        figures["cycles"],
        figures["start"],
        figures["host_usec"],
        figures["stamp_us"],
        figures["line"],
        figures["evt_cnt"].reshape(-1, N_THREADS),
    )
