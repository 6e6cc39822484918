"""What a skel refuses, one call at a time: nothing is read that the wire only claims to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import require_tool
from tests.idl.generated import SANITIZERS, WARNINGS, include_flags, run, write_files

IDL = """
interface mini {
    long f(inrout sequence<short> a, in string s, rout long r);
};
"""

# f on the wire: in {length of a, room of a, length of s}, a, s; out {r}, a.
MAIN = """
#include "mini.h"
#include "AEEStdErr.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int mini_skel_invoke(uint32_t sc, remote_arg *args);
static int calls;

int mini_f(short *a, int aLen, const char *s, int *r)
{
    calls++;
    for (int i = 0; i < aLen; i++)
        a[i]++;
    *r = (int) strlen(s) * 100 + aLen;
    return 0;
}

static void *block(size_t bytes, int fill)
{
    char *data = malloc(bytes);
    memset(data, fill, bytes);
    return data;
}

/* in length, room, string length, the bytes of the five buffers, what the string ends with, in and out buffers */
int main(int argc, char **argv)
{
    int n[13];
    for (int i = 1; i < argc && i < 13; i++)
        n[i] = (int) strtoul(argv[i], NULL, 0);
    uint32_t words[3] = {(uint32_t) n[1], (uint32_t) n[2], (uint32_t) n[3]};
    size_t bytes[5];
    remote_arg args[5];
    for (int i = 0; i < 5; i++) {
        bytes[i] = (size_t) n[4 + i];
        args[i].buf.pv = block(bytes[i], i == 2 ? 'x' : 0);
        args[i].buf.nLen = bytes[i];
    }
    memcpy(args[0].buf.pv, words, bytes[0] < sizeof(words) ? bytes[0] : sizeof(words));
    if (bytes[2])
        ((char *) args[2].buf.pv)[bytes[2] - 1] = (char) n[9];
    int error = mini_skel_invoke(REMOTE_SCALARS_MAKEX(0, n[12], n[10], n[11], 0, 0), args);
    printf("%s %d", error == AEE_EBADPARM ? "bad" : error == AEE_EUNSUPPORTED ? "unsupported" : "taken", calls);
    if (!error)
        printf(" %d %d", *(int *) args[3].buf.pv, ((short *) args[4].buf.pv)[0]);
    for (int i = 0; i < 5; i++)
        free(args[i].buf.pv);
    return 0;
}
"""

GOOD = dict(length=3, room=4, string=5, prim=12, a=6, s=5, out=4, back=8, end=0, ins=3, outs=2, method=0)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = require_tool("clang-19", "clang-19 libclang-rt-19-dev")
    folder = tmp_path_factory.mktemp("mini")
    (folder / "mini.idl").write_text(IDL)
    write_files(folder / "mini.idl", folder)
    (folder / "main.c").write_text(MAIN)
    sources = [str(folder / "main.c"), str(folder / "mini_skel.c")]
    run([compiler, *WARNINGS, *SANITIZERS, *include_flags(folder), *sources, "-o", str(folder / "mini")])
    return folder / "mini"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "taken 1 404 1"),
        ({"room": 3, "back": 6}, "taken 1 403 1"),
        ({"length": 0, "a": 0}, "taken 1 404 1"),
        ({"s": 9, "string": 5, "end": 7}, "bad 0"),  # the string's end is where its length says
        ({"length": 4}, "bad 0"),
        ({"length": 0x80000003}, "bad 0"),
        ({"length": 0xFFFFFFFF}, "bad 0"),
        ({"room": 5}, "bad 0"),
        ({"room": 2}, "bad 0"),  # less room than comes in
        ({"room": 2, "back": 4}, "bad 0"),
        ({"back": 6}, "bad 0"),
        ({"a": 5}, "bad 0"),
        ({"string": 0}, "bad 0"),
        ({"string": 6}, "bad 0"),
        ({"end": 1}, "bad 0"),
        ({"s": 0}, "bad 0"),
        ({"prim": 11}, "bad 0"),
        ({"prim": 0}, "bad 0"),
        ({"out": 3}, "bad 0"),
        ({"ins": 2}, "bad 0"),
        ({"ins": 4}, "bad 0"),
        ({"outs": 1}, "bad 0"),
        ({"outs": 3}, "bad 0"),
        ({"method": 1}, "unsupported 0"),
        ({"method": 31}, "unsupported 0"),
    ],
    ids=lambda value: ",".join(f"{k}={v}" for k, v in value.items()) if isinstance(value, dict) else "",
)
def test_one_call(program: Path, change: dict[str, int], expected: str) -> None:
    numbers = [str(value) for value in (GOOD | change).values()]
    assert run([str(program), *numbers]) == expected
