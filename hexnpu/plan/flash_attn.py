"""FLASH_ATTN_EXT: dst = softmax(scale q k^T + slope mask) v in blocks of 64 K/V rows; kernels/flash_attn-ops.c.

src: q [D, T, H, B] F32 or F16, k [D, KV, Hkv, Bkv] and v [Dv, KV, Hkv, Bkv] F16 or Q8_0, optional mask F16
[KV, >= T, 1, any] and sinks F32 [H]; dst F32 [Dv, H, T, B]. Parameters (ggml's places): scale, max_bias (ALiBi),
logit_softcap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError, float_word
from hexnpu.tensor import BLOCKS, Desc, Type

Array = npt.NDArray[np.floating]

# The kernel's limits: FA_BLOCK, FA_MAX_DIMS, FA_MAX_ROWS, FA_STAGES.
BLOCK = 64
MAX_DIMS = 512
MAX_ROWS = 64
STAGES = 2
# Fewer units than this and the K/V rows are cut into chunks of at least MIN_CHUNK, whatever the number of threads, so
# that results do not depend on it. What the chunks leave behind may take this much VTCM.
MIN_UNITS = 12
MIN_CHUNK = 128
MAX_PARTS_BYTES = 512 << 10
# A further thread pays from this many multiplications a thread on.
MIN_THREAD_MACS = 64 << 10

_PARAMS = {"scale": (0, 1.0), "max_bias": (1, 0.0), "logit_softcap": (2, 0.0)}


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """F32 [Dv, H, T, B]. Raises ShapeError where heads, K/V rows, mask or sinks do not go together."""
    q, k, v, mask, sinks = (*src, None, None, None, None, None)[:5]
    if q is None or k is None or v is None or len(src) > 5:
        raise ShapeError(f"{op} takes q, k, v and perhaps a mask and sinks")
    if q.ne[0] != k.ne[0]:
        raise ShapeError(f"{op}: the heads of q {q} and k {k} are not of one size")
    if k.ne[1:] != v.ne[1:]:
        raise ShapeError(f"{op}: k {k} and v {v} differ in rows, heads or batches")
    if not k.ne[2] or not k.ne[3] or q.ne[2] % k.ne[2] or q.ne[3] % k.ne[3]:
        raise ShapeError(f"{op}: the heads and batches of q {q} are no multiple of those of k {k}")
    if mask is not None and (mask.ne[0] != k.ne[1] or mask.ne[1] < q.ne[1]):
        raise ShapeError(f"{op}: the mask is {mask}; it must have {k.ne[1]} columns and at least {q.ne[1]} rows")
    if sinks is not None and sinks.ne[0] != q.ne[2]:
        raise ShapeError(f"{op}: sinks are {sinks}; there must be one for each of {q.ne[2]} heads")
    return (Desc.contiguous(Type.F32, (v.ne[0], q.ne[2], q.ne[1], q.ne[3])),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    unknown = sorted(set(params) - set(_PARAMS))
    if unknown:
        raise ShapeError(f"{op} has no parameter {', '.join(unknown)}")
    words = [0] * 16
    for name, (i, default) in _PARAMS.items():
        words[i] = float_word(op, name, params.get(name, default))
    return tuple(words)


def plan(spec: OpSpec, device: Device) -> Plan:
    q, k, v, mask, sinks = (*spec.src, None, None)[:5]
    assert q is not None and k is not None and v is not None
    _need(q, "q", Type.F32, Type.F16)
    _need(k, "k", Type.F16, Type.Q8_0)
    _need(v, "v", Type.F16, Type.Q8_0)
    _need(spec.dst[0], "dst", Type.F32)
    for role, desc in (("k", k), ("v", v)):
        if desc.ne[0] % 8 or not 8 <= desc.ne[0] <= MAX_DIMS:
            raise Refusal(f"{role} has heads of {desc.ne[0]}; the kernel takes multiples of 8 up to {MAX_DIMS}")
    if mask is not None:
        _need(mask, "mask", Type.F16)
        if mask.ne[2] != 1:
            raise Refusal(f"the mask differs between {mask.ne[2]} heads; the kernel takes one for all heads")
    if sinks is not None:
        _need(sinks, "sinks", Type.F32)
    return _layout(device, q, k, v, mask is not None)


def _layout(device: Device, q: Desc, k: Desc, v: Desc, masked: bool) -> Plan:
    group = q.ne[2] // k.ne[2]
    n_list = group * q.ne[1]
    n_kv = k.ne[1]
    n_all = q.ne[1] * q.ne[2] * q.ne[3]
    n_chunks, chunk_cols = _chunks(n_all, n_kv, q.ne[3] * k.ne[2] * -(-n_list // MAX_ROWS), _part_bytes(v))
    threads = max(1, min(device.n_threads, n_all * n_kv * (k.ne[0] + v.ne[0]) // MIN_THREAD_MACS))
    name = f"fa-hvx-{k.type.name.lower()}" + (f"-{v.type.name.lower()}" if v.type != k.type else "")

    def layout(rows: int, n_threads: int) -> Plan:
        n_units = q.ne[3] * k.ne[2] * -(-n_list // rows) * n_chunks
        plan = Plan(0, name, max(1, min(n_threads, n_units)), BLOCK, (rows, n_chunks, chunk_cols))
        tokens = min(q.ne[1], -(-rows // group) + 1) if masked and group else 0
        for kv in (k, v):
            plan.per_thread(STAGES * (BLOCK * _round(kv.ne[0] * 2, 128) + 128))
        plan.per_thread(STAGES * rows * _round(q.ne[0] * BLOCKS[q.type][1], 128))
        plan.per_thread(STAGES * tokens * 128)
        plan.per_thread(_work_bytes(rows, k.ne[0], v.ne[0]))
        if n_chunks > 1:
            plan.shared(n_chunks * n_all * _part_bytes(v))
        return plan

    most = max(1, min(MAX_ROWS, n_list))
    choices = [(rows, threads) for rows in sorted({min(most, r) for r in (64, 32, 16, 8)}, reverse=True)]
    choices += [(min(most, 8), n) for n in range(threads - 1, 0, -1)]
    for choice in choices:
        plan = layout(*choice)
        if plan.vtcm_bytes <= device.vtcm_bytes:
            return plan
    raise Refusal(
        f"heads of {k.ne[0]} and {v.ne[0]} need {plan.vtcm_bytes} bytes of VTCM, the session has {device.vtcm_bytes}"
    )


def _chunks(n_all: int, n_kv: int, n_units: int, part_bytes: int) -> tuple[int, int]:
    """How many chunks the K/V rows are cut into, and the columns of one: from the op alone."""
    most = min(-(-n_kv // MIN_CHUNK), MAX_PARTS_BYTES // max(1, n_all * part_bytes), -(-MIN_UNITS // max(1, n_units)))
    cols = _round(-(-n_kv // max(1, most)), BLOCK) or BLOCK
    return max(1, -(-n_kv // cols)), cols


def _work_bytes(rows: int, dk: int, dv: int) -> int:
    """A thread's floats: K transposed, V, Q, scores, four vectors of statistics a row, two accumulators."""
    q_wide, v_wide = 4 * _round(dk, 64), 4 * _round(dv, 64)
    return 4 * dk * BLOCK + BLOCK * v_wide + rows * (q_wide + 4 * BLOCK + 4 * 128 + 2 * v_wide)


