"""Where a built package lies here and on the target, and what is in it.

    pkg-TARGET[-dbg]/bin/...   programs      ->  TARGET_DIR/bin/...
    pkg-TARGET[-dbg]/lib/...   libraries     ->  TARGET_DIR/lib/...

A llama.cpp checkout's presets install one folder deeper (pkg-.../llama.cpp/bin); `package_root` finds it.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from hexnpu.deploy.errors import PackageMissing
from hexnpu.deploy.targets import WORDS, Target
from hexnpu.errors import UsageError


def is_llama_cpp(tree: Path) -> bool:
    return (tree / "ggml" / "CMakeLists.txt").is_file() and (tree / "include" / "llama.h").is_file()


def package_tree(source: Path | None) -> Path:
    """The tree whose package is meant: `--source`, or the folder we are in where that is a llama.cpp checkout or has
    packages, otherwise this project's own kernels and server, which `hexnpu build` builds. Raises UsageError."""
    if source is not None:
        if not source.is_dir():
            raise UsageError(f"--source {source} is no folder: name the tree whose package it is")
        return source
    from hexnpu.native import kernels_dir

    here = Path()
    return here if is_llama_cpp(here) or any(here.glob("pkg-*")) else kernels_dir()


def target_dir(target: Target, source: Path) -> str:
    """Where the package of a tree goes unless `--target-dir` says otherwise."""
    name = "llama.cpp" if is_llama_cpp(source) else "hexnpu"
    return f"/data/local/tmp/{name}" if target.kind == "android" else f"~/{name}"


def build_dir(target: Target, source: Path, debug: bool) -> Path:
    return source / f"build-{target.word}{'-dbg' if debug else ''}"


def install_dir(target: Target, source: Path, debug: bool) -> Path:
    return source / f"pkg-{target.word}{'-dbg' if debug else ''}"


def package_root(folder: Path) -> Path:
    """The folder with bin/ and lib/. Raises PackageMissing where there is none, or nothing in it."""
    if not folder.is_dir():
        raise PackageMissing(f"no package folder {folder}: {_others(folder) or _ways_out(folder)}")
    nested = folder / "llama.cpp"
    root = nested if nested.is_dir() and not (folder / "bin").is_dir() else folder
    if not any(root.iterdir()):
        raise PackageMissing(f"package folder {root} is empty: {_ways_out(folder)}")
    return root


def _ways_out(folder: Path) -> str:
    return f"build it ({_build(folder)}), or name it by --install-dir"


def _build(folder: Path) -> str:
    """The command that would make it."""
    from hexnpu.native import kernels_dir

    words = ["hexnpu", "build"]
    if folder.name.startswith("pkg-") and _word(folder.name) in WORDS:
        words += ["--target", _word(folder.name)]
        words += ["--source", str(folder.parent)] if folder.parent.absolute() != kernels_dir() else []
        words += ["--debug"] if folder.name.endswith("-dbg") else []
    return shlex.join(words)


def _others(folder: Path) -> str:
    """How to take one of the packages beside a folder that is not there, if it is for the same kind of target: by its
    word, or its name. Empty where there is none."""
    kind = WORDS.get(_word(folder.name))
    there = sorted(other.name for other in folder.parent.glob("pkg-*") if other.is_dir())
    there = [name for name in there if kind is None or WORDS.get(_word(name), kind) == kind]
    if not there:
        return ""
    flags = [f"--target {_word(n)}{' --debug' * n.endswith('-dbg')}" for n in there if kind and _word(n) in WORDS]
    ways = ", ".join([*flags, f"--install-dir {shlex.quote(str(folder.with_name(there[0])))}"])
    return f"there is {', '.join(there)}; take one ({ways}), or build it ({_build(folder)})"


def _word(name: str) -> str:
    return name.removeprefix("pkg-").removesuffix("-dbg")


def local_package(source: Path, debug: bool) -> Path:
    """The `pkg-*` folder in the tree or next to it that a run on this machine takes. Raises PackageMissing."""
    found = [
        folder
        for place in (source, source.absolute().parent)
        for folder in sorted(place.glob("pkg-*"))
        if folder.is_dir() and folder.name.endswith("-dbg") == debug
    ]
    if len(found) == 1:
        return package_root(found[0])
    if not found:
        what = "pkg-*-dbg" if debug else "pkg-*"
        raise PackageMissing(f"no {what} folder in {source.absolute()} or next to it: name one by --install-dir")
    raise PackageMissing(f"several packages ({', '.join(map(str, found))}): name one by --install-dir")
