"""libcdsprpc.so as a library: its names, and programs that load it by themselves."""

from __future__ import annotations

import os
import subprocess

import pytest

from hexnpu.emulator_build import LIBRARY_NAMES, emulator_folder
from hexnpu.native import Target, compile_program
from tests.conftest import require_tool
from tests.fastrpc.programs import HERE, dsp_library
from tests.processes import HANG_S

# What the real library exports
_TEXT = """
remote_handle_open remote_handle_invoke remote_handle_close remote_handle_control remote_session_control
remote_handle64_open remote_handle64_invoke remote_handle64_close remote_handle64_control
fastrpc_mmap fastrpc_munmap remote_mmap remote_munmap remote_mmap64 remote_munmap64 remote_mem_map remote_mem_unmap
remote_register_buf remote_register_buf_attr remote_register_buf_attr2 remote_register_fd remote_register_fd2
remote_register_dma_handle remote_register_dma_handle_attr remote_set_mode remote_system_request
remote_handle_invoke_async remote_handle64_invoke_async fastrpc_async_get_status fastrpc_release_async_job
rpcmem_init rpcmem_deinit rpcmem_alloc rpcmem_alloc2 rpcmem_free rpcmem_to_fd
dspqueue_create dspqueue_close dspqueue_export dspqueue_request dspqueue_write_noblock dspqueue_write
dspqueue_read_noblock dspqueue_read dspqueue_peek_noblock dspqueue_peek dspqueue_write_early_wakeup_noblock
dspqueue_get_stat HAP_debug_v2 HAP_debug_runtime
"""
NAMES = _TEXT.split()


@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_a_program_that_loads_it(name: str) -> None:
    program = compile_program("load_host", [HERE / "load_host.c"], Target(plain=True), [f"-I{HERE}"], ["-ldl"])
    variables = {"LD_LIBRARY_PATH": str(emulator_folder()), "ADSP_LIBRARY_PATH": str(dsp_library("calc_skel").parent)}
    result = subprocess.run(
        [program, name, *NAMES], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "", f"missing: {result.stdout}"


def test_nothing_but_its_names_is_exported() -> None:
    symbols = subprocess.run(
        [require_tool("nm", "binutils"), "-D", "--defined-only", emulator_folder() / LIBRARY_NAMES[0]],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    exported = {line.split()[-1] for line in symbols.splitlines()}
    assert exported - {*NAMES, "dspqueue_import"} == set()
