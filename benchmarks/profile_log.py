"""Writes the log that bench_profile.py reads: two devices, batches of ops and trace events, as a phone prints them.

Of a million lines 20 % are op lines, 79 % event lines, the rest batch lines and what an application says in between.
Same arguments, same bytes.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

LAYERS = 30
MHZ = 1379
DEVICES = ("HTP0:0", "HTP1:0")
EVENTS = ("HVX_A_QUANT", "HVX_COMP", "HVX_W_DEQUANT", "HVX_O_PROC", "DMA")


def _layer_ops(layer: int, tokens: int) -> list[str]:
    """Texts of the ops of one transformer layer, without figures."""
    t, b = tokens, f"blk.{layer}"
    kernel = "hmx-tiled vtcm 2727936" if tokens > 4 else "hvx-tiled vtcm 393216"
    f32 = "f32 x f32 -> f32"
    return [
        f"RMS_NORM+MUL|l_inp-{layer} x {b}.attn_norm.weight -> attn_norm-{layer}|576:{t} x 576:1 -> 576:{t}|{f32}"
        f"|4:2304 x 4:2304 -> 4:2304|hvx",
        f"MUL_MAT+MUL_MAT+MUL_MAT|{b}.attn_q.weight x attn_norm-{layer} x {b}.attn_k.weight x {b}.attn_v.weight -> "
        f"Vcur-{layer}|576:576 x 576:{t} x 576:192 x 576:192 -> 192:{t}|q4_0 x f32 x q4_0 x q4_0 -> f32"
        f"|18:324 x 4:2304 x 18:324 x 18:324 -> 4:768|{kernel}",
        f"ROPE|Qcur-{layer} (view) x inp_pos -> Qcur-{layer}|64:9:{t} x {t} -> 64:9:{t}|f32 x i32 -> f32"
        f"|4:256:2304 x 4 -> 4:256:2304|hvx",
        f"ROPE|Kcur-{layer} (view) x inp_pos -> Kcur-{layer}|64:3:{t} x {t} -> 64:3:{t}|f32 x i32 -> f32"
        f"|4:256:768 x 4 -> 4:256:768|hvx",
        f"SET_ROWS|Kcur-{layer} (view) x leaf_{layer} -> cache_k_l{layer} (view)|192:{t} x {t} -> 192:4096"
        f"|f32 x i64 -> f16|4:768 x 8 -> 2:384|----",
        f"SET_ROWS|Vcur-{layer} (view) x leaf_{layer} -> cache_v_l{layer} (view)|192:{t} x {t} -> 192:4096"
        f"|f32 x i64 -> f16|4:768 x 8 -> 2:384|----",
        f"FLASH_ATTN_EXT|Qcur-{layer} x cache_k_l{layer} (view) x cache_v_l{layer} (view) x KQ_mask -> kqv_out-{layer}"
        f"|64:{t}:9 x 64:256:3 x 64:256:3 x 256:{t} -> 64:9:{t}|f32 x f16 x f16 x f16 -> f32"
        f"|4:2304:256! x 2:384:128! x 2:384:128! x 2:512 -> 4:256:2304|hvx",
        f"MUL_MAT+ADD|{b}.attn_output.weight x kqv_out-{layer} x l_inp-{layer} -> ffn_inp-{layer}"
        f"|576:576 x 576:{t} x 576:{t} -> 576:{t}|q4_1 x f32 x f32 -> f32|20:360 x 4:2304 x 4:2304 -> 4:2304|{kernel}",
    ]


def _stamp(usec: int) -> str:
    millis, micros = divmod(usec, 1000)
    seconds, millis = divmod(millis, 1000)
    minutes, seconds = divmod(seconds, 60)
    return f"{minutes}.{seconds:02d}.{millis:03d}.{micros:03d}"


class Writer:
    """Lines of one device after another, with the counters of a run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.usec = 3_395_836
        self.counter = {device: 576_678_560_820 + 3_000_000_000 * i for i, device in enumerate(DEVICES)}
        self.texts = {(layer, tokens): _layer_ops(layer, tokens) for layer in range(LAYERS) for tokens in (1, 128)}

    def batch(self, device: str, layers: range, tokens: int, events_per_op: float) -> list[str]:
        """The lines of one batch: OPBATCH, ops, then the events thread by thread."""
        rnd = self.random
        begin = cursor = self.counter[device]
        ops: list[str] = []
        events: dict[int, list[str]] = {}
        head = f" D ggml-hex: {device} "
        cursor += 4000
        for layer in layers:
            for text in self.texts[layer, tokens]:
                cycles = rnd.randrange(3_000, 90_000)
                usec = max(1, cycles // MHZ)
                ops.append(
                    f"{head}profile-op {text}|usec {usec} cycles {cycles} start {cursor & 0xFFFFFFFF} "
                    f"mhz {cycles / usec:.1f}"
                )
                self._events(events, head, cursor, cycles, events_per_op)
                cursor += cycles + rnd.randrange(200, 4000)
        cycles = cursor + 5000 - begin
        usec = cycles // MHZ
        counts = ",".join(str(len(events.get(thread, ()))) for thread in range(11))
        batch = (
            f"{head}profile-op OPBATCH|----|n-ops {len(ops)}|evt-cnt {counts}|----|----|usec {usec} cycles {cycles} "
            f"start {begin} mhz {cycles / usec:.1f}"
        )
        self.counter[device] = begin + cycles + rnd.randrange(20_000, 90_000)
        self.usec += usec + 180
        lines = []
        for line in [batch, *ops, *(line for thread in sorted(events) for line in events[thread])]:
            lines.append(_stamp(self.usec) + line)
            self.usec += 2
        return lines

    def _events(self, events: dict[int, list[str]], head: str, start: int, cycles: int, per_op: float) -> None:
        pairs = int(per_op / 2) + (self.random.random() < per_op / 2 % 1)
        for pair in range(pairs):
            thread = pair % 4
            at = start + self.random.randrange(cycles // 2)
            stop = at + self.random.randrange(100, cycles // 2)
            info = self.random.randrange(64)
            name = f"{head}trace-evt {EVENTS[self.random.randrange(5)]}: thread {thread} info {info} "
            events.setdefault(thread, []).append(f"{name}start {at & 0xFFFFFFFF}")
            events[thread].append(f"{name}stop {stop & 0xFFFFFFFF}")


def write(path: Path, lines: int, seed: int = 1) -> None:
    """A log of exactly `lines` lines."""
    writer, done, token = Writer(seed), 0, 0
    halves = (range(LAYERS // 2), range(LAYERS // 2, LAYERS))
    with path.open("w") as out:
        while done < lines:
            tokens = 128 if token == 0 else 1
            block = [f"{_stamp(writer.usec)} I main: decoded token {token}"] if token % 4 == 0 else []
            for device, layers in zip(DEVICES, halves, strict=True):
                block += writer.batch(device, layers, tokens, events_per_op=3.95)
            block = block[: lines - done]
            out.write("\n".join(block) + "\n")
            done += len(block)
            token += 1


def write_sparse(path: Path, lines: int, seed: int = 1) -> None:
    """A log in which one line of a hundred is a profile line: a server's chatter around the batches."""
    writer, done = Writer(seed), 0
    rnd = random.Random(seed)
    words = ["slot", "update", "prompt", "done", "eval", "time", "tokens", "second", "POST", "/completion", "200"]
    with path.open("w") as out:
        pending: list[str] = []
        while done < lines:
            if not pending:
                pending = writer.batch(DEVICES[0], range(LAYERS), 1, 3.95)
            for _ in range(min(99, lines - done - 1)):
                out.write(f"{_stamp(writer.usec)} I srv: {' '.join(rnd.choices(words, k=14))}\n")
            out.write(pending.pop(0) + "\n")
            done += 100


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--sparse", action="store_true")
    arguments = parser.parse_args()
    (write_sparse if arguments.sparse else write)(arguments.path, arguments.lines)
