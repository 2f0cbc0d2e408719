"""Formulas on a page: indices, limits, fractions and brackets that a file draws piece by piece become one line.

Told by their places: pieces that follow each other in the file, overlap in height and stand close together, where
lines of prose do neither."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from rag.parser.page_lines import Line, Span, remembered

# In sizes of type: how far apart pieces stand, and the signs of a formula, whose brackets may be drawn without letters.
_MAX_GAP = 0.5
_MAX_SIGN_GAP = 2.0
# Of the lower of two pieces that is beside the other.
_MIN_SHARED = 0.3
# Limits are set in smaller type, this near above or below their sign, and are not wide.
_SMALL = 0.85
# Between the rows of a matrix.
_MAX_ROW_GAP = 0.7
_LIMIT_GAP = 0.35
_MAX_LIMIT_WIDTH = 5.0
# Larger against the other is a letter that starts a chapter, or a title beside a note.
_MAX_RATIO = 2.2
_INDEX_GAP = 0.12
_MAX_WORD_GAP = 0.3
# Points that part two stretches of a line at the least.
_MIN_STRETCH_GAP = 8.0
# Pieces that stand on one line are no formula by themselves.
_MIN_RISE = 0.08
_MAX_RISE = 0.8
_WORD = re.compile(r"[^\W\d_]{4,}")
_MIN_PROSE_WORDS = 3
_MAX_SIGN_CHARS = 12
_CLOSING = frozenset(",;.:)]}")
# What limits stand below.
_OPERATOR = re.compile("(?:lim|max|min|sup|inf|[\u220f-\u2211\u222b-\u2233\u22c0-\u22c3])$")
_TAG = re.compile(r"[.,;]?\s*\([\w.\u2032']{1,8}\)$")
# Pieces of tall brackets, in Unicode's place for them and in that of the font Symbol, where they are no letters.
_BRACKETS = re.compile("[\u239b-\u23ad\uf8e5-\uf8fe]")
_PRIVATE = re.compile("[\uf8e5-\uf8fe\\s]+")


@remembered
def with_formulas(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines in the order of the file, with one in the place of the pieces of each formula."""
    starts = [at for at, (line, after) in enumerate(pairwise(lines)) if _may_start(line, after)]
    if not starts:
        return lines
    found: list[Line] = []
    done = 0
    for start in starts:
        if start < done:
            continue
        found += lines[done:start]
        pieces = _Pieces(lines[start])
        done = start + 1
        while done < len(lines) and pieces.takes(lines[done]):
            pieces.add(lines[done])
            done += 1
        found += pieces.as_lines()
    found += lines[done:]
    return tuple(found)


def _may_start(line: Line, after: Line) -> bool:
    """Whether the two may be pieces of one formula; most lines are told by where they end."""
    if after.top < line.bottom and after.bottom > line.top:
        return True
    return after.size < _SMALL * line.size or (not line.text.isascii() and _has_bracket(line.text))


