"""`hexnpu plan`: the fused ops of one step of a model, as the NPU would get them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from hexnpu.graph import Tensor
    from hexnpu.planner import PlannedOp


def plan(
    model: Annotated[Path, typer.Argument(help="The GGUF file of a llama model.", show_default=False)],
    n_tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens of the step; 1 is generation.")] = 1,
    n_kv: Annotated[int, typer.Option("--kv", min=1, help="Rows of the KV cache that the step sees.")] = 256,
    kv_type: Annotated[str, typer.Option("--kv-type", help="Type of the KV cache: f16 or q8_0.")] = "f16",
    threads: Annotated[int, typer.Option("-t", "--threads", min=1, max=10, help="HVX threads.")] = 4,
    vtcm_mib: Annotated[int, typer.Option("--vtcm", help="VTCM in MiB: 2, 4 or 8.")] = 8,
    arch: Annotated[int, typer.Option("--arch", help="73, 75, 79 or 81.")] = 79,
    everything: Annotated[bool, typer.Option("--all", help="Every op, not one line for equal ones.")] = False,
) -> None:
    """Show the fused ops of one step: kernel, shapes, types, threads, VTCM and weight bytes. Nothing is run."""
    from rich.console import Console

    from hexnpu.errors import UsageError
    from hexnpu.fuse import fuse
    from hexnpu.models.gguf_file import read_gguf
    from hexnpu.models.llama import KV_TYPES, Llama
    from hexnpu.native import ARCHS
    from hexnpu.plan.base import Device
    from hexnpu.planner import Planner

    if kv_type not in KV_TYPES:
        raise UsageError(f"--kv-type is {kv_type!r}; it must be one of {', '.join(KV_TYPES)}")
    if vtcm_mib not in (2, 4, 8):
        raise UsageError(f"--vtcm is {vtcm_mib}; parts have 2, 4 or 8 MiB")
    if arch not in ARCHS:
        raise UsageError(f"--arch is {arch}; it must be one of {', '.join(map(str, ARCHS))}")
    n_kv = max(n_kv, n_tokens)
    graph = Llama(read_gguf(model), n_kv, "q8_0" if kv_type == "q8_0" else "f16").graph(n_tokens, n_kv)
    planner = Planner(Device(arch, threads, vtcm_mib << 20))
    nodes, apart = fuse(graph, planner.refusal)
    ops = [planner.planned(node) for node in nodes]
    # In a file or a pipe every op is one line, however long.
    Console(width=None if sys.stdout.isatty() else 200).print(_table(ops, everything))
    print(_totals(ops))
    for reason in apart:
        print(f"not fused: {reason}")


def _table(ops: list[PlannedOp], everything: bool) -> Table:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("n", justify="right", no_wrap=True)
    table.add_column("op", no_wrap=True)
    for name in ("dims", "types", "kernel"):
        table.add_column(name, overflow="fold")
    for name in ("threads", "VTCM", "weights"):
        table.add_column(name, justify="right", no_wrap=True)
    groups: dict[tuple[str, ...], int] = {}
    for op in ops:
        row = _row(op)
        # With --all each op is a group of its own.
        key = (*row, str(len(groups))) if everything else row
        groups[key] = groups.get(key, 0) + 1
    for key, count in groups.items():
        table.add_row(str(count), *key[:7])
    return table


def _row(op: PlannedOp) -> tuple[str, ...]:
    dims = " x ".join(_dims(t) for t in op.node.src if t) + " -> " + " + ".join(_dims(t) for t in op.node.dst)
    types = " x ".join(t.type.name.lower() for t in op.node.src if t) + " -> " + op.node.dst[0].type.name.lower()
    if op.plan is None:
        return (op.node.op, dims, types, f"numpy: {op.reason}", "-", "-", _kib(_weight_bytes(op)))
    plan = op.plan
    return (
        op.node.op, dims, types, plan.kernel_name, str(plan.n_threads), _kib(plan.vtcm_bytes),
        _kib(_weight_bytes(op)),
    )  # fmt: skip


def _totals(ops: list[PlannedOp]) -> str:
    on_npu = sum(op.plan is not None for op in ops)
    vtcm = max((op.plan.vtcm_bytes for op in ops if op.plan), default=0)
    weights = {id(t.root): t.root for op in ops for t in _weights(op)}
    return (
        f"{len(ops)} ops, {on_npu} on the NPU, {len(ops) - on_npu} in numpy; most VTCM of an op {_kib(vtcm)}; "
        f"weights {sum(t.desc.span_bytes for t in weights.values()) / 2**20:.1f} MiB, "
        f"{sum(_weight_bytes(op) for op in ops) / 2**20:.1f} MiB read a step"
    )


def _weights(op: PlannedOp) -> list[Tensor]:
    from hexnpu.graph import Kind

    return [t for t in op.node.src if t is not None and t.root.kind is Kind.WEIGHT]


def _weight_bytes(op: PlannedOp) -> int:
    """Bytes of weights that the op reads: all of a matrix, but only the rows that get_rows looks up."""
    if op.node.op == "GET_ROWS":
        return sum(op.node.dst[0].desc.n_rows * t.desc.row_bytes for t in _weights(op))
    return sum(t.desc.span_bytes for t in _weights(op))


def _dims(t: Tensor) -> str:
    ne = t.ne
    while len(ne) > 1 and ne[-1] == 1:
        ne = ne[:-1]  # type: ignore[assignment]
    return ":".join(map(str, ne))


def _kib(n_bytes: int) -> str:
    return f"{n_bytes / 1024:.0f} KiB" if n_bytes else "-"
