"""From a PDF page's own coordinates to points from the top left of the page as it is shown."""

from __future__ import annotations

import ctypes
from struct import Struct

from rag.parser import pdf_native as native
from rag.parser.layout import MAX_PAGE, clamp

Rect = tuple[float, float, float, float]

# What pdfium takes a page without a size for.
_USUAL = (0.0, 792.0, 612.0, 0.0)
_box = (ctypes.c_float * 4)()
_four = Struct("4f").unpack_from


class Frame:
    """The page's size as it is shown, and where a place of the file is on it.

    On a page that is not `turned`, what the file has at x and y is shown at x - left and top - y."""

    def __init__(self, page: native.Handle) -> None:
        left, top, right, bottom = _four(_box) if native.page_box(page, _box) else _USUAL
        self.left: float = left
        self.top: float = top
        self._right, self._bottom = right, bottom
        self.turned = 90 * native.page_rotation(page)
        width, height = clamp(right - left, MAX_PAGE), clamp(top - bottom, MAX_PAGE)
        self.width, self.height = (height, width) if self.turned in (90, 270) else (width, height)

    def place(self, x: float, y: float) -> tuple[float, float]:
        if not self.turned:
            return x - self.left, self.top - y
        if self.turned == 90:
            return y - self._bottom, x - self.left
        if self.turned == 180:
            return self._right - x, y - self._bottom
        return self.top - y, self._right - x

    def place_box(self, left: float, top: float, right: float, bottom: float) -> Rect:
        """Left, top, right and bottom as shown."""
        if not self.turned:
            return left - self.left, self.top - top, right - self.left, self.top - bottom
        x0, y0 = self.place(left, top)
        x1, y1 = self.place(right, bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def within(self, box: Rect) -> Rect:
        left, top, right, bottom = box
        width, height = self.width, self.height
        if 0 <= left <= right <= width and 0 <= top <= bottom <= height:
            return box
        return clamp(left, width), clamp(top, height), clamp(right, width), clamp(bottom, height)