class _Pieces:
    """Lines that may be pieces of one formula, and the box around them."""

    __slots__ = ("bottom", "has_bracket", "has_prose", "left", "lines", "main", "right", "top")

    def __init__(self, line: Line) -> None:
        self.lines = [line]
        self.left, self.right, self.top, self.bottom = line.left, line.right, line.top, line.bottom
        # Where the others are set against: the widest of the largest type.
        self.main = line
        self.has_prose: bool | None = None
        self.has_bracket = _has_bracket(line.text)

    def takes(self, line: Line) -> bool:
        shared = min(self.bottom, line.bottom) - max(self.top, line.top)
        size, main = line.size, self.main
        if shared <= 0 and size > _SMALL * main.size and not self.has_bracket:
            return False
        if not (line.count and main.count and size and main.size) or max(size, main.size) > _MAX_RATIO * min(
            size, main.size
        ):
            return False
        gap = max(line.left - self.right, self.left - line.right)
        if shared < _MIN_SHARED * min(self.bottom - self.top, line.bottom - line.top):
            return self._has_limit(line, gap, shared) or self._has_row(line, gap, shared)
        rise = abs(line.base - main.base)
        if rise <= _MIN_RISE * max(size, main.size):
            if _is_next_word(self.lines[-1], line):
                return True
            if len(self.lines) == 1:
                return False
        # The base of a line whose middle has no letter may be anywhere.
        return self._is_near(line, gap, min(rise, abs(line.bottom - main.bottom)))

    def _has_limit(self, line: Line, gap: float, shared: float) -> bool:
        size = self.main.size
        return (
            line.size <= _SMALL * size
            and gap < 0
            and -shared <= _LIMIT_GAP * size
            and line.right - line.left <= _MAX_LIMIT_WIDTH * size
            and _takes_limits(self.lines[-1].text)
        )

    def _has_row(self, line: Line, gap: float, shared: float) -> bool:
        """Whether it is a row of a matrix, or the next piece of its bracket."""
        size = self.main.size
        is_near = gap <= _MAX_SIGN_GAP * size and -shared <= _MAX_ROW_GAP * size
        return is_near and self.has_bracket and _is_sign(line) and not self._is_prose()

    def _is_near(self, line: Line, gap: float, rise: float) -> bool:
        size = self.main.size
        is_prose = _has_words(line)
        if rise > _MAX_RISE * size and (is_prose or (self._is_prose() and line.size > _SMALL * size)):
            return False  # the next line of a paragraph, or of a cell beside it
        if is_prose and self._is_prose() and gap < -_MAX_GAP * size:
            return False
        if gap <= _MAX_GAP * size:
            return True
        if is_prose or self._is_prose():
            return False
        return gap <= _MAX_SIGN_GAP * size or _TAG.match(line.text) is not None

    def _is_prose(self) -> bool:
        if self.has_prose is None:
            self.has_prose = any(_has_words(line) for line in self.lines)
        return self.has_prose

    def add(self, line: Line) -> None:
        self.lines.append(line)
        self.left, self.right = min(self.left, line.left), max(self.right, line.right)
        self.top, self.bottom = min(self.top, line.top), max(self.bottom, line.bottom)
        main = self.main
        if (round(line.size, 1), line.right - line.left) > (round(main.size, 1), main.right - main.left):
            self.main = line
        if self.has_prose is False:
            self.has_prose = None
        self.has_bracket = self.has_bracket or _has_bracket(line.text)

    def as_lines(self) -> Sequence[Line]:
        """One line, without the pieces of brackets that no letter is known for; none if there is nothing else."""
        lines, main = self.lines, self.main
        if len(lines) == 1:
            return () if _is_private(main.text) else lines
        shown = [line for line in lines if not _is_private(line.text)]
        if not shown:
            return ()
        text, starts = _joined(shown)
        whole = replace(
            main,
            text=text,
            left=self.left,
            right=self.right,
            top=self.top,
            bottom=self.bottom,
            hyphened=lines[-1].hyphened,
            spans=_spans(shown, starts),
            bold=all(line.bold for line in lines),
            first=lines[0].first,
            count=lines[-1].first + lines[-1].count - lines[0].first,
            mono=all(line.mono for line in lines),
        )
        return (whole,)


def _is_next_word(before: Line, line: Line) -> bool:
    """Whether the two are one line of text, in which a raised sign made the file's reader start anew."""
    is_alike = abs(line.size - before.size) <= _MIN_RISE * before.size and abs(line.base - before.base) < 1
    return is_alike and 0 <= line.left - before.right <= _MAX_WORD_GAP * line.size


def _has_words(line: Line) -> bool:
    return len(_WORD.findall(line.text)) >= _MIN_PROSE_WORDS


def _is_sign(line: Line) -> bool:
    return len(line.text) <= _MAX_SIGN_CHARS and not _WORD.search(line.text)


def _takes_limits(text: str) -> bool:
    """Whether it ends with the name of an operator, or a single sign."""
    if len(text) <= _MAX_SIGN_CHARS and len(text.rsplit(None, 1)[-1]) <= 2:
        return True
    return len(text) <= 3 or _OPERATOR.search(text) is not None


def _has_bracket(text: str) -> bool:
    return not text.isascii() and _BRACKETS.search(text) is not None


def _is_private(text: str) -> bool:
    return not text.isascii() and _PRIVATE.fullmatch(text) is not None


def _joined(lines: Sequence[Line]) -> tuple[str, list[int]]:
    """The text of the pieces, and where in it each starts. An index stands at its letter; else there is a space."""
    text, starts = lines[0].text, [0]
    for before, line in pairwise(lines):
        text += ("-" if before.hyphened else "") + ("" if _is_index(before, line) or line.text[0] in _CLOSING else " ")
        starts.append(len(text))
        text += line.text
    return text, starts


def _spans(lines: Sequence[Line], starts: Sequence[int]) -> tuple[Span, ...]:
    """The stretches between wide gaps; none where the text does not go from left to right."""
    if not any(line.spans for line in lines):
        return ()
    found: list[Span] = []
    for line, at in zip(lines, starts, strict=True):
        gap = max(line.size, _MIN_STRETCH_GAP)
        for left, right, start in line.spans or ((line.left, line.right, 0),):
            if not found or left > found[-1].right + gap:
                found.append(Span(left, right, at + start))
            elif right < found[-1].left - gap:
                return ()
            else:
                last = found[-1]
                found[-1] = Span(min(left, last.left), max(right, last.right), last.start)
    return tuple(found) if len(found) > 1 else ()


def _is_index(before: Line, line: Line) -> bool:
    """Whether it belongs to the letter before it; two numbers must not become one."""
    if before.text.endswith("\u221a"):
        return True
    is_small = line.size <= _SMALL * before.size and 0 <= line.left - before.right < _INDEX_GAP * before.size
    return is_small and not (before.text[-1:].isdecimal() and line.text[:1].isdecimal())
