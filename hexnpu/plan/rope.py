"""ROPE: rotates pairs of each row by angles that grow with its position. F32; kernels/rope-ops.c.

src: x [D, H, T, B], positions I32 [T], optional frequency factors F32 [n_dims / 2]. Parameters (ggml's words and
places): n_dims, mode (0 neighbours, 2 NeoX halves), n_ctx_orig, freq_base, freq_scale, ext_factor, attn_factor,
beta_fast, beta_slow. The angle of pair i is position * freq_base^(-2i / n_dims), multiplied up in float32 as ggml does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hexnpu.plan.base import Device, OpSpec, Plan, Refusal, ShapeError, f32_bits, float_word
from hexnpu.plan.rowwise import Array, need_type, plan_rows, src_of
from hexnpu.tensor import DTYPES, Desc, Type

MODES = {0: "normal", 2: "neox"}
MAX_DIMS = 512  # ROPE_MAX_DIMS of the kernel

# Parameter -> (word, default). Integers come first, the others travel by their bits.
_INTS = {"n_dims": (1, 0), "mode": (2, 0), "n_ctx_orig": (4, 0)}
_FLOATS = {
    "freq_base": (5, 10000.0), "freq_scale": (6, 1.0), "ext_factor": (7, 0.0), "attn_factor": (8, 1.0),
    "beta_fast": (9, 32.0), "beta_slow": (10, 1.0),
}  # fmt: skip


def infer(op: str, src: Sequence[Desc | None], params: dict[str, object]) -> tuple[Desc, ...]:
    """x's shape. Raises ShapeError where the positions, the factors or n_dims do not fit x."""
    if len(src) not in (2, 3) or src[0] is None or src[1] is None:
        raise ShapeError(f"{op} takes x, positions and perhaps frequency factors, not {len(src)} tensors")
    x, pos = src[0], src[1]
    factors = src[2] if len(src) == 3 else None
    n_dims = _int(op, params, "n_dims")
    if n_dims < 2 or n_dims % 2 or n_dims > x.ne[0]:
        raise ShapeError(f"{op}: n_dims is {n_dims}; it must be even and from 2 to the {x.ne[0]} elements of a row")
    if pos.type != Type.I32 or pos.ne[0] != x.ne[2] or pos.n_rows != 1:
        raise ShapeError(f"{op}: positions are {pos}; they must be i32[{x.ne[2]}], one for each token of {x}")
    if factors is not None and (factors.type != Type.F32 or factors.ne[0] < n_dims // 2 or factors.n_rows != 1):
        raise ShapeError(f"{op}: frequency factors are {factors}; they must be f32[{n_dims // 2}]")
    return (Desc.contiguous(x.type, x.ne),)


def pack(op: str, params: dict[str, object]) -> tuple[int, ...]:
    unknown = sorted(set(params) - set(_INTS) - set(_FLOATS))
    if unknown:
        raise ShapeError(f"{op} has no parameter {', '.join(unknown)}")
    words = [0] * 16
    for name, (i, _) in _INTS.items():
        words[i] = _int(op, params, name)
    for name, (i, default) in _FLOATS.items():
        words[i] = float_word(op, name, params.get(name, default))
    return tuple(words)


def plan(spec: OpSpec, device: Device) -> Plan:
    x, pos, factors = src_of(spec, 0), src_of(spec, 1), src_of(spec, 2)
    assert x is not None and pos is not None
    mode = spec.params[2]
    if mode not in MODES:
        raise Refusal(f"rope mode {mode}; the kernel takes {' and '.join(f'{m} ({n})' for m, n in MODES.items())}")
    if spec.params[1] > MAX_DIMS:
        raise Refusal(f"n_dims is {spec.params[1]}, the kernel rotates at most {MAX_DIMS} elements of a row")
    need_type("x", x, Type.F32)
    need_type("dst", spec.dst[0], Type.F32)
    for role, desc in (("positions", pos), ("frequency factors", factors)):
        if desc is not None and desc.ne[0] > 1 and desc.nb[0] != DTYPES[desc.type].itemsize:
            raise Refusal(f"{role} lie {desc.nb[0]} bytes apart; make them contiguous first")
    low, high = ramp(spec)
    args = tuple(f32_bits(v) for v in (theta_scale(spec), low, high, magnitude(spec)))
    return plan_rows(device, spec.dst[0], (x,), kernel_name=f"rope-{MODES[mode]}", elementwise=False, args=args)


def theta_scale(spec: OpSpec) -> float:
    """freq_base^(-2 / n_dims), the exponent rounded to float32 first as powf gets it."""
    base = spec.f32(5)
    return _f32(base ** _f32(-2.0 / spec.params[1])) if base > 0 else math.nan


def ramp(spec: OpSpec) -> tuple[float, float]:
    """The pairs between which YaRN goes from extrapolated to interpolated angles (0, 0 without YaRN)."""
    n_dims, n_ctx, base = spec.params[1], spec.params[4], spec.f32(5)
    if spec.f32(7) == 0.0 or n_ctx <= 0 or base <= 0 or base == 1.0:
        return 0.0, 0.0

    def pair(turns: float) -> float:
        # The pair that makes `turns` full turns within the original context.
        return n_dims * math.log(n_ctx / (turns * 2 * math.pi)) / (2 * math.log(base))

    return max(0.0, float(math.floor(pair(spec.f32(9))))), min(n_dims - 1.0, float(math.ceil(pair(spec.f32(10)))))


def magnitude(spec: OpSpec) -> float:
    """What sines and cosines are multiplied by: attn_factor, and with YaRN 1 + 0.1 ln(1 / freq_scale)."""
    value, scale = spec.f32(8), spec.f32(6)
    if spec.f32(7) != 0.0 and scale > 0:
        value = _f32(value * _f32(1.0 + _f32(0.1 * math.log(1.0 / scale))))
    return value


def angles(spec: OpSpec, positions: npt.NDArray[np.generic], factors: Array | None) -> npt.NDArray[np.float32]:
    """The float32 angles [T, n_dims / 2], by the same float32 operations as the kernel."""
    n_pairs = spec.params[1] // 2
    one, scale, ext = np.float32(1), np.float32(spec.f32(6)), np.float32(spec.f32(7))
    steps = np.full((positions.size, n_pairs), theta_scale(spec), np.float32)
    steps[:, 0] = positions.astype(np.float32)
    own = np.multiply.accumulate(steps, axis=1, dtype=np.float32)
    if factors is not None:
        own = own / factors.astype(np.float32)[:n_pairs]
    scaled: npt.NDArray[np.float32] = scale * own
    if ext == 0:
        return scaled
    low, high = (np.float32(v) for v in ramp(spec))
    along = (np.arange(n_pairs, dtype=np.float32) - low) / max(high - low, np.float32(0.001))
    keep = (one - np.clip(along, 0, 1).astype(np.float32)) * ext
    blended: npt.NDArray[np.float32] = scaled * (one - keep) + own * keep
    return blended


def reference(spec: OpSpec, src: Sequence[Array | None], dtype: npt.DTypeLike) -> tuple[Array, ...]:
    x, positions = src[0], src[1]
    assert x is not None and positions is not None
    factors = src[2] if len(src) > 2 else None
    n_dims = spec.params[1]
    angle = angles(spec, positions.reshape(-1), None if factors is None else factors.reshape(-1)).astype(dtype)
    sin = (np.sin(angle) * magnitude(spec)).astype(dtype)[:, None, :]
    cos = (np.cos(angle) * magnitude(spec)).astype(dtype)[:, None, :]
    first, second = (slice(0, n_dims, 2), slice(1, n_dims, 2)) if spec.params[2] == 0 else (
        slice(0, n_dims // 2), slice(n_dims // 2, n_dims)
    )  # fmt: skip
    y = x.astype(dtype)
    a, b = x[..., first].astype(dtype), x[..., second].astype(dtype)
    with np.errstate(all="ignore"):
        y[..., first] = a * cos - b * sin
        y[..., second] = a * sin + b * cos
    return (y,)


def _int(op: str, params: dict[str, object], name: str) -> int:
    value = params.get(name, _INTS[name][1])
    if not isinstance(value, int):
        raise ShapeError(f"{op}: {name} is {value!r}, not an integer")
    return value


def _f32(value: float) -> float:
    return float(np.float32(value))
