"""`hexnpu build`: a CMake tree with presets, in the toolchain container or natively."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from hexnpu.cli import nonempty


def build(
    target: Annotated[
        str, typer.Option("--target", help="android, linux[:host], windows, or their aliases.")
    ] = "android",
    source: Annotated[
        Path | None,
        typer.Option(
            "--source",
            parser=nonempty.path,
            help="A CMake tree with presets.",
            show_default="this project's kernels and server",
        ),
    ] = None,
    build_dir: Annotated[
        Path | None,
        typer.Option(
            "--build-dir", parser=nonempty.path, help="Where CMake builds.", show_default="SOURCE/build-TARGET[-dbg]"
        ),
    ] = None,
    install_dir: Annotated[
        Path | None,
        typer.Option(
            "--install-dir", parser=nonempty.path, help="The package folder.", show_default="SOURCE/pkg-TARGET[-dbg]"
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", min=1, help="Compilations at a time.", show_default="CPU count"),
    ] = None,
    no_docker: Annotated[bool, typer.Option("--no-docker", help="Build natively; always so for Windows.")] = False,
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset", parser=nonempty.text, help="The CMake preset.", show_default="arm64-TARGET-snapdragon-release"
        ),
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="The debug preset and the -dbg folders.")] = False,
    toolchain_url: Annotated[
        str | None,
        typer.Option(
            "--toolchain-url",
            parser=nonempty.text,
            help="Where images are.",
            show_default="ghcr.io/snapdragon-toolchain",
        ),
    ] = None,
    toolchain_version: Annotated[
        str | None,
        typer.Option("--toolchain-version", parser=nonempty.text, help="Version of the image.", show_default="v0.7"),
    ] = None,
    push: Annotated[bool, typer.Option("--push", help="Push the package afterwards.")] = False,
    target_dir: Annotated[
        str | None,
        typer.Option(
            "--target-dir",
            parser=nonempty.text,
            help="Where to push.",
            show_default="/data/local/tmp/hexnpu or ~/hexnpu",
        ),
    ] = None,
    accept_new_host_key: Annotated[
        bool,
        typer.Option("--accept-new-host-key", help="With --push: take an unknown SSH host's key into known_hosts."),
    ] = False,
) -> None:
    """Build the kernels and the device server, or a llama.cpp checkout, for a target."""
    from hexnpu.deploy import build as builds
    from hexnpu.deploy import container, package
    from hexnpu.deploy.targets import parse_target
    from hexnpu.errors import UsageError

    if target_dir is not None and not push:
        raise UsageError("--target-dir is where --push puts the package; add --push")
    if accept_new_host_key and not push:
        raise UsageError("--accept-new-host-key is for the host that --push connects to; add --push")
    if no_docker and (toolchain_url or toolchain_version):
        raise UsageError("--toolchain-url and --toolchain-version are of the container's image: leave --no-docker out")
    if source is None and package.is_llama_cpp(Path()):
        print("hexnpu: building hexnpu's own kernels; --source . builds the llama.cpp checkout here", file=sys.stderr)
    where = parse_target(target) if push else builds.build_target(target)
    built = builds.resolve(
        where, source=source, build_dir=build_dir, install_dir=install_dir, jobs=jobs, native=no_docker,
        preset=preset, debug=debug, toolchain_url=toolchain_url or container.URL,
        toolchain_version=toolchain_version or container.VERSION,
    )  # fmt: skip
    builds.run(built)
    if push:
        from hexnpu.cli.push import push_package

        directory = target_dir or package.target_dir(where, built.source)
        push_package(where, built.install_dir, directory, accept_new_host_key=accept_new_host_key)
