"""The devices there are: those of the adb server, and the hosts of ~/.ssh/config, with what they say of themselves."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hexnpu.deploy.device import Device, open_device
from hexnpu.deploy.errors import DeployError, NoAdbServer
from hexnpu.deploy.quoting import decode
from hexnpu.deploy.ssh_config import host_names
from hexnpu.deploy.targets import parse_target
from hexnpu.errors import HexnpuError

ASK_S = 10.0
AT_A_TIME = 8

# SoC -> Hexagon arch. Phones by the public NPU drivers' tables (Qualcomm's soc tables in google-ai-edge/LiteRT and
# pytorch/executorch); SC8380XP is Snapdragon X.
HEXAGON_ARCHS = {
    "SM8350": 68, "SM8450": 69, "SM8475": 69, "SM8550": 73, "QCS8550": 73, "SA8255": 73, "SC8380XP": 73, "X1E80100": 73,
    "SM8650": 75, "SM8750": 79, "SM8850": 81,
}  # fmt: skip

# A script that fails has told nothing: what it printed may be its shell's complaint.
_ANDROID = "getprop ro.product.manufacturer && getprop ro.product.model && getprop ro.soc.model"
# NUL ends the model in the device tree. `machine` is the SoC's name on Qualcomm kernels.
_LINUX = """
tr -d '\\0' < /proc/device-tree/model 2>/dev/null || cat /sys/class/dmi/id/product_name 2>/dev/null || uname -n
echo; cat /sys/devices/soc0/machine 2>/dev/null || tr '\\0' ' ' < /proc/device-tree/compatible 2>/dev/null
exit 0
"""


@dataclass(frozen=True)
class Found:
    """One device. `arch` is 0 where it cannot be told; `state` is ready, or why it is not."""

    target: str
    state: str
    model: str = ""
    soc: str = ""
    arch: int = 0


def inventory() -> list[Found]:
    """All devices; each is asked at the same time as the others, and none is waited for longer than its time-outs."""
    jobs: list[Callable[[], Found]] = []
    found: list[Found] = []
    try:
        from hexnpu.deploy.adb_server import attached

        for serial, state in attached():
            if state == "device":
                jobs.append(lambda serial=serial: _ask(f"android:{serial}", _ANDROID, _read_android))  # type: ignore[misc]
            else:
                found.append(Found(f"android:{serial}", state))
    except NoAdbServer as error:
        found.append(Found("android", str(error)))
    try:
        for host in host_names():
            jobs.append(lambda host=host: _ask(f"linux:{host}", _LINUX, _read_linux))  # type: ignore[misc]
    except DeployError as error:
        found.append(Found("linux", str(error)))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return [*pool.map(lambda job: job(), jobs), *found]


def soc_arch(text: str) -> tuple[str, int]:
    """The SoC and the Hexagon arch that a text names, in any spelling ("SM8750-AB", "qcom,sm8650")."""
    for soc, arch in HEXAGON_ARCHS.items():
        if re.search(rf"\b{soc}", text, re.IGNORECASE):
            return soc, arch
    return "", 0


def _ask(target: str, script: str, read: Callable[[list[str]], tuple[str, str]]) -> Found:
    try:
        with open_device(parse_target(target)) as device:
            lines = _answer(device, script)
    except HexnpuError as error:
        return Found(target, str(error))
    model, soc_text = read(lines)
    soc, arch = soc_arch(soc_text)
    return Found(target, "ready", model, soc or soc_text, arch)


def _answer(device: Device, script: str) -> list[str]:
    result = device.shell(script, timeout_s=ASK_S)
    return [] if result.code else [line.strip() for line in decode(result.stdout).splitlines()]


def _read_android(lines: list[str]) -> tuple[str, str]:
    maker, model, soc = [*lines, "", "", ""][:3]
    return f"{maker} {model}".strip(), soc


def _read_linux(lines: list[str]) -> tuple[str, str]:
    model, *rest = [line for line in lines if line] or [""]
    return model, rest[0] if rest else ""
