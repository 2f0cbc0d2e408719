"""PDF files of running text, in which paragraphs run over the edges of pages as they come."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fpdf import FPDF

_WORDS = (
    *("harbour", "of", "the", "lamp", "keeper", "and", "slowly", "a", "windward", "stair", "was", "counted", "tides"),
    *("by", "brass", "instruments", "that", "nobody", "had", "polished", "since", "in", "those", "years", "letters"),
)


def paragraph(number: int, words: int) -> str:
    """One sentence of so many words, no two paragraphs the same."""
    text = " ".join(_WORDS[(number * 7 + place * 5 + place // 9) % len(_WORDS)] for place in range(words - 2))
    return f"Remark {number} {text}."


def write_prose(path: Path, paragraphs: Sequence[str], *, header: str = "", height: float = 60, font: str = "") -> Path:
    """The paragraphs one after the other on pages of `height` mm, with `header` and the page's number above."""
    pdf = _Prose(header, height)
    if font:
        pdf.add_font("other", fname=font)
    pdf.set_font("other" if font else "Helvetica", size=10)
    pdf.add_page()
    for text in paragraphs:
        pdf.multi_cell(0, 4.2, text, new_x="LMARGIN", new_y="NEXT")
        if pdf.y + 2 < height - 8:
            pdf.ln(2)
    pdf.output(str(path))
    return path


class _Prose(FPDF):
    def __init__(self, header: str, height: float) -> None:
        super().__init__(format=(120, height))
        self._header = header
        self.set_margins(10, 10)
        self.set_auto_page_break(auto=True, margin=8)

    def header(self) -> None:
        if self._header:
            self.set_y(4)
            # Another one on every page, so that no profile knows it as repeated.
            self.cell(0, 4, f"{self._header} {'abcdefghijklmnopqrstuvwxyz'[self.page_no() % 26] * 3}")
            self.set_y(14)
