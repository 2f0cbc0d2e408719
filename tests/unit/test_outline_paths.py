"""The headings of an outline above a page, whatever order pages are asked for in."""

from __future__ import annotations

import pytest

from rag.flow.headings import OutlinePaths
from rag.parser.blocks import Heading

_IN_ORDER = (Heading("Mills", 1, 1), Heading("Wheels", 2, 2), Heading("Corn", 2, 4), Heading("Weirs", 1, 6))
_EXPECTED = {
    1: (),
    2: ("Mills",),
    3: ("Mills", "Wheels"),
    4: ("Mills", "Wheels"),
    5: ("Mills", "Corn"),
    6: ("Mills", "Corn"),
    7: ("Weirs",),
}


@pytest.mark.parametrize("pages", [range(1, 8), range(7, 0, -1), (3, 3, 7, 1, 5), (5, 4, 6)])
def test_the_headings_above_a_page(pages: tuple[int, ...]) -> None:
    paths = OutlinePaths(_IN_ORDER)
    assert [paths.above(page).titles for page in pages] == [_EXPECTED[page] for page in pages]


def test_an_outline_whose_pages_are_not_in_order() -> None:
    paths = OutlinePaths((Heading("Weirs", 1, 6), Heading("Mills", 1, 1), Heading("Wheels", 2, 2)))
    assert paths.above(4).titles == ("Mills", "Wheels")
    assert paths.above(2).titles == ("Mills",)
    assert paths.above(7).titles == ("Mills", "Wheels")


def test_headings_met_on_a_page_are_not_those_of_the_next() -> None:
    paths = OutlinePaths(_IN_ORDER)
    paths.above(3).enter(1, "Met on the way")
    assert paths.above(3).titles == ("Mills", "Wheels")
