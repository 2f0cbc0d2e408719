"""Where a paragraph runs on over the edge between two pages, and where it is better cut."""

from __future__ import annotations

import msgspec
import pytest

from rag.parser.blocks import Block, BlockKind, Box, Cell, PlacedLine, Table
from rag.parser.page_edges import join, may_be_tail, may_go_on, runs_on
from rag.parser.page_text import PageText, ends_sentence, page_text

LEFT, RIGHT = 72, 540
LONG = "the lamp was lit by the keeper of the harbour"
FILLED = ("All of the instruments were counted every year, and", "polished by people who had come over the sea with")


def placed(
    *lines: str,
    page: int = 1,
    top: int = 300,
    kind: BlockKind = BlockKind.PARAGRAPH,
    left: int = LEFT,
    right: int = RIGHT,
    last_right: int = 0,
    size: int = 10,
) -> Block:
    """A block of these lines, each as wide as its column, but for the last where that is given."""
    text = ""
    found = []
    for number, line in enumerate(lines):
        end = last_right if last_right and number == len(lines) - 1 else right
        at = top + number * (size + 2)
        found.append(PlacedLine(len(text), Box(page, left, end, at, at + size)))
        text += line + (" " if number < len(lines) - 1 else "")
    return Block(kind=kind, text=text, page=page, lines=tuple(found))


def first_page(*lines: str, **more: object) -> PageText:
    """A page that ends with these lines."""
    return page_text([placed(*FILLED, "each.", top=100), placed(*FILLED, *lines, **more)])  # type: ignore[arg-type]


def next_page(*lines: str, **more: object) -> PageText:
    """One that starts with these."""
    return page_text(
        [placed(*lines, page=2, top=80, **more), placed(*FILLED, "Nobody knew why.", page=2, top=200)]  # type: ignore[arg-type]
    )


def goes_on(head: str, *tail: str) -> bool:
    return runs_on(first_page(head), next_page(*(tail or (LONG, "and that was all."))))


def test_a_sentence_that_goes_on_in_lower_case_is_joined() -> None:
    before, after = first_page(LONG), next_page("and by nobody else", "in all of that year.")
    assert runs_on(before, after)
    head = before.last
    assert head is not None
    block = join(before, after, head)
    assert block.text == f"{' '.join(FILLED)} {LONG} and by nobody else in all of that year."
    assert block.page == 1
    assert [box.page for box in block.boxes] == [1, 2]
    starts = [block.text[line.start :].split()[0] for line in block.lines]
    assert starts == ["All", "polished", "the", "and", "in"]


@pytest.mark.parametrize(
    "end",
    [
        *(".", "!", "?", ":", ";", "\u2026", ".\u201d", ".)", ".'", "?\u00bb", ".12", ".[3]", ".\u00b9", ".*"),
        *("\u3002", "\uff01", "\uff1f\u300d", "\uff61"),  # Chinese, Japanese
        # Arabic, Urdu, Hindi, Amharic, Armenian, Burmese, Khmer
        *("\u061f", "\u06d4", "\u0964", "\u1362", "\u0589", "\u104b", "\u17d4"),
    ],
)
def test_a_sentence_that_has_ended_does_not_go_on(end: str) -> None:
    assert ends_sentence(LONG + end)
    assert not goes_on(LONG + end)


def test_what_is_no_paragraph_does_not_go_on() -> None:
    after = next_page(LONG, "and that was all.")
    for kind in (BlockKind.HEADING, BlockKind.LIST_ITEM, BlockKind.CODE):
        assert not runs_on(first_page(LONG, kind=kind), after)
        assert not runs_on(first_page(LONG), next_page(LONG, "and that was all.", kind=kind))
    for end in ("Contents . . . . 12", "see the entry for lamps, 4"):
        assert not goes_on(end)
    assert not runs_on(page_text([]), after)
    assert not runs_on(first_page(LONG), page_text([]))


def test_a_line_that_had_room_for_the_next_word_has_ended() -> None:
    after = next_page(LONG, "and that was all.")
    assert runs_on(first_page(LONG, last_right=RIGHT - 20), after)
    assert not runs_on(first_page(LONG, last_right=RIGHT - 80), after)
    assert not may_go_on(first_page(LONG, last_right=RIGHT - 300))


def test_a_capital_goes_on_only_after_a_full_line() -> None:
    after = next_page("Hafens und der Leuchtturm", "standen im Nebel.")
    assert runs_on(first_page("die Lampe wurde vom W\u00e4rter des"), after)
    assert not runs_on(first_page("die Lampe wurde vom W\u00e4rter des", last_right=RIGHT - 150), after)
    # A line of a title page, and a name below it.
    assert not runs_on(first_page("by the sea"), after)
    assert not goes_on("die Lampe wurde vom W\u00e4rter des", "Betreuung:")
    assert not goes_on("die Lampe wurde vom W\u00e4rter des", "Programm 4.1: Quelltext, der hier", "gezeigt wird.")
    indented = placed("Hafens und der Leuchtturm", "standen im Nebel.", page=2, top=80)
    first, second = indented.lines
    moved = PlacedLine(0, msgspec.structs.replace(first.box, left=LEFT + 20))
    page = page_text([msgspec.structs.replace(indented, lines=(moved, second))])
    assert not runs_on(first_page("die Lampe wurde vom W\u00e4rter des"), page)


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("灯塔守望者每天晚上都要点亮那盏灯并且", "把它擦干净。"),
        ("किनारे पर रखी हुई रोशनी को", "हर रात जलाते थे।"),
    ],
)
def test_scripts_without_capitals_go_on_after_a_full_line(head: str, tail: str) -> None:
    assert goes_on(head, tail)
    assert not runs_on(first_page(head, last_right=RIGHT - 120), next_page(tail))
    assert not goes_on(head + "\u3002", tail)


