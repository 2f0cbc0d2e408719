"""Ranges of units: from pages as people ask for them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput, PagesOutside
from rag.flow.split import ROW_GROUP, asked_units, range_text, split
from rag.parser.blocks import FileKind, Profile, Unit


def _pages(count: int) -> Profile:
    return Profile(kind=FileKind.PDF, unit=Unit.PAGE, units=count)


@pytest.mark.parametrize(
    ("pages", "ranges"),
    [
        (None, ((0, 12), (12, 24), (24, 30))),
        ([], ((0, 12), (12, 24), (24, 30))),
        ([[1, 100_000]], ((0, 12), (12, 24), (24, 30))),
        ([[13, 13]], ((12, 13),)),
        ([[20, 22], [1, 3]], ((0, 3), (19, 22))),
        ([[1, 10], [5, 15]], ((0, 12), (12, 15))),
        ([[1, 3], [4, 6]], ((0, 3), (3, 6))),
        ([(29, 40)], ((28, 30),)),
    ],
)
def test_pages(pages: list[list[int]] | None, ranges: tuple[tuple[int, int], ...]) -> None:
    assert split(_pages(30), 12, 5000, pages) == ranges


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 60)), min_size=1), st.integers(1, 15))
def test_every_page_asked_for_is_in_one_range(asked: list[tuple[int, int]], page_size: int) -> None:
    pages = [[first, first + more] for first, more in asked]
    ranges = split(_pages(40), page_size, 5000, pages)
    found = [unit for first, end in ranges for unit in range(first, end)]
    wanted = {page - 1 for first, last in pages for page in range(first, last + 1) if page <= 40}
    assert found == sorted(wanted)
    assert all(0 < end - first <= page_size for first, end in ranges)


def test_pages_outside() -> None:
    with pytest.raises(PagesOutside) as caught:
        split(_pages(12), 12, 5000, [[1, 2], [40, 50]])
    assert caught.value.public_message == "pages 40-50 are outside this document, which has 12 pages"


@pytest.mark.parametrize("pages", [[[0, 3]], [[5, 4]], [[1]], [[1, 2, 3]], [["1", "2"]], [[True, 2]], ["12"], [7]])
def test_malformed_pages(pages: list[list[int]]) -> None:
    with pytest.raises(InvalidInput):
        split(_pages(12), 12, 5000, pages)


def test_a_size_of_nothing() -> None:
    with pytest.raises(InvalidInput):
        split(_pages(12), 0, 5000, None)


def test_rows_end_at_multiples_of_their_group() -> None:
    profile = Profile(kind=FileKind.CSV, unit=Unit.ROW, units=1234)
    assert split(profile, 12, 500, None) == ((0, 500), (500, 1000), (1000, 1234))
    assert split(profile, 12, 450, [[1, 2]]) == ((0, 500), (500, 1000), (1000, 1234))
    assert all(first % ROW_GROUP == 0 for first, _ in split(profile, 12, 1, None))


def test_a_whole_file_is_one_range() -> None:
    assert split(Profile(kind=FileKind.TEXT, unit=Unit.WHOLE, units=1), 12, 5000, None) == ((0, 1),)


def test_a_document_that_is_needed_whole_is_not_split() -> None:
    assert split(_pages(30), 12, 5000, whole=True) == ((0, 30),)
    assert split(_pages(30), 1, 5000, [[1, 3], [7, 30]], whole=True) == ((0, 3), (6, 30))
    rows = Profile(kind=FileKind.CSV, unit=Unit.ROW, units=1234)
    assert split(rows, 12, 100, whole=True) == ((0, 1234),)


@pytest.mark.parametrize(
    ("unit", "first", "end", "words"),
    [
        (Unit.PAGE, 12, 24, "pages 13-24"),
        (Unit.PAGE, 2, 3, "page 3"),
        (Unit.ROW, 0, 5000, "rows 1-5000"),
        (Unit.WHOLE, 0, 1, "the file"),
    ],
)
def test_range_text(unit: Unit, first: int, end: int, words: str) -> None:
    assert range_text(unit, first, end) == words


def test_the_units_that_are_asked_for_are_counted_once() -> None:
    assert asked_units(Unit.PAGE, 10, None) == 10
    assert asked_units(Unit.PAGE, 10, [[1, 3], [2, 5], [9, 40]]) == 7
    assert asked_units(Unit.ROW, 500, [[1, 3]]) == 500
    with pytest.raises(PagesOutside):
        asked_units(Unit.SLIDE, 10, [[11, 12]])
