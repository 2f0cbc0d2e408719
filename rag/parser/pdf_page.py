"""One PDF page: its lines, and its tables and figures in their places, by the first of three ways that can.

pdfium reads nearly all. Where it fails, or the fonts do not say what their glyphs mean, pdfminer is asked; a page that
is a picture of text is recognised."""

from __future__ import annotations

from pathlib import Path

import pypdfium2 as pdfium

from common.errors import UnreadableFile
from rag.parser import pdf_native as native
from rag.parser.layout import Line, Page
from rag.parser.pdf_aligned import find_aligned
from rag.parser.pdf_fields import has_fields, merge_fields, with_fields
from rag.parser.pdf_figures import find_figures, has_picture, to_figure
from rag.parser.pdf_frame import Frame
from rag.parser.pdf_grid import find_grids
from rag.parser.pdf_letters import has_noise, is_unusable, with_symbols
from rag.parser.pdf_lines import LineReader, read_lines, read_text
from rag.parser.pdf_objects import MAX_TEXTS, Drawn, has_too_many_texts, read_drawn
from rag.parser.pdf_places import Places
from rag.parser.pdf_plots import find_plots
from rag.parser.pdf_scan import read_scan
from rag.parser.pdf_tables import read_grid


def read_page(
    document: pdfium.PdfDocument, path: Path, index: int, *, ocr: bool = True, merged: dict[int, int] | None = None
) -> Page:
    """Page `index`, counted from 0. Raises UnreadableFile where no library can read it.

    With `ocr` off, a page that is a picture of text is a figure. `merged` keeps of the document's pages whose fields
    are already a part of them how many characters they had before."""
    merged = {} if merged is None else merged
    page = native.load_page(document.raw, index)
    textpage = None
    try:
        if page and has_fields(page):
            _refuse_too_many_texts(page, index)
            merged[index] = _count_chars(page)
            merge_fields(page)
            native.close_page(page)
            page = native.load_page(document.raw, index)
        if page:
            _refuse_too_many_texts(page, index)
        textpage = native.load_text(page) if page else None
        if not textpage:
            return _fallback(document, path, index)
        return _Reading(document, path, index, page, textpage, merged.get(index), ocr=ocr).read()
    finally:
        if textpage:
            native.close_text(textpage)
        if page:
            native.close_page(page)


def _refuse_too_many_texts(page: native.Handle, index: int) -> None:
    if has_too_many_texts(page):
        raise UnreadableFile(f"page {index + 1} has more than {MAX_TEXTS:,} pieces of text, too many to be read")


def _count_chars(page: native.Handle) -> int:
    textpage = native.load_text(page)
    if not textpage:
        return 0
    try:
        return int(native.count_chars(textpage))
    finally:
        native.close_text(textpage)


def _fallback(document: pdfium.PdfDocument, path: Path, index: int) -> Page:
    from rag.parser import pdf_fallback  # a fifth of a second of imports that few files need

    return pdf_fallback.read_page(path, index, len(document))


class _Reading:
    """A page that pdfium has opened."""

    def __init__(
        self,
        document: pdfium.PdfDocument,
        path: Path,
        index: int,
        page: native.Handle,
        textpage: native.Handle,
        own_chars: int | None,
        *,
        ocr: bool,
    ) -> None:
        self._document, self._path, self._index = document, path, index
        self._page, self._textpage, self._ocr = page, textpage, ocr
        self._number = index + 1
        # Of the text before what is filled into fields; None on a page without these.
        self._own_chars = own_chars
        self._frame = Frame(page)

    def read(self) -> Page:
        text = read_text(self._textpage)
        is_noisy = has_noise(text)
        if is_noisy:
            text = with_symbols(text)
        if is_noisy and is_unusable(text):
            return self._undecodable(text)
        reader = LineReader(self._textpage, self._frame, text)
        found = read_lines(reader, text, is_noisy=is_noisy)
        if reader.unseen:
            # Never all of a page: its size is then wrong.
            found = [line for line in found if line.first not in reader.unseen] or found
        if self._own_chars is not None:
            found = with_fields(found, self._own_chars, reader, text)
        lines = tuple(found)
        drawn = read_drawn(self._page, self._textpage, self._frame, reader.rects)
        if drawn is None:
            return self._with_aligned(lines, [], None, reader.places)
        if not lines and has_picture(drawn, self._frame.width, self._frame.height):
            return self._scanned(drawn)
        tables: list[Line] = []
        for grid in find_grids(drawn.across, drawn.down):
            table = read_grid(grid, lines, reader.places, self._number)
            if table is not None:
                tables.append(table.item)
                lines = table.lines
        return self._with_aligned(lines, tables, drawn, reader.places)

    def _with_aligned(
        self, lines: tuple[Line, ...], tables: list[Line], drawn: Drawn | None, letters: Places | None
    ) -> Page:
        width, height = self._frame.width, self._frame.height
        items = tables
        if drawn is not None:
            for plot in find_plots(drawn, lines, width, height, self._number, tables, letters):
                items = [*items, plot.item]
                lines = plot.lines
        for found in find_aligned(lines, self._number, letters):
            items = [*items, found.item]
            lines = found.lines
        if drawn is None:
            return Page(self._number, width, height, lines, tuple(items))
        figures = find_figures(drawn, width, height, self._number, items, lines)
        rules = tuple([(start, end, at) for at, start, end in drawn.across])
        return Page(self._number, width, height, lines, (*items, *figures), rules)

    def _scanned(self, drawn: Drawn) -> Page:
        """The words of a picture; the picture itself where there are none."""
        width, height = self._frame.width, self._frame.height
        lines = read_scan(self._document, self._index, self._frame) if self._ocr else []
        if lines:
            return self._with_aligned(tuple(lines), [], None, None)
        figures = tuple(find_figures(drawn, width, height, self._number, ()))
        figures = figures or (to_figure((0.0, 0.0, width, height), self._number),)
        return Page(self._number, width, height, (), figures, is_whole=self._ocr)

    def _undecodable(self, text: str) -> Page:
        """What pdfminer makes of the glyphs, else what is seen of them, else what pdfium made of them."""
        try:
            page = _fallback(self._document, self._path, self._index)
        except UnreadableFile:
            page = None
        if page is not None and page.lines and not is_unusable("\n".join(line.text for line in page.lines)):
            return page
        found = read_scan(self._document, self._index, self._frame) if self._ocr else []
        lines = found or read_lines(LineReader(self._textpage, self._frame, text), text, is_noisy=True)
        return Page(self._number, self._frame.width, self._frame.height, tuple(lines), is_whole=self._ocr)
