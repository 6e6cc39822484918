"""The commands as a user types them: outputs, exit codes, one line for each mistake."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hexnpu.profile.parse.reader import read_log
from tests.profile.dump import dump

GOLDEN = Path(__file__).parent / "golden"


def test_table_fits_the_terminal(run, sample_log: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    for columns in (60, 80, 100, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        result = run("profile", sample_log, "--top", 3)
        assert result.code == 0
        rows = [line for line in result.out.splitlines() if not line.startswith("note")]
        assert max(map(len, rows)) <= columns
        assert "SET_ROWS" in result.out and "(gaps)" in result.out and "total" in result.out


@pytest.mark.parametrize("columns", [60, 80, 100])
@pytest.mark.parametrize(
    "words",
    ["profile {log}", "profile {log} --width types:3 --width count:3", "profile {log} --timeline bubbles",
     "profile {log} --timeline summary", "compare {log} {log}", "audit {log}", "audit {verbose}"],
)  # fmt: skip
def test_columns_stand_below_their_titles(  # type: ignore[no-untyped-def]
    run, sample_log: Path, monkeypatch: pytest.MonkeyPatch, columns: int, words: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = run(*words.format(log=sample_log, verbose=GOLDEN / "verbose.log").split()).out.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("─")]
    assert rules
    for i in rules:
        between = [at for at, char in enumerate(lines[i]) if char == " "]
        assert len(lines[i]) <= columns
        for line in (lines[i - 1], lines[i + 1]):
            assert len(line) <= len(lines[i])
            assert not "".join(line[at : at + 1] for at in between).strip(), line


@pytest.mark.parametrize(
    ("flags", "titles"),
    [
        (("--sort", "avg-cycles"), ["Avg cycles"]),
        (("--arch", "v75"), ["%DMA", "%HMX"]),
        (("--arch", "75"), ["%DMA", "%HMX"]),
        (("--pmu-index", 1), ["pmu1"]),
    ],
)
def test_a_narrow_table_keeps_what_was_asked_for(  # type: ignore[no-untyped-def]
    run, sample_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[object, ...], titles: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    counted = tmp_path / "pmu.log"
    counted.write_text(re.sub(r"(profile-op [A-Z_+]+\|[^-].* mhz [0-9.]+)", r"\1 pmu [1,2,3,4,5,6,7,8]",
                              sample_log.read_text()))  # fmt: skip
    out = run("profile", counted, "-n", 3, *flags).out
    assert all(title in out for title in titles)
    assert max(len(line) for line in out.splitlines() if not line.startswith("note")) <= 80


def test_head_speaks_only_of_the_batches_it_shows(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    section = json.loads(run("profile", sample_log, "--head", 3, "--format", "json").out)["sections"]
    assert [(part["phase"], part["batches"], part["steps"]) for part in section] == [("prefill", 2, 1)]
    drawn = tmp_path / "t.json"
    assert run("trace", sample_log, "--chrome", drawn, "--head", 3).code == 0
    events = json.loads(drawn.read_text())["traceEvents"]
    assert sum(event.get("cat") == "batches" for event in events) == 2


def test_formats_carry_the_same_figures(run, sample_log: Path) -> None:  # type: ignore[no-untyped-def]
    whole = json.loads(run("profile", sample_log, "--format", "json").out)
    rows = [dict(row, phase=section["phase"]) for section in whole["sections"] for row in section["rows"]]
    table = list(csv.DictReader(io.StringIO(run("profile", sample_log, "--format", "csv").out)))
    assert whole["schema"] == "hexnpu-profile/1" and len(rows) == len(table)
    for row, line in zip(rows, table, strict=True):
        assert (row["phase"], row["op"], row["kind"]) == (line["phase"], line["op"], line["kind"])
        assert row["total_usec"] == float(line["total_usec"])
    for section in whole["sections"]:
        assert sum(row["total_usec"] for row in section["rows"]) == pytest.approx(section["total_usec"])
    markdown = run("profile", sample_log, "--format", "markdown").out
    assert markdown.count("\n| MUL_MAT+ADD |") == 2


def test_top_keeps_the_sum(run, sample_log: Path) -> None:  # type: ignore[no-untyped-def]
    whole = json.loads(run("profile", sample_log, "--format", "json", "-n", 2).out)
    for section in whole["sections"]:
        assert sum(row["total_usec"] for row in section["rows"]) == pytest.approx(section["total_usec"])
        assert [row["kind"] for row in section["rows"]].count("op") == 2


@pytest.mark.parametrize("name", ["Dims", "DIMS", "dims"])
@pytest.mark.parametrize("command", ["profile {log}", "compare {log} {log}"])
def test_width_takes_the_title_of_a_column(run, sample_log: Path, command: str, name: str) -> None:  # type: ignore[no-untyped-def]
    words = command.format(log=sample_log).split()
    cut = run(*words, "--width", f"{name}:9", "--width", "B us:4" if words[0] == "compare" else "Total us:4")
    assert cut.code == 0
    assert re.search(r"  ─{9}  ", cut.out) and re.search(r"  ─{4}  ", cut.out)


def test_width_cuts_a_column(run, sample_log: Path) -> None:  # type: ignore[no-untyped-def]
    assert "MUL_MAT+ADD" in run("profile", sample_log).out
    assert "MUL_MAT+ADD" not in run("profile", sample_log, "--width", "op:8").out


def test_stdin(sample_log: Path) -> None:
    command = [sys.executable, "-c", "from hexnpu.cli import main; main()", "profile", "-", "--format", "csv"]
    with sample_log.open("rb") as stream:
        result = subprocess.run(command, stdin=stream, capture_output=True, check=True, text=True)
    assert result.stdout.count("\n") > 10


def test_timeline_summary_and_bubbles(run, sample_log: Path) -> None:  # type: ignore[no-untyped-def]
    rows = json.loads(run("profile", sample_log, "--timeline", "summary", "--format", "json").out)["rows"]
    per_event = [row for row in rows if row["event"] == "DMA"]
    union = [row for row in rows if row["event"] == "(any DMA)"]
    assert len(per_event) == len(union) == 4  # two devices, two threads
    for one, any_ in zip(per_event, union, strict=True):
        assert 0 < any_["total_usec"] <= one["total_usec"] * (1 + 1e-9)
    found = json.loads(run("profile", sample_log, "--timeline", "bubbles", "--format", "json").out)["rows"]
    assert found and all(row["cycles"] >= 10_000 for row in found)
    assert [row["cycles"] for row in found] == sorted((row["cycles"] for row in found), reverse=True)
    assert run("profile", sample_log, "--timeline", "summary").out.startswith("Device")


def test_compare_finds_what_became_slower(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    slower = tmp_path / "b.log"
    text = sample_log.read_text().splitlines(keepends=True)
    slower.write_text("".join(_slowed(line) if "profile-op ROPE|Qcur" in line else line for line in text))
    same = run("compare", sample_log, sample_log, "--fail-above", "1%")
    assert same.code == 0 and "slower" not in same.out
    found = run("compare", sample_log, slower, "--fail-above", "5%", "--format", "json")
    assert found.code == 1
    assert "2 groups are slower by more than 5 %" in found.err and "ROPE" in found.err
    pairs = json.loads(found.out)["pairs"]
    assert {(pair["phase"], pair["key"]["op"]) for pair in pairs[:2]} == {("prefill", "ROPE"), ("decode", "ROPE")}
    assert [pair["verdict"] for pair in pairs].count("slower") == 2
    decode = next(pair for pair in pairs if pair["phase"] == "decode" and pair["verdict"] == "slower")
    assert decode["ratio"] == pytest.approx(2.0) and 0 < decode["noise"] < 0.3
    assert run("compare", sample_log, slower, "--fail-above", "150").code == 0


def _slowed(line: str) -> str:
    head, _, figures = line.partition("|usec ")
    words = figures.split()
    words[0], words[2] = str(int(words[0]) * 2), str(int(words[2]) * 2)
    return f"{head}|usec {' '.join(words)}\n"


def test_compare_names_new_and_vanished_ops(run, sample_log: Path) -> None:  # type: ignore[no-untyped-def]
    found = json.loads(run("compare", sample_log, GOLDEN / "tokens.log", "--format", "json").out)["pairs"]
    verdicts = {pair["key"]["op"]: pair["verdict"] for pair in found if pair["phase"] == "decode"}
    assert verdicts["MUL_MAT"] == "new" and verdicts["ROPE"] == "gone"


AUDIT = """\
ggml-hex: HTP0 supports-op MUL_MAT|blk.0.q.weight x a -> Qcur-0|64:64 x 64:1 -> 64:1|q4_0 x f32 -> f32|18:36 x 4:256 -> 4:256|HTP0 x HTP0 -> HTP0|yes
ggml-hex: HTP0 supports-op MUL_MAT|blk.0.k.weight x a -> Kcur-0|64:64 x 64:1 -> 64:1|q5_K x f32 -> f32|18:36 x 4:256 -> 4:256|CPU x HTP0 -> HTP0|no
ggml-hex: HTP0 supports-op CONV_2D: a x b -> c : 5:5 x 5:5 -> 5:5 : f32 x f32 -> f32 : 4:20 x 4:20 -> 4:20 : CPU x CPU -> CPU : no

