"""The HTML report in a real browser: key elements are there, sorting and filter work, and the picture is not blank."""

from __future__ import annotations

import re
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import pytest

from hexnpu.profile.html import page
from hexnpu.profile.parse.reader import read_log
from hexnpu.profile.phases import Steps, find_steps
from hexnpu.profile.report import Shape
from hexnpu.profile.select import Selection
from hexnpu.profile.timeline import Timeline, build
from tests.conftest import require_tool
from tests.processes import HANG_S

GOLDEN = Path(__file__).parent / "golden"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,1900",
)  # fmt: skip


def browse(html: str, tmp_path: Path, *what: str) -> str:
    """The browser's output for the page, started with a new profile folder."""
    path = tmp_path / "report.html"
    path.write_text(html, encoding="utf-8")
    command = [require_tool("chromium", "chromium"), *FLAGS, f"--user-data-dir={tmp_path / 'browser'}", *what]
    result = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, check=True, timeout=HANG_S)
    return result.stdout


def with_script(html: str, script: str) -> str:
    return html.replace("</body>", f"<script>{script}</script></body>")


def cells(dom: str, column: int) -> list[str]:
    """A column of the ops table's op rows."""
    body = re.search(r"<tbody>(.*?)</tbody>", dom, re.DOTALL)
    assert body
    rows = re.findall(r'<tr class="op">(.*?)</tr>', body.group(1), re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)[column] for row in rows]


def test_the_page_needs_no_network(sample: tuple[Timeline, Steps]) -> None:
    html = page(*sample, Selection(), Shape())
    assert not re.search(r"(?:src|href)=|@import|url\(|fetch\(|XMLHttp", html)
    assert set(re.findall(r"https?://[^\"' ]+", html)) == {"http://www.w3.org/2000/svg"}


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    path = tmp_path / "log"
    text = (GOLDEN / "g5.log").read_text().replace("kqv_out-0", "</script><b>x")
    path.write_text(text.replace("MUL_MAT+ADD|", "MUL_MAT|"))
    line = build(read_log(str(path)))
    assert page(line, find_steps(line), Selection(), Shape(by="role")).count("</script>") == 2


@pytest.mark.slow
def test_elements_and_picture(sample: tuple[Timeline, Steps], tmp_path: Path) -> None:
    html = page(*sample, Selection(), Shape())
    dom = browse(html, tmp_path, "--dump-dom")
    assert 'data-ready="yes"' in dom, "the page's script did not come to its end"
    treemap = re.search(r'id="treemap".*?</svg>', dom, re.DOTALL)
    assert treemap and treemap.group().count("<rect") == 30 * 6  # layers x names of ops
    assert dom.count('class="step"') == len(set(sample[1].batch_step.tolist()))
    assert dom.count('class="track"') == 4  # two devices, two threads
    assert [name in dom for name in ("prefill", "decode", "MUL_MAT+ADD", "HVX_COMP", "(gaps)")] == [True] * 5
    browse(html, tmp_path, f"--screenshot={tmp_path / 'report.png'}")
    width, height, colors = png_colors(tmp_path / "report.png")
    assert (width, height) == (1280, 1900)
    assert len(colors) > 100 and colors.most_common(1)[0][1] < 0.9 * width * height
    for color in ((0x3B, 0x7D, 0xD8), (0xD9, 0x82, 0x2B), (0x2F, 0x9E, 0x6E)):
        assert colors[color] > 2000


@pytest.mark.slow
@pytest.mark.parametrize("width", [500, 1280, 1900])
def test_letters_keep_their_size_and_no_column_is_cut(
    sample: tuple[Timeline, Steps], tmp_path: Path, width: int
) -> None:
    measure = """
      const map = document.getElementById('treemap'), table = document.querySelector('.scroll');
      document.body.dataset.measured = [map.viewBox.baseVal.width / map.clientWidth,
                                        document.documentElement.scrollWidth - innerWidth,
                                        table.scrollWidth - table.clientWidth].join(' ');"""
    html = with_script(page(*sample, Selection(), Shape()), measure)
    dom = browse(html, tmp_path, f"--window-size={width},1900", "--dump-dom")
    found = re.search(r'data-measured="(\S+) (\S+) (\S+)"', dom)
    assert found
    scale, too_wide, table_too_wide = (float(part) for part in found.groups())
    assert scale == pytest.approx(1.0, abs=0.02) and too_wide <= 0
    assert table_too_wide <= 0 or width < 1280


@pytest.mark.slow
def test_sorting_and_filter(sample: tuple[Timeline, Steps], tmp_path: Path) -> None:
    html = page(*sample, Selection(), Shape())
    totals = [float(text.replace(",", "")) for text in cells(browse(html, tmp_path, "--dump-dom"), 4)]
    assert len(totals) == 7 and totals == sorted(totals, reverse=True)
    by_op = browse(with_script(html, "document.querySelector('#ops th').click()"), tmp_path, "--dump-dom")
    assert cells(by_op, 0) == sorted(cells(by_op, 0), key=str.lower)
    typed = "const f = document.getElementById('filter'); f.value = 'rope'; f.dispatchEvent(new Event('input'))"
    assert cells(browse(with_script(html, typed), tmp_path, "--dump-dom"), 0) == ["ROPE", "ROPE"]


@pytest.mark.slow
def test_a_log_without_events_says_so(tmp_path: Path) -> None:
    line = build(read_log(str(GOLDEN / "g1.log")))
    dom = browse(page(line, find_steps(line), Selection(), Shape()), tmp_path, "--dump-dom")
    assert 'data-ready="yes"' in dom and "run with --profile 3" in dom


def png_colors(path: Path) -> tuple[int, int, Counter[tuple[int, ...]]]:
    """(width, height, how many pixels of each colour), of an 8-bit PNG with filters, as Chromium writes it."""
    data = path.read_bytes()
    width, height, _, kind = struct.unpack(">IIBB", data[16:26])
    channels = 4 if kind == 6 else 3
    packed, at = b"", 8
    while at < len(data):
        size = struct.unpack(">I", data[at : at + 4])[0]
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    raw = zlib.decompress(packed)
    stride, before, colors = width * channels, bytes(width * channels), Counter[tuple[int, ...]]()
    for y in range(height):
        line = bytearray(raw[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        unfilter(raw[y * (stride + 1)], line, before, channels)
        before = bytes(line)
        colors.update(zip(*(before[c::channels] for c in range(3)), strict=True))
    return width, height, colors


def unfilter(kind: int, line: bytearray, above: bytes, step: int) -> None:
    for i in range(len(line)):
        left = line[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            line[i] = (line[i] + left) & 255
        elif kind == 2:
            line[i] = (line[i] + up) & 255
        elif kind == 3:
            line[i] = (line[i] + (left + up) // 2) & 255
        elif kind == 4:
            guess = left + up - corner
            away = sorted((abs(guess - value), order, value) for order, value in enumerate((left, up, corner)))
            line[i] = (line[i] + away[0][2]) & 255
