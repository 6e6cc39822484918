"""`hexnpu emu-cc`: runs a parsed command line: preprocess, translate, compile; or link.

Every step is a run of the user's clang (`CC`) or of the ziglang package's. Objects carry the flags of native.py that
matter for how vectors are passed, so that they fit the emulator's own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hexnpu.cache import cache_dir
from hexnpu.emucc.arguments import Command, parse_arguments
from hexnpu.emucc.translate import translate
from hexnpu.errors import BuildError
from hexnpu.native import HOST_FLAGS, Target, check_host, compile_objects, kernels_dir

# What 32-bit code makes a 64-bit compiler say, and what it says of expanded macros; NULL is a plain 0 on the DSP
_QUIET = (
    "-Wno-error=int-conversion",
    "-Wno-pointer-to-int-cast", "-Wno-int-to-pointer-cast", "-Wno-void-pointer-to-int-cast", "-Wno-format",
    "-Wno-shift-count-overflow", "-Wno-microsoft-cast", "-Wno-unknown-warning-option", "-Wno-unknown-pragmas",
    "-Wno-parentheses-equality", "-Wno-psabi", "-Wno-builtin-macro-redefined", "-Wno-unused-command-line-argument",
)  # fmt: skip
_OPTIONS = (
    "-ffp-contract=off", "-fno-strict-aliasing", "-fno-sanitize=undefined", "-pthread", "-fPIC",
)  # fmt: skip
_NO_SPACE = (b"NoSpaceLeft", b"No space left")  # zig's words, and clang's
# Where libraries may begin: many places in 384 MiB, so that those of one session seldom meet
_FIRST_BASE, _BASE_STEP, _N_BASES = 0x20000000, 0x10000, 6144


def main(arguments: list[str], cplusplus: bool = False) -> int:
    """Runs one command line; gives the exit code."""
    if arguments == ["--sdk-root"]:
        from hexnpu.emucc.sdk_root import sdk_root

        print(sdk_root())
        return 0
    command = parse_arguments(arguments, cplusplus)
    check_host(Target())
    _own_compiler()
    try:
        with tempfile.TemporaryDirectory(prefix="hexnpu-emu-cc-") as scratch:
            return _run(command, cplusplus, Path(scratch))
    except OSError as error:
        raise BuildError(f"cannot write {error.filename}: {error.strerror}") from None


def _run(command: Command, cplusplus: bool, scratch: Path) -> int:
    if command.mode == "about":
        return _call([*_compiler(cplusplus), *command.about])
    if command.mode == "preprocess":
        to = ["-o", command.output] if command.output else []
        for source, language in command.sources:
            step = _preprocess(command, source, language)
            if code := _call([*step, *command.dependencies, *_kept(command), *to]):
                return code
        return 0
    objects = []
    for i, (source, language) in enumerate(command.sources):
        output = _output(command, source, scratch / f"{i}-{Path(source).stem}.o")
        if code := _compile(command, source, language, output, scratch / str(i)):
            return code
        objects.append(str(output))
    if command.mode == "link":
        cplusplus |= command.links_cplusplus or any(language == "c++" for _, language in command.sources)
        return _link(command, objects, cplusplus, scratch)
    return 0


def _output(command: Command, source: str, temporary: Path) -> Path:
    if command.mode in ("link", "syntax"):
        return temporary
    suffix = ".s" if command.mode == "assembly" else ".o"
    return Path(command.output or Path(source).with_suffix(suffix).name)


def _compile(command: Command, source: str, language: str, output: Path, scratch: Path) -> int:
    """Preprocess, translate, compile one source."""
    cplusplus = language == "c++"
    scratch.mkdir()
    expanded = scratch / f"expanded{'.ii' if cplusplus else '.i'}"
    dependencies = _dependencies(command, output, source)
    step = [*_preprocess(command, source, language), *_kept(command), *dependencies, "-o", str(expanded)]
    if code := _call(step, scratch):
        return code
    text = expanded.read_text(errors="surrogateescape")
    ours = [kernels_dir() / "platform"]
    translated, errors = translate(text, cplusplus, ours, command.user_system)
    if errors:
        for error in errors:
            print(error, file=sys.stderr)
        print(f"{len(errors)} error{'s' if len(errors) > 1 else ''} generated.", file=sys.stderr)
        return 1
    named = scratch / f"{Path(source).stem}{expanded.suffix}"
    named.write_text(translated, errors="surrogateescape")
    # zig knows no -fsyntax-only: what it makes goes away with the scratch folder.
    made = scratch / f"made{output.suffix}"
    to = ["-S" if command.mode == "assembly" else "-c", "-o", str(made)]
    language_flags = ["-x", language]
    if cplusplus:
        language_flags.append("-fms-extensions")  # reinterpret_cast of a pointer to uint32_t is a warning then
    name = f"-fdebug-prefix-map={named}={source}"
    compiler = [*_compiler(cplusplus), *HOST_FLAGS, *command.compiler, *_OPTIONS, *_QUIET, name]
    if code := _call([*compiler, *language_flags, str(named), *to], scratch):
        return code
    return _place(made, output)


def _place(made: Path, output: Path) -> int:
    """Puts a finished file where it was asked for: whole, or not at all. The compilers' own ways to do so fail without
    a word, or with code 0, where the disk is full."""
    try:
        if output.exists() and not output.is_file():  # /dev/null, a pipe
            output.write_bytes(made.read_bytes())
            return 0
        target = output.resolve()
        beside = target.with_name(f".emu-cc-{os.getpid()}")
        try:
            shutil.copy(made, beside)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"cannot write {output}: {error.strerror}") from None
    return 0


def _preprocess(command: Command, source: str, language: str) -> list[str]:
    root = kernels_dir() / "platform"
    # Behind the user's folders, whose headers may have names that the emulator's own also have; before the compiler's,
    # which has a hexagon_types.h as well.
    folders = [f"-I{root / 'emu'}", f"-I{root / 'emu/libc'}", "-idirafter", str(root / "hexagon/sdk")]
    asm = ["-include", str(root / "emu/asm.h")]
    quiet = ["-Wno-unused-command-line-argument", "-Wno-builtin-macro-redefined"]
    flags = [*HOST_FLAGS, *_defines(command), *asm, *command.preprocessor, *folders, *quiet]
    return [*_compiler(language == "c++"), "-E", *flags, "-x", language, source]


def _kept(command: Command) -> list[str]:
    """The compiler's flags that the preprocessor asks about too: the standard, optimization, warnings."""
    return [flag for flag in command.compiler if flag.startswith(("-std", "-O", "-f", "-W", "-C", "-P", "-d", "-w"))]


