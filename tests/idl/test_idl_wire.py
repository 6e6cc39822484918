"""Scalars and buffer layout equal those of the real compiler, as its public output shows them.

PUBLIC: from the generated stubs and skels in qualcomm/fastrpc. EVERY: from what the published compiler (qualcomm/QAIC,
10051) makes of every.idl, less what it refuses there (arrays of arrays, modules, handles of methods). Both hold facts
only: method, in and out buffers, bytes of the primitive in and out buffer.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from hexnpu.idl.emit import buffer_counts, method_number
from hexnpu.idl.model import Interface
from hexnpu.idl.wire import Record
from tests.idl.generated import HERE, read_unit, write_files

# method: (in buffers, out buffers, bytes in, bytes out)
Facts = dict[str, tuple[int, int, int, int]]

PUBLIC: dict[str, Facts] = {
    "dspqueue_rpc": {
        "open": (2, 0, 4, 0), "close": (0, 0, 0, 0), "init_process_state": (1, 0, 4, 0), "create_queue": (1, 1, 12, 8),
        "destroy_queue": (1, 0, 8, 0), "is_imported": (1, 1, 8, 4), "wait_signal": (0, 1, 0, 4),
        "cancel_wait_signal": (0, 0, 0, 0), "signal": (0, 0, 0, 0),
    },
    "remotectl1": {
        "open": (2, 0, 4, 0), "close": (0, 0, 0, 0), "open1": (2, 2, 8, 8), "close1": (1, 2, 8, 4),
        "grow_heap": (1, 0, 8, 0), "set_param": (2, 0, 8, 0),
    },
    "adspmsgd_adsp1": {
        "open": (2, 0, 4, 0), "close": (0, 0, 0, 0), "init2": (0, 0, 0, 0), "deinit": (0, 0, 0, 0),
        "init3": (1, 1, 24, 8), "wait": (0, 1, 0, 8),
    },
    "adsp_perf1": {
        "open": (2, 0, 4, 0), "close": (0, 0, 0, 0), "enable": (1, 0, 4, 0), "get_usecs": (1, 1, 4, 0),
        "get_keys": (1, 2, 4, 8),
    },
    "apps_mem": {
        "request_map": (1, 1, 20, 8), "request_unmap": (1, 0, 8, 0), "request_map64": (1, 1, 32, 16),
        "request_unmap64": (1, 0, 16, 0), "share_map": (1, 1, 8, 16), "share_unmap": (1, 0, 12, 0),
        "dma_handle_map": (1, 0, 12, 0), "dma_handle_unmap": (1, 0, 8, 0),
    },
    "apps_std": {
        "fopen": (3, 1, 8, 4), "freopen": (3, 1, 12, 4), "fflush": (1, 0, 4, 0), "fclose": (1, 0, 4, 0),
        "fread": (1, 2, 8, 8), "fwrite": (2, 1, 8, 8), "fgetpos": (1, 2, 8, 4), "fsetpos": (2, 0, 8, 0),
        "ftell": (1, 1, 4, 4), "fseek": (1, 0, 12, 0), "flen": (1, 1, 4, 8), "rewind": (1, 0, 4, 0),
        "feof": (1, 1, 4, 4), "ferror": (1, 1, 4, 4), "clearerr": (1, 0, 4, 0), "print_string": (2, 0, 4, 0),
        "getenv": (2, 2, 8, 4), "setenv": (3, 0, 12, 0), "unsetenv": (2, 0, 4, 0), "fopen_with_env": (5, 1, 16, 4),
        "fgets": (1, 2, 8, 4), "get_search_paths_with_env": (-1, -1, 12, 6), "fileExists": (2, 1, 4, 1),
        "fsync": (1, 0, 4, 0), "fremove": (2, 0, 4, 0), "fdopen_decrypt": (1, 1, 4, 4), "opendir": (2, 1, 4, 8),
        "closedir": (1, 0, 8, 0), "readdir": (1, 1, 8, 264), "mkdir": (2, 0, 8, 0), "rmdir": (2, 0, 4, 0),
        "stat": (2, 1, 8, 96), "ftrunc": (1, 0, 12, 0), "frename": (3, 0, 12, 0), "fopen_fd": (3, 1, 12, 8),
        "fclose_fd": (1, 0, 8, 0), "fopen_with_env_fd": (5, 1, 20, 8),
    },
    "adsp_listener": {
        "next_invoke": (-1, -1, 24, 12), "invoke_get_in_bufs": (-1, -1, 8, 0), "init": (0, 0, 0, 0),
        "init2": (0, 0, 0, 0), "next2": (2, 2, 16, 16), "get_in_bufs2": (1, 2, 12, 4),
    },
}  # fmt: skip

EVERY: Facts = {
    "open": (2, 0, 4, 0), "close": (0, 0, 0, 0), "nothing": (0, 0, 0, 0), "integers": (1, 0, 64, 0),
    "classic": (1, 0, 64, 0), "back": (0, 1, 0, 40), "both": (1, 1, 24, 24), "sequences": (6, 5, 40, 1),
    "strings": (5, 4, 32, 0), "structs": (3, 3, 156, 112), "nested_in": (-1, -1, 60, 0),
    "nested_back": (-1, -1, 24, 36), "mixed": (-1, -1, 60, 8),
}  # fmt: skip

# A few scalars written out, as they stand in logs: method << 24 | in << 16 | out << 8 | in handles << 4 | out handles.
SCALARS = {
    ("dspqueue_rpc", "open"): 0x00020001, ("dspqueue_rpc", "close"): 0x01000010,
    ("dspqueue_rpc", "create_queue"): 0x03010100, ("remotectl1", "open1"): 0x02020200,
    ("apps_std", "fopen"): 0x00030100, ("apps_std", "rmdir"): 0x1E020000, ("apps_std", "stat"): 0x1F020100,
    ("apps_std", "fopen_with_env_fd"): 0x1F050100,
}  # fmt: skip


def facts(record: Record, index: int) -> tuple[int, int, int, int]:
    """-1: the number of buffers depends on the values."""
    buffers = (-1, -1) if record.is_nested else buffer_counts(record)
    return *buffers, record.in_bytes, record.out_bytes


def by_method(interface: Interface) -> Facts:
    return {m.name: facts(interface.record(i), i) for i, m in enumerate(interface.methods)}


@pytest.mark.parametrize("name", PUBLIC)
def test_layout_equals_the_public_generated_code(name: str) -> None:
    interface = next(i for i in read_unit(HERE / "public.idl").interfaces if i.c == name)
    assert by_method(interface) == PUBLIC[name]


def test_layout_equals_the_published_compiler() -> None:
    ours = by_method(next(i for i in read_unit(HERE / "every.idl").interfaces if i.c == "every"))
    assert {name: value for name, value in ours.items() if name in EVERY} == EVERY


def test_offsets_follow_alignment() -> None:
    """Offsets that the public skels of apps_mem and adspmsgd copy from, lengths among them in declared order."""
    unit = read_unit(HERE / "public.idl")
    listener, mem = (next(i for i in unit.interfaces if i.c == name) for name in ("adsp_listener", "apps_mem"))
    assert [slot.in_at for slot in mem.record(2).slots if slot.parameter.goes_in] == [0, 4, 8, 16, 24]
    assert [slot.out_at for slot in mem.record(2).slots if slot.parameter.comes_out] == [0, 8]
    lengths = [(slot.in_at, slot.room_at) for slot in listener.record(4).slots]
    assert lengths == [(0, 0), (4, 0), (8, 0), (0, 0), (0, 0), (0, 0), (0, 12), (0, 0)]


@pytest.mark.parametrize(("interface", "method"), SCALARS)
def test_scalars(interface: str, method: str, tmp_path: Path) -> None:
    """The scalars as the generated stub writes them, taken from its text."""
    unit = write_files(HERE / "public.idl", tmp_path)
    found = next(i for i in unit.interfaces if i.c == interface)
    index = [m.name for m in found.methods].index(method)
    record = found.record(index)
    ins, outs = buffer_counts(record)
    handles = record.in_handles << 4 | record.out_handles
    assert method_number(index) << 24 | ins << 16 | outs << 8 | handles == SCALARS[interface, method]
    numbers = f"{ins}, {outs}, {record.in_handles}, {record.out_handles})"
    if index >= 2 or not found.has_handle:
        text = (tmp_path / f"{interface}_stub.c").read_text().split(f" {found.function(found.methods[index])}(")[1]
        assert f"REMOTE_SCALARS_MAKEX(0, {method_number(index)}, {numbers}" in text.split("\n}\n")[0]
    skel = (tmp_path / f"{interface}_skel.c").read_text().split(f"idl_skel_{method}(")[1]
    assert f"REMOTE_SCALARS_MAKEX(0, 0, {numbers}" in skel.split("\n}\n")[0]
