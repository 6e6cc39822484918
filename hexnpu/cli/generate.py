"""`hexnpu generate`: a GGUF model writes text on the NPU."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hexnpu.models.engine import Engine


def generate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The GGUF file of a llama model.", show_default=False)],
    prompt: Annotated[str, typer.Option("-p", "--prompt", help="The text to go on from.", show_default=False)],
    n_tokens: Annotated[int, typer.Option("-n", "--predict", min=1, help="Tokens to generate at most.")] = 128,
    temperature: Annotated[float, typer.Option("--temp", help="Sampling temperature; 0 is greedy.")] = 0.0,
    top_k: Annotated[int, typer.Option("--top-k", help="Sample among the K likeliest tokens; 0 is all.")] = 40,
    top_p: Annotated[float, typer.Option("--top-p", help="Sample within this much of the probability.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the sampler.")] = 0,
    n_ctx: Annotated[
        int | None,
        typer.Option("--ctx", min=1, help="Context in tokens.", show_default="the model's, at most 8192"),
    ] = None,
    kv_type: Annotated[str, typer.Option("--kv-type", help="Type of the KV cache: f16 or q8_0.")] = "f16",
    chat: Annotated[bool, typer.Option("--chat", help="Put the prompt into the model's chat template.")] = False,
    profile: Annotated[
        int, typer.Option("--profile", help="1: a line per op; 2: with PMU counters; 3: with trace events.")
    ] = 0,
    log: Annotated[
        Path | None,
        typer.Option("--log", help="Where the profile lines go.", show_default="stderr"),
    ] = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print speed and op counts at the end.")] = False,
    target: Annotated[str, typer.Option("--target", help="emu, npu, linux:host, android, unix:PATH, tcp:H:P.")] = "emu",
    devices: Annotated[
        str, typer.Option("-d", "--devices", help="The NPU, or several: HTP0:0,HTP1:0; HTP0:1 is a session more.")
    ] = "HTP0:0",
    split_mode: Annotated[str, typer.Option("--split-mode", help="Over several NPUs: layer or tensor.")] = "layer",
    devices_weights: Annotated[
        str | None,
        typer.Option("--devices-weights", help="Each NPU's share, as 3,1.", show_default="equal shares"),
    ] = None,
    fence_timeout: Annotated[
        float, typer.Option("--fence-timeout", help="Seconds that an NPU waits for another at most.")
    ] = 60.0,
    threads: Annotated[
        int | None,
        typer.Option("-t", "--threads", min=1, max=10, help="HVX threads.", show_default="CPU count, at most 4"),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="An op that the NPU cannot take is an error.")] = False,
) -> None:
    """Stream text from a model, every tensor op computed by the NPU's kernels."""
    from hexnpu import open as open_session
    from hexnpu.errors import UsageError
    from hexnpu.models.engine import Engine
    from hexnpu.models.gguf_file import read_gguf
    from hexnpu.models.llama import KV_TYPES
    from hexnpu.models.sampler import Sampler, Sampling
    from hexnpu.models.split import parse_split
    from hexnpu.models.tokenizer import ChatTokenizer
    from hexnpu.profile.output import spare
    from hexnpu.session import check_devices

    if kv_type not in KV_TYPES:
        raise UsageError(f"--kv-type is {kv_type!r}; it must be one of {', '.join(KV_TYPES)}")
    if profile not in (0, 1, 2, 3):
        raise UsageError(f"--profile is {profile}; it must be 1 (ops), 2 (ops with counters) or 3 (trace events too)")
    if not prompt:
        raise UsageError("the prompt is empty; give some text with -p")
    if any("\ud800" <= c <= "\udfff" for c in prompt):
        raise UsageError("the prompt is not UTF-8; convert it, with iconv for example")
    if log is not None and not profile:
        raise UsageError("--log is where profile lines go; say which with --profile 1, 2 or 3")
    spare([model], [log])
    names = devices.split(",")
    check_devices(names)
    split = parse_split(split_mode, devices_weights, len(names))
    sampler = Sampler(Sampling(temperature, top_k, top_p, seed))
    file = read_gguf(model)
    tokenizer = ChatTokenizer(file)
    text = tokenizer.chat([{"role": "user", "content": prompt}]) if chat else prompt
    tokens = tokenizer.encode(text)
    trained = file.integer("llama.context_length", 2048)
    context = n_ctx or min(trained, 8192)
    if context > trained:
        raise UsageError(f"--ctx is {context}; {model} was trained for {trained} tokens, and beyond them it is lost")
    with open_session(
        target, devices=names, n_threads=threads, strict=strict, fence_timeout_s=fence_timeout
    ) as session:
        engine = Engine(session, file, context, "q8_0" if kv_type == "q8_0" else "f16", split)
        with session.profile(profile, log) if profile else nullcontext():
            for piece in tokenizer.stream(engine.generate(tokens, n_tokens, sampler, tokenizer.stops)):
                sys.stdout.write(piece)
                sys.stdout.flush()
        print()
        if stats:
            print_stats(engine)


def print_stats(engine: Engine) -> None:
    """Speed of the two phases and what ran where, on stderr."""
    timing, counts = engine.timing, engine.session.stats
    decoded = max(timing.n_generated - 1, 0)
    lines = [
        f"prompt      {timing.n_prompt:6d} tokens  {_rate(timing.n_prompt, timing.prompt_s)}",
        f"generation  {decoded:6d} tokens  {_rate(decoded, timing.generate_s)}",
        f"ops         {counts.last_run_ops} a token in {counts.last_run_batches} batch(es)",
        f"NPU         {counts.npu_ops} ops, {counts.fallback_ops} fell back to numpy",
        *(f"            {reason}" for reason in counts.fallback_reasons),
    ]
    print("\n".join(lines), file=sys.stderr)


def _rate(n: int, seconds: float) -> str:
    return f"{n / seconds:8.1f} tokens/s" if n and seconds else "       - tokens/s"
