"""Our GGUF reader against the gguf package's, and on files that are damaged in every way."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hexnpu.models.gguf_file import GgufError, read_gguf
from hexnpu.models.llama import Llama, read_config
from tests.models.tiny import Tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Tiny(weights=gguf.GGMLQuantizationType.Q8_0, rope_freqs=True).write(tmp_path_factory.mktemp("m") / "t.gguf")


def test_reads_what_the_gguf_package_reads(tiny: Path) -> None:
    ours, theirs = read_gguf(tiny), gguf.GGUFReader(tiny)
    names = [n for n in theirs.fields if not n.startswith("GGUF.")]
    assert list(ours.fields) == names
    for name in names:
        assert ours.fields[name] == pytest.approx(theirs.fields[name].contents()), name
    assert list(ours.tensors) == [t.name for t in theirs.tensors]
    for tensor in theirs.tensors:
        mine = ours.tensors[tensor.name]
        assert (mine.type, mine.n_bytes) == (tensor.tensor_type, tensor.n_bytes)
        assert mine.ne[: len(tensor.shape)] == tuple(tensor.shape)
        np.testing.assert_array_equal(mine.read(), np.frombuffer(tensor.data.tobytes(), np.uint8))


def test_demo_model_is_the_one_the_docs_speak_of(demo_gguf: Path) -> None:
    config = read_config(read_gguf(demo_gguf))
    assert (config.n_layers, config.n_embd, config.n_heads, config.n_kv_heads) == (30, 576, 9, 3)


@pytest.mark.parametrize("size", [0, 3, 4, 8, 23, 24, 100, 5000, -1])
def test_cut_file(tiny: Path, tmp_path: Path, size: int) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(tiny.read_bytes()[:size])
    with pytest.raises(GgufError, match=r"cut\.gguf.*(cut short|not a GGUF)"):
        read_gguf(cut)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_header_never_crashes(tiny: Path, tmp_path: Path, data: st.DataObject) -> None:
    """Whatever bytes of the header are flipped: a file that reads, or a GgufError; never another exception."""
    damaged = bytearray(tiny.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, min(len(damaged), 6000) - 1))
        damaged[at] = data.draw(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255))
    path = tmp_path / "damaged.gguf"
    path.write_bytes(damaged)
    try:
        Llama(read_gguf(path), 256)
    except GgufError as error:
        assert "damaged.gguf" in str(error)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Tiny(arch="qwen3moe"), "qwen3moe"),
        (Tiny(leave_out="blk.1.ffn_up.weight"), "blk.1.ffn_up.weight is missing"),
        (Tiny(leave_out="output_norm.weight"), "output_norm.weight is missing"),
        (Tiny(n_heads=4, n_kv_heads=3), "4 query heads cannot share 3 KV heads"),
    ],
    ids=["architecture", "tensor of a layer", "tensor of the head", "heads"],
)
def test_models_that_are_refused(model: Tiny, words: str, tmp_path: Path) -> None:
    path = model.write(tmp_path / "m.gguf")
    with pytest.raises(GgufError, match=words):
        Llama(read_gguf(path), 256)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(GgufError, match="no such file"):
        read_gguf(tmp_path / "absent.gguf")
    with pytest.raises(GgufError, match="is a folder"):
        read_gguf(tmp_path)