def _part_bytes(v: Desc) -> int:
    return 2 * 128 + 4 * _round(v.ne[0], 64)


def _round(n: int, to: int) -> int:
    return -(-n // to) * to


def _need(desc: Desc, role: str, *types: Type) -> None:
    if desc.type not in types:
        raise Refusal(f"{role} is {desc.type.name}, the kernel takes {' or '.join(t.name for t in types)}")
    if desc.ne[0] > 1 and desc.nb[0] != BLOCKS[desc.type][1]:
        raise Refusal(f"{role} has elements {desc.nb[0]} bytes apart in a row; make it contiguous first")


def slopes(n_heads: int, max_bias: float) -> npt.NDArray[np.float64]:
    """ALiBi's factor of the mask for each head, as ggml spreads them when the head count is no power of two."""
    if max_bias <= 0:
        return np.ones(n_heads)
    n = 1 << (n_heads.bit_length() - 1)
    heads = np.arange(n_heads)
    return np.where(heads < n, 2.0 ** (-max_bias / n * (heads + 1)), 2.0 ** (-max_bias / 2 / n * (2 * (heads - n) + 1)))


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    q, k, v, mask, sinks = (*src, None, None)[:5]
    assert q is not None and k is not None and v is not None
    scale, max_bias, softcap = (spec.f32(i) for i in range(3))
    n_batch, n_heads, n_tokens, _ = q.shape
    slope = slopes(n_heads, max_bias).astype(dtype)
    factor = np.asarray([scale / softcap if softcap else scale, softcap], dtype)
    dst = np.zeros((n_batch, n_tokens, n_heads, v.shape[3]), dtype)
    with np.errstate(all="ignore"):
        for b in range(n_batch):
            for h in range(n_heads):
                kv = (b // (n_batch // k.shape[0]), h // (n_heads // k.shape[1]))
                s = q[b, h].astype(dtype) @ k[kv].astype(dtype).T * factor[0]
                if softcap:
                    s = np.tanh(s) * factor[1]
                if mask is not None:
                    s = s + slope[h] * mask[b % mask.shape[0], 0, :n_tokens].astype(dtype)
                sink = -math.inf if sinks is None else float(sinks.reshape(-1)[h])
                dst[b, :, h] = _attend(s, v[kv].astype(dtype), sink)
    return (dst,)


def _attend(scores: Array, v: Array, sink: float) -> Array:
    """softmax(scores) v; a row whose scores are all -inf gives 0."""
    top = np.max(scores, axis=1, keepdims=True, initial=sink)
    top = np.where(np.isneginf(top), 0, top).astype(scores.dtype)
    weight = np.exp(scores - top)
    total = weight.sum(axis=1, keepdims=True) + np.exp(sink - top)
    result: Array = weight @ v / np.where(total == 0, 1, total)
    return result
