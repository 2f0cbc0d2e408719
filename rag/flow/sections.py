"""Books, laws, manuals and papers: where their chapters, articles and sections begin, told by headings and by how a
line starts. Each section is a part of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from rag.flow.parts import Part, Title, cut_block
from rag.flow.tokens import MAX_CHARS_PER_TOKEN, Scale
from rag.parser.blocks import Block, BlockKind

# Below the levels that headings have.
_BELOW_HEADINGS = 10
_MAX_TITLE_CHARS = 80
# Sections that together are smaller than this share of a chunk are kept in one.
_TINY = 8

_NUMBER = r"(?:\d+[A-Za-z]?(?:\.\d+)*|[IVXLCDM]+|[A-Z])(?=[\s.:)(\u2013\u2014-]|$)"
_COUNT = r"\s*[\u96f6\u3007\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341\u767e\u5343\u4e24\d]+\s*"
# "Section 3 of the Act" in the middle of a sentence is no beginning.
_NO_SENTENCE = r"(?!\s+[a-z]|\s*,)"


class _Mark(NamedTuple):
    """A way in which a section of some rank begins; `label` in its pattern is what the section is called by."""

    rank: int
    pattern: re.Pattern[str]
    alone: bool = False
    only_title: bool = False


class _Rules(NamedTuple):
    """Headings up to `level` start a section, and so do the marks."""

    level: int
    marks: tuple[_Mark, ...]


def _word_mark(rank: int, words: str, chinese: str) -> _Mark:
    spelt = "|".join(dict.fromkeys(form for word in words.split() for form in (word, word.upper())))
    numbered = rf"(?:(?:{spelt})\.?\s*{_NUMBER}{_NO_SENTENCE}|\u7b2c{_COUNT}[{chinese}])"
    return _Mark(rank, re.compile(rf"\s*(?P<label>{numbered})"))


_PARTS = _word_mark(1, "Part Book Title Teil Buch Titre Parte Libro", "\u7f16\u7de8\u7bc7\u90e8")
_CHAPTERS = _word_mark(2, "Chapter Kapitel Chapitre Cap\u00edtulo Capitolo", "\u7ae0")
_DIVISIONS = _word_mark(3, "Section Sec Division Subchapter Abschnitt Secci\u00f3n", "\u8282\u7bc0")
_ARTICLES = _word_mark(4, "Article Art Artikel Art\u00edculo Articolo Clause Rule \u00a7\u00a7 \u00a7", "\u6761\u689d")
_WORDED = r"(?:One|Two|Three|Four|Five|Six|Seven|Eight|Nine|Ten|Eleven|Twelve|Thirteen|Fourteen|Fifteen|Sixteen)\b"
_SPELT_CHAPTERS = _Mark(2, re.compile(rf"\s*(?P<label>(?:Chapter|Part|Book)\s+{_WORDED})", re.IGNORECASE))
_NUMBERED = tuple(
    _Mark(depth, re.compile(rf"\s*(?P<label>\d{{1,3}}(?:\.\d{{1,3}}){{{depth - 1}}}\.?\s+[^\W\d_].*)"), only_title=True)
    for depth in range(1, 6)
)
_ABSTRACT = _Mark(1, re.compile(r"\s*(?P<label>(?:Abstract|ABSTRACT|Summary|\u6458\s*\u8981))(?=\W|$)"), alone=True)
_REFERENCES = _Mark(
    1,
    re.compile(
        r"\s*(?P<label>(?:\d+\.?\s+)?(?:References|Bibliography|Works cited|\u53c2\u8003\u6587\u732e))\s*:?\s*$",
        re.IGNORECASE,
    ),
    alone=True,
    only_title=True,
)
_PAPER_WORDS = _Mark(
    1,
    re.compile(
        r"\s*(?P<label>(?:[IVX]+\.\s+)?(?:Introduction|Related [Ww]ork|Background|Methods?|Results|Discussion|"
        r"Conclusions?|Acknowledge?ments?|Appendix.*|Keywords|Index Terms))\s*:?\s*$",
        re.IGNORECASE,
    ),
    only_title=True,
)
_ROMAN = _Mark(1, re.compile(r"\s*(?P<label>[IVX]+\.\s+[A-Z].*)"), only_title=True)

_RULES = {
    "book": _Rules(2, (_PARTS, _CHAPTERS, _SPELT_CHAPTERS)),
    "laws": _Rules(99, (_PARTS, _CHAPTERS, _DIVISIONS, _ARTICLES)),
    "manual": _Rules(99, _NUMBERED),
    "paper": _Rules(3, (_ABSTRACT, _REFERENCES, _PAPER_WORDS, _ROMAN, *_NUMBERED[:3])),
}
METHODS = frozenset(_RULES)

_STARTERS = (BlockKind.PARAGRAPH, BlockKind.HEADING, BlockKind.LIST_ITEM)
_SENTENCE_ENDS = '.;:!?)"\u201d\u3002\uff1b\uff1a\uff01\uff1f'


def section_parts(method: str, blocks: Sequence[Block], limit: int, max_tokens: int, scale: Scale) -> list[Part]:
    """The sections of these blocks: those without a text of their own with the next, tiny ones together."""
    rules = _RULES[method]
    joined: list[tuple[Part, int]] = []
    for part in _sections(rules, blocks):
        tokens = _rough_weight(part, limit // _TINY, scale)
        if joined and _joins(rules, *joined[-1], part, tokens, limit // _TINY):
            before, size = joined.pop()
            joined.append((_join(before, part), size + tokens))
        else:
            joined.append((part, tokens))
    # An abstract stays whole if the model can take it.
    return [part._replace(limit=max_tokens if part.limit and tokens <= max_tokens else 0) for part, tokens in joined]


def _rough_weight(part: Part, tiny: int, scale: Scale) -> int:
    """The tokens, where they matter: of sections that may be tiny, and of abstracts."""
    chars = sum(len(block.text) for block in part.blocks)
    if chars > tiny * MAX_CHARS_PER_TOKEN and not part.limit:
        return chars
    return sum(scale.weigh([block.text for block in part.blocks]))


def _sections(rules: _Rules, blocks: Sequence[Block]) -> Iterator[Part]:
    opened = _Section()
    for block in _cut_at_marks(rules, blocks):
        mark, label = _mark_of(rules, block)
        heading = block.kind is BlockKind.HEADING
        if heading and mark is None and opened.is_bare:
            # "Article 5", and below it what it is about: one title in two lines.
            opened.add(msgspec.structs.replace(block, level=opened.blocks[-1].level + 1))
            continue
        if mark is not None or (heading and block.level <= rules.level):
            if opened.blocks:
                yield opened.part()
            opened = _Section(alone=mark is not None and mark.alone, is_abstract=mark is _ABSTRACT)
        if mark is None:
            opened.add(block)
            continue
        level = _BELOW_HEADINGS + mark.rank
        if heading or _is_title(block.text, label):
            opened.add(block if heading else msgspec.structs.replace(block, kind=BlockKind.HEADING, level=level))
            opened.is_bare = " ".join(block.text.split()).rstrip(".:") == label
            continue
        opened.titles.append(Title(len(opened.blocks), level, label))
        opened.add(block)
        if mark is _ABSTRACT:  # a paragraph that begins with the word is all of it
            yield opened.part()
            opened = _Section()
    if opened.blocks:
        yield opened.part()


class _Section:
    """A section whose end is not yet found. `is_bare`: so far it is a number without a title."""

    def __init__(self, *, alone: bool = False, is_abstract: bool = False) -> None:
        self.blocks: list[Block] = []
        self.titles: list[Title] = []
        self.is_bare = False
        self._alone, self._is_abstract = alone or is_abstract, is_abstract

    def add(self, block: Block) -> None:
        self.blocks.append(block)
        self.is_bare = False

    def part(self) -> Part:
        return Part(self.blocks, limit=int(self._is_abstract), alone=self._alone, titles=tuple(self.titles))


def _mark_of(rules: _Rules, block: Block) -> tuple[_Mark | None, str]:
    if block.kind not in _STARTERS:
        return None, ""
    for mark in rules.marks:
        if mark.only_title and (not _is_title(block.text) or block.kind is BlockKind.LIST_ITEM):
            continue
        if found := mark.pattern.match(block.text):
            return mark, " ".join(found["label"].split())
    return None, ""


def _is_title(text: str, label: str = "") -> bool:
    """A line that names what follows; a sentence, or more words after a label than a title has, is text."""
    stripped = text.strip()
    is_line = len(stripped) <= len(label) + _MAX_TITLE_CHARS and "\n" not in stripped
    return stripped.rstrip(".") == label or (is_line and not stripped.endswith((".", ";", ",", "\u3002")))


def _cut_at_marks(rules: _Rules, blocks: Sequence[Block]) -> Iterator[Block]:
    """Paragraphs may hold several articles, each on a line of its own."""
    for block in blocks:
        if block.kind is BlockKind.PARAGRAPH:
            yield from cut_block(block, list(_marked_lines(rules, block)))
        else:
            yield block


def _marked_lines(rules: _Rules, block: Block) -> Iterator[int]:
    text = block.text
    starts = {line.start for line in block.lines}
    starts.update(found.end() for found in re.finditer(r"\n", text))
    for start in sorted(starts):
        before = text[max(0, start - 200) : start].rstrip()
        if not before or before[-1] not in _SENTENCE_ENDS:
            continue
        if any(not mark.only_title and mark.pattern.match(text, start) for mark in rules.marks):
            yield start


def _joins(rules: _Rules, before: Part, size: int, part: Part, tokens: int, tiny: int) -> bool:
    if all(block.kind is BlockKind.HEADING for block in before.blocks):
        above, _ = _mark_of(rules, before.blocks[-1])
        below, _ = _mark_of(rules, part.blocks[0])
        return above is None or below is None or above.rank < below.rank
    return size + tokens <= tiny and not before.alone and not part.alone


def _join(before: Part, part: Part) -> Part:
    shift = len(before.blocks)
    titles = (*before.titles, *(title._replace(at=title.at + shift) for title in part.titles))
    return part._replace(blocks=[*before.blocks, *part.blocks], titles=titles)
