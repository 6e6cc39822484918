"""Generated stubs and skels call each other: what goes in arrives, what comes back arrives, and lies are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hexnpu.idl.model import Unit
from tests.idl.generated import build, every_idl, run, seen, write_files


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> tuple[Unit, Path]:
    folder = tmp_path_factory.mktemp("every")
    return write_files(every_idl(folder), folder), folder


@pytest.fixture(scope="module")
def programs(every: tuple[Unit, Path]) -> dict[str, Path]:
    unit, folder = every
    return {interface.c: build(unit, interface.c, folder) for interface in unit.interfaces}


@pytest.mark.parametrize("name", ["every", "plain"])
@pytest.mark.parametrize("seed", [1, 20, 300])
def test_values_arrive(programs: dict[str, Path], every: tuple[Unit, Path], name: str, seed: int) -> None:
    """Random values of every kind, sequences from none to thousands of elements, some calls that fail."""
    output = run([str(programs[name]), str(seed), "40"])
    methods = next(i for i in every[0].interfaces if i.c == name).methods
    for what in ("in", "out"):
        callers = seen(output, "caller", what)
        assert callers == seen(output, "callee", what)
        expected = {f"{m.name}.{p.name}" for m in methods[2 * (name == "every") :] for p in m.parameters
                    if what == "in" or p.comes_out}  # fmt: skip
        assert {line.split()[0] for line in callers} == expected


def test_sequences_empty_and_long(programs: dict[str, Path]) -> None:
    """The random lengths have what the test is about: buffers of no byte and of tens of thousands."""
    wire = [line for line in run([str(programs["every"]), "5", "40"]).splitlines() if line.startswith("wire ")]
    sizes = {int(part[1:].split(":")[0]) for line in wire for part in line.split()[2:]}
    assert 0 in sizes
    assert max(sizes) > 20_000


@pytest.mark.parametrize("name", ["every", "plain"])
@pytest.mark.parametrize("seed", [7, 8, 9])
def test_lies_are_refused(programs: dict[str, Path], name: str, seed: int) -> None:
    """Wrong lengths, sizes, counts and methods: no byte beyond a buffer is touched (the sanitizers see to it)."""
    run([str(programs[name]), str(seed), "300", "2"])
