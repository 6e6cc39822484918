"""The translation of text: what is found, what is left alone, what is refused, and that lines stay where they are."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from hexnpu.emucc.translate import Diagnostic, translate


def errors_of(body: str) -> list[str]:
    return [error.text for error in translate(f"void f(void) {{ {body} }}", False)[1]]


@pytest.mark.parametrize(
    "text",
    [
        'extern int f(int) asm("g");',
        'extern int f(int)\n  __asm__("g" "h") __attribute__((nothrow));',
        'int f(int (*p)(void), int a[3]) asm("g"); int *q asm("r"); int t[4] asm("s");',
        'namespace n { extern int x __asm("y"); }',
        'const char *s = "asm(\\"nop\\")"; /* asm("x") */ // asm("y")\nchar c = \'"\';',
        'auto r = R"x(asm volatile("foo"))x"; int n = 1\'000\'000; int m = 0x1\'0;',
        "int asm_count, my_asm, __asm_x; struct { int asmx; } s;",
        '# 1 "asm.c"\n#pragma message "asm(1)"\nint x;',
    ],
)
def test_what_is_no_statement_stays(text: str) -> None:
    assert translate(text, True) == (text, [])


def test_labels_stay_beside_statements() -> None:
    text = 'int g(int) asm("h");\nint f(int x) { if (g(x)) asm("nop"); else asm("nop"); return x; }\n'
    translated, errors = translate(text, False)
    assert not errors
    assert translated.startswith('int g(int) asm("h");')
    assert translated.count("asm(") == 1
    assert translated.count("do {") == 2


def test_assembly_of_the_machine_stays() -> None:
    text = (
        '# 1 "/usr/include/x.h" 1 3 4\nvoid f(void) { asm("cld"); }\n'
        '# 1 "/emu/asm.h" 1\nvoid g(void) { asm("pause"); }\n'
        '# 1 "/sdk/incs/y.h" 1 3\nvoid h(void) { asm("frobnicate"); }\n'
    )
    translated, errors = translate(text, False, [Path("/emu")], ["/sdk/incs"])
    assert translated == text
    assert [(e.file, e.line) for e in errors] == [("/sdk/incs/y.h", 1)]


def test_lines_stay_where_they_are() -> None:
    text = (
        '# 7 "a.c"\nvoid f(unsigned *p) {\n  asm volatile("nop\\n"\n# 20 "a.c"\n      "nop\\n"\n'
        '      : : "r"(p));\n  int here;\n}\n'
    )
    translated, errors = translate(text, False)
    assert not errors
    assert translated.count("\n") == text.count("\n")
    before, after = (t[: t.index("int here")].splitlines() for t in (text, translated))
    assert len(before) == len(after)
    assert '# 20 "a.c"' in after  # the marker counts from there, as before


def test_an_unknown_instruction_names_file_line_and_text() -> None:
    text = '# 1 "one.c"\nint x;\n# 40 "dir/two.h" 1\nvoid f(void) {\n\n asm volatile("frob(r0, #1)\\n nop"); }\n'
    _, errors = translate(text, False)
    assert [(e.file, e.line) for e in errors] == [("dir/two.h", 42)]
    assert "'frob(r0, #1)'" in errors[0].text
    assert str(errors[0]).startswith("dir/two.h:42: error: ")


def test_every_error_of_a_file_is_reported() -> None:
    text = 'void f(void) {\nasm("one");\nasm("nop");\nasm("two");\n}\n'
    assert [e.line for e in translate(text, False)[1]] == [2, 4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('asm(".globl x");', "outside of functions"),
        ('extern "C" { namespace n { asm("nop"); } }', "outside of functions"),
        ('void f(void) { asm goto("nop" : : : : l); l:; }', "asm goto"),
    ],
)
def test_places_that_are_refused(text: str, said: str) -> None:
    _, errors = translate(text, True)
    assert len(errors) == 1 and said in errors[0].text


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('int x; asm("%0 = r7" : "=r"(x));', "reads register r7"),
        ('int x; asm("%1 = add(%0, #1)" : "=r"(x) : "r"(x));', "which is an input"),
        ('int x; asm("%3 = #1" : "=r"(x));', "operand %3"),
        ('int x; asm("%0 = add(%0 0, #1)" : "+r"(x));', "number behind %0"),
        ('int x; asm("%0 = add(%0, #%1)" : "+r"(x) : "r"(1));', "is no immediate"),
        ('int x; asm("%[y] = #1" : [x] "=r"(x));', "[y]"),
        ('asm("{ nop");', "not closed"),
        ('asm("nop }");', "closes no packet"),
        ('asm("jump nowhere");', "label nowhere"),
        ('asm("jump 1b\\n1: nop");', "label 1"),
        ('int x; asm("if (p0.new) %0 = #1" : "=r"(x));', "p0.new"),
        ('int x; asm("%0 = #1" : "=Z"(x));', "constraint"),
        ('int *p; asm("%0 = add(%0, #1)" : "+r"(*p++));', "twice"),
        ('int x; asm("r5:3 = combine(%0, %0)" : : "r"(x));', "cannot be written"),
        ('asm("activation.hf = mxmem(%0, %0)" : : "r"(1)); asm("weight.hf = mxmem(%0, %0)" : : "r"(1));', "one packet"),
        ('asm("{ activation.ub = mxmem(%0, %0):deep\\n weight.b = mxmem(%0, %0) }" : : "r"(1));', "matrix unit"),
        ('asm("mxmem(%0, %0):after:sat.ub = acc" : : "r"(1));', "matrix unit"),
    ],
)
def test_what_is_refused(body: str, said: str) -> None:
    errors = errors_of(body)
    assert errors and said in errors[0], errors


def test_an_instruction_whose_intrinsic_is_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hexnpu.emucc.intrinsics._emulated", lambda: frozenset({"Q6_R_brev_R"}))
    assert "Q6_P_vaddw_PP is not emulated" in errors_of('int q; asm("%0 = vaddw(%1, %1)" : "=r"(q) : "r"(q));')[0]
    # The one for pairs is missing: the source compiles only where the operands are no pairs.
    translated, errors = translate('void f(int q) { asm("%0 = brev(%0)" : "+r"(q)); }', False)
    assert not errors and "_Static_assert(!(sizeof(q) == 8" in translated


@pytest.mark.parametrize("jump", ["if (!p0) jump:nt 1b", "if !P0 jump 1b;", "IF (!p0)  JUMP:T  1B // again"])
def test_ways_to_write_a_jump(jump: str) -> None:
    text = f'void f(int *p) {{ asm("1: memw_locked(%0, p0) = %0; {jump}" : : "r"(p)); }}'
    translated, errors = translate(text, False)
    assert not errors and "if (!(emu_p0 & 1)) goto emu_l" in translated


def test_an_empty_asm_is_a_barrier_for_the_compiler() -> None:
    translated, errors = translate('void f(int x) { asm volatile("" : "+r"(x) :: "memory", "r5"); }', False)
    assert not errors
    assert '__asm__ __volatile__("" ::: "memory")' in translated and "r5" not in translated


def test_a_large_file_translates_fast() -> None:
    filler = 'static int f%d(int x) { return x + %d; } /* "it\'s" */ const char *s%d = "asm";\n'
    text = "".join(filler % (i, i, i) for i in range(6000))
    text += "".join(f'void g{i}(int *p) {{ asm volatile("release(%0):at" : : "r"(p)); }}\n' for i in range(200))
    assert len(text) > 400_000
    start = time.process_time()
    translated, errors = translate(text, False)
    assert time.process_time() - start < 5  # about 0.2 s; a quadratic search would take minutes
    assert not errors and translated.count("emu_asm_release") == 200


def test_a_diagnostic_reads_like_a_compilers() -> None:
    assert str(Diagnostic("a.c", 3, "no")) == "a.c:3: error: no"
