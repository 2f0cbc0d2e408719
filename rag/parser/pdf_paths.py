"""The straight lines that a path on a PDF page is made of. What they mean is left to others."""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator
from itertools import islice, repeat
from struct import Struct

import pypdfium2.raw as pdfium_c

from rag.parser import pdf_native as native
from rag.parser.pdf_frame import Frame

# Of a page: what is drawn beyond is left out.
MAX_SEGMENTS = 50_000
# Points: lines that lean by no more are level or upright.
_STRAIGHT = 0.6
_AT_ONCE = 64
_CURVE, _MOVE, _LINE = pdfium_c.FPDF_SEGMENT_BEZIERTO, pdfium_c.FPDF_SEGMENT_MOVETO, pdfium_c.FPDF_SEGMENT_LINETO
_RECTANGLE = [_MOVE, _LINE, _LINE, _LINE, _LINE]

Matrix = tuple[float, float, float, float, float, float]
# Left, top, right and bottom of each, as shown.
Lines = list[tuple[float, float, float, float]]
_Point = tuple[float, float]
SAME: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)

# Where pdfium puts its answers: one process reads one page at a time.
_points = (ctypes.c_float * (2 * _AT_ONCE))()
_x_at, _y_at = native.places(_points)[::2], native.places(_points)[1::2]
_five_points = Struct("10f").unpack_from
_numbers = (ctypes.c_float * 6)()
_six = Struct("6f").unpack_from


class PathReader:
    """Of one page."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._segments = 0

    def lines(self, path: native.Handle, outer: Matrix) -> Lines | None:
        """The lines of a path that has only level and upright ones; None for any other."""
        matrix = joined(matrix_of(path), outer)
        count = min(native.count_segments(path), MAX_SEGMENTS - self._segments)
        if count == len(_RECTANGLE) and (sides := self._rectangle(path, matrix)):
            self._segments += count
            return sides
        lines: Lines = []
        last = first = (0.0, 0.0)
        for kinds, points, closes in self._read(path, matrix, count):
            if _CURVE in kinds:
                return None
            for kind, point, close in zip(kinds, points, closes, strict=True):
                if kind == _MOVE:
                    first = point
                elif not _add_straight(lines, last, point):
                    return None
                if close and point != first and not _add_straight(lines, point, first):
                    return None
                last = point
        return lines

    def _rectangle(self, path: native.Handle, matrix: Matrix) -> Lines | None:
        """The sides of an upright rectangle in the order in which they are drawn; None for another shape."""
        a, b, c, d, e, f = matrix
        frame = self._frame
        if b or c or frame.turned:
            return None
        segments = list(map(native.get_segment, repeat(path), range(len(_RECTANGLE))))
        deque(map(native.segment_point, segments, _x_at, _y_at), maxlen=0)
        x0, y0, x1, y1, x2, y2, x3, y3, x4, y4 = _five_points(_points)
        level_first = y0 == y1 and x1 == x2 and y2 == y3 and x3 == x0
        upright_first = x0 == x1 and y1 == y2 and x2 == x3 and y3 == y0
        if not (level_first or upright_first) or x4 != x0 or y4 != y0:
            return None
        if list(map(native.segment_type, segments)) != _RECTANGLE:
            return None
        x0, x2 = a * x0 + e - frame.left, a * x2 + e - frame.left
        y0, y2 = frame.top - (d * y0 + f), frame.top - (d * y2 + f)
        left, right = (x0, x2) if x0 <= x2 else (x2, x0)
        top, bottom = (y0, y2) if y0 <= y2 else (y2, y0)
        if level_first:
            return [(left, y0, right, y0), (x2, top, x2, bottom), (left, y2, right, y2), (x0, top, x0, bottom)]
        return [(x0, top, x0, bottom), (left, y2, right, y2), (x2, top, x2, bottom), (left, y0, right, y0)]

    def _read(
        self, path: native.Handle, matrix: Matrix, count: int
    ) -> Iterator[tuple[list[int], list[_Point], list[int]]]:
        """The kinds of the path's next segments, where they end, and whether they close a shape."""
        numbers = iter(range(count))
        while segments := list(map(native.get_segment, repeat(path), islice(numbers, _AT_ONCE))):
            self._segments += len(segments)
            deque(map(native.segment_point, segments, _x_at, _y_at), maxlen=0)
            places = _points[: 2 * len(segments)]
            points = self._placed(matrix, places[::2], places[1::2])
            yield list(map(native.segment_type, segments)), points, list(map(native.segment_closes, segments))

    def _placed(self, matrix: Matrix, xs: list[float], ys: list[float]) -> list[_Point]:
        a, b, c, d, e, f = matrix
        frame = self._frame
        if frame.turned or b or c:
            return [frame.place(*apply(matrix, x, y)) for x, y in zip(xs, ys, strict=True)]
        left, top = frame.left, frame.top
        return [(a * x + e - left, top - (d * y + f)) for x, y in zip(xs, ys, strict=True)]


def _add_straight(lines: Lines, one: _Point, other: _Point) -> bool:
    if abs(one[0] - other[0]) > _STRAIGHT and abs(one[1] - other[1]) > _STRAIGHT:
        return False
    lines.append((min(one[0], other[0]), min(one[1], other[1]), max(one[0], other[0]), max(one[1], other[1])))
    return True


def matrix_of(handle: native.Handle) -> Matrix:
    """From the coordinates of an object to those of what it stands in."""
    if not native.object_matrix(handle, _numbers):
        return SAME
    return _six(_numbers)


def joined(inner: Matrix, outer: Matrix) -> Matrix:
    """First `inner`, then `outer`."""
    if outer is SAME:
        return inner
    a, b, c, d, e, f = inner
    g, h, i, j, k, m = outer
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def apply(matrix: Matrix, x: float, y: float) -> _Point:
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f
