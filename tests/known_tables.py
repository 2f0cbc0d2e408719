"""PDF tables without rules of which every cell is known: cells of several words and lines, numbers that end below each
other, empty cells. No two are set alike."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import zip_longest

from fpdf import FPDF

Cells = list[list[str]]

_FONTS = ("Times", "Helvetica")
_PAGE_WIDTH = 190.0
_LEFT = 10.0
_EMPTY = 0.12
# Below it there is room for one row, and for a paragraph after the table.
_LAST_ROW = 215.0


class _Column(Enum):
    NAME = auto()
    TEXT = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class Style:
    """How a table is set. Millimetres; a row's `gap` is between it and the next, besides that between its lines."""

    font: str
    size: float
    leading: float
    gap: float
    gutter: float
    bold_header: bool
    capitals: bool
    # Programs draw either a cell after the other, or a line over all cells after the other.
    by_line: bool


def draw_table(pdf: FPDF, seed: int, words: Sequence[str], *, wraps: bool) -> Cells:
    """Draw a table at the place where the page is, and move below it. With `wraps`, texts take several lines."""
    dice = random.Random(seed)
    style = _style(dice, wraps=wraps)
    kinds = _kinds(dice)
    widths = _widths(dice, kinds, style.gutter, wraps=wraps)
    rows = [_header(dice, kinds, words), *(_row(dice, kinds, words, style, wraps=wraps) for _ in range(_count(dice)))]
    cells: Cells = []
    for number, row in enumerate(rows):
        if pdf.get_y() > _LAST_ROW:
            break
        pdf.set_font(style.font, "B" if number == 0 and style.bold_header else "", style.size)
        lines = [_wrapped(pdf, text, width) for text, width in zip(row, widths, strict=True)]
        if not wraps:
            lines = [texts[:1] for texts in lines]
        cells.append([" ".join(texts) for texts in lines])
        _draw_row(pdf, kinds, widths, lines, style)
    pdf.set_y(pdf.get_y() + 6)
    return cells


def _style(dice: random.Random, *, wraps: bool) -> Style:
    size = dice.choice((8.0, 9.0, 10.0, 11.0))
    leading = size * 0.3528 * dice.choice((1.15, 1.2, 1.3))
    return Style(
        font=dice.choice(_FONTS),
        size=size,
        leading=leading,
        gap=dice.choice((0.0, 0.2, 0.4, 0.7)) * leading if wraps else dice.choice((0.0, 0.3)) * leading,
        gutter=dice.choice((2.5, 3.5, 5.0, 7.0)),
        bold_header=dice.random() < 0.5,
        capitals=dice.random() < 0.7,
        by_line=dice.random() < 0.3,
    )


def _count(dice: random.Random) -> int:
    return dice.randint(4, 9)


def _kinds(dice: random.Random) -> list[_Column]:
    count = dice.randint(3, 7)
    texts = 1 if count < 5 else dice.randint(1, 2)
    rest = [dice.choice((_Column.NUMBER, _Column.NUMBER, _Column.NAME)) for _ in range(count - texts - 1)]
    kinds = [*([_Column.TEXT] * texts), *rest]
    dice.shuffle(kinds)
    first = _Column.TEXT if dice.random() < 0.2 else _Column.NAME
    return [first, *kinds]


def _widths(dice: random.Random, kinds: Sequence[_Column], gutter: float, *, wraps: bool) -> list[float]:
    fixed = {_Column.NAME: dice.uniform(18, 26), _Column.NUMBER: dice.uniform(13, 17)}
    texts = kinds.count(_Column.TEXT)
    taken = sum(fixed.get(kind, 0.0) for kind in kinds) + gutter * (len(kinds) - 1)
    each = min((_PAGE_WIDTH - taken) / texts, dice.uniform(38, 55) if wraps else 80.0)
    return [fixed.get(kind, each) for kind in kinds]


def _header(dice: random.Random, kinds: Sequence[_Column], words: Sequence[str]) -> list[str]:
    return [
        dice.choice(words).capitalize() + (" " + dice.choice(words) if kind is _Column.TEXT else "") for kind in kinds
    ]


def _row(
    dice: random.Random, kinds: Sequence[_Column], words: Sequence[str], style: Style, *, wraps: bool
) -> list[str]:
    row = [_cell(dice, kind, words, wraps=wraps) for kind in kinds]
    row = [text if at == 0 or dice.random() >= _EMPTY else "" for at, text in enumerate(row)]
    return [text[:1].upper() + text[1:] for text in row] if style.capitals else row


def _cell(dice: random.Random, kind: _Column, words: Sequence[str], *, wraps: bool) -> str:
    if kind is _Column.NUMBER:
        return dice.choice((f"{dice.randint(1, 99_999):,}", f"{dice.uniform(0, 99):.1f}", f"{dice.randint(0, 100)} %"))
    most = 2 if kind is _Column.NAME else 14 if wraps else 5
    return " ".join(dice.choice(words) for _ in range(dice.randint(1 if kind is _Column.NAME else 2, most)))


def _wrapped(pdf: FPDF, text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and pdf.get_string_width(longer) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _draw_row(
    pdf: FPDF, kinds: Sequence[_Column], widths: Sequence[float], lines: Sequence[Sequence[str]], style: Style
) -> None:
    top = pdf.get_y()
    lefts = [_LEFT + sum(widths[:at]) + style.gutter * at for at in range(len(widths))]
    placed = [
        [(left, at, width, kind, text) for at, text in enumerate(texts)]
        for left, width, kind, texts in zip(lefts, widths, kinds, lines, strict=True)
    ]
    ordered = zip_longest(*placed) if style.by_line else placed
    for left, at, width, kind, text in (each for group in ordered for each in group if each):
        if text:
            space = width - pdf.get_string_width(text) if kind is _Column.NUMBER else 0.0
            pdf.text(left + space, top + style.leading * (at + 0.8), text)
    pdf.set_y(top + style.leading * max(len(texts) for texts in lines) + style.gap)
