"""What is drawn on a PDF page besides its text: rules, drawings and pictures, with their places.

Asking costs a call into C for each object, so pages that have nothing but text are told by a count first."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from math import isfinite
from struct import Struct

import pypdfium2.raw as pdfium_c

from rag.parser import pdf_native as native
from rag.parser.pdf_frame import Frame, Rect
from rag.parser.pdf_paths import SAME, Lines, Matrix, PathReader, apply, joined, matrix_of

# pdfium takes time with the square of these to put them in order: seconds for as many, and hours for a million.
MAX_TEXTS = 30_000
# A page with more is a map or a plan: what is drawn beyond them is left out.
MAX_OBJECTS = 20_000
MAX_DEPTH = 5
# A page with no more may be made of forms, which are looked into.
_FEW_OBJECTS = 8

# Points: what is thinner is a rule; what is shorter is a part of a letter or a drawing.
_MAX_RULE = 3.0
_MIN_RULE = 6.0
# Level and upright strokes that go on from each other: as many are a curve in steps.
_MIN_STEPS = 10
_GOES_ON = 0.9

# Where pdfium puts its answers: one process reads one page at a time.
_bounds = (ctypes.c_float * 4)()
_bounds_at = native.places(_bounds)
_four = Struct("4f").unpack_from
_flags = (ctypes.c_int * 2)()
_flags_at = native.places(_flags)
_two = Struct("2i").unpack_from


# A straight line: how far off it is across its way, and from where to where along it. A page may have thousands.
Rule = tuple[float, float, float]


@dataclass(slots=True)
class Drawn:
    across: list[Rule] = field(default_factory=list)
    down: list[Rule] = field(default_factory=list)
    pictures: list[Rect] = field(default_factory=list)
    drawings: list[Rect] = field(default_factory=list)
    # How many segments each of the drawings has; rectangles that are filled.
    segments: list[int] = field(default_factory=list)
    fills: list[Rect] = field(default_factory=list)


def read_drawn(page: native.Handle, textpage: native.Handle, frame: Frame, rects: int) -> Drawn | None:
    """What is drawn on the page, in whose lines so many rectangles were found; None if it is all text."""
    count = native.count_objects(page)
    # pdfium has one rectangle for each object that shows text.
    if count == rects or count == native.count_rects(textpage, 0, -1):
        return None
    reader = _Reader(frame)
    reader.read(page, count)
    return reader.drawn


def has_too_many_texts(page: native.Handle) -> bool:
    """Whether the page has more pieces of text than can be put in order; asked before its text is."""
    count = native.count_objects(page)
    if _FEW_OBJECTS < count <= MAX_TEXTS:
        return False
    texts = 0
    for index in range(count):
        handle = native.get_object(page, index)
        kind = native.object_type(handle)
        if kind == pdfium_c.FPDF_PAGEOBJ_TEXT:
            texts += 1
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM:
            texts += native.count_form_objects(handle)
        if texts > MAX_TEXTS:
            return True
    return False


class _Reader:
    def __init__(self, frame: Frame) -> None:
        self.drawn = Drawn()
        self._frame = frame
        self._paths = PathReader(frame)
        self._objects = 0

    def read(self, page: native.Handle, count: int) -> None:
        handles = list(map(native.get_object, repeat(page), range(min(count, MAX_OBJECTS))))
        for handle, kind in zip(handles, map(native.object_type, handles), strict=True):
            if kind != pdfium_c.FPDF_PAGEOBJ_TEXT:
                self._read_object(handle, kind, SAME, 1)

    def _read_object(self, handle: native.Handle, kind: int, matrix: Matrix, depth: int) -> None:
        self._objects += 1
        if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            self._read_path(handle, matrix)
        elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            box = self._bounds(handle, matrix)
            if box is not None:
                self.drawn.pictures.append(box)
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            inner = joined(matrix_of(handle), matrix)
            for index in range(native.count_form_objects(handle)):
                if self._objects >= MAX_OBJECTS:
                    return
                child = native.get_form_object(handle, index)
                self._read_object(child, native.object_type(child), inner, depth + 1)

    def _read_path(self, handle: native.Handle, matrix: Matrix) -> None:
        box = self._bounds(handle, matrix)
        if box is None:
            return
        left, top, right, bottom = box
        if bottom - top <= _MAX_RULE or right - left <= _MAX_RULE:
            self._add_lines([box])
            return
        if not native.draw_mode(handle, *_flags_at):
            return
        fills, strokes = _two(_flags)
        if not fills and not strokes:  # it only cuts what follows
            return
        lines = self._paths.lines(handle, matrix)
        if lines is None or (len(lines) >= _MIN_STEPS and _is_one_line(lines)):
            self.drawn.drawings.append(box)
            self.drawn.segments.append(native.count_segments(handle))
            return
        if fills and len(lines) <= 4:
            self.drawn.fills.append(box)
        if strokes:
            self._add_lines(lines)
        elif len(lines) > 4:  # many thin bars in one path, as some programs draw borders
            self._add_bars(lines)

    def _add_bars(self, lines: Lines) -> None:
        for start in range(0, len(lines) - 3, 4):
            xs = [x for line in lines[start : start + 4] for x in (line[0], line[2])]
            ys = [y for line in lines[start : start + 4] for y in (line[1], line[3])]
            self._add_lines([(min(xs), min(ys), max(xs), max(ys))])

    def _add_lines(self, lines: Lines) -> None:
        across, down = self.drawn.across, self.drawn.down
        for left, top, right, bottom in lines:
            if bottom - top <= _MAX_RULE and right - left >= _MIN_RULE:
                across.append(((top + bottom) / 2, left, right))
            elif right - left <= _MAX_RULE and bottom - top >= _MIN_RULE:
                down.append(((left + right) / 2, top, bottom))

    def _bounds(self, handle: native.Handle, matrix: Matrix) -> Rect | None:
        if not native.object_bounds(handle, *_bounds_at):
            return None
        left, bottom, right, top = _four(_bounds)
        frame = self._frame
        if matrix is SAME and not frame.turned:
            box = left - frame.left, frame.top - top, right - frame.left, frame.top - bottom
            if 0 <= box[0] <= box[2] <= frame.width and 0 <= box[1] <= box[3] <= frame.height:
                return box
        if matrix is not SAME:
            corners = [apply(matrix, x, y) for x in (left, right) for y in (bottom, top)]
            left, right = min(x for x, _ in corners), max(x for x, _ in corners)
            bottom, top = min(y for _, y in corners), max(y for _, y in corners)
        if not isfinite(left + bottom + right + top):
            return None
        return frame.within(frame.place_box(left, top, right, bottom))


def _is_one_line(lines: Lines) -> bool:
    """Whether the strokes go on from each other, unlike the sides of boxes and the rules of a table."""
    joins = [one for one, other in pairwise(lines) if _meet(one, other)]
    return len(joins) >= _GOES_ON * (len(lines) - 1)


def _meet(one: Rect, other: Rect) -> bool:
    return (one[0] == other[0] or one[0] == other[2] or one[2] == other[0] or one[2] == other[2]) and (
        one[1] == other[1] or one[1] == other[3] or one[3] == other[1] or one[3] == other[3]
    )
