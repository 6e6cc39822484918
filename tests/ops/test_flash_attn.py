"""FLASH_ATTN_EXT against float64 softmax attention on the same (dequantized) inputs."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import gguf
import numpy as np
import pytest

from hexnpu.plan.base import Device, OpSpec, Refusal, ShapeError
from hexnpu.plan.flash_attn import infer, pack, plan, reference, slopes
from hexnpu.tensor import Desc, Type
from tests.ops.ggml_cpu import Ggml
from tests.ops.harness import (
    Arg,
    Config,
    View,
    check_op,
    desc_of,
    nmse,
    plan_of,
    reference_of,
    run_op,
    spec_of,
    values_of,
)
from tests.ops.rows_cases import FalsePlan
from tests.ops.test_rows_pipe import changed, false_words

# On the dequantized inputs only float32 rounding is left (qfloat's before v79); OPS.md allows 5e-4 and 5e-3.
QFLOAT = Config().arch < 79
BOUND = 1e-9 if QFLOAT else 1e-11
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """Sizes as ggml names them; `kv_type` of K and V."""

    d: int = 64
    dv: int = 0  # 0 = d
    heads: int = 6
    kv_heads: int = 2
    tokens: int = 1
    kv: int = 96
    batch: int = 1
    kv_batch: int = 0  # 0 = batch
    k_type: Type = Type.F16
    v_type: Type = Type.F16
    q_type: Type = Type.F32
    mask: str = "causal"  # causal, none, random, padded
    sinks: bool = False
    seed: int = 1
    views: tuple[View, View, View, View] = (View(), View(), View(), View())

    def inputs(self) -> list[Arg | None]:
        rng = np.random.default_rng(self.seed)
        dv, kv_batch = self.dv or self.d, self.kv_batch or self.batch
        q = rng.standard_normal((self.batch, self.heads, self.tokens, self.d))
        k = rng.standard_normal((kv_batch, self.kv_heads, self.kv, self.d))
        v = rng.standard_normal((kv_batch, self.kv_heads, self.kv, dv))
        mask = None if self.mask == "none" else Arg(self._mask(rng), Type.F16, self.views[3])
        sinks = Arg(rng.standard_normal(self.heads)) if self.sinks else None
        return [
            Arg(q, self.q_type, self.views[0]), Arg(k, self.k_type, self.views[1]), Arg(v, self.v_type, self.views[2]),
            mask, sinks,
        ]  # fmt: skip

    def _mask(self, rng: np.random.Generator) -> Array:
        token, col = np.arange(self.tokens)[:, None], np.arange(self.kv)[None, :]
        if self.mask == "random":
            m = np.where(rng.random((self.tokens, self.kv)) < 0.3, -np.inf, rng.standard_normal((self.tokens, self.kv)))
            m[0] = -np.inf  # a row that sees nothing
            return m
        m = np.where(col <= token + self.kv - self.tokens, 0.0, -np.inf)
        if self.mask == "padded":  # a cache that is mostly unused, and rows of the mask behind the last token
            m = np.where(col <= token + min(40, self.kv - 1), 0.0, -np.inf)
            m = np.concatenate([m, np.full((31, self.kv), 7.0)])
        return m

    def params(self, **more: float) -> dict[str, Any]:
        return {"scale": 1 / np.sqrt(self.d), **more}


def attend(case: Case, bound: float = BOUND, **params: float) -> None:
    check_op("FLASH_ATTN_EXT", case.inputs(), case.params(**params), bound=bound)


@pytest.mark.parametrize("d", [8, 64, 72, 80, 96, 128, 256, 512])
@pytest.mark.parametrize("tokens", [1, 5])
def test_head_sizes(d: int, tokens: int) -> None:
    attend(Case(d=d, tokens=tokens, kv=70))


@pytest.mark.parametrize(("d", "dv"), [(64, 128), (128, 64), (96, 40), (192, 128), (24, 8)])
def test_values_of_another_size(d: int, dv: int) -> None:
    attend(Case(d=d, dv=dv, tokens=3, kv=130))


@pytest.mark.parametrize("kv", [1, 2, 31, 32, 33, 63, 64, 65, 127, 129, 256, 300, 1000])
@pytest.mark.parametrize("mask", ["none", "random"])
def test_kv_lengths(kv: int, mask: str) -> None:
    attend(Case(kv=kv, tokens=2, mask=mask))


@pytest.mark.parametrize("tokens", [1, 2, 4, 5, 31, 32, 33, 65, 128])
@pytest.mark.parametrize("heads", [(9, 3), (4, 4), (8, 1)])
def test_tokens_and_groups(tokens: int, heads: tuple[int, int]) -> None:
    attend(Case(heads=heads[0], kv_heads=heads[1], tokens=tokens, kv=tokens + 70))


@pytest.mark.parametrize("heads", [(71, 1), (130, 2), (1, 1), (32, 8)])
def test_many_heads(heads: tuple[int, int]) -> None:
    attend(Case(heads=heads[0], kv_heads=heads[1], tokens=2, kv=150))


@pytest.mark.parametrize("k_type", [Type.F16, Type.Q8_0])
@pytest.mark.parametrize("v_type", [Type.F16, Type.Q8_0])
@pytest.mark.parametrize("d", [32, 64, 96, 128, 256])
def test_types(k_type: Type, v_type: Type, d: int) -> None:
    # Q8_0 becomes halves on the way.
    exact = k_type == v_type == Type.F16
    attend(Case(d=d, tokens=5, kv=90, k_type=k_type, v_type=v_type, q_type=Type.F16), BOUND if exact else 1e-6)


@pytest.mark.parametrize("tokens", [1, 40])
def test_q8_0_against_the_unquantized(tokens: int) -> None:
    case = Case(tokens=tokens, kv=200, k_type=Type.Q8_0, v_type=Type.Q8_0)
    src, params = case.inputs(), case.params()
    spec = spec_of("FLASH_ATTN_EXT", src, params)
    got = values_of(run_op("FLASH_ATTN_EXT", src, params).dst[0], Type.F32)
    arrays = [None if a is None else a.array.reshape((1,) * (4 - a.array.ndim) + a.array.shape) for a in src]
    assert nmse(got, reference(spec, arrays, np.float64)[0]) < 5e-4


@pytest.mark.parametrize("mask", ["causal", "padded", "random", "none"])
@pytest.mark.parametrize("tokens", [1, 3, 70])
def test_masks(mask: str, tokens: int) -> None:
    attend(Case(mask=mask, tokens=tokens, kv=512, heads=9, kv_heads=3))


def test_everything_masked_gives_zero() -> None:
    case = Case(tokens=3, kv=300)
    src = case.inputs()
    src[3] = Arg(np.full((3, 300), -np.inf), Type.F16)
    check_op("FLASH_ATTN_EXT", src, case.params(), bound=0.0)
    src[4] = Arg(np.zeros(case.heads))
    check_op("FLASH_ATTN_EXT", src, case.params(), bound=0.0)


def test_blocks_that_no_row_sees_are_not_read() -> None:
    case = Case(tokens=4, kv=320, mask="random")
    src = case.inputs()
    mask = np.zeros((4, 320))
    mask[:, 64:192] = mask[:, 230:] = -np.inf
    src[3] = Arg(mask, Type.F16)
    want = values_of(run_op("FLASH_ATTN_EXT", src, case.params()).dst[0], Type.F32)
    for i in (1, 2):
        arg = src[i]
        assert arg is not None
        arg.array[..., 64:192, :] = arg.array[..., 230:, :] = np.nan
    got = values_of(run_op("FLASH_ATTN_EXT", src, case.params()).dst[0], Type.F32)
    assert np.isfinite(want).all()
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("sinks", [False, True])
@pytest.mark.parametrize(("heads", "bias"), [(8, 8.0), (12, 4.0), (6, 0.0)])
@pytest.mark.parametrize("softcap", [0.0, 3.0])
@pytest.mark.parametrize("tokens", [2, 33])
def test_bias_softcap_sinks(sinks: bool, heads: int, bias: float, softcap: float, tokens: int) -> None:
    case = Case(heads=heads, kv_heads=2, tokens=tokens, kv=260, mask="random", sinks=sinks)
    attend(case, 1e-10, max_bias=bias, logit_softcap=softcap)


def test_slopes_are_ggmls() -> None:
    np.testing.assert_allclose(slopes(4, 8.0), [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8])
    np.testing.assert_allclose(slopes(6, 8.0), [2.0**-2, 2.0**-4, 2.0**-6, 2.0**-8, 2.0**-1, 2.0**-3])


@pytest.mark.parametrize(
    "views",
    [
        (View(order=(0, 2, 1, 3)), View(order=(0, 2, 1, 3)), View(order=(0, 2, 1, 3)), View()),
        (View(order=(0, 3, 2, 1), pad=(16, 0, 4)), View(pad=(2, 0, 0), offset=2), View(pad=(64, 128, 0)),
         View(pad=(6, 0, 0), offset=2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tokens", [1, 23])
def test_views(views: tuple[View, View, View, View], tokens: int) -> None:
    attend(Case(tokens=tokens, batch=2, kv=131, views=views))


def test_batches_share_keys() -> None:
    attend(Case(tokens=2, batch=4, kv_batch=2, kv=40))


@pytest.mark.parametrize("n_masks", [2, 4])
@pytest.mark.parametrize("tokens", [1, 40])
def test_masks_of_batches(n_masks: int, tokens: int) -> None:
    """Batch i takes mask i modulo their number."""
    case = Case(tokens=tokens, batch=4, kv=300)
    src = case.inputs()
    hidden = np.random.default_rng(3).random((n_masks, 1, tokens, 300)) < 0.5
    src[3] = Arg(np.where(hidden, -np.inf, 0.0), Type.F16)
    check_op("FLASH_ATTN_EXT", src, case.params(), bound=BOUND)


@pytest.mark.parametrize("case", [Case(tokens=0), Case(kv=0), Case(kv=0, mask="none", sinks=True), Case(heads=0)])
def test_empty(case: Case) -> None:
    attend(case)


@pytest.mark.skipif(QFLOAT, reason="qfloat has neither infinity nor NaN")
@pytest.mark.parametrize("where", [0, 1, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-7])
def test_special_values(where: int, value: float) -> None:
    case = Case(tokens=3, kv=80, mask="none")
    src = case.inputs()
    arg = src[where]
    assert arg is not None
    arg.array[0, 1, 2, 5] = value
    attended = src[1]
    assert attended is not None
    if where == 0 and np.isinf(value):  # one sign, or infinity meets infinity
        attended.array[0, :, :, 5] = np.abs(attended.array[0, :, :, 5]) * -np.sign(value)
    check_op("FLASH_ATTN_EXT", src, case.params(), bound=BOUND)


def test_large_scores() -> None:
    case = Case(tokens=4, kv=100)
    attend(case, 1e-8, scale=1000.0)


@pytest.mark.parametrize("case", [
    Case(tokens=5, kv=100),
    Case(d=80, dv=96, heads=12, kv_heads=4, tokens=33, kv=64, mask="random", sinks=True),
    Case(tokens=2, kv=256, mask="padded", batch=2),
    Case(d=128, heads=8, tokens=7, kv=90, k_type=Type.Q8_0, v_type=Type.Q8_0),
])  # fmt: skip
@pytest.mark.parametrize(("bias", "softcap"), [(0.0, 0.0), (8.0, 0.0), (0.0, 5.0), (4.0, 2.0)])
def test_reference_is_ggmls(case: Case, bias: float, softcap: float) -> None:
    src = case.inputs()
    params = case.params(max_bias=bias, logit_softcap=softcap)
    want = reference_of("FLASH_ATTN_EXT", src, params)[0]
    with Ggml() as g:
        q, k, v, mask, sinks = (None if a is None else g.tensor(a.array, a.type) for a in src)
        scale = float(params["scale"])
        dst = g.op("ggml_flash_attn_ext", q, k, v, mask, scale, bias, softcap)
        if sinks is not None:
            g.call("ggml_flash_attn_ext_add_sinks", dst, sinks)
        theirs = g.compute(dst, want.shape)
    assert nmse(theirs, want) < (1e-4 if case.k_type == Type.Q8_0 else 5e-6)  # ggml's q is Q8_0, its sums are F16


def test_what_does_not_fit_is_said() -> None:
    def d(type: Type, *ne: int) -> Desc:
        return Desc.contiguous(type, ne)

    q, kv = d(Type.F32, 64, 2, 6), d(Type.F16, 64, 32, 2)
    dst = (d(Type.F32, 64, 6, 2),)
    op = "FLASH_ATTN_EXT"
    with pytest.raises(ShapeError, match="not of one size"):
        infer(op, (q, d(Type.F16, 80, 32, 2), kv), {})
    with pytest.raises(ShapeError, match="differ in rows"):
        infer(op, (q, kv, d(Type.F16, 64, 33, 2)), {})
    with pytest.raises(ShapeError, match="no multiple"):
        infer(op, (q, d(Type.F16, 64, 32, 4), d(Type.F16, 64, 32, 4)), {})
    with pytest.raises(ShapeError, match="32 columns"):
        infer(op, (q, kv, kv, d(Type.F16, 31, 2)), {})
    with pytest.raises(ShapeError, match="one for each of 6"):
        infer(op, (q, kv, kv, None, d(Type.F32, 5)), {})
    with pytest.raises(Refusal, match="k is Q4_0"):
        plan(OpSpec(op, pack(op, {}), (q, d(Type.Q4_0, 64, 32, 2), kv, None, None), dst), Device())
    with pytest.raises(Refusal, match="heads of 576"):
        big = d(Type.F16, 576, 32, 2)
        plan(OpSpec(op, pack(op, {}), (d(Type.F32, 576, 2, 6), big, kv, None, None), dst), Device())
    with pytest.raises(Refusal, match="bytes of VTCM, the session has 65536"):
        plan(OpSpec(op, pack(op, {}), (q, kv, kv, None, None), dst), Device(vtcm_bytes=65536))


def test_the_device_checks_too() -> None:
    """The plan of one op with the tensors of another: refused by name, nothing written."""
    config = Config(n_threads=2)
    good = Case(heads=4, kv_heads=2, tokens=8, kv=256)
    planned = plan(spec_of("FLASH_ATTN_EXT", good.inputs(), good.params()), config.device)
    for other, field in (
        (Case(heads=4, kv_heads=2, tokens=8, kv=2000), "kernel_params.args"),
        (Case(heads=4, kv_heads=2, tokens=8, kv=256, d=128), "kernel_params.regions"),
        (Case(heads=4, kv_heads=2, tokens=64, kv=256), "kernel_params.regions"),
    ):
        src = other.inputs()
        outcome = run_op("FLASH_ATTN_EXT", src, other.params(), planned=planned, config=config)
        assert outcome.error is not None and field in outcome.error, outcome.error
        assert not outcome.strayed
    src = good.inputs()
    src[3] = Arg(np.zeros((7, 256)), Type.F16)
    dst = Arg(np.zeros((8, 4, 64)))
    outcome = run_op("FLASH_ATTN_EXT", src, good.params(), planned=planned, config=config, dst=dst)
    assert outcome.error is not None and "src3.ne" in outcome.error


def test_quantized_rows_are_ggufs() -> None:
    """The harness's Q8_0 blocks are 34 bytes, a half and 32 signed bytes: what the kernel takes apart."""
    k = Case(k_type=Type.Q8_0).inputs()[1]
    assert k is not None and desc_of(k).nb[1] == 68
    assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType.Q8_0] == (32, 34)


