"""The user DMA engine and the queue over it: dma_rules.c, in every mode, with narrow (v73) and wide descriptors."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hexnpu.native import Target, compile_program, kernels_dir

HERE = Path(__file__).parent
RUNTIME = ("runtime/dma-queue.c", "runtime/trace.c")
MODES = ("lazy", "eager", "random:1", "random:77")


def rules(case: str, mode: str = "lazy", arch: int = 79, flavour: str = "asan") -> subprocess.CompletedProcess[str]:
    platform = sorted((kernels_dir() / "platform/emu").glob("*.c"))
    sources = [HERE / "dma_rules.c", *platform, *(kernels_dir() / s for s in RUNTIME)]
    program = compile_program("dma-rules", sources, Target(flavour, arch))
    return subprocess.run(
        [program, case], capture_output=True, text=True, check=False, env={**os.environ, "HEXNPU_EMU_DMA": mode}
    )


def passes(case: str, mode: str = "lazy", arch: int = 79) -> str:
    result = rules(case, mode, arch)
    assert result.returncode == 0, f"{case} in mode {mode}: {result.stdout}{result.stderr}"
    return result.stdout


@pytest.mark.parametrize("case", ["lazy", "poll", "link", "pause", "stride_zero"])
def test_lazy(case: str) -> None:
    passes(case)


def test_eager() -> None:
    passes("eager", "eager")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", ["two_d", "two_d_wide", "fifo", "drain"])
def test_every_mode(case: str, mode: str) -> None:
    passes(case, mode)


@pytest.mark.parametrize("arch", [73, 79])
@pytest.mark.parametrize("case", ["large_row", "limits", "fifo"])
def test_transfers_larger_than_a_descriptor(case: str, arch: int) -> None:
    passes(case, "random:5", arch)


def test_random_orders_differ_by_seed_and_repeat() -> None:
    orders = [passes("random", f"random:{seed}") for seed in range(1, 9)]
    assert len(set(orders)) > 4, orders
    assert orders[0] == passes("random", "random:1")
    assert passes("random") == "last 7 order 01234567\n"


@pytest.mark.parametrize("seed", range(3))
def test_the_order_bit_orders(seed: int) -> None:
    assert passes("order", f"random:{seed}") == "last 7 order 01234567\n"


@pytest.mark.parametrize(
    ("case", "says"),
    [
        ("outside", "is outside of buffers and VTCM"),
        ("from_stack", "only buffers, VTCM and qurt_malloc memory have 32-bit addresses"),
        ("busy", "dmstart while the engine is running"),
        ("misaligned", "must be 16-byte aligned"),
        ("unknown_type", "of type 3, which is not emulated"),
        ("compressed", "compression, which is not emulated"),
        ("too_many", "more than 64 DMA transfers in flight"),
        ("pop_of_nothing", "pops a DMA transfer that it never pushed"),
        ("foreign_pop", "popped by another thread"),
    ],
)
def test_broken_rules_end_the_process(case: str, says: str) -> None:
    result = rules(case, flavour="release")
    assert result.returncode == -6, f"{case} went on: {result.stdout}"
    assert says in result.stderr


@pytest.mark.parametrize("mode", ["late", "random:", "random:x", "random:1x"])
def test_an_unknown_mode_is_refused(mode: str) -> None:
    result = rules("lazy", mode)
    assert result.returncode == 2
    assert result.stdout == "HEXNPU_EMU_DMA must be lazy, eager or random:SEED\n"
