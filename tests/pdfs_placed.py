"""PDF files whose texts stand at exact places, in chosen type. Points from the top left of a page of 612 by 792."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from fpdf import FPDF


class Placed(NamedTuple):
    """A text, with the left end of its base. `style` is "B" for bold."""

    x: float
    y: float
    text: str
    size: float = 10
    font: str = "Helvetica"
    style: str = ""


def write_placed(path: Path, pages: Sequence[Sequence[Placed]], outline: Sequence[str] = ()) -> Path:
    """`outline` has a title for each page that it is given for."""
    pdf = FPDF(unit="pt", format=(612, 792))
    pdf.set_auto_page_break(auto=False)
    for number, page in enumerate(pages):
        pdf.add_page()
        if number < len(outline):
            pdf.start_section(outline[number])
        for each in page:
            pdf.set_font(each.font, each.style, each.size)
            pdf.text(each.x, each.y, each.text)
    pdf.output(str(path))
    return path


def column(
    texts: Sequence[str],
    *,
    x: float = 72,
    y: float = 200,
    step: float = 12,
    size: float = 10,
    font: str = "Helvetica",
    style: str = "",
) -> Iterator[Placed]:
    """Lines below each other."""
    for number, text in enumerate(texts):
        yield Placed(x, y + step * number, text, size, font, style)


def width_of(text: str, size: float = 10) -> float:
    """In Helvetica."""
    pdf = FPDF(unit="pt")
    pdf.set_font("Helvetica", size=size)
    return float(pdf.get_string_width(text))


def prose(topic: str, lines: int) -> list[str]:
    """Lines of a paragraph that all go to about the same right edge; only the last one ends a sentence."""
    found = [
        f"line {number} tells how the {topic} was kept in order by seven patient people and" for number in range(lines)
    ]
    found[0] = found[0].capitalize()
    found[-1] = found[-1].removesuffix(" and") + "."
    return found