## SPLIT #0: CPU # 0 inputs
node #  0 (  GET_ROWS):                 embd (   2K) [  CPU         ] use=1,c=1:    token_embd.weight (  27M) [  CPU         ]
## SPLIT #1: HTP0 # 6 inputs: [embd (   2K)] [leaf_5 (   0K)]
node #  1 (  RMS_NORM):               norm-0 (   2K) [ HTP0         ] use=1,c=1:                 embd (   2K) [ HTP0         ]
ggml-hex: HTP0 profile-op MUL_MAT|blk.0.q.weight x a -> Qcur-0|64:64 x 64:1 -> 64:1|q4_0 x f32 -> f32|18:36 x 4:256 -> 4:256|hvx-tiled vtcm 9|usec 1 cycles 9 start 1 mhz 9.0
"""  # noqa: E501


@pytest.fixture
def audit_log(tmp_path: Path) -> Path:
    path = tmp_path / "verbose.log"
    path.write_text(AUDIT)
    return path


def test_audit_counts_placement(run, audit_log: Path) -> None:  # type: ignore[no-untyped-def]
    found = json.loads(run("audit", audit_log, "--format", "json").out)
    rows = {(row["op"], row["types"].split(" ")[0]): row for row in found["placements"]}
    assert (rows["MUL_MAT", "q4_0"]["yes"], rows["MUL_MAT", "q4_0"]["ran"]) == (1, {"hvx-tiled": 1})
    assert (rows["MUL_MAT", "q5_K"]["no"], rows["MUL_MAT", "q5_K"]["why"]) == (1, "these types were never accepted")
    assert rows["CONV_2D", "f32"]["why"] == "no such op was accepted"
    assert {(node["op"], node["backend"], node["npu"]) for node in found["nodes"]} == {
        ("GET_ROWS", "CPU", False), ("RMS_NORM", "HTP0", True),
    }  # fmt: skip
    assert found["splits"] == {"CPU": 1, "HTP0": 1} and found["most_splits"] == 2


@pytest.mark.parametrize(
    ("pattern", "code", "message"),
    [
        (r"^MUL_MAT\|blk\.0\.q", 0, ""),
        ("RMS_NORM", 0, ""),
        ("^RMS_NORM$", 0, ""),
        ("MUL_MAT", 1, "MUL_MAT (q5_K x f32 -> f32, 64:64 x 64:1 -> 64:1) was refused once"),
        ("GET_ROWS", 1, "GET_ROWS ran once on CPU, for example embd"),
        ("SSM", 1, "no op of the log matches"),
        ("(", 2, "is not a regular expression"),
    ],
)
def test_audit_require(run, audit_log: Path, pattern: str, code: int, message: str) -> None:  # type: ignore[no-untyped-def]
    result = run("audit", audit_log, "--require", pattern)
    assert result.code == code
    assert message in result.err


def test_audit_counts_what_it_cannot_read(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    log = tmp_path / "damaged.log"
    log.write_text("hello\n" + AUDIT + "ggml-hex: HTP0 supports-op ADD|torn\nggml-hex: HTP0 profile-op ADD|torn\n")
    torn = AUDIT.count("\n") + 2
    found = run("audit", log)
    assert found.code == 0
    assert f"note: 1 supports-op line not readable, the first at line {torn}\n" in found.out
    assert f"note: 1 profile-op line not readable, the first at line {torn + 1}\n" in found.out


def test_audit_of_a_log_without_answers_says_how_to_get_them(run) -> None:  # type: ignore[no-untyped-def]
    found = run("audit", GOLDEN / "g5.log")
    assert found.code == 0
    assert found.out.splitlines()[0] == (
        "no readable supports-op line says what the backend took and refused: run with --verbose 1 "
        "(GGML_HEXAGON_VERBOSE=1) and -v; 2 profiled runs"
    )


def test_audit_counts_no_leaves(run, audit_log: Path) -> None:  # type: ignore[no-untyped-def]
    """llama.cpp asks for weights and inputs, too, which are no ops."""
    with_leaves = audit_log.with_name("leaves.log")
    leaf = "ggml-hex: HTP0 supports-op NONE|blk.{0}.q.weight|64:64|q5_K|18:36|CPU|no\n"
    with_leaves.write_text(AUDIT + "".join(leaf.format(i) * 9 for i in range(9)))
    for form in ("table", "json"):
        found, plain = (run("audit", log, "--format", form).out for log in (with_leaves, audit_log))
        assert found == plain.replace(audit_log.name, with_leaves.name)


def _three(path: Path, usec: int, extra: str = "") -> Path:
    line = "ggml-hex: profile-op ADD|a -> b|4:1 -> 4:1|f32 -> f32|----|hvx|usec {0} cycles {0}000 start {1} mhz 1.0\n"
    path.write_text("".join(line.format(usec, 10**6 * i) for i in range(3)) + extra)
    return path


@pytest.mark.parametrize(("a", "b", "limit", "code"), [(100, 110, "10%", 0), (100, 110, "9.9%", 1), (0, 50, "5%", 1)])
def test_fail_above_is_exact(run, tmp_path: Path, a: int, b: int, limit: str, code: int) -> None:  # type: ignore[no-untyped-def]
    found = run("compare", _three(tmp_path / "a", a), _three(tmp_path / "b", b), "--fail-above", limit)
    assert found.code == code, found.err


def _steps_log(path: Path, prefill_usec: int, decode_usec: int) -> Path:
    """A prefill and three decode steps of ADD and four more ops, of which only those of the prefill differ in size."""
    line = (
        "ggml-hex: profile-op {op}|blk.0.w.weight x a -> b|8:8 x 8:{n} -> 8:{n}|f32 x f32 -> f32|----|hvx|"
        "usec {usec} cycles {usec}000 start {start} mhz 1000.0\n"
    )
    ops = ["MUL_MAT", "ADD", "SUB", "DIV", "MUL"]
    steps = [(64, prefill_usec), *[(1, decode_usec)] * 3]
    path.write_text("".join(
        line.format(op=op, n=n, usec=usec if op != "MUL" else 100, start=10**8 * step + 10**7 * i)
        for step, (n, usec) in enumerate(steps) for i, op in enumerate(ops)
    ))  # fmt: skip
    return path


@pytest.mark.parametrize("limit", ["5%", "50%"])
def test_the_worst_regression_is_the_first_of_a_cut_table(run, tmp_path: Path, limit: str) -> None:  # type: ignore[no-untyped-def]
    """The prefill's ops are slower by a little and cost most; the decode steps' by more than any limit."""
    a, b = _steps_log(tmp_path / "a", 10_000, 20), _steps_log(tmp_path / "b", 11_000, 40)
    found = run("compare", a, b, "-n", 4, "--fail-above", limit)
    assert found.code == 1
    worst = re.search(r"the worst by 100.0 %: decode (\w+)", found.err)
    assert worst, found.err
    rows = found.out.split("─\n", 1)[1].splitlines()
    assert rows[0].split()[:2] == ["decode", worst[1]] and len(rows) == 5


def test_regressions_come_before_all_else_whatever_their_phase(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    a, b = _steps_log(tmp_path / "a", 10_000, 20), _steps_log(tmp_path / "b", 9_000, 40)
    pairs = json.loads(run("compare", a, b, "-n", 4, "--format", "json").out)["pairs"]
    assert [(pair["phase"], pair["verdict"]) for pair in pairs] == [("decode", "slower")] * 4


def test_compare_filter_may_fit_one_log_only(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    extra = "ggml-hex: profile-op SUB|a -> b|4:1 -> 4:1|f32 -> f32|----|hvx|usec 7 cycles 7000 start 9000000 mhz 1.0\n"
    a, b = _three(tmp_path / "a", 100, extra), _three(tmp_path / "b", 100)
    found = run("compare", a, b, "--filter", "^SUB", "--format", "csv")
    assert found.code == 0 and ",gone," in found.out
    assert run("compare", a, b, "--filter", "^MUL").code == 1


@pytest.mark.parametrize("flags", [(), ("--timeline", "summary"), ("--head", "3"), ("--html", "{tmp}/x.html")])
def test_a_filter_that_fits_nothing_is_a_message(  # type: ignore[no-untyped-def]
    run, sample_log: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    found = run("profile", sample_log, "--filter", "FLASH_ATN", *(flag.format(tmp=tmp_path) for flag in flags))
    assert found.code == 1 and "--filter 'FLASH_ATN' matches no op of" in found.err and not found.out
    drawn = run("trace", sample_log, "-o", tmp_path / "t", "--filter", "FLASH_ATN")
    assert drawn.code == 1 and not (tmp_path / "t").exists()


def test_an_export_keeps_names_that_are_not_utf8(tmp_path: Path) -> None:
    from hexnpu.profile import parquet
    from hexnpu.profile.phases import find_steps
    from hexnpu.profile.timeline import build

    log = tmp_path / "log"
    log.write_bytes((GOLDEN / "g5.log").read_bytes().replace(b"HVX_COMP", b"HVX\xff").replace(b"kqv_out", b"\xfe"))
    line = build(read_log(str(log)))
    parquet.write(line, find_steps(line), tmp_path / "out")
    assert dump(parquet.read(tmp_path / "out")) == dump(line.log)


def _rewrite(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    import pyarrow.parquet as pq

    pq.write_table(change(pq.read_table(path)), path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ops", lambda t: t.drop_columns(["usec"])),
        ("ops", lambda t: t.set_column(t.column_names.index("text"), "text", [[9999] * len(t)])),
        ("ops", lambda t: t.set_column(0, "device", [["X"] * len(t)])),
        ("events", lambda t: t.drop_columns(["thread"])),
        ("events", lambda t: t.set_column(1, "thread", [[200] * len(t)])),
        ("batches", lambda t: t.replace_schema_metadata({**t.schema.metadata, b"hexnpu.log": b"{}"})),
        ("batches", lambda t: t.replace_schema_metadata({**t.schema.metadata, b"hexnpu.log": b"{oops"})),
    ],
)
def test_a_damaged_export_is_one_line(run, sample_log: Path, tmp_path: Path, name: str, change) -> None:  # type: ignore[no-untyped-def]
    run("profile", sample_log, "--export", tmp_path / "out")
    _rewrite(tmp_path / "out" / f"{name}.parquet", change)
    for command in (["profile"], ["trace", "-o", tmp_path / "t"]):
        found = run(command[0], tmp_path / "out", *command[1:])
        assert found.code == 1 and found.err.count("\n") == 1 and "is not as --export wrote it" in found.err


def test_an_export_written_again_without_dictionaries_is_read(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow as pa

    first = run("profile", sample_log, "--export", tmp_path / "out")
    plain = pa.string()

    def decoded(table: pa.Table) -> pa.Table:
        kinds = [field.with_type(plain) if pa.types.is_dictionary(field.type) else field for field in table.schema]
        return table.cast(pa.schema(kinds, metadata=table.schema.metadata))

    for name in ("ops", "events"):
        _rewrite(tmp_path / "out" / f"{name}.parquet", decoded)
    assert run("profile", tmp_path / "out").out == first.out


def test_export_is_read_back_in_place_of_the_log(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from hexnpu.profile import parquet

    folder = tmp_path / "out"
    first = run("profile", sample_log, "--export", folder)
    assert first.code == 0 and sorted(p.name for p in folder.iterdir()) == [
        "batches.parquet", "events.parquet", "ops.parquet",
    ]  # fmt: skip
    assert dump(parquet.read(folder)) == dump(read_log(str(sample_log)))
    assert run("profile", folder).out == first.out
    assert run("compare", sample_log, folder, "--fail-above", "0.1").code == 0
    assert run("trace", folder, "-o", tmp_path / "a").code == run("trace", sample_log, "-o", tmp_path / "b").code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", ["g0", "g2", "g4", "not-utf8", "cut", "unicode-names"])
def test_export_keeps_every_oddity(name: str, run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from hexnpu.profile import parquet

    assert run("profile", GOLDEN / f"{name}.log", "--export", tmp_path).code == 0
    assert dump(parquet.read(tmp_path)) == dump(read_log(str(GOLDEN / f"{name}.log")))


def test_exported_columns_are_for_any_tool(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import pyarrow.parquet as pq

    run("profile", sample_log, "--export", tmp_path)
    ops = pq.read_table(tmp_path / "ops.parquet").to_pylist()
    assert {"device", "op", "dims", "types", "layer", "role", "kernel", "phase", "usec", "begin_ns"} <= set(ops[0])
    assert sum(row["usec"] for row in ops) == int(read_log(str(sample_log)).ops.usec.sum())
    assert pq.read_schema(tmp_path / "events.parquet").metadata[b"hexnpu.schema"] == b"hexnpu-profile-columns/1"


def test_trace_split_writes_one_file_a_device(run, sample_log: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    result = run("trace", sample_log, "-o", tmp_path / "t.perfetto-trace", "--device", "split")
    assert result.code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.HTP0-0.perfetto-trace", "t.HTP1-0.perfetto-trace"]


MISTAKES = [
    (["profile", "{none}"], 1, "no such file"),
    (["profile", "{tmp}"], 1, "is a directory"),
    (["profile", "{binary}"], 1, "is a binary file"),
    (["profile", "{empty}"], 1, "is empty: run the tool with --profile 1"),
    (["profile", "{log}", "--filter", "("], 2, "is not a regular expression"),
    (["profile", "{log}", "--device", "HTP9"], 1, "it has HTP0:0, HTP1:0"),
    (["profile", "{log}", "--head", "3", "--tail", "3"], 2, "exclude each other"),
    (["profile", "{log}", "--by", "colour"], 2, "give one of op, layer"),
    (["profile", "{log}", "--sort", "colour"], 2, "give one of total"),
    (["profile", "{log}", "--format", "pdf"], 2, "give one of table, json"),
    (["profile", "{log}", "--width", "op"], 2, "give COLUMN:CHARACTERS"),
    (["profile", "{log}", "--width", "op:²"], 2, "give COLUMN:CHARACTERS"),
    (["profile", "{log}", "--width", "colour:9"], 2, "there is no such column"),
    (["profile", "{log}", "--width", "op:9", "--format", "json"], 2, "is for tables"),
    (["profile", "{log}", "--arch", "v1"], 2, "give one of v73, v75, v79, v81"),
    (["profile", "{log}", "--pmu-index", "3"], 2, "run with --profile 2"),
    (["profile", "{log}", "--pmu-name", "x"], 2, "needs a --pmu-index"),
    (["profile", "{log}", "--timeline", "x"], 2, "give summary or bubbles"),
    (["profile", "{log}", "--timeline", "summary", "--head", "2"], 2, "a report of its own"),
    (["profile", "{g1}", "--timeline", "summary"], 1, "run with --profile 3"),
    (["profile", "{log}", "--html", "{none}/x.html"], 1, "cannot be written"),
    (["profile", "{log}", "-o", "{tmp}"], 1, "is a directory: give a file name"),
    (["profile", "{log}", "--html", "{tmp}/x", "-o", "{tmp}/y"], 2, "leave out --output"),
    (["profile", "{log}", "--export", "{g1}"], 1, "cannot be made a folder"),
    (["profile", "{log}", "--head", "x"], 2, "Invalid value for"),
    (["profile"], 2, "Missing argument"),
    (["profile", "{g1}", "--phase", "decode"], 1, "is left to show; its batches are: prefill"),
    (["profile", "{log}", "--skip-batches", "999"], 1, "is left to show"),
    (["trace", "{log}"], 2, "give a file to write"),
    (["trace", "{log}", "-o", "{none}/x"], 1, "cannot be written"),
    (["trace", "{log}", "-o", "{tmp}/x", "--chrome", "{tmp}/x"], 2, "give two files"),
    (["trace", "{log}", "-o", "{tmp}/x", "--batches", "5"], 2, "give FIRST:END"),
    (["trace", "{log}", "-o", "{tmp}/x", "--batches", "²:5"], 2, "give FIRST:END"),
    (["trace", "{log}", "-o", "{tmp}/x", "--batches", "900:"], 1, "is left to draw"),
    (["compare", "{log}", "{none}"], 1, "no such file"),
    (["compare", "{log}", "{log}", "--fail-above", "much"], 2, "give a percentage"),
    (["compare", "-", "-"], 2, "only one of the two"),
    (["audit", "{empty}"], 1, "says nothing about placement"),
]


@pytest.mark.parametrize(("arguments", "code", "message"), MISTAKES, ids=lambda value: str(value)[:60])
def test_mistakes_are_one_line(  # type: ignore[no-untyped-def]
    run, arguments: list[str], code: int, message: str, sample_log: Path, tmp_path: Path
) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").touch()
    names = {
        "log": sample_log, "none": tmp_path / "none", "tmp": tmp_path, "binary": tmp_path / "binary",
        "empty": tmp_path / "empty", "g1": GOLDEN / "g1.log",
    }  # fmt: skip
    before = sorted(tmp_path.rglob("*"))
    result = run(*(argument.format(**names) for argument in arguments))
    assert result.code == code, result.err
    lines = [line for line in result.err.splitlines() if not line.startswith("note:")]
    assert len(lines) == 1 and lines[0].startswith("hexnpu: ") and message in lines[0]
    assert sorted(tmp_path.rglob("*")) == before, "something half-written was left behind"


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    from hexnpu.profile.output import whole_file

    target = tmp_path / "out"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt), whole_file(target) as stream:
        stream.write(b"half")
        raise KeyboardInterrupt
    assert target.read_bytes() == b"old" and list(tmp_path.iterdir()) == [target]
