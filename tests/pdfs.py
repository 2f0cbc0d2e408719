"""PDF files for tests, made on the spot: what stands on which page is known to the letter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from fpdf import FPDF
from pypdfium2 import PdfDocument

_TOPICS = ("harvest", "lighthouse", "clockwork", "glacier", "orchard", "telegraph", "volcano", "archive")

CATALOG = b"<< /Type /Catalog /Pages 2 0 R >>"
HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def pdf_of(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, numbered from 1, with a right table of their places. The first one is the catalog."""
    out, places = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start, count = len(out), len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % count
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (count, start)
    return bytes(out)


def one_page(
    content: bytes, *, box: bytes = b"0 0 612 792", font: bytes = HELVETICA, page: bytes = b"", stream: bytes = b""
) -> bytes:
    """A page with these drawing commands and one font, /F1; `page` and `stream` go into these dictionaries."""
    return pdf_of(
        [
            CATALOG,
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [%b] /Contents 4 0 R %b" % (box, page)
            + b" /Resources << /Font << /F1 5 0 R >> >> >>",
            b"<< /Length %d %b >>\nstream\n%b\nendstream" % (len(content), stream, content),
            font,
        ]
    )


# A document that opens and has no page in it.
NO_PAGES = pdf_of([CATALOG, b"<< /Type /Pages /Kids [] /Count 0 >>"])


def sentence(page: int, number: int) -> str:
    """Sentence `number` of page `page`, both from 1: no two are the same."""
    topic = _TOPICS[(page * 3 + number) % len(_TOPICS)]
    return f"Remark {number} on sheet {page} tells how the {topic} was kept by seven patient people."


def write_pages(
    path: Path, pages: int, sentences: int = 12, *, title: str = "", heading: str = "", footer: bool = False
) -> Path:
    """`sentences` on each page, three a paragraph; `heading` with the page's number above them in large type."""
    pdf = _new(title)
    for page in range(1, pages + 1):
        pdf.add_page()
        if heading:
            _line(pdf, f"{heading} {page}", size=18, height=14)
        for first in range(1, sentences + 1, 3):
            last = min(first + 3, sentences + 1)
            pdf.multi_cell(0, 5, " ".join(sentence(page, number) for number in range(first, last)))
            pdf.ln(4)
        if footer:
            pdf.set_y(-15)
            pdf.cell(0, 5, f"The quarterly report - {page}", align="C")
    return _write(pdf, path)


def write_long(path: Path, times: int, pages: int = 50) -> Path:
    """The same pages over and over: as long to read as others, and made at once."""
    write_pages(path, pages)
    with PdfDocument(path) as short, PdfDocument.new() as long:
        for _ in range(times):
            long.import_pages(short)
        long.save(path.with_suffix(".long"))
    return path.with_suffix(".long").rename(path)


def write_outlined(path: Path, chapters: Sequence[str], pages_each: int = 2) -> Path:
    """A chapter of `pages_each` pages for each title, which stands on its first page and in the outline."""
    pdf = _new()
    page = 0
    for number, title in enumerate(chapters, start=1):
        for part in range(pages_each):
            pdf.add_page()
            page += 1
            if part == 0:
                pdf.start_section(title)
                _line(pdf, f"{number}. {title}", size=16, height=12)
            pdf.multi_cell(0, 5, " ".join(sentence(page, number) for number in range(1, 7)))
    return _write(pdf, path)


def write_columns(path: Path, left: str, right: str, title: str = "") -> Path:
    """Two columns, drawn line by line across the page, as many programs do; `title` goes across both."""
    pdf = _new()
    pdf.add_page()
    if title:
        _line(pdf, title, size=18, height=14)
    top = pdf.get_y()
    columns = (_wrapped(pdf, left, 88), _wrapped(pdf, right, 88))
    for row in range(max(len(lines) for lines in columns)):
        for x, lines in zip((10, 110), columns, strict=True):
            if row < len(lines):
                pdf.set_xy(x, top + 5 * row)
                pdf.cell(88, 5, lines[row])
    return _write(pdf, path)


def write_lines(path: Path, pages: Sequence[Sequence[str]], *, size: float = 11, height: float = 5) -> Path:
    """Exactly these lines on these pages."""
    pdf = _new()
    for lines in pages:
        pdf.add_page()
        for line in lines:
            _line(pdf, line, size=size, height=height)
    return _write(pdf, path)