def _defines(command: Command) -> list[str]:
    """What the DSP's compiler defines, by `clang --target=hexagon -dM -E`, and its type for halves."""
    arch = command.arch
    defines = {
        "__hexagon__": 1, "__HEXAGON__": 1, "__qdsp6__": 1, "__QDSP6__": 1, "__HEXAGON_ARCH__": arch,
        f"__HEXAGON_V{arch}__": 1, "__QDSP6_ARCH__": arch, f"__QDSP6_V{arch}__": 1, "__HEXAGON_PHYSICAL_SLOTS__": 4,
        "__HVX__": 1, "__HVX_ARCH__": arch, "__HVX_LENGTH__": 128, "__HVXDBL__": 1, "__fp16": "_Float16",
        "HEXNPU_EMU_DSP": 1,
    }  # fmt: skip
    if command.ieee or arch >= 79:
        defines["__HVX_IEEE_FP__"] = 1
    if command.hmx:
        defines["__HMX__"] = 1
    return [f"-D{name}={value}" for name, value in defines.items()]


def _dependencies(command: Command, output: Path, source: str) -> list[str]:
    """The -M flags, with the names that a compiler would have made from -o."""
    flags = list(command.dependencies)
    if not any(flag in ("-MD", "-MMD") for flag in flags):
        return []
    if not any(flag.startswith("-MF") for flag in flags):
        stem = output if command.mode != "link" else Path(source)
        flags += ["-MF", str(Path(stem).with_suffix(".d"))]
    if not any(flag.startswith(("-MT", "-MQ")) for flag in flags):
        flags += ["-MT", str(output)]
    return flags


def _link(command: Command, objects: Sequence[str], cplusplus: bool, scratch: Path) -> int:
    output, made = Path(command.output or "a.out"), scratch / "made"
    flags = ["-fno-sanitize=undefined", "-pthread", *(f for f in command.compiler if f.startswith("-fsanitize"))]
    linker = [*_compiler(cplusplus), *flags]
    if not command.shared:
        code = _call([*linker, *objects, *command.objects, "-o", str(made)], scratch)
        return code or _place(made, output)
    soname = command.soname or output.name
    script = scratch / "base.ld"
    script.write_text(_SCRIPT.replace("BASE", hex(image_base(soname))))
    sources = sorted((kernels_dir() / "platform/emu/library").glob("*.c"))
    runtime = compile_objects(sources, Target(), ("-fPIC",), label="emu-cc")
    shared = ["-shared", f"-Wl,-T,{script}", f"-Wl,-soname,{soname}", "-Wl,-Bsymbolic"]
    code = _call([*linker, *shared, *objects, *command.objects, *map(str, runtime), "-o", str(made)], scratch)
    return code or _place(made, output)