@pytest.mark.parametrize("case", [
    Case(tokens=9, kv=200, mask="random", sinks=True),
    Case(d=96, dv=64, tokens=1, kv=300, k_type=Type.Q8_0, v_type=Type.Q8_0, batch=2),
])  # fmt: skip
def test_lies_are_refused_or_harmless(case: Case) -> None:
    """Whatever plan and shapes say, the device answers, writes nothing outside dst, and goes on."""
    honest = case.inputs()
    op, params = "FLASH_ATTN_EXT", case.params()
    dst = np.zeros(spec_of(op, honest, params).dst[0].ne[::-1])
    planned = plan_of(op, honest, params)
    rng = random.Random(1)
    n_refused = 0
    for _ in range(100):
        src = list(honest)
        if rng.random() < 0.6:
            i = rng.randrange(5)
            arg = src[i]
            if arg is not None and rng.random() < 0.9:
                shape = tuple(reversed(changed(arg.array.shape[::-1], rng)))
                whole = arg.type != Type.Q8_0 or (all(shape) and shape[-1] % 32 == 0)
                src[i] = Arg(np.resize(arg.array, shape), arg.type) if whole else arg
            else:
                src[i] = None if i > 2 else src[i]
        outcome = run_op(op, src, params, dst=Arg(dst), planned=FalsePlan(planned, false_words(rng)))
        assert not outcome.strayed, outcome.strayed
        n_refused += outcome.error is not None
    assert 20 < n_refused < 100
    assert run_op(op, honest, params).error is None
