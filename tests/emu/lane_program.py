"""A host program that applies vector functions of the emulator to arrays, for tests that compare lane by lane.

`LaneProgram` writes one C source with every function of a table and builds it through hexnpu.native; `run` feeds it
arrays of whole vectors on stdin and returns its results.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import numpy as np

from hexnpu import native

BYTES = {"V": 128, "W": 256, "Q": 128, "f": 128}
C_TYPES = {"V": "HVX_Vector", "W": "HVX_VectorPair", "Q": "HVX_VectorPred"}

PRELUDE = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hexagon_types.h"
#include "hexagon_protos.h"
#include "hvx_hexagon_protos.h"
"""

MAIN = """\
int main(int argc, char **argv) {
    long which = argc > 2 ? atol(argv[1]) : -1, n = argc > 2 ? atol(argv[2]) : 0;
    const struct entry *e = &entries[which];
    unsigned char *in = aligned_alloc(128, n * e->in + 128), *out = aligned_alloc(128, n * e->out + 128);
    if (fread(in, 1, n * e->in, stdin) != (size_t) (n * e->in)) return 1;
    e->run(in, out, n);
    fwrite(out, 1, n * e->out, stdout);
    free(in);
    free(out);
    return 0;
}
"""


class LaneProgram:
    """`functions` maps a C expression's function name to its signature, such as `V:VV` (result:operands).

    V is a vector, W a pair, Q a predicate; an operand `R` takes a scalar, the first word of the vector given for it.
    """

    def __init__(
        self, name: str, functions: Mapping[str, str], folder: Path, target: native.Target, include: str = ""
    ) -> None:
        self.functions = dict(functions)
        self.name, self.folder, self.target, self.include = name, folder, target, include

    @cached_property
    def path(self) -> Path:
        source = self.folder / f"{self.name}.c"
        source.write_text(self.text())
        return native.compile_program(self.name, [source], self.target, [f"-I{native.kernels_dir() / 'kernels'}"])

    def text(self) -> str:
        parts = [PRELUDE, self.include]
        rows = []
        for index, (name, signature) in enumerate(self.functions.items()):
            result, operands = signature.split(":")
            parts.append(_function(index, name, result, operands))
            rows.append(f"    {{run_{index}, {sum(BYTES.get(o, 128) for o in operands)}, {BYTES[result]}}},")
        parts.append("static const struct entry {\n    void (*run)(unsigned char *, unsigned char *, long);")
        parts.append("    long in, out;\n} entries[] = {")
        return "\n".join([*parts, *rows, "};", MAIN])

    def run(self, name: str, *operands: np.ndarray) -> np.ndarray:
        """The bytes of the results: (n, 128) or (n, 256) uint8 for operands of n vectors (or pairs) each."""
        index = list(self.functions).index(name)
        result, kinds = self.functions[name].split(":")
        sizes = [BYTES.get(k, 128) for k in kinds]
        pairs = zip(operands, sizes, strict=True)
        flat = [np.ascontiguousarray(o).view(np.uint8).reshape(-1, size) for o, size in pairs]
        n = len(flat[0])
        assert all(len(f) == n for f in flat), "operands differ in length"
        command = [str(self.path), str(index), str(n)]
        done = subprocess.run(command, input=b"".join(f.tobytes() for f in flat), capture_output=True, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr.decode()[-2000:]}"
        return np.frombuffer(done.stdout, np.uint8).reshape(n, BYTES[result])


def _function(index: int, name: str, result: str, operands: str) -> str:
    lines = [f"static void run_{index}(unsigned char *in, unsigned char *out, long n) {{"]
    lines.append("    for (long i = 0; i < n; i++) {")
    arguments, offset = [], 0
    for k, kind in enumerate(operands):
        size = BYTES.get(kind, 128)
        address = f"in + n * {offset} + i * {size}"
        offset += size
        if kind == "R":
            lines.append(f"        int x{k};\n        memcpy(&x{k}, {address}, 4);")
        else:
            lines.append(f"        {C_TYPES[kind]} x{k} = *({C_TYPES[kind]} *) ({address});")
        arguments.append(f"x{k}")
    call = f"{name}({', '.join(arguments)})"
    if result == "f":
        lines.append(f"        float r = {call};")
        lines.append("        memset(out + i * 128, 0, 128);\n        memcpy(out + i * 128, &r, 4);")
    else:
        lines.append(f"        *({C_TYPES[result]} *) (out + i * {BYTES[result]}) = {call};")
    return "\n".join([*lines, "    }", "}"])