def image_base(name: str) -> int:
    """Where the library of that name wants to lie: below 4 GiB, since DSP code holds addresses in 32 bits."""
    place = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little") % _N_BASES
    return _FIRST_BASE + place * _BASE_STEP


# A script, since zig's linker driver takes no --image-base for libraries.
_SCRIPT = """SECTIONS {
  . = BASE + SIZEOF_HEADERS;
  .note : { *(.note .note.*) }
  .dynsym : { *(.dynsym) }
  .gnu.version : { *(.gnu.version) }
  .gnu.version_d : { *(.gnu.version_d) }
  .gnu.version_r : { *(.gnu.version_r) }
  .gnu.hash : { *(.gnu.hash) }
  .hash : { *(.hash) }
  .dynstr : { *(.dynstr) }
  .rela.dyn : { *(.rela.dyn) }
  .rela.plt : { *(.rela.plt) }
  .rodata : { *(.rodata .rodata.*) }
  .gcc_except_table : { *(.gcc_except_table .gcc_except_table.*) }
  .eh_frame_hdr : { *(.eh_frame_hdr) }
  .eh_frame : { KEEP(*(.eh_frame)) }
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .init : { KEEP(*(.init)) }
  .plt : { *(.plt) *(.iplt) }
  .plt.got : { *(.plt.got) }
  .plt.sec : { *(.plt.sec) }
  .text : { *(.text .text.*) }
  .fini : { KEEP(*(.fini)) }
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .tdata : { *(.tdata .tdata.*) }
  .tbss : { *(.tbss .tbss.*) }
  .init_array : { KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*))) KEEP(*(.init_array .ctors)) }
  .fini_array : { KEEP(*(SORT_BY_INIT_PRIORITY(.fini_array.*))) KEEP(*(.fini_array .dtors)) }
  .data.rel.ro : { *(.data.rel.ro .data.rel.ro.*) }
  .dynamic : { *(.dynamic) }
  .got : { *(.got) }
  . = ALIGN(CONSTANT(MAXPAGESIZE));
  .got.plt : { *(.got.plt) }
  .data : { *(.data .data.*) }
  .bss : { *(.bss .bss.* COMMON) }
}
"""


def _compiler(cplusplus: bool) -> list[str]:
    command = Target().compiler()
    if not cplusplus:
        return command
    if command[-2:] == ["ziglang", "cc"]:
        return [*command[:-1], "c++"]
    name = Path(command[0])
    return [str(name.with_name(name.name.replace("clang", "clang++", 1))), *command[1:]]


def _own_compiler() -> None:
    """Forgets a CC that is no clang of this machine: CMake puts the compiler it has found there, which is this one."""
    words = os.environ.get("CC", "").split()
    if words and ("clang" not in Path(words[0]).name or Path(words[0]).name.startswith("hexagon-")):
        del os.environ["CC"]


def _call(command: Sequence[str], scratch: Path | None = None) -> int:
    """Runs a compiler with our own streams; its messages and its exit code are the user's, but for a full disk, which
    it words in its own way, and often in hundreds of lines."""
    environment = dict(os.environ)
    environment["ZIG_GLOBAL_CACHE_DIR"] = str(cache_dir() / "zig")
    if scratch:
        environment["ZIG_LOCAL_CACHE_DIR"] = str(scratch / "zig")
    sys.stdout.flush()
    colours = ["-fdiagnostics-color=always"] if sys.stderr.isatty() else []
    try:
        result = subprocess.run([*command, *colours], env=environment, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        raise BuildError(f"cannot run {command[0]}: {error.strerror}; set CC to a clang, or unset it") from None
    if result.returncode and any(words in result.stderr for words in _NO_SPACE):
        raise BuildError(
            f"no space left on a disk: free some where the output goes, in {cache_dir()} (HEXNPU_CACHE) or in "
            f"{tempfile.gettempdir()} (TMPDIR)"
        )
    sys.stderr.buffer.write(result.stderr)
    sys.stderr.flush()
    return result.returncode
