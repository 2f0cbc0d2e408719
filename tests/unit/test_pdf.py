"""PDF: what a profile says, what blocks a page gives, and how bad files end."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest

from common.errors import DocumentError, EncryptedFile, NoPages, UnreadableFile
from rag.parser import pdf_fallback, registry
from rag.parser.blocks import Block, BlockKind, FileKind, Heading, Unit
from rag.parser.layout import clamp
from rag.parser.pdf_page import read_page
from tests import pdfs
from tests.pdfs_placed import column, write_placed


def _read(path: Path, first: int = 0, end: int | None = None) -> list[Block]:
    profile = registry.profile(path, path.name)
    return list(registry.read(path, profile, first, profile.units if end is None else end))


def _text(blocks: list[Block]) -> str:
    return " ".join(block.text for block in blocks)


def test_profile(tmp_path: Path) -> None:
    profile = registry.profile(pdfs.write_pages(tmp_path / "a.pdf", 5, title="Sheets"), "a.pdf")
    assert (profile.kind, profile.unit, profile.units) == (FileKind.PDF, Unit.PAGE, 5)
    assert (profile.title, profile.author, profile.body_size) == ("Sheets", "A. Writer", 11.0)
    assert profile.outline == () and profile.repeated_lines == ()


def test_every_sentence_is_read_in_order(tmp_path: Path) -> None:
    blocks = _read(pdfs.write_pages(tmp_path / "a.pdf", 3))
    for page in (1, 2, 3):
        expected = " ".join(pdfs.sentence(page, number) for number in range(1, 13))
        assert _text([block for block in blocks if block.page == page]) == expected


def test_paragraphs_are_joined_and_parted(tmp_path: Path) -> None:
    blocks = _read(pdfs.write_pages(tmp_path / "a.pdf", 1, sentences=6))
    assert [block.text for block in blocks] == [
        " ".join(pdfs.sentence(1, number) for number in group) for group in ((1, 2, 3), (4, 5, 6))
    ]


def test_only_the_pages_of_the_range(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 8)
    assert {block.page for block in _read(path, 3, 5)} == {4, 5}
    assert _read(path, 3, 5) == [block for block in _read(path) if block.page in (4, 5)]


def test_boxes_are_points_from_the_top_left(tmp_path: Path) -> None:
    first, second = _read(pdfs.write_lines(tmp_path / "a.pdf", [["Near the top"] + [""] * 40 + ["Further down"]]))
    (box,) = first.boxes
    assert box.page == 1 and 25 < box.left < 40 and 25 < box.top < box.bottom < 50
    assert second.boxes[0].top > 500


def test_boxes_follow_the_page_as_it_is_shown(tmp_path: Path) -> None:
    path = pdfs.write_lines(tmp_path / "a.pdf", [["Near the top"]])
    with pypdfium2.PdfDocument(path) as document:
        upright = read_page(document, path, 0)
        document[0].set_rotation(180)
        turned = read_page(document, path, 0)
    assert turned.lines[0].right == pytest.approx(upright.width - upright.lines[0].left, abs=0.5)
    assert turned.lines[0].bottom == pytest.approx(upright.height - upright.lines[0].top, abs=0.5)


def test_headings_by_size(tmp_path: Path) -> None:
    blocks = _read(pdfs.write_pages(tmp_path / "a.pdf", 4, heading="Part"))
    headings = [(block.text, block.level) for block in blocks if block.kind is BlockKind.HEADING]
    assert headings == [(f"Part {page}", 2) for page in (1, 2, 3, 4)]


def test_headings_by_outline(tmp_path: Path) -> None:
    path = pdfs.write_outlined(tmp_path / "a.pdf", ["Sowing", "Reaping"])
    profile = registry.profile(path, "a.pdf")
    assert profile.outline == (Heading("Sowing", 1, 1), Heading("Reaping", 1, 3))
    headings = [block for block in _read(path) if block.kind is BlockKind.HEADING]
    assert [(block.text, block.level, block.page) for block in headings] == [
        ("1. Sowing", 1, 1),
        ("2. Reaping", 1, 3),
    ]


def test_a_line_that_starts_with_a_bracket_goes_on(tmp_path: Path) -> None:
    lines = [
        "The wheels of this mill are told of in another book, which see for all of their names",
        "(p. 226) and sizes.",
    ]
    (block,) = _read(write_placed(tmp_path / "a.pdf", [list(column(lines))]))
    assert (block.kind, block.text) == (BlockKind.PARAGRAPH, " ".join(lines))
    items = ["(a) a lamp", "(12) a rope", "b) a map"]
    assert [block.kind for block in _read(write_placed(tmp_path / "b.pdf", [list(column(items))]))] == [
        *(BlockKind.LIST_ITEM, BlockKind.LIST_ITEM, BlockKind.LIST_ITEM)
    ]


def test_list_items(tmp_path: Path) -> None:
    lines = ["Take with you:", "- a lamp", "- a rope that is", "long enough", "1. and a map"]
    blocks = _read(pdfs.write_lines(tmp_path / "a.pdf", [lines]))
    assert [(block.kind, block.text) for block in blocks] == [
        (BlockKind.PARAGRAPH, "Take with you:"),
        (BlockKind.LIST_ITEM, "- a lamp"),
        (BlockKind.LIST_ITEM, "- a rope that is long enough"),
        (BlockKind.LIST_ITEM, "1. and a map"),
    ]


def test_hyphens_at_line_ends_are_undone(tmp_path: Path) -> None:
    lines = ["The keeper wrote about the light-", "house and of its lamps, which", "burned all night."]
    (block,) = _read(pdfs.write_lines(tmp_path / "a.pdf", [lines]))
    assert block.text == "The keeper wrote about the lighthouse and of its lamps, which burned all night."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["It listens by UDP-", "LISTEN on every"], "UDP-LISTEN on every"),
        (["It was set by Jean-", "Paul and his"], "Jean-Paul and his"),
        (["It came with the B-", "side of every"], "B-side of every"),
        (["It sets ip-add-", "membership for every"], "ip-add-membership for every"),
        (["A write-only file, or a write-", "only folder of"], "or a write-only folder of"),
        (["An ELEMENT has every ELE-", "MENT of all"], "every ELEMENT of all"),
        (["The first word of that wri-", "ting is lost"], "that writing is lost"),
    ],
)
def test_hyphens_of_the_word_itself_stay(tmp_path: Path, lines: list[str], expected: str) -> None:
    (block,) = _read(pdfs.write_lines(tmp_path / "a.pdf", [lines]))
    assert expected in block.text


def test_a_hyphen_that_nothing_follows_stays(tmp_path: Path) -> None:
    assert _text(_read(pdfs.write_lines(tmp_path / "a.pdf", [["The last word of it is light-"]]))).endswith("light-")


def test_two_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    left = " ".join(pdfs.sentence(1, number) for number in range(1, 11))
    right = " ".join(pdfs.sentence(2, number) for number in range(1, 11))
    blocks = _read(pdfs.write_columns(tmp_path / "a.pdf", left, right, title="Two columns"))
    assert _text(blocks) == f"Two columns {left} {right}"
    boxes = [box for block in blocks[1:] for box in block.boxes]
    assert all(box.right < 300 or box.left > 300 for box in boxes)


def test_headers_and_footers_are_left_out(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 9, footer=True)
    assert registry.profile(path, "a.pdf").repeated_lines == ("The quarterly report - #",)
    text = _text(_read(path))
    assert "quarterly" not in text and pdfs.sentence(9, 12) in text


def test_known_headers_and_footers_are_left_out_where_no_gap_parts_them(tmp_path: Path) -> None:
    path = pdfs.write_printed(tmp_path / "a.pdf", 10, gaps=(1, 3, 4, 6, 8, 10))
    assert registry.profile(path, "a.pdf").repeated_lines == (
        "#/#/#, #:# AM The handbook",
        "https://example.org/handbook #/#",
    )
    text = _text(_read(path))
    assert "example.org" not in text and "6:50" not in text
    assert all(pdfs.sentence(page, number) in text for page in range(1, 11) for number in (1, 54))
    assert pdfs.sentence(2, 56) in text


def test_a_margin_line_that_begins_with_a_number_sign(tmp_path: Path) -> None:
    pages = [["# of the report", *[""] * 8, f"The one sentence of page {page}.", *[""] * 42] for page in range(1, 7)]
    text = _text(_read(pdfs.write_lines(tmp_path / "a.pdf", pages)))
    assert [f"The one sentence of page {page}." in text for page in range(1, 7)] == [True] * 6


def test_lines_repeated_on_one_page_are_no_headers(tmp_path: Path) -> None:
    lines = ["Draft", "Draft", *[""] * 8, "The one sentence of this page.", *[""] * 42, "Draft", "Draft"]
    (*blocks,) = _read(pdfs.write_lines(tmp_path / "a.pdf", [lines]))
    assert " ".join(block.text for block in blocks).split().count("Draft") == 4


def test_a_page_that_is_all_footer_keeps_it(tmp_path: Path) -> None:
    blocks = _read(pdfs.write_pages(tmp_path / "a.pdf", 5, sentences=0, footer=True))
    assert [block.text for block in blocks] == [f"The quarterly report - {page}" for page in range(1, 6)]


def test_a_page_without_text_gives_nothing(tmp_path: Path) -> None:
    blocks = _read(pdfs.write_lines(tmp_path / "a.pdf", [["First"], [], ["Third"]]))
    assert [block.page for block in blocks] == [1, 3]


def test_a_changed_file_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    assert _text(_read(pdfs.write_lines(path, [["Before"]]))) == "Before"
    assert _text(_read(pdfs.write_lines(path, [["After it changed"]]))) == "After it changed"


def test_letters_beyond_ascii_keep_their_box(tmp_path: Path) -> None:
    (block,) = _read(pdfs.write_lines(tmp_path / "a.pdf", [["caf\u00e9 \u00df and more"]]))
    assert block.text == "caf\u00e9 \u00df and more" and block.boxes[0].right > 90


def test_the_fallback_reads_the_same_words(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2)
    page = pdf_fallback.read_page(path, 1, 2)
    with pypdfium2.PdfDocument(path) as document:
        expected = read_page(document, path, 1)
    assert [line.text for line in page.lines] == [line.text for line in expected.lines]
    assert page.lines[0].left == pytest.approx(expected.lines[0].left, abs=2)
    assert page.lines[0].top == pytest.approx(expected.lines[0].top, abs=5)


@pytest.mark.parametrize("missing", [1, 18, 30])
def test_a_page_that_is_missing_is_told_and_gets_no_other_text(tmp_path: Path, missing: int) -> None:
    path = pdfs.write_without_page(tmp_path / "a.pdf", 30, missing)
    profile = registry.profile(path, "a.pdf")
    assert profile.units == 30
    for page in range(1, 31):
        if page == missing:
            with pytest.raises(UnreadableFile, match=f"page {missing} is damaged"):
                list(registry.read(path, profile, page - 1, page))
        else:
            text = _text(list(registry.read(path, profile, page - 1, page)))
            assert text == " ".join(pdfs.sentence(page, number) for number in (1, 2, 3))


def test_the_fallback_refuses_a_page_that_it_counts_otherwise(tmp_path: Path) -> None:
    path = pdfs.write_pages(tmp_path / "a.pdf", 2)
    with pytest.raises(UnreadableFile, match="page 2 is damaged"):
        pdf_fallback.read_page(path, 1, 3)


def test_places_stay_on_the_page_whatever_the_file_says() -> None:
    assert [clamp(value, 595.0) for value in (float("nan"), float("inf"), -1e30, 20.5)] == [0.0, 595.0, 0.0, 20.5]


def test_encrypted(tmp_path: Path) -> None:
    with pytest.raises(EncryptedFile, match=r"secret.pdf is encrypted and needs a password"):
        registry.profile(pdfs.write_encrypted(tmp_path / "a"), "secret.pdf")


def test_no_pages(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(pdfs.NO_PAGES)
    with pytest.raises(NoPages, match=r"blank.pdf has no pages"):
        registry.profile(path, "blank.pdf")


def test_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"%PDF-1.7\n" + b"nothing of a document " * 50)
    with pytest.raises(UnreadableFile, match=r"broken.pdf is damaged"):
        registry.profile(path, "broken.pdf")


@pytest.mark.parametrize("keep", [0.05, 0.3, 0.6, 0.9, 0.99])
def test_truncated_never_ends_in_anything_but_pages_or_a_document_error(tmp_path: Path, keep: float) -> None:
    path = pdfs.write_truncated(tmp_path / "a.pdf", keep)
    try:
        blocks = _read(path)
    except DocumentError as exc:
        assert exc.public_message
    else:
        assert all(block.text.strip() and 1 <= block.page <= 6 for block in blocks)


def test_facing_pages_have_their_numbers_on_different_sides(tmp_path: Path) -> None:
    def lines(page: int) -> list[str]:
        head = f"{page} The annual account" if page % 2 else f"The annual account {page}"
        return [head, "", "", *(pdfs.sentence(page, number) for number in range(1, 20))]

    path = pdfs.write_lines(tmp_path / "a.pdf", [lines(page) for page in range(1, 10)])
    assert registry.profile(path, "a.pdf").repeated_lines == ("The annual account #",)
    assert not any("annual account" in block.text for block in _read(path))
