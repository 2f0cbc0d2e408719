"""PDF: footnotes of first pages of papers, whose marks and rules are many."""

from __future__ import annotations

from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs_mapped import write_mapped, write_ruled
from tests.pdfs_placed import Placed, column, prose, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _notes(path: Path) -> list[str]:
    return [block.text for block in _read(path) if block.kind is BlockKind.FOOTNOTE]


_BODY = list(column(prose("mill", 40), y=72))


def test_the_asterisk_of_formulas_is_a_mark(tmp_path: Path) -> None:
    note = Placed(72, 700, "*Who kept the mill wrote this.", 8)
    path = write_mapped(tmp_path / "a.pdf", [*_BODY, note], {"*": "\u2217"})
    assert _notes(path) == ["\u2217Who kept the mill wrote this."]


def test_a_rule_is_enough_for_small_type_without_a_mark(tmp_path: Path) -> None:
    lines = ["Leave to copy this page is given to all who", "keep a mill of their own."]
    path = write_ruled(tmp_path / "a.pdf", [*_BODY, *column(lines, y=556, step=9, size=8)], [(72, 160, 546)])
    blocks = _read(path)
    assert [(block.kind, block.text) for block in blocks[1:]] == [(BlockKind.FOOTNOTE, " ".join(lines))]
    assert blocks[0].text == " ".join(prose("mill", 40))


def test_small_type_without_a_mark_or_a_rule_is_no_note(tmp_path: Path) -> None:
    lines = ["Leave to copy this page is given to all who", "keep a mill of their own."]
    assert _notes(write_ruled(tmp_path / "a.pdf", [*_BODY, *column(lines, y=600, step=9, size=8)])) == []


def test_a_note_that_ends_early_is_followed_by_another(tmp_path: Path) -> None:
    lines = ["* Keeper of the mill.", "The second note has no mark, and goes on for much longer."]
    path = write_placed(tmp_path / "a.pdf", [[*_BODY, *column(lines, y=600, step=9, size=8)]])
    assert _notes(path) == lines


def test_the_number_of_the_page_may_stand_below_the_notes(tmp_path: Path) -> None:
    pages = [[*_BODY, Placed(72, 600, "1 Keeper of the mill.", 8), Placed(300, 620, "1")]]
    assert _notes(write_placed(tmp_path / "a.pdf", pages)) == ["1 Keeper of the mill."]


def test_numbered_lines_of_code_are_no_notes(tmp_path: Path) -> None:
    code = [f"{number} mill.grind(corn[{number}], slowly)" for number in range(12, 16)]
    path = write_placed(tmp_path / "a.pdf", [[*_BODY, *column(code, y=600, step=9, size=8, font="Courier")]])
    assert _notes(path) == []