def write_encrypted(path: Path, password: str = "sesame") -> Path:
    pdf = _new()
    pdf.set_encryption(owner_password="owner", user_password=password)
    pdf.add_page()
    pdf.cell(0, 5, "Nobody reads this without the password.")
    return _write(pdf, path)


def write_truncated(path: Path, keep: float) -> Path:
    """The first part of a good file: `keep` of its bytes."""
    data = write_pages(path, 6).read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    return path


def write_without_page(path: Path, pages: int, missing: int) -> Path:
    """Pages of three sentences, of which page `missing`, from 1, is an object that holds nothing."""
    data = write_pages(path, pages, sentences=3).read_bytes()
    page = list(re.finditer(rb"<<[^<>]*/Type /Page\n[^<>]*>>", data))[missing - 1]
    path.write_bytes(data[: page.start()] + b"null".ljust(page.end() - page.start()) + data[page.end() :])
    return path


def write_printed(path: Path, pages: int, gaps: Sequence[int]) -> Path:
    """As a browser prints: a small line at the top, and one at the bottom that a gap parts on the pages `gaps`."""
    pdf = _new()
    for page in range(1, pages + 1):
        pdf.add_page()
        pdf.set_xy(10, 5)
        _line(pdf, "11/16/26, 6:50 AM The handbook", size=8, height=4)
        for number in range(1, 55 if page in gaps else 57):
            _line(pdf, sentence(page, number), size=11, height=5)
        pdf.set_xy(10, 290)
        _line(pdf, f"https://example.org/handbook {page}/{pages}", size=11, height=4)
    return _write(pdf, path)


def _new(title: str = "") -> FPDF:
    pdf = FPDF()
    pdf.set_auto_page_break(auto=False)
    pdf.set_font("Helvetica", size=11)
    if title:
        pdf.set_title(title)
        pdf.set_author("A. Writer")
    return pdf


def _line(pdf: FPDF, text: str, *, size: float, height: float) -> None:
    pdf.set_font_size(size)
    pdf.cell(0, height, text, new_x="LMARGIN", new_y="NEXT")
    pdf.set_font_size(11)


def _wrapped(pdf: FPDF, text: str, width: float) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if pdf.get_string_width(longer) > width - 2:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _write(pdf: FPDF, path: Path) -> Path:
    pdf.output(str(path))
    return path


def write_table(path: Path, rows: Sequence[Sequence[str]], *, ruled: bool = True, size: float = 10) -> Path:
    """A table between two paragraphs, with rules around all of its cells or without any."""
    pdf = _new()
    pdf.add_page()
    pdf.multi_cell(0, 5, " ".join(sentence(1, number) for number in range(1, 4)))
    pdf.ln(4)
    pdf.set_font_size(size)
    with pdf.table(borders_layout="ALL" if ruled else "NONE", line_height=6) as table:
        for row in rows:
            table.row(row)
    pdf.set_font_size(11)
    pdf.ln(4)
    pdf.multi_cell(0, 5, " ".join(sentence(2, number) for number in range(1, 4)))
    return _write(pdf, path)


def write_raw(
    path: Path,
    contents: Sequence[bytes],
    *,
    resources: bytes = b"",
    page: bytes = b"",
    catalog: bytes = b"",
    more: bytes = b"",
) -> Path:
    """A page for each of `contents`, which are the drawing commands themselves; /F1 is Helvetica.

    `resources`, `page` and `catalog` go into these dictionaries, and `more` are further objects, from number 4 on."""
    first = 100
    kids = b" ".join(b"%d 0 R" % (first + 2 * number) for number in range(len(contents)))
    box = b"" if b"/MediaBox" in page else b"/MediaBox [0 0 612 792]"
    parts = [
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R " + catalog + b" >>\nendobj\n",
        b"2 0 obj\n<< /Type /Pages /Kids [%s] /Count %d >>\nendobj\n" % (kids, len(contents)),
        b"3 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\n",
        more,
    ]
    for number, content in enumerate(contents):
        at = first + 2 * number
        parts.append(
            b"%d 0 obj\n<< /Type /Page /Parent 2 0 R %s %s /Contents %d 0 R" % (at, box, page, at + 1)
            + b" /Resources << /Font << /F1 3 0 R >> %s >> >>\nendobj\n" % resources
        )
        parts.append(b"%d 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\nendobj\n" % (at + 1, len(content), content))
    # Without a table of its objects: every reader then looks for them itself.
    path.write_bytes(b"".join(parts) + b"trailer\n<< /Size %d /Root 1 0 R >>\n%%%%EOF\n" % (first + 2 * len(contents)))
    return path
