"""Integer and permutation HVX intrinsics, bit for bit against QEMU, which runs the real instructions.

`hvx_oracle.py` writes one program; clang builds it for Hexagon and qemu-hexagon runs it, and every build of the
emulator must print the same bytes. What QEMU 7.2 cannot run is held against numpy models or the manual's rules.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import hvx_oracle as oracle
import numpy as np
import pytest

from hexnpu.errors import BuildError
from hexnpu.native import Target, compile_program, kernels_dir

HERE = Path(__file__).parent
HVX = oracle.read_intrinsics(oracle.clang_headers() / "hvx_hexagon_protos.h")
SCALAR = oracle.read_intrinsics(oracle.clang_headers() / "hexagon_protos.h")
FLOAT = re.compile(r"qf16|qfext|qf32|hf|sf|bf|f8|vfm|_vfneg_|Q6_V_vabs_V\b")

# Names of clang's list that compute on integers but are not proved against QEMU here.
NOT_ON_QEMU = {
    **dict.fromkeys(
        [
            "Q6_Ww_v6mpy_WubWbI_h", "Q6_Ww_v6mpy_WubWbI_v", "Q6_Ww_v6mpyacc_WwWubWbI_h", "Q6_Ww_v6mpyacc_WwWubWbI_v",
            "Q6_Vub_vasr_WuhVub_rnd_sat", "Q6_Vub_vasr_WuhVub_sat",
            "Q6_Vuh_vasr_WwVuh_rnd_sat", "Q6_Vuh_vasr_WwVuh_sat", "Q6_Vuh_vmpy_VuhVuh_rs16",
        ],
        "v68 and v69: QEMU 7.2 aborts in decode; proved against numpy below",
    ),
    "Q6_V_vmerge_VVw": "v79: no public semantics, not in the emulator",
    "Q6_V_valign4_VVR": "v81: no public semantics, not in the emulator",
}  # fmt: skip

PROVED = [it for it in HVX.values() if it.arch <= 66]
DMA = {"Q6_R_dmpoll", "Q6_R_dmwait", "Q6_R_dmpause"}

# Flavour and extra flags. "avx2" and "generic" are what processors without AVX-512 and without x86 run.
BUILDS = {
    "release": (Target(), []),
    "avx2": (Target(), ["-march=x86-64-v3" if os.environ.get("CC") else "-march=x86_64_v3"]),
    "generic": (Target(), ["-DHEXNPU_EMU_GENERIC"]),
    "asan": (Target("asan"), []),
    "tsan": (Target("tsan"), []),
}
SLOW = ["avx2", "tsan"]


def scalar_intrinsics() -> list[oracle.Intrinsic]:
    folder = kernels_dir() / "platform/emu"
    headers = (folder / f"{name}.h" for name in ("hexagon_protos", "hexagon-lanes", "hexagon-pairs"))
    ours = re.findall(r"(Q6_[RP]_\w+)\(", "".join(header.read_text() for header in headers))
    return [SCALAR[name] for name in sorted(set(ours) - DMA)]


def all_proved() -> list[oracle.Intrinsic]:
    return [*PROVED, *scalar_intrinsics()]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return oracle.write_sources(tmp_path_factory.mktemp("oracle"), all_proved())


@pytest.fixture(scope="module")
def hardware(sources: list[Path]) -> bytes:
    """What the program prints when qemu-hexagon executes the real instructions."""
    for tool in ("clang-19", "qemu-hexagon"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    program = sources[0].parent / "hexagon"
    subprocess.run(
        [
            "clang-19", "--target=hexagon-unknown-none-elf", "-mcpu=hexagonv68", "-mhvx=v68", "-mhvx-length=128b",
            "-O1", "-ffreestanding", "-fno-builtin", "-w", "-nostdlib", "-static", "-fuse-ld=lld",
            *map(str, sources), "-o", str(program),
        ],
        check=True,
    )  # fmt: skip
    return subprocess.run(["qemu-hexagon", "-cpu", "v67", str(program)], check=True, stdout=subprocess.PIPE).stdout


def split(output: bytes, intrinsics: list[oracle.Intrinsic]) -> dict[str, bytes]:
    results, at = {}, 0
    for it in intrinsics:
        size = it.n_results * it.result_bytes
        results[it.name] = output[at : at + size]
        at += size
    assert at == len(output), "the program printed another number of results than the generator planned"
    return results


def test_every_integer_intrinsic_is_proved_or_excluded_by_name() -> None:
    assert len(PROVED) == 393
    integers = {name for name in HVX if not FLOAT.search(name)}
    assert integers - {it.name for it in PROVED} == set(NOT_ON_QEMU)
    assert len(scalar_intrinsics()) >= 170


@pytest.mark.parametrize(
    "build", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in BUILDS]
)
def test_same_bits_as_qemu(build: str, sources: list[Path], hardware: bytes) -> None:
    target, extra = BUILDS[build]
    if build == "avx2" and platform.machine() != "x86_64":
        pytest.skip("AVX2 is x86")
    program = compile_program("hvx-oracle", sources, target, extra)
    emulated = subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout
    assert wrong(split(hardware, all_proved()), split(emulated, all_proved())) == []


def wrong(expected: dict[str, bytes], got: dict[str, bytes]) -> list[str]:
    return [name for name, result in expected.items() if got[name] != result]


def test_comparison_sees_one_wrong_bit(hardware: bytes) -> None:
    flipped = bytearray(hardware)
    flipped[len(flipped) // 2] ^= 1
    assert len(wrong(split(hardware, all_proved()), split(bytes(flipped), all_proved()))) == 1


def lanes(data: np.ndarray, dtype: str) -> np.ndarray:
    return np.ascontiguousarray(data).view(dtype).astype(np.int64)


def interleave(even: np.ndarray, odd: np.ndarray, dtype: str) -> np.ndarray:
    return np.stack([even, odd], axis=-1).reshape(len(even), -1).astype(dtype).view(np.uint8)


def narrow_by_vector(pair: np.ndarray, amounts: np.ndarray, rnd: bool, src: str, dst: str, mask: int) -> np.ndarray:
    """vasr(Vuu, Vv): lane i of the low vector by amount 2i, of the high one by 2i + 1, interleaved, saturated."""
    results = []
    top = np.iinfo(dst).max
    for half in (0, 1):
        n = lanes(amounts, dst)[:, half::2] & mask
        value = lanes(pair[:, 128 * half : 128 * half + 128], src)
        value = value + ((1 << n) >> 1 if rnd else 0)
        results.append(np.clip(value >> n, 0, top))
    return interleave(results[0], results[1], dst)


# v6mpy: the bytes (vector, byte in its word) that meet the coefficients of a row, for immediates 0-1 and 2-3.
SIX = {
    "v": (([(0, 3), (1, 2), (1, 3)], [(0, 1), (1, 0), (1, 1)]), ([(0, 2), (0, 3), (1, 2)], [(0, 0), (0, 1), (1, 0)])),
    "h": (([(1, 3), (1, 1), (0, 3)], [(1, 2), (1, 0), (0, 2)]), ([(1, 1), (0, 3), (0, 1)], [(1, 0), (0, 2), (0, 0)])),
}  # fmt: skip


def six_products(data: np.ndarray, coefficients: np.ndarray, immediate: int, form: str) -> np.ndarray:
    def row(places: list[tuple[int, int]], r: int) -> np.ndarray:
        words = lanes(coefficients[:, 128 * r : 128 * r + 128], "u4")
        total = 0
        for n, (vector, byte) in enumerate(places):
            ten_bits = (words >> (8 * n) & 0xFF) | ((words >> (24 + 2 * n) & 3) << 8)
            total = total + data[:, 128 * vector + byte : 128 * vector + 128 : 4].astype(np.int64) * (
                ten_bits - ((ten_bits & 512) << 1)
            )
        return total

    upper, lower = SIX[form][immediate // 2]
    both = row(upper, 1) + row(lower, 0)
    low, high = (both, row(upper, 0)) if immediate % 2 else (row(lower, 1), both)
    return np.concatenate([low, high], axis=1).astype(np.int32).view(np.uint8)


def model(name: str, operands: list[np.ndarray], immediate: int) -> np.ndarray:
    if name == "Q6_Vuh_vmpy_VuhVuh_rs16":
        return (lanes(operands[0], "u2") * lanes(operands[1], "u2") >> 16).astype(np.uint16).view(np.uint8)
    if "_vasr_Wuh" in name:
        return narrow_by_vector(operands[0], operands[1], "rnd" in name, "u2", "u1", 7)
    if "_vasr_Ww" in name:
        return narrow_by_vector(operands[0], operands[1], "rnd" in name, "i4", "u2", 15)
    products = six_products(operands[-2], operands[-1], immediate, name[-1])
    if "acc" in name:
        products = (products.view(np.uint32) + np.ascontiguousarray(operands[0]).view(np.uint32)).view(np.uint8)
    return products


def test_v68_and_v69_intrinsics_against_numpy(tmp_path: Path) -> None:
    newer = [it for it in HVX.values() if it.arch in (68, 69) and it.name in NOT_ON_QEMU]
    assert len(newer) == 9
    program = compile_program("hvx-newer", oracle.write_sources(tmp_path, newer, inputs=True), Target())
    output = np.frombuffer(subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout, np.uint8)
    at = 0
    for it in newer:
        sizes = [oracle.RESULT_BYTES[kind] for kind, name in it.params if not name.startswith("I")]
        record = sum(sizes) + it.result_bytes
        cases = output[at : at + it.n_results * record].reshape(-1, len(it.immediates), record)
        at += cases.size
        for k, immediate in enumerate(it.immediates):
            operands = np.split(cases[:, k, : -it.result_bytes], np.cumsum(sizes)[:-1], axis=1)
            expected = model(it.name, operands, immediate[0] if immediate else 0)
            np.testing.assert_array_equal(cases[:, k, -it.result_bytes :], expected, it.name)
    assert at == len(output)


def gather_rules(target: Target, *arguments: str) -> subprocess.CompletedProcess[str]:
    sources = [HERE / "gather_rules.c", *sorted((kernels_dir() / "platform/emu").glob("*.c"))]
    program = compile_program("gather-rules", sources, target)
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flavour", ["release", "asan"])
def test_gather_and_scatter_keep_to_the_region(flavour: str) -> None:
    """By the manual's rules: QEMU 7.2 drops nothing."""
    result = gather_rules(Target(flavour))
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("gather_elsewhere", "the region of a gather at"),
        ("gather_to_elsewhere", "the destination of a gather at"),
        ("gather_past_the_end", "the region of a gather at"),
        ("gather_everything", "the region of a gather at"),
        ("scatter_elsewhere", "the region of a scatter at"),
        ("scatter_past_the_end", "the region of a scatter at"),
        ("scatter_released", "the region of a scatter at"),
    ],
)
def test_gather_and_scatter_outside_of_vtcm_end_the_process(rule: str, says: str) -> None:
    result = gather_rules(Target(), rule)
    assert result.returncode == -6, f"{rule} went on: {result.returncode} {result.stderr}"
    assert says in result.stderr
    assert "is not within VTCM" in result.stderr


def test_an_intrinsic_that_is_not_emulated_does_not_compile(tmp_path: Path) -> None:
    source = tmp_path / "missing.c"
    source.write_text(
        "#include <hexagon_protos.h>\n#include <hvx_hexagon_protos.h>\n"
        "int main(void) { return Q6_R_vextract_VR(Q6_V_vmerge_VVw(Q6_V_vzero(), Q6_V_vzero()), 0); }\n"
    )
    with pytest.raises(BuildError, match="Q6_V_vmerge_VVw"):
        compile_program("missing", [source])
