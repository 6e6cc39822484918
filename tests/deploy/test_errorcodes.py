"""Error codes: with and without offset, signed and unsigned, and what has no name."""

from __future__ import annotations

import pytest

from hexnpu.deploy.errorcodes import OFFSET, explain
from hexnpu.errors import UsageError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0x80000414", ["AEE_EUNSUPPORTED (NPU)"]),
        ("0x14", ["AEE_EUNSUPPORTED (host)"]),
        ("20", ["AEE_EUNSUPPORTED (host)"]),
        ("-2147482604", ["AEE_EUNSUPPORTED (NPU)"]),
        ("2147484692", ["AEE_EUNSUPPORTED (NPU)"]),
        ("0xe", ["AEE_EBADPARM (host)"]),
        ("0x8000040D", ["AEE_EBADSTATE (NPU)"]),
        ("0x2e", ["AEE_EINTERRUPTED (NPU or host)"]),
        ("0x8000042e", ["AEE_EINTERRUPTED (NPU; has no offset by the header)"]),
        ("0x27", ["AEE_ENOSUCH (NPU or host)"]),
        ("0x72", ["AEE_ECONNREFUSED (host)"]),
        ("0x80000472", ["AEE_ECONNREFUSED (NPU)"]),
        ("104", ["AEE_ECONNRESET (NPU or host)", "AEE_ENORPCMEMORY (host)"]),
        ("0x80000468", ["AEE_ENORPCMEMORY (NPU)"]),
        ("516", ["AEE_EWOULDBLOCK (NPU or host)"]),
        ("0x80000600", ["AEE_ERPC (NPU)"]),
        ("0", ["AEE_SUCCESS (NPU or host)"]),
        ("-1", ["AEE_EUNKNOWN (host)", "errno 1 (the Linux kernel)"]),
        ("-12", ["errno 12 (the Linux kernel)"]),
        ("0xfffffff4", ["errno 12 (the Linux kernel)"]),
        ("4294967295", ["AEE_EUNKNOWN (host)", "errno 1 (the Linux kernel)"]),
        ("0x203", []),
        ("0x12345", []),
    ],
)
def test_explain(text: str, names: list[str]) -> None:
    assert [str(m).partition(":")[0] for m in explain(text)] == names


@pytest.mark.parametrize("text", ["", "AEE_EFAILED", "0x", "1e3", "0x1ffffffff", "-2147483649"])
def test_no_number(text: str) -> None:
    with pytest.raises(UsageError):
        explain(text)


def test_every_code_has_words_on_both_sides() -> None:
    """The header has 180 codes with an offset (of names for one number the table has one)."""
    named = [c for c in range(0x400) if any("offset" not in m.side for m in explain(hex(OFFSET + c)))]
    assert len(named) == 180
    for code in named:
        (npu,) = explain(hex(OFFSET + code))
        assert npu.words and npu.name in {m.name for m in explain(hex(code))}
