"""The command line of a Hexagon compiler, sorted: what to do, what the preprocessor, the compiler and the linker get.

Flags that choose the DSP's code (every -m flag, -G, -flto ...) mean nothing here and are dropped; the arch is read
out of them. Real builds name the DSP's start files and C library; this machine's own stand for them.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from hexnpu.errors import UsageError
from hexnpu.native import ARCHS, DEFAULT_ARCH

# Flags of the preprocessor, with what follows them
_PREPROCESSOR_WITH_VALUE = ("-I", "-D", "-U", "-include", "-imacros", "-isystem", "-iquote", "-idirafter")
_DEPENDENCY_WITH_VALUE = ("-MF", "-MT", "-MQ")
_DEPENDENCY = ("-MD", "-MMD", "-MP", "-MG", "-M", "-MM")
_LINKER_WITH_VALUE = ("-L", "-l", "-Xlinker", "-T", "-u", "-z", "-e")
_DROPPED_WITH_VALUE = (
    "-mllvm", "-target", "-Xassembler", "-Xpreprocessor", "-Xclang", "-arch", "-G", "--sysroot", "-isysroot",
)  # fmt: skip
_DROPPED = re.compile(
    r"-m(?!llvm$).*|-G\d*|-flto.*|-fno-lto|-f(?:no-)?(?:tree-|slp-)?vectorize|-ffixed-.*|-f(?:no-)?integrated-as"
    r"|-fp(?:ic|ie)|-fP(?:IC|IE)|-nostdlib|-nostartfiles|-nodefaultlibs|-static|-?-target=.*|--sysroot=.*"
    r"|-Wa,.*|-Wp,.*|-save-temps.*|-pipe|-fuse-ld=.*|-pie|-no-pie|-rdynamic|-pthread|-fno-zero-initialized-in-bss"
    # the emulator's arithmetic stands in headers, and must be exact
    r"|-ffast-math|-ffp-contract=.*|-fstrict-aliasing|-f(?:unsafe-math-optimizations|finite-math-only|reciprocal-math)"
    r"|-f(?:no-signed-zeros|associative-math|finite-math-only)"
)
_ABOUT = ("--version", "-v", "-dumpversion", "-dumpmachine", "-###", "--help", "-help")
# The DSP's own start files and libraries, which a link names by path or by -l
_DSP_RUNTIME = re.compile(
    r"(?:init|fini|crt0|crt1|crti|crtn|crt0_standalone|debugmon)\.o"
    r"|lib(?:c|gcc|qcc|hexagon|qurt|qurtcfs|qurtkernel|posix|standalone|timer|timer_island|timer_main|dl|c\+\+|c\+\+abi"
    r"|unwind)\.(?:a|so(?:\.\d+)*)"
)
_CPLUSPLUS_LIBRARIES = ("c++", "c++abi", "stdc++")  # which one there is, the compiler knows
_DSP_LIBRARIES = {
    *_CPLUSPLUS_LIBRARIES, "c", "gcc", "qcc", "hexagon", "qurt", "posix", "standalone", "timer", "dl", "cdsprpc",
    "adsprpc",
}  # fmt: skip
_KEPT_LINKER = (
    "--version-script", "--gc-sections", "--start-group", "--end-group", "--whole-archive", "--no-whole-archive",
    "-Map", "--as-needed", "--no-as-needed",
)  # fmt: skip
_LINKER_VALUE = (
    "-soname", "--soname", "-h", "--version-script", "-Map", "--defsym", "--wrap", "-rpath", "-L", "-T", "-z", "-e",
)  # fmt: skip
_ALLOCATOR = ("malloc", "calloc", "free", "realloc", "memalign")

C_SUFFIXES = (".c", ".i")
CPLUSPLUS_SUFFIXES = (".cc", ".cpp", ".cxx", ".c++", ".C", ".cp", ".ii")
_ASSEMBLY_SUFFIXES = (".s", ".S", ".asm", ".sx")


@dataclass
class Command:
    """What a command line asks for."""

    mode: str = "link"  # about, preprocess (-E, -M), syntax, assembly (-S), compile (-c), link
    arch: int = DEFAULT_ARCH
    sources: list[tuple[str, str]] = field(default_factory=list)  # file, language: c, c++
    objects: list[str] = field(default_factory=list)  # files and flags of the linker, in order
    output: str | None = None
    preprocessor: list[str] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)
    compiler: list[str] = field(default_factory=list)
    user_system: list[str] = field(default_factory=list)  # folders of -isystem
    shared: bool = False
    soname: str | None = None
    links_cplusplus: bool = False  # the C++ library is named among the inputs
    hmx: bool = False
    ieee: bool = False
    about: list[str] = field(default_factory=list)


def parse_arguments(arguments: list[str], cplusplus: bool = False) -> Command:
    """Raises UsageError; `cplusplus` where the command is the C++ one."""
    command = Command()
    words = iter(_expand(arguments))
    language = ""
    for word in words:
        if word in _ABOUT or word.startswith("-print-"):
            command.about.append(word)
        elif word in ("-E", "-M", "-MM", "-S", "-c", "-fsyntax-only"):
            mode = {"-E": "preprocess", "-M": "preprocess", "-MM": "preprocess", "-S": "assembly", "-c": "compile"}
            if command.mode != "preprocess":
                command.mode = mode.get(word, "syntax")
            if word.startswith("-M"):
                command.dependencies.append(word)
        elif word.startswith("-o") and word not in ("-objcmt",):
            command.output = word[2:] or _value(words, word)
        elif word.startswith("-x"):
            language = _language(word[2:] or _value(words, word))
        elif (flag := _with_value(word, _PREPROCESSOR_WITH_VALUE)) is not None:
            value = word[len(flag) :] or _value(words, word)
            command.preprocessor += [flag, value] if flag.startswith("-i") else [flag + value]
            if flag in ("-isystem", "-idirafter"):
                command.user_system.append(value)
        elif word in _DEPENDENCY or (flag := _with_value(word, _DEPENDENCY_WITH_VALUE)) is not None:
            command.dependencies.append(word)
            if word in _DEPENDENCY_WITH_VALUE:
                command.dependencies.append(_value(words, word))
        elif word in _DROPPED_WITH_VALUE:
            value = _value(words, word)
            if word == "-target":
                _see_target(value)
        elif _DROPPED.fullmatch(word):
            _see_machine(command, word)
        elif word == "-shared":
            command.shared = True
        elif word.startswith("-Wl,"):
            _linker(command, word[4:].split(","))
        elif word == "-Xlinker":
            _linker(command, [_value(words, word)])
        elif (flag := _with_value(word, _LINKER_WITH_VALUE)) is not None:
            value = word[len(flag) :] or _value(words, word)
            command.links_cplusplus |= flag == "-l" and value in _CPLUSPLUS_LIBRARIES
            kept = {"-l": value not in _DSP_LIBRARIES, "-u": True, "-L": Path(value).is_dir()}
            if kept.get(flag):
                command.objects.append(flag + value)
        elif word.startswith("-Werror"):
            pass  # what this machine's types make a compiler say is not what the DSP's would
        elif word.startswith("-") and word != "-":
            command.compiler.append("-O3" if word == "-Ofast" else word)
        else:
            _input(command, word, language, cplusplus)
    return _checked(command)


def _expand(arguments: list[str]) -> list[str]:
    """The words of response files (@file) in their places."""
    words: list[str] = []
    for word in arguments:
        if word.startswith("@") and len(word) > 1 and Path(word[1:]).is_file():
            words += _expand(shlex.split(Path(word[1:]).read_text()))
        else:
            words.append(word)
    return words


def _value(words: object, flag: str) -> str:
    value = next(words, None)  # type: ignore[call-overload]
    if value is None:
        raise UsageError(f"{flag} lacks its value")
    return str(value)


def _with_value(word: str, flags: tuple[str, ...]) -> str | None:
    """The flag whose value is glued to `word` or follows it; long names are only ever followed."""
    for flag in sorted(flags, key=len, reverse=True):
        if word == flag or (word.startswith(flag) and (len(flag) == 2 or flag.startswith(("-i", "-M")))):
            return flag
    return None


def _language(name: str) -> str:
    known = {"c": "c", "c++": "c++", "cpp-output": "c", "c++-cpp-output": "c++", "c-header": "c", "none": ""}
    if name.startswith("assembler"):
        return "assembler"
    if name not in known:
        raise UsageError(f"-x {name} is not translated; c and c++ are")
    return known[name]


def _see_target(value: str) -> None:
    if not value.startswith("hexagon"):
        raise UsageError(f"the target {value}: emu-cc stands for a compiler of Hexagon alone")


def _see_machine(command: Command, word: str) -> None:
    """What a machine flag says that counts: the arch, HMX, IEEE floats."""
    if match := re.fullmatch(r"-m(?:cpu=(?:hexagon)?v|v|hvx=v|arch=(?:hexagon)?v)(\d+)(?:t|a)?", word):
        arch = int(match[1])
        if not 60 <= arch <= max(ARCHS):
            raise UsageError(f"{word}: v{arch} is not emulated; v60 to v81 are, HVX as of v73, v75, v79 and v81")
        command.arch = arch
    elif word.startswith(("--target=", "-target=")):
        _see_target(word.partition("=")[2])
    elif word == "-mhmx":
        command.hmx = True
    elif word == "-mhvx-ieee-fp":
        command.ieee = True
    elif word == "-mhvx-length=64b":
        raise UsageError("-mhvx-length=64b: vectors of 64 bytes are not emulated")


def _linker(command: Command, words: list[str]) -> None:
    """The parts of -Wl,: kept where they say which symbols or files are meant."""
    pending = iter(words)
    for word in pending:
        flag, glued, value = word.partition("=")
        if not glued and flag in _LINKER_VALUE:
            value = next(pending, "")
        elif flag.startswith("-L") and not glued:
            flag, value = "-L", word[2:]
        if flag in ("-soname", "--soname", "-h"):
            command.soname = value
        elif flag == "--wrap" and value not in _ALLOCATOR:
            raise UsageError(f"-Wl,--wrap={value}: nothing is wrapped here; only the allocator's names are ignored")
        elif flag == "-L" and Path(value).is_dir():
            command.objects.append(f"-L{value}")
        elif flag in _KEPT_LINKER:
            command.objects.append(f"-Wl,{flag}" + (f"={value}" if value else ""))


def _input(command: Command, word: str, language: str, cplusplus: bool) -> None:
    path = Path(word)
    suffix = path.suffix
    if language == "assembler" or (not language and suffix in _ASSEMBLY_SUFFIXES):
        raise UsageError(f"{word} is Hexagon assembly, which cannot be emulated: write it in C")
    if language:
        command.sources.append((word, language))
    elif suffix in CPLUSPLUS_SUFFIXES:
        command.sources.append((word, "c++"))
    elif suffix in (*C_SUFFIXES, ".h") or word == "-":
        command.sources.append((word, "c++" if cplusplus else "c"))
    elif _DSP_RUNTIME.fullmatch(path.name) and not (path.exists() and path.stat().st_size):
        command.links_cplusplus |= path.name.startswith("libc++")
    else:
        _check_object(path)
        command.objects.append(word)


def _check_object(path: Path) -> None:
    """Refuses what was built for the DSP itself."""
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    if head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == 164:
        raise UsageError(f"{path} holds Hexagon code: build it again with `hexnpu emu-cc` for the emulator")


def _checked(command: Command) -> Command:
    if command.about and not command.sources and not command.objects:
        command.mode = "about"
        return command
    if not command.sources and not command.objects:
        raise UsageError("no input files")
    if command.mode in ("compile", "assembly") and len(command.sources) > 1 and command.output:
        raise UsageError("-o with -c or -S takes one source")
    for source, _ in command.sources:
        if source != "-" and not os.access(source, os.R_OK):
            raise UsageError(f"cannot read {source}: {'no permission' if Path(source).exists() else 'no such file'}")
    return command
