"""What stands on a PDF page besides its own text: what was filled into the fields of a form, text notes and stamps.

pdfium reads the page's own text only, so these are made a part of the page, in the memory of this process alone."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise

import pypdfium2.raw as pdfium_c

from rag.parser import pdf_native as native
from rag.parser.layout import Line
from rag.parser.pdf_frame import Rect
from rag.parser.pdf_lines import LineReader

# Of one page: beyond these nothing is looked for.
_MAX_ANNOTATIONS = 2_000
_SHOWN = (pdfium_c.FPDF_ANNOT_WIDGET, pdfium_c.FPDF_ANNOT_FREETEXT, pdfium_c.FPDF_ANNOT_STAMP)
# Where pdfium puts its answers: one process reads one page at a time.
_next, _link = ctypes.c_int(), ctypes.c_void_p()
_next_at, _link_at = ctypes.pointer(_next), ctypes.pointer(_link)
# Points that the bases of a field and of its label may differ by, in sizes of the type.
_SAME_LINE = 0.5


def has_fields(page: native.Handle) -> bool:
    """Whether fields, text notes or stamps are on the page."""
    count = min(native.count_annotations(page), _MAX_ANNOTATIONS)
    # Nearly all annotations are links: these are told first.
    return count > 0 and not _are_links(page, count) and any(_is_shown(page, index) for index in range(count))


def _are_links(page: native.Handle, count: int) -> bool:
    """Whether the first `count` annotations are all links."""
    _next.value = 0
    return all(native.next_link(page, _next_at, _link_at) and _next.value == at for at in range(1, count + 1))


def _is_shown(page: native.Handle, index: int) -> bool:
    annotation = native.get_annotation(page, index)
    if not annotation:
        return False
    kind = native.annotation_subtype(annotation)
    native.close_annotation(annotation)
    return kind in _SHOWN


def merge_fields(page: native.Handle) -> None:
    """Make what the fields and notes show a part of the page, which then has to be loaded again."""
    if any(_lacks_looks(page, index) for index in range(min(native.count_annotations(page), _MAX_ANNOTATIONS))):
        _draw(page)
    native.flatten(page, pdfium_c.FLAT_NORMALDISPLAY)


def _lacks_looks(page: native.Handle, index: int) -> bool:
    annotation = native.get_annotation(page, index)
    if not annotation:
        return False
    lacks = not native.annotation_has(annotation, b"AP\0")
    native.close_annotation(annotation)
    return lacks


def _draw(page: native.Handle) -> None:
    """Some programs fill in values and leave their looks to the reader: pdfium makes them up when it draws the page."""
    bitmap = pdfium_c.FPDFBitmap_Create(1, 1, 0)
    try:
        native.render(bitmap, page, 0, 0, 1, 1, 0, pdfium_c.FPDF_ANNOT)
    finally:
        pdfium_c.FPDFBitmap_Destroy(bitmap)


def with_fields(lines: Sequence[Line], own_chars: int, reader: LineReader, text: str) -> list[Line]:
    """The lines with those of the fields, which the file has behind its `own_chars`, where a person reads them."""
    placed: list[Line] = []
    fields: list[Line] = []
    rects = reader.rects
    for line in lines:
        if line.first + line.count <= own_chars:
            placed.append(line)
            continue
        for part in _parted(line, own_chars, reader, text):
            (fields if part.first >= own_chars else placed).append(part)
    # Parts of lines that were counted before.
    reader.rects = rects
    for field in sorted(fields, key=lambda each: (each.base, each.left)):
        placed.insert(_position(field, placed), field)
    return placed


def _parted(line: Line, own_chars: int, reader: LineReader, text: str) -> list[Line]:
    """The parts of a line that stand in different fields: pdfium takes what is filled into them for one line."""
    if not reader.places.is_plain:
        return [line]
    end = line.first + line.count
    starts = [line.first]
    last: Rect | None = None
    for index in range(line.first, end):
        if text[index].isspace():
            continue
        box = reader.places.box(index)
        if last is not None and (index == own_chars or not _is_next(last, box)):
            starts.append(index)
        last = box
    if len(starts) == 1:
        return [line]
    parts = [(start, text[start:stop].rstrip()) for start, stop in pairwise([*starts, end])]
    return [reader.read(part, part, start, len(part), False) for start, part in parts]


def _is_next(last: Rect, box: Rect) -> bool:
    """Whether a letter stands in the same line as the last one."""
    height = max(1.0, min(last[3] - last[1], box[3] - box[1]))
    shared = min(last[3], box[3]) - max(last[1], box[1])
    return 2 * shared > height and -height < box[0] - last[2] < 2 * height


def _position(field: Line, lines: Sequence[Line]) -> int:
    """Behind what stands left of the field at its height; else before the first line below it."""
    near = _SAME_LINE * max(field.size, 1.0)
    labels = [
        at for at, line in enumerate(lines) if abs(line.base - field.base) <= near and line.right <= field.left + near
    ]
    if labels:
        return max(labels, key=lambda at: lines[at].right) + 1
    return next((at for at, line in enumerate(lines) if line.base > field.base + near), len(lines))
