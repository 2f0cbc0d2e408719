"""What is drawn on a PDF page besides its text: rules, drawings and pictures, with their places.

Asking costs a call into C for each object, so pages that have nothing but text are told by a count first."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple

import pypdfium2.raw as pdfium_c

from rag.parser import pdf_native as native
from rag.parser.pdf_frame import Frame, Rect

# pdfium takes time with the square of these to put them in order: seconds for as many, and hours for a million.
MAX_TEXTS = 30_000
# A page with more is a map or a plan: what is drawn beyond them is left out.
MAX_OBJECTS = 20_000
MAX_SEGMENTS = 50_000
MAX_DEPTH = 5
# A page with no more may be made of forms, which are looked into.
_FEW_OBJECTS = 8

# Points: what is thinner is a rule; what is shorter is a part of a letter or a drawing.
_MAX_RULE = 3.0
_MIN_RULE = 6.0
_STRAIGHT = 0.6

_Matrix = tuple[float, float, float, float, float, float]
_Lines = list[tuple[float, float, float, float]]
_SAME: _Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


class Rule(NamedTuple):
    """A straight line: from `start` to `end` along its way, and `at` across it."""

    at: float
    start: float
    end: float


@dataclass(slots=True)
class Drawn:
    across: list[Rule] = field(default_factory=list)
    down: list[Rule] = field(default_factory=list)
    pictures: list[Rect] = field(default_factory=list)
    drawings: list[Rect] = field(default_factory=list)


def read_drawn(page: int, textpage: int, frame: Frame, rects: int) -> Drawn | None:
    """What is drawn on the page, in whose lines so many rectangles were found; None if it is all text."""
    count = native.count_objects(page)
    # pdfium has one rectangle for each object that shows text.
    if count == rects or count == native.count_rects(textpage, 0, -1):
        return None
    reader = _Reader(frame)
    reader.read(page, count)
    return reader.drawn


def has_too_many_texts(page: int) -> bool:
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
        self._objects = 0
        self._segments = 0
        self._numbers = (ctypes.c_float * 6)()
        at = ctypes.addressof(self._numbers)
        self._at = (at, at + 4, at + 8, at + 12)
        self._flags = (ctypes.c_int * 2)()
        self._flags_at = (ctypes.addressof(self._flags), ctypes.addressof(self._flags) + 4)

    def read(self, page: int, count: int) -> None:
        get_object, object_type = native.get_object, native.object_type
        text = pdfium_c.FPDF_PAGEOBJ_TEXT
        for index in range(min(count, MAX_OBJECTS)):
            handle = get_object(page, index)
            kind = object_type(handle)
            if kind != text:
                self._read_object(handle, kind, _SAME, 1)

    def _read_object(self, handle: int, kind: int, matrix: _Matrix, depth: int) -> None:
        self._objects += 1
        if kind == pdfium_c.FPDF_PAGEOBJ_PATH:
            self._read_path(handle, matrix)
        elif kind == pdfium_c.FPDF_PAGEOBJ_IMAGE:
            box = self._bounds(handle, matrix)
            if box is not None:
                self.drawn.pictures.append(box)
        elif kind == pdfium_c.FPDF_PAGEOBJ_FORM and depth < MAX_DEPTH:
            inner = _joined(self._matrix(handle), matrix)
            for index in range(native.count_form_objects(handle)):
                if self._objects >= MAX_OBJECTS:
                    return
                child = native.get_form_object(handle, index)
                self._read_object(child, native.object_type(child), inner, depth + 1)

    def _read_path(self, handle: int, matrix: _Matrix) -> None:
        box = self._bounds(handle, matrix)
        if box is None:
            return
        left, top, right, bottom = box
        if bottom - top <= _MAX_RULE or right - left <= _MAX_RULE:
            self._add_line(left, top, right, bottom)
            return
        if not native.draw_mode(handle, *self._flags_at):
            return
        fills, strokes = self._flags
        if not fills and not strokes:  # it only cuts what follows
            return
        lines = self._straight_lines(handle, matrix)
        if lines is None:
            self.drawn.drawings.append(box)
        elif strokes:
            for line in lines:
                self._add_line(*line)
        elif len(lines) > 4:  # many thin bars in one path, as some programs draw borders
            self._add_bars(lines)

    def _add_bars(self, lines: _Lines) -> None:
        for start in range(0, len(lines) - 3, 4):
            xs = [x for line in lines[start : start + 4] for x in (line[0], line[2])]
            ys = [y for line in lines[start : start + 4] for y in (line[1], line[3])]
            self._add_line(min(xs), min(ys), max(xs), max(ys))

    def _add_line(self, left: float, top: float, right: float, bottom: float) -> None:
        if bottom - top <= _MAX_RULE and right - left >= _MIN_RULE:
            self.drawn.across.append(Rule((top + bottom) / 2, left, right))
        elif right - left <= _MAX_RULE and bottom - top >= _MIN_RULE:
            self.drawn.down.append(Rule((left + right) / 2, top, bottom))

    def _straight_lines(self, handle: int, matrix: _Matrix) -> _Lines | None:
        """The lines of a path that has only level and upright ones; None for any other."""
        inner = _joined(self._matrix(handle), matrix)
        lines: _Lines = []
        last = first = (0.0, 0.0)
        for kind, x, y, closes in self._path(handle):
            if kind == pdfium_c.FPDF_SEGMENT_BEZIERTO:
                return None
            point = self._frame.place(*_apply(inner, x, y))
            if kind == pdfium_c.FPDF_SEGMENT_MOVETO:
                first = point
            elif not _add_straight(lines, last, point):
                return None
            if closes and point != first and not _add_straight(lines, point, first):
                return None
            last = point
        return lines

    def _path(self, handle: int) -> Iterator[tuple[int, float, float, bool]]:
        x_at, y_at = self._at[:2]
        for index in range(native.count_segments(handle)):
            self._segments += 1
            if self._segments > MAX_SEGMENTS:
                return
            segment = native.get_segment(handle, index)
            if native.segment_point(segment, x_at, y_at):
                yield (
                    native.segment_type(segment),
                    self._numbers[0],
                    self._numbers[1],
                    bool(native.segment_closes(segment)),
                )

    def _matrix(self, handle: int) -> _Matrix:
        if not native.object_matrix(handle, self._at[0]):
            return _SAME
        a, b, c, d, e, f = self._numbers
        return a, b, c, d, e, f

    def _bounds(self, handle: int, matrix: _Matrix) -> Rect | None:
        if not native.object_bounds(handle, *self._at):
            return None
        left, bottom, right, top = self._numbers[:4]
        if matrix is not _SAME:
            corners = [_apply(matrix, x, y) for x in (left, right) for y in (bottom, top)]
            left, right = min(x for x, _ in corners), max(x for x, _ in corners)
            bottom, top = min(y for _, y in corners), max(y for _, y in corners)
        if not all(isfinite(each) for each in (left, bottom, right, top)):
            return None
        return self._frame.within(self._frame.place_box(left, top, right, bottom))


def _add_straight(lines: _Lines, one: tuple[float, float], other: tuple[float, float]) -> bool:
    if abs(one[0] - other[0]) > _STRAIGHT and abs(one[1] - other[1]) > _STRAIGHT:
        return False
    lines.append((min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])))
    return True


def _joined(inner: _Matrix, outer: _Matrix) -> _Matrix:
    """First `inner`, then `outer`."""
    if outer is _SAME:
        return inner
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _apply(matrix: _Matrix, x: float, y: float) -> tuple[float, float]:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f
