"""Each chunk method does what its name promises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest

from api.db.services.task_plan import chunk_settings
from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.parser.blocks import (
    Block,
    BlockKind,
    Box,
    Cell,
    FileKind,
    Heading,
    Picture,
    PlacedLine,
    Profile,
    Sheet,
    Table,
    Unit,
)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def cut(blocks: Sequence[Block], method: str, unit: Unit = Unit.WHOLE, **given: object) -> list[Chunk]:
    profile = given.pop("profile", Profile(FileKind.TEXT, unit, 100))
    assert isinstance(profile, Profile)
    chosen = ChunkSettings(method=method, **given)  # type: ignore[arg-type]
    return list(Chunker(count_words, chosen, profile).chunk(blocks))


def texts(chunks: Sequence[Chunk]) -> list[str]:
    return [chunk.text for chunk in chunks]


def heading(text: str, level: int = 1, page: int = 1) -> Block:
    return Block(kind=BlockKind.HEADING, text=text, page=page, level=level)


def paragraph(text: str, page: int = 1) -> Block:
    return Block(kind=BlockKind.PARAGRAPH, text=text, page=page)


def words(count: int, start: str = "w") -> str:
    return " ".join(f"{start}{number}" for number in range(count))


def row(number: int, *values: str, columns: Sequence[str] = ()) -> Block:
    pairs = zip(columns or [f"column {n}" for n in range(1, 9)], values, strict=False)
    header = (tuple(map(Cell, columns)),) if columns else ()
    table = Table(rows=(*header, tuple(map(Cell, values))), header_rows=len(header))
    text = "; ".join(f"{name}: {value}" for name, value in pairs if value)
    return Block(kind=BlockKind.TABLE, text=text, page=number, table=table)


def table(rows: Sequence[Sequence[str]], header_rows: int = 1) -> Block:
    cells = tuple(tuple(map(Cell, each)) for each in rows)
    text = "\n".join("\t".join(each) for each in rows)
    return Block(kind=BlockKind.TABLE, text=text, page=1, table=Table(cells, header_rows))


# Laws


def test_laws_keep_articles_apart_and_carry_their_chapters() -> None:
    blocks = [
        heading("The Act"),
        paragraph("CHAPTER I General"),
        paragraph("Article 1. " + words(30)),
        paragraph(words(10, "more")),
        paragraph("Article 2. " + words(30)),
        paragraph("CHAPTER II Special"),
        paragraph("Article 3"),
        paragraph("Section 3 of the other act applies. " + words(20)),
    ]
    chunks = cut(blocks, "laws", chunk_token_num=100)
    assert [chunk.headings for chunk in chunks] == [
        ("The Act", "CHAPTER I General", "Article 1"),
        ("The Act", "CHAPTER I General", "Article 2"),
        ("The Act", "CHAPTER II Special", "Article 3"),
    ]
    assert chunks[0].text.startswith("The Act\nCHAPTER I General\nArticle 1.")
    assert chunks[0].text.endswith("more9")


@pytest.mark.parametrize(
    "labels",
    [
        ("§ 12", "§ 13a"),
        ("Section 3.1", "Section 3.2"),
        ("Art. 5", "Art. 6"),
        ("第五条", "第十六条"),
        ("ARTICLE IV", "ARTICLE V"),
    ],
)
def test_articles_of_many_laws(labels: tuple[str, str]) -> None:
    chunks = cut([paragraph(f"{label} {words(40, 'W')}") for label in labels], "laws", chunk_token_num=200)
    assert [chunk.headings for chunk in chunks] == [(label,) for label in labels]


def test_a_title_may_take_two_lines() -> None:
    blocks = [
        *(heading("Article 5", 2), heading("Principles", 2), paragraph(words(30))),
        *(heading("Article 6", 2), heading("Lawfulness", 2), paragraph(words(30))),
    ]
    chunks = cut(blocks, "laws", chunk_token_num=200)
    assert [chunk.headings for chunk in chunks] == [("Article 5", "Principles"), ("Article 6", "Lawfulness")]


def test_articles_in_one_paragraph_are_told_by_their_lines() -> None:
    first, second = f"Article 1. {words(30)}.", f"Article 2. {words(30)} as in\nArticle 7 of {words(9)}."
    chunks = cut([paragraph(f"{first}\n{second}")], "laws", chunk_token_num=200)
    assert texts(chunks) == [first, second]


def test_articles_in_one_paragraph_keep_their_boxes() -> None:
    lines = [f"Article {number}. {words(30)}." for number in (1, 2)]
    boxes = [Box(1, 0, 100, top, top + 10) for top in (0, 50)]
    placed = (PlacedLine(0, boxes[0]), PlacedLine(len(lines[0]) + 1, boxes[1]))
    block = Block(kind=BlockKind.PARAGRAPH, text=" ".join(lines), page=1, lines=placed)
    assert [chunk.boxes for chunk in cut([block], "laws", Unit.PAGE)] == [(boxes[0],), (boxes[1],)]


def test_tiny_articles_share_a_chunk() -> None:
    blocks = [paragraph(f"Article {number}. {words(5)}.") for number in range(1, 7)]
    assert len(cut(blocks, "laws", chunk_token_num=512)) == 1
    assert len(cut(blocks, "laws", chunk_token_num=64)) == 6


# Books, manuals, papers


def test_a_book_starts_anew_with_each_chapter() -> None:
    blocks = [
        heading("Moby"),
        paragraph("Chapter One"),
        paragraph(words(30)),
        heading("A subsection", 3),
        paragraph(words(30, "x")),
        paragraph("Chapter Two"),
        paragraph(words(70)),
    ]
    chunks = cut(blocks, "book", chunk_token_num=100)
    assert [text.split("\n")[0] for text in texts(chunks)] == ["Moby", "Chapter Two"]
    assert len(cut(blocks, "naive", chunk_token_num=300)) == 1


def test_a_manual_is_cut_at_numbered_headings() -> None:
    blocks = [
        paragraph("1 Setting up"),
        paragraph("1.1 What is in the box"),
        paragraph(words(30)),
        paragraph("1.2 First steps"),
        paragraph(words(30)),
        paragraph("2 Care"),
        paragraph("3.5 volts are enough for the lamp, which is not to be touched while it is on."),
    ]
    chunks = cut(blocks, "manual", chunk_token_num=200)
    assert [chunk.headings for chunk in chunks] == [
        ("1 Setting up", "1.1 What is in the box"),
        ("1 Setting up", "1.2 First steps"),
        ("2 Care",),
    ]


def test_a_paper_keeps_its_abstract_whole_and_its_references_apart() -> None:
    blocks = [
        heading("On things"),
        heading("Abstract", 2),
        paragraph(words(50)),
        paragraph(words(50, "x")),
        paragraph("1 Introduction"),
        paragraph(words(30)),
        paragraph("References"),
        paragraph("[1] A. " + words(4)),
        paragraph("[2] B. " + words(4)),
    ]
    chunks = cut(blocks, "paper", chunk_token_num=64)
    assert [(chunk.headings[-1], chunk.tokens) for chunk in chunks] == [
        ("Abstract", 103),
        ("1 Introduction", 32),
        ("References", 19),
    ]
    assert len(cut(blocks, "paper", chunk_token_num=64, max_tokens=64)) == 4


def test_an_abstract_that_begins_a_paragraph() -> None:
    blocks = [paragraph("Jane Doe"), paragraph("Abstract: We " + words(90)), paragraph("Since long " + words(20))]
    chunks = cut(blocks, "paper", chunk_token_num=64)
    assert [text.split()[0] for text in texts(chunks)] == ["Jane", "Abstract:", "Since"]


def test_references_go_on_with_the_outline() -> None:
    profile = Profile(FileKind.PDF, Unit.PAGE, 9, outline=(Heading("References", 1, 7),))
    (chunk,) = cut([paragraph("[9] C.", page=8)], "paper", profile=profile)
    assert chunk.headings == ("References",)


# Slides and pictures


def test_a_slide_is_a_chunk() -> None:
    picture = Picture(part="ppt/media/image1.png")
    blocks = [
        heading("Goals", page=1),
        paragraph(words(60), page=1),
        Block(kind=BlockKind.FIGURE, text="a rising line", page=1, picture=picture),
        paragraph(words(5), page=2),
    ]
    chunks = cut(blocks, "presentation", Unit.SLIDE, chunk_token_num=20)
    assert [(chunk.page, chunk.kind, chunk.picture) for chunk in chunks] == [(1, "text", picture), (2, "text", None)]
    assert chunks[0].text.endswith("a rising line")
    assert len(cut(blocks, "presentation", Unit.SLIDE, chunk_token_num=20, max_tokens=40)) == 3


def test_a_figure_and_its_caption_are_a_chunk_with_the_picture() -> None:
    box = Box(1, 0, 100, 200, 300)
    blocks = [
        heading("Results"),
        paragraph(words(5)),
        Block(kind=BlockKind.FIGURE, text="axis", page=1, picture=Picture(box=box)),
        Block(kind=BlockKind.CAPTION, text="Figure 1. A line.", page=1),
        paragraph(words(5, "x")),
        Block(kind=BlockKind.FIGURE, text="", page=1, picture=Picture(part="logo")),
        paragraph(words(5, "y")),
    ]
    text, image = cut(blocks, "naive")
    assert (image.text, image.kind, image.picture) == ("axis\nFigure 1. A line.", "image", Picture(box=box))
    assert (image.boxes, image.headings) == ((box,), ("Results",))
    assert text.kind == "text" and text.text.split("\n") == ["Results", words(5), words(5, "x"), words(5, "y")]


def test_what_is_read_off_a_picture_is_the_picture() -> None:
    picture = Picture(box=Box(1, 0, 100, 0, 100))
    blocks = [
        Block(kind=BlockKind.FIGURE, text="", page=1, picture=picture),
        heading("EXIT"),
        paragraph("to the left"),
    ]
    (chunk,) = cut(blocks, "picture", Unit.PAGE)
    assert (chunk.text, chunk.kind, chunk.picture) == ("EXIT\nto the left", "image", picture)


def test_captions_go_to_what_they_are_of() -> None:
    figure = Block(kind=BlockKind.FIGURE, text="drawn", page=1)
    caption = Block(kind=BlockKind.CAPTION, text="Table 1: sums", page=1)
    chunks = cut([figure, caption, table([["a", "b"], ["1", "2"]])], "naive", chunk_token_num=64)
    assert texts(chunks)[0] == "drawn"
    assert "<caption>Table 1: sums</caption>" in chunks[1].text and chunks[1].kind == "table"


def test_footnotes_come_last_on_their_page() -> None:
    blocks = [
        paragraph("one"),
        Block(kind=BlockKind.FOOTNOTE, text="1 a note", page=1),
        paragraph("two"),
        paragraph("three", page=2),
    ]
    assert texts(cut(blocks, "naive", Unit.PAGE)) == ["one\ntwo\n1 a note", "three"]


# Questions and answers


def test_pairs_by_the_names_of_columns() -> None:
    columns = ("No", "Answer", "Question")
    blocks = [row(1, "7", "Because.", "Why?", columns=columns), row(2, "8", "", "How?", columns=columns)]
    chunks = cut(blocks, "qa", Unit.ROW)
    assert texts(chunks)[0] == "Question: Why?\tAnswer: Because.\nNo: 7"
    assert [chunk.page for chunk in chunks] == [1, 2]


def test_pairs_of_the_first_two_columns_also_where_the_first_row_passed_for_a_header() -> None:
    columns = ("What is it?", "A thing")
    chunks = cut([row(1, "Who?", "Me", columns=columns), row(2, "When?", "Now", columns=columns)], "qa", Unit.ROW)
    assert texts(chunks) == [
        "Question: What is it?\tAnswer: A thing",
        "Question: Who?\tAnswer: Me",
        "Question: When?\tAnswer: Now",
    ]


def test_pairs_of_headings() -> None:
    blocks = [
        paragraph("Welcome."),
        heading("Money"),
        heading("What does it cost?", 2),
        paragraph("Nothing."),
        paragraph("Ever."),
        heading("May I?", 2),
        paragraph("Yes."),
        heading("Empty", 2),
    ]
    chunks = cut(blocks, "qa")
    assert texts(chunks) == [
        "Welcome.",
        "Question: Money / What does it cost?\tAnswer: Nothing.\nEver.",
        "Question: May I?\tAnswer: Yes.",
        "Empty",
    ]
    assert chunks[2].headings == ("Money", "May I?")


def test_pairs_of_lines() -> None:
    blocks = [
        heading("Trains"),
        paragraph("Q: When does it\nleave?\nA: At nine.\nDaily."),
        paragraph("Also on Sundays."),
        paragraph("Q2: And back?\nA2: At ten."),
        paragraph("Q: Nobody knows?"),
    ]
    assert texts(cut(blocks, "qa")) == [
        "Trains",
        "Question: When does it leave?\tAnswer: At nine.\nDaily.\nAlso on Sundays.",
        "Question: And back?\tAnswer: At ten.",
        "Q: Nobody knows?",
    ]


def test_pairs_of_a_table_in_a_text() -> None:
    chunks = cut([table([["Question", "Answer"], ["Why?", "So."], ["How?", "Thus."]])], "qa")
    assert texts(chunks) == ["Question: Why?\tAnswer: So.", "Question: How?\tAnswer: Thus."]


def test_a_long_answer_repeats_its_question() -> None:
    chunks = cut([heading("Why?"), paragraph(words(100))], "qa", max_tokens=50)
    assert len(chunks) == 3
    assert all(text.startswith("Question: Why?\tAnswer: w") for text in texts(chunks))
    assert all(chunk.tokens <= 50 for chunk in chunks)


# Rows


def test_a_row_is_a_chunk() -> None:
    columns = ("name", "age")
    chunks = cut([row(1, "Eve", "7", columns=columns), row(2, "Bob", "8", columns=columns)], "table", Unit.ROW)
    assert [(chunk.text, chunk.kind, chunk.page) for chunk in chunks] == [
        ("name: Eve; age: 7", "table", 1),
        ("name: Bob; age: 8", "table", 2),
    ]


def test_rows_of_tables_in_a_text() -> None:
    cells = ((Cell("name"), Cell("pets", columns=2)), (Cell("Eve", rows=2), Cell("cat"), Cell("dog")), (Cell("cow"),))
    block = Block(kind=BlockKind.TABLE, text="…", page=1, table=Table(cells, 1))
    assert texts(cut([paragraph("Pets:"), block], "table")) == [
        "Pets:",
        "name: Eve; pets: cat; pets: dog",
        "name: Eve; pets: cow",
    ]


def test_tags_are_the_last_column_or_the_one_that_is_named_so() -> None:
    chunks = cut([row(1, "About cats", "pets, fur;pets")], "tag", Unit.ROW)
    assert [(chunk.text, chunk.tags) for chunk in chunks] == [("About cats", ("pets", "fur"))]
    chunks = cut([row(1, "sea", "Fish", "wet", columns=("Tags", "title", "body"))], "tag", Unit.ROW)
    assert [(chunk.text, chunk.tags) for chunk in chunks] == [("title: Fish\nbody: wet", ("sea",))]


def test_rows_as_html() -> None:
    columns = ("n", "<m>")
    blocks = [row(number, str(number), "x" * 10, columns=columns) for number in range(1, 41)]
    chunks = cut(blocks, "naive", Unit.ROW, chunk_token_num=200, html_tables=True)
    assert len(chunks) > 2 and {chunk.kind for chunk in chunks} == {"table"}
    assert all(chunk.text.startswith("<table><tr><th>n</th><th>&lt;m&gt;</th></tr><tr><td>") for chunk in chunks)
    assert all(f"<td>{chunk.page}</td>" in chunk.text and chunk.tokens <= 200 for chunk in chunks)
    rows = [int(number) for text in texts(chunks) for number in re.findall(r"<td>(\d+)</td>", text)]
    assert rows == list(range(1, 41))


def test_rows_of_two_sheets_are_not_mixed() -> None:
    profile = Profile(FileKind.SHEETS, Unit.ROW, 5, sheets=(Sheet("May", 2), Sheet("June", 3)))
    chunks = cut([row(number, "x") for number in range(1, 6)], "naive", profile=profile)
    assert [(chunk.page, chunk.headings) for chunk in chunks] == [(1, ("May",)), (3, ("June",))]


# One, mail


def test_one_is_the_whole_document_or_what_the_model_takes() -> None:
    blocks = [paragraph(words(30), page=page) for page in (1, 2, 3)]
    assert len(cut(blocks, "one", Unit.PAGE, chunk_token_num=10)) == 1
    chunks = cut(blocks, "one", Unit.PAGE, max_tokens=50)
    assert [chunk.tokens for chunk in chunks] == [30, 30, 30]


def test_mail_is_kept_apart_from_what_it_quotes() -> None:
    blocks = [
        heading("Lunch"),
        paragraph("From: eve@example.com\nDate: today\nTo: bob@example.com"),
        paragraph("Yes.\nOn Monday Bob wrote:\n> Lunch?\n> Bob\nSee you."),
        paragraph("-----Original Message-----\nFrom: Bob"),
        paragraph("Are you there?"),
        heading("Attachment: menu.txt", 2),
        paragraph("Soup"),
    ]
    assert texts(cut(blocks, "email")) == [
        "Lunch\nFrom: eve@example.com\nDate: today\nTo: bob@example.com\nYes.",
        "On Monday Bob wrote:\n> Lunch?\n> Bob",
        "See you.",
        "-----Original Message-----\nFrom: Bob\nAre you there?",
        "Attachment: menu.txt\nSoup",
    ]


# Overlap, children


def test_overlap_is_the_end_of_the_chunk_before() -> None:
    text = " ".join(f"Sentence {number} has six words." for number in range(12))
    chunks = cut([paragraph(text)], "naive", chunk_token_num=24, overlapped_percent=25)
    assert len(chunks) > 3
    for before, after in pairwise(chunks):
        taken = after.text[: after.text.index(".") + 1]
        assert before.text.endswith(taken)
        assert after.tokens <= 24
    plain = cut([paragraph(text)], "naive", chunk_token_num=24)
    assert "".join(texts(plain)).count("Sentence") == 12


def test_overlap_does_not_cross_pages_or_sections() -> None:
    blocks = [paragraph(words(10), page=1), paragraph(words(10, "x"), page=2)]
    assert texts(cut(blocks, "naive", Unit.PAGE, overlapped_percent=50)) == [words(10), words(10, "x")]


def test_children_follow_their_parent_and_point_at_it() -> None:
    boxes = [Box(1, 0, 9, top, top + 5) for top in (0, 10)]
    blocks = [
        Block(kind=BlockKind.PARAGRAPH, text="One. Two.", page=1, lines=(PlacedLine(0, boxes[0]),)),
        Block(kind=BlockKind.PARAGRAPH, text="Three.", page=1, lines=(PlacedLine(0, boxes[1]),)),
    ]
    parent, *children = cut(blocks, "naive", Unit.PAGE, children_delimiter="\\n")
    assert parent.is_parent and parent.text == "One. Two.\nThree."
    assert [(chunk.text, chunk.parent_back, chunk.boxes) for chunk in children] == [
        ("One. Two.", 1, (boxes[0],)),
        ("Three.", 2, (boxes[1],)),
    ]
    chunks = cut(blocks, "naive", Unit.PAGE, children_delimiter=".")
    assert texts(chunks)[1:] == ["One.", "Two.", "Three."]
    (alone,) = cut(blocks[1:], "naive", Unit.PAGE, children_delimiter="\n")
    assert not alone.is_parent and not alone.parent_back


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ChunkSettings()),
        (
            {"chunk_token_num": 64, "delimiter": ";", "html4excel": True},
            ChunkSettings("naive", 64, ";", html_tables=True),
        ),
        ({"overlapped_percent": 0.2}, ChunkSettings(overlapped_percent=20)),
        ({"overlapped_percent": 200}, ChunkSettings(overlapped_percent=90)),
        ({"children_delimiter": "."}, ChunkSettings()),
        ({"enable_children": True, "children_delimiter": "."}, ChunkSettings(children_delimiter=".")),
        ({"parent_child": {"use_parent_child": True}}, ChunkSettings(children_delimiter="\n")),
        ({"parent_child": {"use_parent_child": False, "children_delimiter": "."}}, ChunkSettings()),
    ],
)
def test_settings_come_from_the_parser_config(config: dict[str, object], expected: ChunkSettings) -> None:
    assert chunk_settings("naive", config) == expected
    assert chunk_settings("naive", config, max_tokens=256).max_tokens == 256


def test_a_sheet_of_tags_without_names_of_columns_keeps_its_first_row() -> None:
    names = ("The wheel turns slowly in the river.", "water,wheel")
    chunks = cut([row(1, "Bread is baked at dawn.", "bread", columns=names)], "tag", Unit.ROW)
    assert [chunk.text for chunk in chunks] == ["The wheel turns slowly in the river.", "Bread is baked at dawn."]
    assert [chunk.tags for chunk in chunks] == [("water", "wheel"), ("bread",)]
