"""PDF: headers, footers and page numbers are left out of the text, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag.parser import registry
from rag.parser.blocks import Block
from rag.parser.pdf_numbers import ending_number, is_lone_number, leading_number, number_offset
from tests.pdfs_placed import Placed, column, prose, write_placed


def _read(path: Path) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, 0, profile.units))


def _pages(*edges: list[Placed]) -> list[list[Placed]]:
    """A page of prose for each, with these lines around it."""
    return [[*edge, *column(prose(f"mill {number}", 10))] for number, edge in enumerate(edges, start=1)]


def _expected(count: int) -> list[str]:
    return [" ".join(prose(f"mill {number}", 10)) for number in range(1, count + 1)]


def test_a_header_of_two_pages_is_kept_on_the_first(tmp_path: Path) -> None:
    header = [Placed(72, 50, "Account of the upper mill")]
    first, second = _expected(2)
    texts = [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(header, header)))]
    assert texts == ["Account of the upper mill", first, second]


def test_a_line_on_one_of_two_pages_stays(tmp_path: Path) -> None:
    path = write_placed(tmp_path / "a.pdf", _pages([Placed(72, 50, "To the miller")], []))
    assert [block.text for block in _read(path)] == ["To the miller", *_expected(2)]


@pytest.mark.parametrize("number", ["{}", "- {} -", "Page {} of 2", "{} / 2", "Seite {}"])
def test_page_numbers_alone_are_left_out(tmp_path: Path, number: str) -> None:
    edges = [[Placed(300, 760, number.format(page))] for page in (1, 2)]
    assert [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))] == _expected(2)


def test_roman_page_numbers_are_left_out(tmp_path: Path) -> None:
    edges = [[Placed(300, 760, number)] for number in ("i", "ii", "iii", "iv")]
    assert [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))] == _expected(4)


def test_headers_that_change_with_the_chapter(tmp_path: Path) -> None:
    names = ["Wheels", "Weirs", "Corn", "Flour", "Fords", "Bread"]
    edges = [[Placed(72, 50, f"Chapter {at}: {name} {at + 22}")] for at, name in enumerate(names, start=1)]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges))
    assert registry.profile(path, "a.pdf").number_offset == 22
    assert [block.text for block in _read(path)] == _expected(6)


def test_headers_of_facing_pages(tmp_path: Path) -> None:
    edges = [[Placed(72, 50, f"{page} A. Writer" if page % 2 else f"On mills {page}")] for page in range(2, 8)]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges))
    assert [block.text for block in _read(path)] == _expected(6)


def test_headers_with_parts_on_both_sides(tmp_path: Path) -> None:
    edges = [[Placed(72, 50, "Of mills and weirs"), Placed(480, 50, "Writer et al.")] for _ in range(5)]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges))
    assert [block.text for block in _read(path)] == _expected(5)


def test_bold_footers_with_the_number_on_the_outer_side(tmp_path: Path) -> None:
    names = ["Wheels", "Weirs", "Corn", "Flour", "Fords", "Bread"]
    edges = [
        [Placed(72, 760, str(at + 8), style="B"), Placed(400, 760, f"Chapter {at}. {name}", style="B")]
        for at, name in enumerate(names, start=1)
    ]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges))
    assert [block.text for block in _read(path)] == _expected(6)


def test_page_numbers_an_eighth_above_the_edge_are_left_out(tmp_path: Path) -> None:
    edges = [[Placed(300, 708, str(page))] for page in range(1, 5)]
    assert [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))] == _expected(4)


def test_page_numbers_below_a_small_page_of_text_are_left_out(tmp_path: Path) -> None:
    edges = [[Placed(300, 400, str(page + 7))] for page in (1, 2, 3)]
    assert [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))] == _expected(3)


def test_other_numbers_below_a_small_page_of_text_stay(tmp_path: Path) -> None:
    numbers = ("8", "31", "10")
    edges = [[Placed(300, 400, number)] for number in numbers]
    texts = [block.text for block in _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))]
    assert "31" in texts and "8" not in texts and "10" not in texts


def test_a_letter_far_into_a_document_is_no_page_number(tmp_path: Path) -> None:
    edges: list[list[Placed]] = [[] for _ in range(44)]
    edges[1] = edges[42] = [Placed(300, 760, "x")]
    blocks = _read(write_placed(tmp_path / "a.pdf", _pages(*edges)))
    assert [block.page for block in blocks if block.text == "x"] == [43]


def test_a_title_with_the_number_of_its_page_stays(tmp_path: Path) -> None:
    edges = [[Placed(72, 60, f"{page} Part {'abcd'[page - 1]}"), Placed(300, 760, str(page))] for page in range(1, 5)]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges), outline=[f"Part {letter}" for letter in "abcd"])
    texts = [block.text for block in _read(path)]
    assert [text for text in texts if "Part" in text] == ["1 Part a", "2 Part b", "3 Part c", "4 Part d"]
    assert not any(text.isdecimal() for text in texts)


def test_a_number_on_a_page_by_itself_stays(tmp_path: Path) -> None:
    path = write_placed(tmp_path / "a.pdf", _pages([Placed(300, 760, "42")]))
    assert {block.text for block in _read(path)} == {*_expected(1), "42"}


def test_pages_are_read_alike_in_every_range(tmp_path: Path) -> None:
    edges = [[Placed(72, 50, "Account of the mill"), Placed(300, 760, f"{page}")] for page in range(1, 5)]
    path = write_placed(tmp_path / "a.pdf", _pages(*edges))
    profile = registry.profile(path, "a.pdf")
    whole = list(registry.read(path, profile, 0, 4))
    assert [block for page in range(4) for block in registry.read(path, profile, page, page + 1)] == whole


@pytest.mark.parametrize("text", ["7", "- 7 -", "Page 7", "7/12", "p. 7", "xiv", "[ 12 ]", "\u2014 3 \u2014"])
def test_lone_numbers(text: str) -> None:
    assert is_lone_number(text)


@pytest.mark.parametrize("text", ["7 }", "2024", "Mill 7", "vice", "x = 7", "", "7 mills", "-", "civil"])
def test_no_lone_numbers(text: str) -> None:
    assert not is_lone_number(text)


def test_numbers_at_the_ends() -> None:
    assert leading_number("12 A. Writer") == 12 and ending_number("Of mills 13") == 13
    assert ending_number("Page 3 of 7") == 3
    assert leading_number("12") is None and ending_number("Part3") is None


def test_the_offset_that_most_pages_agree_on() -> None:
    assert number_offset([(1, ["5"]), (2, ["6 Mills"]), (3, ["Weirs 7"]), (4, ["1"])], 3) == 4
    assert number_offset([(1, ["5"]), (2, ["9"]), (3, [])], 2) is None
