"""A model split over ranks is the same model: shares, each rank's weights, logits of the one-NPU run, llama.cpp's."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

import hexnpu
from hexnpu import UsageError
from hexnpu.group import Group
from hexnpu.models.engine import Engine
from hexnpu.models.gguf_file import read_gguf
from hexnpu.models.llama import Llama
from hexnpu.models.split import Share, Split, SplitLlama, SplitMode, WeightSlice, cut, cut_heads, parse_split
from hexnpu.models.tokenizer import ChatTokenizer
from tests.models.agreement import DEVICES, TEXTS, logits
from tests.models.tiny import Tiny

TEXT = "the thing and the wind is in it, and the end of the ring"
Q = gguf.GGMLQuantizationType


def sizes(shares: list[Share]) -> list[int]:
    assert shares[0].first == 0 and all(a.end == b.first for a, b in pairwise(shares))
    return [s.n for s in shares]


# Shares


@pytest.mark.parametrize(
    ("n", "weights", "step", "want"),
    [
        (30, (1, 1), 1, [15, 15]), (30, (3, 1), 1, [23, 7]), (30, (1, 1, 1, 1), 1, [8, 7, 8, 7]),
        (1536, (1, 1, 1), 32, [512, 512, 512]), (1536, (1, 1), 256, [768, 768]),
        (96, (1, 1, 1, 1), 32, [32, 32, 0, 32]),
        (2, (1, 1, 1), 1, [1, 0, 1]), (10, (1, 0), 1, [10, 0]), (10, (0, 1), 1, [0, 10]),
    ],
)  # fmt: skip
def test_cut(n: int, weights: tuple[float, ...], step: int, want: list[int]) -> None:
    assert sizes(cut(n, weights, [*range(0, n, step), n])) == want


@pytest.mark.parametrize(
    ("heads", "kv", "n_ranks", "block", "want"),
    [
        (9, 3, 1, 32, [9]), (9, 3, 2, 32, [6, 3]), (9, 3, 3, 32, [3, 3, 3]), (9, 3, 4, 32, [3, 2, 1, 3]),
        (32, 8, 4, 32, [8, 8, 8, 8]), (8, 1, 4, 32, [2, 2, 2, 2]), (4, 4, 3, 32, [1, 2, 1]),
        (2, 2, 4, 32, [1, 0, 1, 0]), (32, 8, 2, 256, [16, 16]), (9, 3, 2, 192, [6, 3]),
    ],
)  # fmt: skip
def test_cut_heads(heads: int, kv: int, n_ranks: int, block: int, want: list[int]) -> None:
    """Heads of 64: whole groups, or parts of one, and cuts at blocks only."""
    shares = cut_heads(heads, kv, (1.0,) * n_ranks, lambda h: h * 64 % block == 0)
    assert sizes(shares) == want
    group = heads // kv
    for s in shares:
        assert s.first * 64 % block == 0 or not s.n
        assert (s.first % group == 0 and s.n % group == 0) or s.first // group == (s.end - 1) // group


def test_heads_that_no_cut_between_blocks_serves() -> None:
    with pytest.raises(UsageError, match="--split-mode layer"):
        cut_heads(6, 2, (1.0,) * 3, lambda h: h % 2 == 0)  # 3 heads a group, blocks of 2 heads


@pytest.mark.parametrize(
    ("mode", "weights", "says"),
    [("row", None, "--split-mode is 'row'"), ("layer", "1,a", "must be numbers"), ("layer", "1,,2", "must be numbers")],
)
def test_splits_that_cannot_be_read(mode: str, weights: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse_split(mode, weights, 2)


def test_one_device_has_nothing_to_split() -> None:
    assert parse_split("layer", None, 1) == Split()
    with pytest.raises(UsageError, match="--split-mode tensor is for several devices"):
        parse_split("tensor", None, 1)
    with pytest.raises(UsageError, match="--devices-weights is for several devices"):
        parse_split("layer", "3,1", 1)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, -1.0), (0.0, 0.0), (1.0, float("inf")), (1.0, float("nan"))])
def test_shares_that_are_none(weights: tuple[float, ...], tmp_path: Path) -> None:
    model = Llama(read_gguf(Tiny().write(tmp_path / "t.gguf")), 256)
    with pytest.raises(UsageError, match="of 2 devices"):
        SplitLlama(model, 2, Split("layer", weights))


@pytest.mark.parametrize("type", [Q.F32, Q.Q8_0, Q.Q4_1])
def test_slices_of_a_weight(type: Q, tmp_path: Path) -> None:
    """Rows and columns of what the gguf package reads."""
    path = Tiny(weights=type).write(tmp_path / "t.gguf")
    (theirs,) = (t for t in gguf.GGUFReader(path).tensors if t.name == "blk.1.ffn_down.weight")
    whole = gguf.quants.dequantize(theirs.data, theirs.tensor_type)
    source = read_gguf(path).tensor(theirs.name)
    for rows, cols in ((Share(3, 17), None), (None, Share(32, 96)), (Share(1, 2), Share(0, 32))):
        part = WeightSlice(source, rows, cols)
        raw = part.read().reshape(part.ne[1], -1)
        got = raw.view(np.float32) if type == Q.F32 else gguf.quants.dequantize(raw, type)
        r, c = rows or Share(0, 64), cols or Share(0, 96)
        assert part.ne[:2] == (c.n, r.n)
        np.testing.assert_array_equal(got, whole[r.first : r.end, c.first : c.end])


# Whole models


def nmse(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    return float(np.sum((a.astype(np.float64) - b) ** 2) / np.sum(b.astype(np.float64) ** 2))


SHAPES = {
    "grouped": Tiny(),
    "one KV head": Tiny(n_kv_heads=1),
    "no grouping": Tiny(n_kv_heads=4),
    "fewer heads than ranks": Tiny(n_heads=2, n_kv_heads=2),
    "tied head": Tiny(tied=True),
    "narrow FFN": Tiny(n_ff=32),
    "one layer": Tiny(n_layers=1),
    "rope factors": Tiny(rope_freqs=True),
}


@pytest.mark.parametrize("mode", ["layer", "tensor"])
@pytest.mark.parametrize("name", SHAPES)
def test_small_models_of_floats(name: str, mode: SplitMode, tmp_path: Path) -> None:
    """Every rank count gives the one-NPU run's logits but for the order of sums; in layers, its very bits."""
    file = read_gguf(SHAPES[name].write(tmp_path / "tiny.gguf"))
    tokens = ChatTokenizer(file).encode(TEXT)
    want = logits(file, tokens, 1)
    for n_ranks, weights in ((2, None), (3, None), (4, None), (2, (3.0, 1.0)), (3, (0.0, 1.0, 2.0))):
        got = logits(file, tokens, n_ranks, Split(mode, weights))
        error = nmse(got, want)
        assert error == 0 if mode == "layer" else error < 1e-10, (n_ranks, weights, error)


