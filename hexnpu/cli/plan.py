"""`hexnpu plan`: the fused ops of one step of a model, as the NPU would get them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from hexnpu.graph import Graph, Tensor
    from hexnpu.group_graph import GroupGraph
    from hexnpu.plan.base import Device
    from hexnpu.planner import PlannedOp


def plan(
    model_path: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The GGUF file of a llama model.", show_default=False)
    ],
    n_tokens: Annotated[int, typer.Option("--tokens", min=1, help="Tokens of the step; 1 is generation.")] = 1,
    n_kv: Annotated[int, typer.Option("--kv", min=1, help="Rows of the KV cache that the step sees.")] = 256,
    kv_type: Annotated[str, typer.Option("--kv-type", help="Type of the KV cache: f16 or q8_0.")] = "f16",
    threads: Annotated[int, typer.Option("-t", "--threads", min=1, max=10, help="HVX threads.")] = 4,
    vtcm_mib: Annotated[int, typer.Option("--vtcm", help="VTCM in MiB: 2, 4 or 8.")] = 8,
    arch: Annotated[str, typer.Option(metavar="v73|v75|v79|v81", help="The NPU's architecture.")] = "v79",
    devices: Annotated[str, typer.Option("-d", "--devices", help="The NPU, or several: HTP0:0,HTP1:0.")] = "HTP0:0",
    split_mode: Annotated[str, typer.Option("--split-mode", help="Over several NPUs: layer or tensor.")] = "layer",
    devices_weights: Annotated[
        str | None,
        typer.Option("--devices-weights", help="Each NPU's share, as 3,1.", show_default="equal shares"),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every op, not one line for equal ones.")] = False,
) -> None:
    """Show the fused ops of one step: kernel, shapes, types, threads, VTCM and weight bytes. Nothing is run."""
    from rich.console import Console

    from hexnpu.errors import UsageError
    from hexnpu.models.gguf_file import read_gguf
    from hexnpu.models.llama import KV_TYPES, Llama
    from hexnpu.models.split import SplitLlama, parse_split
    from hexnpu.native import parse_arch
    from hexnpu.plan.base import Device
    from hexnpu.session import check_devices

    if kv_type not in KV_TYPES:
        raise UsageError(f"--kv-type is {kv_type!r}; it must be one of {', '.join(KV_TYPES)}")
    if vtcm_mib not in (2, 4, 8):
        raise UsageError(f"--vtcm is {vtcm_mib}; parts have 2, 4 or 8 MiB")
    n_kv = max(n_kv, n_tokens)
    names = devices.split(",")
    check_devices(names)
    split = parse_split(split_mode, devices_weights, len(names))
    model = Llama(read_gguf(model_path), n_kv, "q8_0" if kv_type == "q8_0" else "f16")
    device = Device(parse_arch(arch), threads, vtcm_mib << 20)
    # In a file or a pipe every op is one line, however long.
    console = Console(width=None if sys.stdout.isatty() else 200)
    if len(names) == 1:
        ops, apart = _plan_alone(model.graph(n_tokens, n_kv), device)
        _show(console, ops, everything)
    else:
        whole = SplitLlama(model, len(names), split)
        ranks, apart = _plan_ranks(whole.graph(n_tokens, n_kv), names, device)
        for name, share, ops in zip(names, whole.describe(), ranks, strict=True):
            print(f"\n{name}: {share}" if name != names[0] else f"{name}: {share}")
            _show(console, ops, everything)
    for reason in apart:
        print(f"not fused: {reason}")


def _plan_alone(graph: Graph, device: Device) -> tuple[list[PlannedOp], list[str]]:
    from hexnpu.fuse import fuse
    from hexnpu.planner import Planner

    planner = Planner(device)
    nodes, apart = fuse(graph, planner.refusal)
    return [planner.planned(node) for node in nodes], apart


def _plan_ranks(
    graph: GroupGraph, names: Sequence[str], device: Device
) -> tuple[list[list[PlannedOp]], list[str]]:
    """Each rank's ops, as a group of these devices plans them."""
    from dataclasses import replace

    from hexnpu.fuse import Fusion, fuse
    from hexnpu.group import vtcm_share
    from hexnpu.group_graph import fuse_sums
    from hexnpu.planner import Planner

    shares = [vtcm_share(name, names, device.vtcm_bytes) << 20 or device.vtcm_bytes for name in names]
    planners = [Planner(replace(device, vtcm_bytes=share)) for share in shares]
    taken, apart = fuse_sums(graph, [p.refusal for p in planners], Fusion.ALL)
    ranks = []
    for planner, part, places in zip(planners, graph.ranks, taken, strict=True):
        nodes, reasons = fuse(part, planner.refusal, Fusion.ALL, places)
        ranks.append([planner.planned(node) for node in nodes])
        apart += reasons
    return ranks, apart


def _show(console: Console, ops: list[PlannedOp], everything: bool) -> None:
    console.print(_table(ops, everything))
    print(_totals(ops))


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
