"""The flags of `hexnpu run` that set variables on the target: one table, from which the command line is made too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hexnpu.errors import UsageError

HEXAGON_DEVICES, OPENCL_DEVICE = "GGML_HEXAGON_DEVICES", "GGML_OPENCL_DEVICE"
DEFAULT_DEVICES = "HTP0"


@dataclass(frozen=True)
class EnvFlag:
    """`--NAME VALUE` sets every variable to the value; a switch (`value`) takes none and sets them to that."""

    name: str
    variables: tuple[str, ...]
    help: str
    value: str | None = None
    default: str | None = None
    # Variables with a value of their own, set whenever the flag is given.
    also: tuple[tuple[str, str], ...] = ()

    @property
    def parameter(self) -> str:
        return self.name.replace("-", "_")


def _hex(name: str, help: str, default: str | None = None) -> EnvFlag:
    variable = f"GGML_HEXAGON_{name.upper().replace('-', '_')}"
    return EnvFlag(f"hex-{name}", (variable,), help, default=default)


def _cl(name: str, variable: str, help: str, value: str | None = None) -> EnvFlag:
    return EnvFlag(f"cl-{name}", (f"GGML_OPENCL_{variable}",), help, value)


# A later flag overrides an earlier one where both set a variable.
FLAGS = (
    EnvFlag("verbose", ("GGML_HEXAGON_VERBOSE", "GGML_OPENCL_KERNEL_CACHE_DEBUG"), "verbosity of both back ends"),
    EnvFlag("profile", ("GGML_HEXAGON_PROFILE",), "profiler mode", also=(("GGML_OPENCL_FA_TUNE", "1"),)),
    EnvFlag("sched-debug", ("GGML_SCHED_DEBUG",), "print the scheduler's splits", value="2"),
    EnvFlag("mtmd-device", ("MTMD_BACKEND_DEVICE",), "device of the multimodal encoder"),
    _hex("verbose", "verbosity of the Hexagon back end only"),
    _hex("profile", "profiler mode of the Hexagon back end only"),
    _hex("nhvx", "HVX threads"),
    _hex("nhmx", "HMX units; 0: none"),
    _hex("hostbuf", "host buffers: 0 or 1"),
    _hex("opbatch", "ops a batch"),
    _hex("opqueue", "batches in flight"),
    _hex("oppoll", "poll for answers: 0 or 1", default="1"),
    _hex("opfilter", "ops that stay on the CPU, a regular expression"),
    _hex("opfusion", "fusion of ops: 0 or 1"),
    _hex("vmem", "MiB of a session's address space"),
    _hex("mbuf", "MiB of the largest buffer"),
    _hex("mm-select", "matmul kernel"),
    _hex("fa-select", "flash attention kernel"),
    _hex("ar-select", "allreduce kernel"),
    _hex("etm", "ETM trace"),
    _hex("arch", "Hexagon arch: v73, 79 ..."),
    _hex("optrace", "records of the op trace"),
    _cl("cache-debug", "KERNEL_CACHE_DEBUG", "debug output of the OpenCL kernel cache only"),
    _cl("platform", "PLATFORM", "OpenCL platform"),
    _cl("device", "DEVICE", "OpenCL device"),
    _cl("opfilter", "OPFILTER", "ops that OpenCL leaves alone"),
    _cl("cache-dir", "KERNEL_CACHE_DIR", "folder of the OpenCL kernel cache"),
    _cl("disable-fusion", "DISABLE_FUSION", "no fusion in OpenCL", "1"),
    _cl("fa-tune", "FA_TUNE", "tune flash attention in OpenCL", "1"),
    _cl("adreno-xmem", "ADRENO_XMEM_GEMM", "GEMM by Adreno's external memory", "1"),
    _cl("adreno-large-buffer", "ADRENO_USE_LARGE_BUFFER", "large buffers of Adreno", "1"),
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def known_variables() -> tuple[str, ...]:
    """All that the flags can set, each once; the caller's own values of these are passed on."""
    names = [HEXAGON_DEVICES, OPENCL_DEVICE]
    for flag in FLAGS:
        names += [*flag.variables, *(name for name, _ in flag.also)]
    return tuple(dict.fromkeys(names))


def device_names(devices: str) -> list[str]:
    """`HTP0,GPUOpenCL` as names; a number N is N sessions, HTP0 to HTP(N-1). Raises UsageError."""
    if re.fullmatch("[0-9]+", devices, re.ASCII):
        if len(devices) > 4 or not 1 <= int(devices) <= 16:
            raise UsageError(f"--devices {devices}: give a number of sessions from 1 to 16, or names (HTP0,HTP1)")
        return [f"HTP{n}" for n in range(int(devices))]
    names = devices.split(",")
    if not all(re.fullmatch(r"[^\s,]+", name) for name in names):
        raise UsageError(f"--devices {devices!r}: give names with commas between (HTP0,HTP1) or a number of sessions")
    return names


def device_variables(names: Sequence[str]) -> dict[str, str]:
    hexagon = ",".join(name for name in names if "HTP" in name)
    others = ",".join(name for name in names if "HTP" not in name)
    return {name: value for name, value in ((HEXAGON_DEVICES, hexagon), (OPENCL_DEVICE, others)) if value}


def run_environment(
    devices: str | None,
    given: Mapping[str, str | bool | None],
    extra: Sequence[str],
    callers: Mapping[str, str],
) -> tuple[dict[str, str], list[str]]:
    """The variables of a run, and the names for a tool's own --device.

    `given`: flag name -> value (True for a switch); `extra`: NAME=VALUE words; `callers`: this process's environment.
    A variable's value is the last of: the default, the caller's, the flag's, that of --env. Raises UsageError.
    """
    result = {"LD_LIBRARY_PATH": "./lib", "ADSP_LIBRARY_PATH": "./lib"}
    result |= {variable: flag.default for flag in FLAGS if flag.default for variable in flag.variables}
    names = None if devices is None else device_names(devices)
    if names is None:
        result[HEXAGON_DEVICES] = DEFAULT_DEVICES
    result |= {name: callers[name] for name in known_variables() if name in callers}
    result |= device_variables(names or ())
    for flag in FLAGS:
        value = given.get(flag.name)
        if value is not None and value is not False:
            result |= {variable: flag.value or str(value) for variable in flag.variables}
            result |= dict(flag.also)
    result |= dict(map(parse_assignment, extra))
    return result, _sessions(result[HEXAGON_DEVICES]) if names is None else names


def _sessions(value: str) -> list[str]:
    """The names in a GGML_HEXAGON_DEVICES that nobody gave as a flag: none where it is empty or in another form, which
    are the program's to judge; a tool then chooses among what it finds."""
    try:
        return device_names(value)
    except UsageError:
        return []


def parse_assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise UsageError(f"--env {text!r}: it must be NAME=VALUE, NAME of letters, digits and _")
    return name, value
