"""The wide gaps in a line of a PDF page: the stretches between them, and the words that these start with."""

from __future__ import annotations

from functools import partial
from math import inf

from rag.parser.layout import Line, Span, clamp
from rag.parser.pdf_measure import Stretch
from rag.parser.pdf_places import Places

# At half the cost of calling the class.
_to_span = partial(tuple.__new__, Span)


class SpanReader:
    """Of one page."""

    def __init__(self, width: float, places: Places) -> None:
        self._width, self._places = width, places

    def within_piece(self, shown: str, first: int, count: int, gap: float) -> tuple[Span, ...]:
        """The stretches of a line that is drawn in one piece, between wide gaps; none if it has no such gap."""
        line = Line(shown, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, first=first, count=count)
        spans: list[Span] = []
        at = 0
        for text, left, _, _, right in self._places.words(line):
            at = shown.find(text, at)
            if at < 0 or (spans and left < spans[-1].left):
                return ()
            if spans and left - spans[-1].right <= gap:
                spans[-1] = spans[-1]._replace(right=right)
            else:
                spans.append(self._span(left, right, at))
            at += len(text)
        return tuple(spans) if len(spans) > 1 else ()

    def spans(self, stretches: list[Stretch], text: str, shown: str, start: int, gap: float) -> tuple[Span, ...]:
        """The stretches with the words that they start with; none if those are not found."""
        lead = text.find(shown)
        if lead < 0:
            return ()
        start += lead
        all_ink = sum([right - left for left, right in stretches])
        letters_a_point = len(shown) / all_ink if 0 < all_ink < inf else 0.0
        left, right = stretches[0]
        spans, at, ink = [self._span(left, right, 0)], 0, right - left
        left_of, near = self._places.left, gap / 5
        for left, right in stretches[1:]:
            likely = int(ink * letters_a_point)
            at = _word_near(shown, likely if likely > at else at)
            # Mostly it is this one.
            if not at or not -near <= (edge := left_of(start + at)) - left <= near:
                at = at and self._first_word(shown, start, left, gap, at, edge)
                if not at:
                    return ()
            spans.append(self._span(left, right, at))
            ink += right - left
        return tuple(spans)

    def _span(self, left: float, right: float, at: int) -> Span:
        width = self._width
        if not 0 <= left <= right <= width:
            left, right = clamp(left, width), clamp(right, width)
        return _to_span((left, right, at))

    def _first_word(self, shown: str, start: int, left: float, gap: float, at: int, edge: float) -> int:
        """Where the word at a stretch's left edge starts, looked for from the one at `at` on, whose own edge is given;
        0 if it is not found.

        Words of a line stand one after the other: it is the first that is not left of the stretch."""
        left_of, least = self._places.left, left - gap / 2
        while edge < least:
            at = _word_from(shown, at)
            if not at:
                return 0
            edge = left_of(start + at)
        while (before := _word_before(shown, at)) and left_of(start + before) >= least:
            at = before
        return at


def _word_near(shown: str, likely: int) -> int:
    """Where the word starts that is nearest to a place; 0 for none but the first."""
    at, before = shown.find(" ", likely) + 1, shown.rfind(" ", 0, likely) + 1
    if not at or likely - before < at - likely:
        at = before
    if not at or shown[at].isspace():
        at = _word_from(shown, at) or _word_before(shown, len(shown))
    return at


def _word_from(text: str, at: int) -> int:
    """Where the next word behind a place starts; 0 for none."""
    at = text.find(" ", at) + 1
    while at and text[at].isspace():
        at = text.find(" ", at) + 1
    return at


def _word_before(text: str, at: int) -> int:
    """Where the last word before the one at a place starts, except the first of the text; 0 for none."""
    at = text.rfind(" ", 0, at - 1) + 1
    while at and text[at].isspace():
        at = text.rfind(" ", 0, at - 1) + 1
    return at
