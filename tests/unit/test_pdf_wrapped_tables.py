"""Tables without rules whose cells take several lines, and texts in columns that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rag.parser import registry
from rag.parser.blocks import Block, BlockKind
from tests.pdfs_placed import Placed, column, prose, write_placed

# Each cell line by line.
_Row = Sequence[Sequence[str]]
_ROWS: tuple[_Row, ...] = (
    (["Mill"], ["What it makes", "and for whom"], ["Wheels"], ["Keeper"]),
    (["Upper"], ["Paper for letters,", "sold in the town", "on market days"], ["12"], ["Ann Bell"]),
    (["Lower"], ["Flour"], ["7"], []),
    (["Ford by", "the weir"], ["Boards and beams", "for the shipyard"], ["103"], ["Tom Reed", "and sons"]),
    (["Hill"], [], ["9"], ["Eve Moor"]),
)
_LEFTS = (72, 150, 290, 350)
_EXPECTED = [tuple(" ".join(lines) for lines in row) for row in _ROWS]


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _tables(blocks: Iterable[Block]) -> list[list[tuple[str, ...]]]:
    return [
        [tuple(cell.text for cell in row) for row in block.table.rows] for block in blocks if block.table is not None
    ]


def _table(rows: Sequence[_Row], y: float, gap: float) -> Iterator[Placed]:
    for row in rows:
        for left, lines in zip(_LEFTS, row, strict=True):
            yield from (Placed(left, y + 12 * at, text) for at, text in enumerate(lines))
        y += 12 * max(map(len, row)) + gap


def test_rows_with_space_between_them(tmp_path: Path) -> None:
    placed = [*column(prose("mill", 4), y=72), *_table(_ROWS, 160, gap=6), *column(prose("weir", 4), y=400)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [placed]))
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.PARAGRAPH]
    assert _tables(blocks) == [_EXPECTED]
    assert blocks[1].table is not None
    assert blocks[1].table.header_rows == 1


def test_rows_without_space_between_them(tmp_path: Path) -> None:
    """Capitals, numbers, and what had room on the line above tell where they start."""
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*_table(_ROWS, 160, gap=0), *column(prose("weir", 4), y=400)]]))
    assert _tables(blocks) == [_EXPECTED]


def test_numbers_below_numbers_are_rows_of_their_own(tmp_path: Path) -> None:
    rows: list[_Row] = [
        (["Mill"], ["Year"], ["Wheels"], ["Reams"]),
        (["Upper"], ["1804"], ["12"], ["310"]),
        ([], ["1805"], ["12"], ["355"]),
        (["Lower"], ["1811"], ["7"], ["90"]),
    ]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*_table(rows, 160, gap=0)]]))
    assert _tables(blocks) == [[tuple(" ".join(lines) for lines in row) for row in rows]]


def test_a_paragraph_below_is_no_row(tmp_path: Path) -> None:
    rows = [row for row in _ROWS if len(row[0]) == 1]
    placed = [*_table(rows, 160, gap=0), Placed(72, 256, "Wheels")]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*placed, *column(prose("weir", 4), y=290)]]))
    assert _tables(blocks) == [[tuple(" ".join(lines) for lines in row) for row in rows]]
    assert "Wheels" in [block.text for block in blocks]


def _numbered(x: float, lines: Sequence[str]) -> Iterator[Placed]:
    for at, line in enumerate(lines):
        yield Placed(x, 100 + 12 * at, line)
        if at % 5 == 4:
            yield Placed(x - 22, 100 + 12 * at, str(at + 1), 7)


def test_columns_of_prose_with_numbered_lines_are_no_table(tmp_path: Path) -> None:
    left = [f"the mill of line {number} was kept by seven and" for number in range(30)]
    right = [f"the weir of line {number} was kept by eight and" for number in range(30)]
    blocks = _read(write_placed(tmp_path / "a.pdf", [[*_numbered(80, left), *_numbered(340, right)]]))
    assert not _tables(blocks)


def test_references_in_two_columns_are_no_table(tmp_path: Path) -> None:
    def references(x: float, first: int) -> Iterator[Placed]:
        for number in range(first, first + 10):
            y = 100 + 36 * (number - first)
            yield Placed(x, y, f"[{number}]", 9)
            for at, line in enumerate((f"Ann Bell {number}. Of mills", "and of their wheels in", "the 18th century.")):
                yield Placed(x + 24, y + 11 * at, line, 9)

    blocks = _read(write_placed(tmp_path / "a.pdf", [[*references(72, 1), *references(320, 11)]]))
    assert not _tables(blocks)
