"""What holds for every chunk method and all settings: nothing is lost, nothing is too large, the split is not seen."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from rag.flow.chunk import Chunk, ChunkSettings
from rag.flow.chunker import Chunker
from rag.flow.tables import plain_text
from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Picture, Profile, Table, Unit

METHODS = (
    *("naive", "book", "laws", "manual", "paper", "presentation", "qa", "table", "one", "email", "picture", "tag"),
    "unheard of",
)
UNITS = (Unit.PAGE, Unit.SLIDE, Unit.WHOLE)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


def cut(blocks: Sequence[Block], unit: Unit, chosen: ChunkSettings) -> list[Chunk]:
    return list(Chunker(count_words, chosen, Profile(FileKind.PDF, unit, 100)).chunk(blocks))


_words = st.text(alphabet=st.sampled_from(" \n.!?;>:ab1Q条<&\u3002"), max_size=80)
_starts = st.sampled_from(
    [
        *(
            "",
            "Article 5. ",
            "§ 12 ",
            "Section 3.1 ",
            "Chapter II\n",
            "第五条 ",
            "1.2 Scope",
            "Abstract: ",
            "References",
        ),
        *("Q: why?\nA: so\n", "> quoted\n", "On Monday Eve wrote:\n", "Introduction", "a word. "),
    ]
)
_texts = st.builds(lambda start, rest: start + rest, _starts, _words)
_cells = st.builds(Cell, text=_words, columns=st.integers(1, 2), rows=st.integers(1, 4))


@st.composite
def _tables(draw: st.DrawFn) -> Block:
    rows = draw(st.lists(st.lists(_cells, min_size=1, max_size=3).map(tuple), min_size=1, max_size=6))
    header_rows = draw(st.integers(0, 2))
    text = "\n".join("\t".join(cell.text for cell in row) for row in rows)
    table = Table(rows=tuple(rows), header_rows=min(header_rows, len(rows)))
    return Block(kind=BlockKind.TABLE, text=text, page=draw(st.integers(1, 3)), table=table)


_plain = st.builds(
    Block,
    kind=st.sampled_from(BlockKind),
    text=_texts,
    page=st.integers(1, 3),
    level=st.integers(1, 4),
    picture=st.sampled_from([None, Picture(part="a.png")]),
)
_documents = st.lists(st.one_of(_plain, _plain, _tables()), max_size=14).map(
    lambda blocks: sorted(blocks, key=lambda block: block.page)
)
_settings = st.builds(
    ChunkSettings,
    method=st.sampled_from(METHODS),
    chunk_token_num=st.integers(1, 200),
    delimiter=st.sampled_from(["\n", "\\n", "`ab`.;", ";"]),
    overlapped_percent=st.sampled_from([0, 0, 20, 90]),
    children_delimiter=st.sampled_from(["", "", "\n", "`ab`", "."]),
    max_tokens=st.integers(20, 300),
)


def _letters(text: str) -> Counter[str]:
    return Counter("".join(text.split()))


def _given(blocks: Sequence[Block], method: str) -> Counter[str]:
    """All letters; where rows become chunks, the names of their columns are no content."""
    letters: Counter[str] = Counter()
    for block in blocks:
        table = block.table
        if method in ("qa", "table", "tag") and table is not None and table.header_rows < len(table.rows):
            letters.update(_letters("".join(cell.text for row in table.rows[table.header_rows :] for cell in row)))
        else:
            letters.update(_letters(block.text))
    return letters


@settings(max_examples=250, deadline=None)
@given(_documents, st.sampled_from(UNITS), _settings)
def test_no_character_is_lost_and_no_chunk_is_too_large(blocks: list[Block], unit: Unit, chosen: ChunkSettings) -> None:
    chunks = cut(blocks, unit, chosen)
    found: Counter[str] = Counter()
    for chunk in chunks:
        if not chunk.parent_back:
            found.update(_letters(plain_text(chunk.text) + "".join(chunk.tags)))
    missing = _given(blocks, chosen.method) - found
    if chosen.method == "tag":  # the same tag twice is one tag, and what parts them is none
        missing = Counter(letter for letter in missing if letter not in found and letter not in ",;|")
    assert not missing
    assert all(chunk.text and 0 <= chunk.tokens <= chosen.max_tokens for chunk in chunks)
    if chosen.method in ("naive", "book", "laws", "manual", "email"):
        assert all(chunk.tokens <= chosen.chunk_token_num for chunk in chunks)
    for position, chunk in enumerate(chunks):
        if chunk.parent_back:
            assert chunks[position - chunk.parent_back].is_parent
            assert _letters(chunk.text) <= _letters(chunks[position - chunk.parent_back].text)


@settings(max_examples=100, deadline=None)
@given(_documents, st.sampled_from([Unit.PAGE, Unit.SLIDE]), _settings)
def test_the_split_of_pages_is_not_seen(blocks: list[Block], unit: Unit, chosen: ChunkSettings) -> None:
    if chosen.method == "one":
        return
    parts = [list(page) for _, page in groupby(blocks, key=lambda block: block.page)]
    assert [chunk for part in parts for chunk in cut(part, unit, chosen)] == cut(blocks, unit, chosen)


def _section(number: int, sentences: int, first: str = "") -> list[Block]:
    heading = Block(kind=BlockKind.HEADING, text=f"Section of {number} things", page=1, level=2)
    texts = [first] if first else []
    texts += [f"Remark {each} of section {number} is about nothing else than that. " * 4 for each in range(sentences)]
    return [heading, *(Block(kind=BlockKind.PARAGRAPH, text=text, page=1) for text in texts)]


def test_an_edit_changes_the_chunks_of_its_section_only() -> None:
    before = [_section(number, 3 + number % 17) for number in range(60)]
    after = [*before[:20], _section(20, 9, "A paragraph that was not there before. " * 30), *before[21:]]
    for method in ("naive", "book", "manual", "paper", "qa"):
        chosen = ChunkSettings(method=method, chunk_token_num=128)
        old = cut([block for section in before for block in section], Unit.WHOLE, chosen)
        new = cut([block for section in after for block in section], Unit.WHOLE, chosen)
        changed = [chunk for chunk in new if chunk not in old]
        assert changed and len(changed) < 15
        # The section itself, and neighbours so small that they are packed together with it.
        assert {chunk.headings[-1] for chunk in changed} <= {f"Section of {number} things" for number in (19, 20, 21)}


def test_a_text_without_headings_is_not_packed_as_one() -> None:
    paragraphs = [f"Paragraph {number} says something of its own about things. " * 5 for number in range(2000)]
    edited = ["A new beginning. " * 20, *paragraphs]
    old, new = (
        cut([Block(kind=BlockKind.PARAGRAPH, text=text, page=1) for text in texts], Unit.WHOLE, ChunkSettings())
        for texts in (paragraphs, edited)
    )
    assert len([chunk for chunk in new if chunk not in old]) < len(new) / 10
