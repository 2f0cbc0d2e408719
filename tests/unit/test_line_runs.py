"""Lines are put together to blocks by compiled code and without it: the blocks are the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.parser import paragraphs, registry
from rag.parser.blocks import Block, ReadOptions
from rag.parser.headings import HeadingFinder
from rag.parser.layout import Line
from tests import pdfs
from tests.compiled import require
from tests.known_documents import MAKERS

_STARTS = (
    "It went on",
    "a) one",
    "iv. four",
    "3. three",
    "\u2022 dot",
    "(b) two",
    "the end",
    "\u05d0\u05d1\u05d2",
    "12",
)
_ENDS = (" and so on", " at last.", " why?", " . . . . . . 7", "")
LINES = st.lists(
    st.builds(
        lambda start, end, left, width, step, size, hyphened: (start + end, left, width, step, size, hyphened),
        st.sampled_from(_STARTS),
        st.sampled_from(_ENDS),
        st.sampled_from([72.0, 80.0, 90.0, 300.0]),
        st.sampled_from([40.0, 180.0, 200.0]),
        st.sampled_from([-100.0, 0.0, 4.0, 12.0, 12.5, 14.0, 30.0]),
        st.sampled_from([6.5, 9.5, 10.0, 10.5, 14.0]),
        st.booleans(),
    ),
    max_size=25,
)


@pytest.fixture(autouse=True)
def compiled() -> None:
    require(paragraphs.line_runs, "rag/parser/line_runs.c")


def _blocks(lines: list[Line]) -> list[Block]:
    return list(paragraphs.to_blocks(2, lines, HeadingFinder(10.0, {}, has_outline=False)))


def _page(parts: list[tuple[str, float, float, float, float, bool]]) -> list[Line]:
    lines, base = [], 100.0
    for text, left, width, step, size, hyphened in parts:
        base = max(0.0, base + step)
        lines.append(Line(text, left, left + width, base - size, base + 2, base, size, hyphened))
    return lines


@given(LINES)
def test_lines_of_all_kinds_make_the_same_blocks(parts: list[tuple[str, float, float, float, float, bool]]) -> None:
    lines = _page(parts)
    fast = _blocks(lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paragraphs, "line_runs", None)
        assert _blocks(lines) == fast


def test_documents_make_the_same_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [make(tmp_path).path for make in MAKERS]
    paths += [pdfs.write_pages(tmp_path / "plain.pdf", 4, sentences=27, footer=True)]
    paths += sorted(Path("docs/examples").glob("*.pdf"))

    def read(path: Path) -> list[Block]:
        options = ReadOptions(ocr=False)
        profile = registry.profile(path, path.name, options)
        return list(registry.read(path, profile, 0, profile.units, options))

    fast = [read(path) for path in paths]
    monkeypatch.setattr(paragraphs, "line_runs", None)
    for path, blocks in zip(paths, fast, strict=True):
        assert read(path) == blocks, path.name
        assert blocks


def test_what_is_no_line_is_refused() -> None:
    runs = paragraphs.line_runs
    for wrong in (["a line"], "lines", 3, [None]):
        with pytest.raises(TypeError):
            runs.pitches(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            runs.goes_on(wrong, {}, 12.0, ".")  # type: ignore[arg-type]
    for other in (int, "Line"):
        with pytest.raises((TypeError, AttributeError)):
            runs.bind(other)  # type: ignore[arg-type]
    assert runs.pitches([]) == {}
    assert runs.goes_on([], {}, 12.0, ".") == b""
