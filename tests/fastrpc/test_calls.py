"""Calls, buffers and mappings of one session: calc_cases.c over calc_skel.c, in processes of their own."""

from __future__ import annotations

import pytest

from tests.fastrpc.programs import dsp_library, run_host

CASES = (
    "empty", "sum", "sizes", "by_reference", "registered", "low", "heap", "handle_arguments", "two_handles", "old_kind",
    "module_error", "mapped", "old_maps", "full", "large", "leaks", "async", "farf",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_call(case: str) -> None:
    result = run_host("calc_cases", case, libraries=[dsp_library("calc_skel")])
    assert result.returncode == 0, result.stderr
