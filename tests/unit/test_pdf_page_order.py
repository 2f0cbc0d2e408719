"""PDF: the order of pages that are put together from pieces, and what is drawn across them."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs_placed import Placed, column, prose, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _story(topic: str, lines: int, *, x: float, y: float) -> list[Placed]:
    texts = [f"the {topic} went {number} times around and" for number in range(lines)]
    texts[0], texts[-1] = texts[0].capitalize(), texts[-1].removesuffix(" and") + "."
    return list(column(texts, x=x, y=y))


def test_a_front_page_is_read_from_its_top(tmp_path: Path) -> None:
    lead = [Placed(72, 100, "Flood at the mill", 24), *column(prose("lead", 5), y=140)]
    first, second = _story("wheel", 9, x=72, y=260), _story("weir", 9, x=72, y=400)
    aside = [*_story("index", 7, x=330, y=275), *_story("editor", 7, x=330, y=430)]
    path = write_placed(tmp_path / "a.pdf", [[*aside, *second, *first, *lead]])
    starts = [block.text.split()[1] for block in _read(path)]
    assert starts == ["at", "0", "wheel", "weir", "index", "editor"]


def test_a_header_that_is_drawn_last_leaves_the_order_of_the_file(tmp_path: Path) -> None:
    header = Placed(72, 40, "Of mills and weirs")
    path = write_placed(tmp_path / "a.pdf", [[*column(prose("mill", 20)), *column(prose("weir", 8), y=480), header]])
    assert [block.text[:4] for block in _read(path)] == ["Line", "Line", "Of m"]


def test_a_word_across_the_page_is_no_heading_and_comes_last(tmp_path: Path) -> None:
    mark = Placed(60, 450, "DRAFT", 150)
    first, last = _read(write_placed(tmp_path / "a.pdf", [[mark, *column(prose("mill", 40), y=72)]]))
    assert first.text == " ".join(prose("mill", 40))
    assert (last.kind, last.text) == (BlockKind.PARAGRAPH, "DRAFT")


def test_a_large_word_on_a_page_with_hardly_any_text_stays_a_heading(tmp_path: Path) -> None:
    words = [Placed(60, 300, "MILL", 150), *column(prose("mill", 3), y=400)]
    body = [list(column(prose("weir", 40), y=72)) for _ in range(3)]
    first, *_ = _read(write_placed(tmp_path / "a.pdf", [words, *body]))
    assert (first.kind, first.text) == (BlockKind.HEADING, "MILL")