def test_scripts_from_right_to_left_end_at_the_left() -> None:
    head = "המנורה הודלקה על ידי שומר"
    tail = "הנמל בכל ערב."
    assert goes_on(head, tail)
    short = first_page(head)
    block = short.blocks[1]
    *lines, last = block.lines
    moved = PlacedLine(last.start, msgspec.structs.replace(last.box, left=LEFT + 150))
    page = page_text([short.blocks[0], msgspec.structs.replace(block, lines=(*lines, moved))])
    assert not runs_on(page, next_page(tail))


def test_chinese_is_joined_without_a_space() -> None:
    before = first_page("灯塔守望者每天晚上都要点亮那盏灯")
    after = next_page("把它擦干净。")
    head = before.last
    assert head is not None
    assert join(before, after, head).text.endswith("那盏灯把它擦干净。")


@pytest.mark.parametrize(
    ("head", "tail", "joined"),
    [
        ("all that was there were instru-", "ments of brass", "there were instruments of brass"),
        ("all of them were well-", "known to the keeper", "all of them were well-known to the keeper"),
        ("the line from the North-", "Sea to the harbour", "the line from the North-Sea to the harbour"),
        ("the keeper counted them \u2013", "slowly, at night", "the keeper counted them \u2013 slowly, at night"),
    ],
)
def test_hyphens_are_undone_as_within_a_page(head: str, tail: str, joined: str) -> None:
    before = page_text([placed(*FILLED, "each, well-known.", top=100), placed(*FILLED, head)])
    after = next_page(tail, "and that was all.")
    assert runs_on(before, after)
    block = before.last
    assert block is not None
    assert joined in join(before, after, block).text


def test_what_stands_aside_is_passed_over() -> None:
    note = placed("1 A note that goes on and on", top=700, kind=BlockKind.FOOTNOTE, size=8)
    table = Block(BlockKind.TABLE, "a\tb", 1, table=Table(((Cell("a"), Cell("b")),)))
    caption = placed("Table 1: Lamps", top=600, kind=BlockKind.CAPTION)
    before = page_text([placed(*FILLED, "each.", top=100), placed(*FILLED, LONG), table, caption, note])
    figure = Block(BlockKind.FIGURE, "", 2)
    words = placed("Figure 1: The harbour", page=2, top=80, kind=BlockKind.CAPTION)
    tail = placed(LONG, "and that was all.", page=2, top=200)
    assert runs_on(before, page_text([figure, words, tail]))


def test_lines_at_the_edges_are_passed_over() -> None:
    head = [placed(*FILLED, "each.", top=100), placed(*FILLED, LONG)]
    tail = [placed(LONG, "and that was all.", page=2, top=100), placed(*FILLED, "each.", page=2, top=200)]
    footer = placed("The harbour book", top=740)
    number = placed("xii", top=345)
    title = placed("The second chapter", page=2, top=40, last_right=200)
    beside = placed("57", page=2, top=41, left=500)
    item = placed("2. The second chapter 57", page=2, top=40, kind=BlockKind.LIST_ITEM)
    for end in ([], [footer], [number]):
        for start in ([], [title], [title, beside], [item]):
            assert runs_on(page_text([*head, *end]), page_text([*start, *tail]))
    # Files may draw them at the end, or between two columns.
    assert runs_on(page_text([*head, placed("A title", top=40)]), page_text([*tail, title]))
    # A heading is none of them, and neither is a line that is close to the text.
    assert not runs_on(page_text(head), page_text([placed("Lamps", page=2, top=40, kind=BlockKind.HEADING), *tail]))
    assert not runs_on(page_text(head), page_text([placed("Lamps", page=2, top=87), *tail]))


def test_text_below_the_last_paragraph_or_above_the_first_says_that_the_order_is_odd() -> None:
    below = placed(*FILLED, "each.", top=600)
    assert not may_go_on(page_text([below, placed(*FILLED, LONG)]))
    above = placed(*FILLED, "each.", page=2, top=80)
    assert not may_be_tail(page_text([placed(LONG, "and that was all.", page=2, top=400), above]))


def test_other_type_is_another_text() -> None:
    after = next_page(LONG, "and that was all.", size=16)
    assert not runs_on(first_page(LONG), after)


def test_a_paragraph_ends_with_a_page_of_its_own_now_and_then() -> None:
    lines = (*FILLED, LONG)
    assert may_go_on(page_text([placed(*lines, page=7)]))
    assert not may_go_on(page_text([placed(*lines, page=8)]))
    assert may_go_on(page_text([placed(*FILLED, "each.", page=8, top=100), placed(*lines, page=8)]))


def test_a_page_of_very_many_lines_is_no_trouble() -> None:
    blocks = [placed(f"line {number} of a list", top=100 + number % 3) for number in range(20_000)]
    assert not runs_on(page_text(blocks), page_text(blocks))
