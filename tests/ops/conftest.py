"""Fixtures of the op tests."""

from __future__ import annotations

import pytest

from hexnpu.plan import rowwise


@pytest.fixture(params=[rowwise.MIN_THREAD_BYTES, 64], ids=["planned", "spread"])
def spread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row-wise ops once as planned, once with work given to as many threads as there are."""
    monkeypatch.setattr(rowwise, "MIN_THREAD_BYTES", request.param)