@pytest.mark.parametrize("type", [Q.Q4_0, Q.Q4_1, Q.Q8_0, Q.F16])
def test_small_models_of_blocks(type: Q, tmp_path: Path) -> None:
    """Cut between blocks, so the activations' blocks are the same; what is left is a rounding that tips over."""
    file = read_gguf(Tiny(n_embd=128, n_ff=192, weights=type).write(tmp_path / "tiny.gguf"))
    tokens = ChatTokenizer(file).encode(TEXT)
    want = logits(file, tokens, 1)
    for n_ranks in (2, 3, 4):
        assert nmse(logits(file, tokens, n_ranks, Split("tensor")), want) < 2e-4, n_ranks


@pytest.mark.parametrize("type", [Q.Q4_0, Q.Q4_1, Q.Q8_0])
def test_small_models_of_blocks_cut_between_sections(type: Q, tmp_path: Path) -> None:
    """The sums are those of one NPU but for one in a million, so that nearly all logits have the same bits."""
    model = Tiny(n_layers=4, n_embd=256, n_heads=8, n_ff=640, weights=type, biases=True)
    file = read_gguf(model.write(tmp_path / "tiny.gguf"))
    tokens = ChatTokenizer(file).encode(TEXT)
    want = logits(file, tokens, 1)
    for n_ranks, weights in ((2, None), (3, None), (4, None), (2, (3.0, 1.0)), (3, (0.0, 1.0, 2.0))):
        got = logits(file, tokens, n_ranks, Split("tensor", weights))
        assert np.mean((got == want).all(axis=1)) > 0.9, (n_ranks, weights)


def test_weights_go_to_their_rank_only(tmp_path: Path) -> None:
    model = Tiny(n_layers=4, n_embd=128, n_ff=512)
    file = read_gguf(model.write(tmp_path / "tiny.gguf"))
    layer_bytes = sum(t.n_bytes for n, t in file.tensors.items() if n.startswith("blk.") and len(t.ne) > 1)
    for mode in ("layer", "tensor"):
        with hexnpu.open(devices=DEVICES[:2], n_threads=1, strict=True) as group:
            assert isinstance(group, Group)
            Engine(group, file, 256, split=parse_split(mode, None, 2)).evaluate([1, 2, 3])
            used = [s.memory.weight_bytes for s in group.sessions]
        head = file.tensor("output.weight").n_bytes + file.tensor("token_embd.weight").n_bytes
        assert max(used) < layer_bytes / 2 * 1.1 + head
        assert sum(used) < (layer_bytes + head) * 1.1


def test_biases_are_added_once(tmp_path: Path) -> None:
    """A bias of attn_output and ffn_down belongs to the sum, not to each part."""
    path = Tiny(biases=True).write(tmp_path / "tiny.gguf")
    file = read_gguf(path)
    assert "blk.0.ffn_down.bias" in file.tensors
    tokens = ChatTokenizer(file).encode(TEXT)
    want = logits(file, tokens, 1)
    for n_ranks in (2, 3):
        assert nmse(logits(file, tokens, n_ranks, Split("tensor")), want) < 1e-10


