"""Wrong use and wrong files: the documented code (bad_cases.c looks), and one line that says what and what to do."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.fastrpc.programs import dsp_library, run_host

# Case -> what its line says
CASES = {
    "unknown_domain": "no DSP is called xdsp; this machine has cdsp (0xe)",
    "absent_domain": "domain 0 is not on this machine",
    "absent_npu": "domain 4 is not on this machine, which has 1 NPU(s) from domain 3: see `hexnpu emulate --npus`",
    "no_domain": "names no domain: append &_dom=cdsp",
    "no_such_session": "no session 4; they are 0 to 3",
    "bad_uri": "is no module's URI: write file:///libNAME_skel.so",
    "null_uri": "the URI is NULL",
    "null_handle": "where the handle goes is NULL",
    "no_library": "no DSP library libnone_skel.so in DSP_LIBRARY_PATH=",
    "no_symbol": "has no function other_skel_handle_invoke",
    "session_limit": "sessions 1 to 3 of cdsp are taken: close one (0x8a)",
    "unknown_name": "no DSP is called xdsp",
    "short_uri": "the room is",
    "wrong_size": "request 1 takes a structure of 12 bytes, not 11",
    "unknown_request": "request 99 is not emulated",
    "late_unsigned": "domain 3 has an open session",
    "nothing_to_kill": "domain 3 has no open session to kill",
    "closed_handle": "is no open handle",
    "closed_twice": "remote_handle64_close: 0x",
    "invented_handle": "0xffffffffffffffff is no open handle",
    "no_arguments": "ask for 2 arguments, and there are none",
    "null_buffer": "argument 0 has 8 bytes at NULL",
    "double_free": "is no rpcmem buffer: it was freed before",
    "free_unknown": "is no rpcmem buffer",
    "free_inside": "is no rpcmem buffer",
    "fd_of_unknown": "is no rpcmem buffer",
    "alloc_none": "0 bytes cannot be allocated",
    "alloc_negative": "-4096 bytes cannot be allocated; rpcmem_alloc2() takes 2 GiB and more",
    "map_flags": "flags are one of enum fastrpc_map_flags",
    "map_offset": "offset 4096",
    "map_domain": "77 is no domain",
    "map_no_file": "777 is no open file descriptor",
    "map_beyond": "8192 bytes of file descriptor",
    "map_twice": "is mapped already: unmap it before",
    "unmap_unmapped": "is not mapped to domain 3",
    "unmap_no_session": "domain 3 has no open session",
    "attribute": "200 is no attribute of a DSP",
    "latency": "polling is for less than 10000 us",
    "system_request": "the request is NULL",
    "register_nothing": "a buffer of 4096 bytes at (nil)",
}  # fmt: skip


def lines_of(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if line.startswith("fastrpc")]


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_the_code(case: str) -> None:
    result = run_host("bad_cases", case, libraries=[dsp_library("calc_skel")])
    assert result.returncode == 0, result.stderr
    assert len(lines_of(result.stderr)) == 1, result.stderr
    assert CASES[case] in result.stderr


def test_a_buffer_that_is_not_mapped() -> None:
    result = run_host("bad_cases", "unmapped_buffer", libraries=[dsp_library("calc_skel")])
    assert result.returncode == 0, result.stderr


def elf_of(machine: int, wide: bool) -> bytes:
    """The head of a shared library for another processor."""
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
    return ident + struct.pack("<HHI", 3, machine, 1) + bytes(100)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (elf_of(164, wide=False), "is built for a real Hexagon: build it for the emulator, with `hexnpu emu-cc`"),
        (elf_of(40, wide=False), "is built for another processor (ELF machine 40)"),
        (b"no library at all", "is no library"),
        (b"", "is no library"),
    ],
)
def test_files_that_are_no_library_for_the_emulator(tmp_path: Path, content: bytes, says: str) -> None:
    library = tmp_path / "libbad_skel.so"
    library.write_bytes(content)
    result = run_host("bad_cases", "bad_library", libraries=[library])
    assert result.returncode == 0, result.stderr
    assert len(lines_of(result.stderr)) == 1
    assert says in result.stderr
    assert str(library) in result.stderr


@pytest.mark.parametrize("n", (100, 3000, 5000))
def test_a_library_that_is_cut_off(tmp_path: Path, n: int) -> None:
    whole, library = dsp_library("calc_skel").read_bytes(), tmp_path / "libbad_skel.so"
    library.write_bytes(whole[:n])
    result = run_host("bad_cases", "bad_library", libraries=[library])
    assert result.returncode == 0, result.stderr
    assert len(lines_of(result.stderr)) == 1
    assert f"{library} is " in result.stderr


def test_a_library_with_a_missing_symbol_names_it() -> None:
    library = dsp_library("missing_skel", name="libbad_skel.so")
    result = run_host("bad_cases", "bad_library", libraries=[library])
    assert result.returncode == 0, result.stderr
    assert len(lines_of(result.stderr)) == 1
    assert "HAP_no_such_function" in result.stderr


def test_the_path_list_is_searched_in_order(tmp_path: Path) -> None:
    library = dsp_library("calc_skel")
    paths = {"ADSP_LIBRARY_PATH": f"{tmp_path};{tmp_path}/none;{library.parent}"}
    result = run_host("calc_cases", "sum", environment=paths)
    assert result.returncode == 0, result.stderr
    result = run_host(
        "calc_cases", "sum", environment={"ADSP_LIBRARY_PATH": "", "DSP_LIBRARY_PATH": str(library.parent)}
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("variable", ("HEXNPU_EMU_VTCM=8MB", "HEXNPU_EMU_HVX=-4", "HEXNPU_EMU_NPUS=5"))
def test_a_number_that_is_none(variable: str) -> None:
    name, _, value = variable.partition("=")
    result = run_host("calc_cases", "sum", libraries=[dsp_library("calc_skel")], environment={name: value})
    assert result.returncode == 0, result.stderr
    (line,) = lines_of(result.stderr)
    assert f"{variable} is no number from" in line


@pytest.mark.parametrize("arch", ("68", "74", "99", "v79"))
def test_an_arch_that_nobody_has(arch: str) -> None:
    libraries = [dsp_library("calc_skel")]
    result = run_host("calc_cases", "sum", libraries=libraries, environment={"HEXNPU_EMU_ARCH": arch})
    assert result.returncode == 0, result.stderr
    (line,) = lines_of(result.stderr)
    assert f"HEXNPU_EMU_ARCH={arch} is none of 73, 75, 79 and 81: it counts as 79" in line


def test_a_stand_in_without_its_program(tmp_path: Path) -> None:
    missing = tmp_path / "htp-pd"
    result = run_host("bad_cases", "no_program", environment={"HEXNPU_EMU_PD": str(missing)})
    assert result.returncode == 0, result.stderr
    assert f"no program htp-pd at {missing}" in result.stderr


def test_log_lines_of_both_ends_go_to_the_file(tmp_path: Path) -> None:
    log = tmp_path / "farf"
    for program, case in (("calc_cases", "farf"), ("bad_cases", "double_free")):
        libraries = [dsp_library("calc_skel")]
        result = run_host(program, case, libraries=libraries, environment={"HEXNPU_EMU_FARF": str(log)})
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
    text = log.read_text()
    assert "the calculator says 42" in text
    assert "the host says 43" in text
    assert "nobody asked" not in text
    assert "is no rpcmem buffer" in text
