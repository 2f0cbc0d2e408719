"""From a PDF page's own coordinates to points from the top left of the page as it is shown."""

from __future__ import annotations

import ctypes

from rag.parser import pdf_native as native
from rag.parser.layout import MAX_PAGE, clamp

Rect = tuple[float, float, float, float]

# What pdfium takes a page without a size for.
_USUAL = (0.0, 792.0, 612.0, 0.0)
_box = (ctypes.c_float * 4)()
_box_at = ctypes.addressof(_box)


class Frame:
    """The page's size as it is shown, and where a place of the file is on it."""

    def __init__(self, page: int) -> None:
        """Of the page at this address."""
        if native.page_box(page, _box_at):
            left, top, right, bottom = _box
        else:
            left, top, right, bottom = _USUAL
        self._left, self._bottom, self._right, self._top = left, bottom, right, top
        self._rotation = 90 * native.page_rotation(page)
        width, height = clamp(right - left, MAX_PAGE), clamp(top - bottom, MAX_PAGE)
        self.width, self.height = (height, width) if self._rotation in (90, 270) else (width, height)

    def place(self, x: float, y: float) -> tuple[float, float]:
        if not self._rotation:
            return x - self._left, self._top - y
        if self._rotation == 90:
            return y - self._bottom, x - self._left
        if self._rotation == 180:
            return self._right - x, y - self._bottom
        return self._top - y, self._right - x

    def place_box(self, left: float, top: float, right: float, bottom: float) -> Rect:
        """Left, top, right and bottom as shown."""
        if not self._rotation:
            return left - self._left, self._top - top, right - self._left, self._top - bottom
        x0, y0 = self.place(left, top)
        x1, y1 = self.place(right, bottom)
        return min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)

    def within(self, box: Rect) -> Rect:
        left, top, right, bottom = box
        width, height = self.width, self.height
        return clamp(left, width), clamp(top, height), clamp(right, width), clamp(bottom, height)