def test_ranks_as_threads_under_tsan(tmp_path: Path) -> None:
    """Cache writes, hand-overs and sums of a whole model: no rank touches what another one is at."""
    file = read_gguf(Tiny().write(tmp_path / "tiny.gguf"))
    tokens = ChatTokenizer(file).encode(TEXT)[:6]
    want = logits(file, tokens, 1)
    for mode in ("layer", "tensor"):
        group = hexnpu.open(
            devices=DEVICES[:2], n_threads=2, flavour="tsan", strict=True,
            env={"HEXNPU_EMU_SESSIONS": "threads", "HEXNPU_EMU_SKEW": "5"},
        )  # fmt: skip
        engine = Engine(group, file, 256, split=parse_split(mode, None, 2))
        with group:
            got = np.concatenate([engine.evaluate(tokens[:3], 3), *(engine.evaluate([t]) for t in tokens[3:])])
        assert nmse(got, want) < 1e-10


# The demo model


def as_halves(model: Path, path: Path) -> Path:
    """The same model with its weights as halves, written by the gguf package."""
    reader, writer = gguf.GGUFReader(model), gguf.GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            kind = field.types[0]
            writer.add_key_value(name, field.contents(), kind, field.types[-1] if kind.name == "ARRAY" else None)
    for t in reader.tensors:
        data = gguf.quants.dequantize(t.data, t.tensor_type)
        writer.add_tensor(t.name, data.astype(np.float32 if data.ndim == 1 else np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def top1(a: list[NDArray[np.float32]], b: list[NDArray[np.float32]]) -> float:
    same = np.concatenate([x.argmax(1) == y.argmax(1) for x, y in zip(a, b, strict=True)])
    assert len(same) >= 500
    return float(same.mean())


MORE_TEXTS = (
    "Dear Ms Okafor, thank you for your letter of 3 March. We have looked at the two invoices again (nos. 4471 and "
    "4489) and found that the second one was sent in error: the pump had already been paid for. Please disregard "
    "it. A credit of 212.50 euros will appear on your account within ten days. We apologise for the trouble and "
    "remain, yours sincerely,",
    "To make the dough, mix 500 g of flour with 7 g of dry yeast, a spoonful of sugar and 10 g of salt. Add 320 ml "
    "of lukewarm water and knead for ten minutes, until it is smooth and no longer sticks to your hands. Cover the "
    "bowl and let it rest in a warm place for an hour. Meanwhile, chop the onions, fry them slowly in olive oil, "
    "and",
    "SELECT customers.name, COUNT(orders.id) AS n FROM customers LEFT JOIN orders ON orders.customer_id = "
    "customers.id WHERE orders.created_at >= '2021-01-01' GROUP BY customers.name HAVING COUNT(orders.id) > 5 "
    "ORDER BY n DESC LIMIT 10;",
    "Q: A train leaves the station at 9:15 and travels 180 km at 72 km/h. When does it arrive?\nA: It travels for "
    "180 / 72 = 2.5 hours, so it arrives at 11:45.\nQ: A box holds 24 bottles of 0.33 litres each. How many litres "
    "are in five boxes?\nA:",
)


@pytest.mark.slow
def test_demo_model_in_layers_is_the_one_npu_run(demo_gguf: Path) -> None:
    file = read_gguf(demo_gguf)
    texts = [ChatTokenizer(file).encode(text) for text in TEXTS.values()]
    want = [logits(file, t, 1) for t in texts]
    for n_ranks in (2, 3, 4):
        got = [logits(file, t, n_ranks, Split("layer")) for t in texts]
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True)), n_ranks


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["as they are", "halves"])
def test_demo_model_side_by_side_agrees_with_the_one_npu_run(weights: str, demo_gguf: Path, tmp_path: Path) -> None:
    """The same top-1 in 99.5 %, and with blocks (Q4_1, Q8_0) the same bits of all logits in 95 %.

    With quantized weights activations are rounded to 8 bits before each product, so that one sum whose last bit differs
    can tip one over, and layer by layer that would grow into the noise of the rounding.
    """
    file = read_gguf(demo_gguf if weights != "halves" else as_halves(demo_gguf, tmp_path / "halves.gguf"))
    texts = [ChatTokenizer(file).encode(text) for text in (*TEXTS.values(), *MORE_TEXTS)]
    want = [logits(file, t, 1) for t in texts]
    for n_ranks, shares in ((2, None), (3, None), (4, None), (2, (3.0, 1.0))):
        got = [logits(file, t, n_ranks, Split("tensor", shares)) for t in texts]
        same = np.mean(np.concatenate([(a == b).all(axis=1) for a, b in zip(got, want, strict=True)]))
        print(weights, n_ranks, shares, sum(map(len, got)), "positions, top-1", top1(got, want), "same bits", same)
        assert top1(got, want) >= 0.995, (n_ranks, shares)
        assert weights == "halves" or same >= 0.95, (n_ranks, shares)
