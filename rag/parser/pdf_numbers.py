"""Page numbers as they are printed: alone, as in "- 3 -" or "Page 3 of 7", or at an end of a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

# What may stand around a number, and is no part of a formula or of code.
_AROUND = r"[\s.|~()\[\]\u00b7\u2022\u2010-\u2015\u2212-]*"
_OF = r"(?:\s*(?:/|of|von|de|sur|di|van|av|\u043e\u0442|\u0438\u0437)\s*\d{1,4})?"
_LONE = re.compile(
    rf"{_AROUND}(?:(?:page|pg|p|seite|s|p\u00e1gina|pagina|strona|sida|side|\u7b2c)\.?\s*)?\d{{1,3}}{_OF}\s*[\u9875\u9801]?{_AROUND}",
    re.IGNORECASE,
)
_ROMAN = re.compile(rf"{_AROUND}(?=[ivxlc])(?:xc|xl|l?x{{0,3}})(?:ix|iv|v?i{{0,3}}){_AROUND}")
_MAX_DIGITS = 4
_DIGIT = re.compile(r"\d")
_LEADING = re.compile(rf"{_AROUND}(\d{{1,4}})\s+\S")
_ENDING = re.compile(rf"\S\s+(\d{{1,4}}){_OF}{_AROUND}$", re.IGNORECASE)


def is_lone_number(text: str) -> bool:
    return len(text) <= 24 and (_LONE.fullmatch(text) is not None or _ROMAN.fullmatch(text) is not None)


def leading_number(text: str) -> int | None:
    found = _LEADING.match(text)
    return int(found[1]) if found else None


def ending_number(text: str) -> int | None:
    # Most lines have no number, and to look for one at the end takes long.
    found = _ENDING.search(text) if _DIGIT.search(text) else None
    return int(found[1]) if found else None


def _numbers(text: str) -> list[int]:
    """The numbers that a line starts or ends with, or is."""
    alone = int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None
    return [number for number in (leading_number(text), ending_number(text), alone) if number is not None]


def number_offset(pages: Iterable[tuple[int, Iterable[str]]], least: float) -> int | None:
    """By how much the printed numbers are higher than those of the pages, each given with the lines at its edges; None
    if fewer than `least` pages agree."""
    uses: Counter[int] = Counter()
    for page, texts in pages:
        uses.update({number - page for text in texts for number in _numbers(text)})
    offset, count = max(uses.items(), key=lambda use: (use[1], -abs(use[0]), use[0]), default=(0, 0))
    return offset if count >= max(least, 1) else None
