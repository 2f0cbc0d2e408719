"""The functions of pdfium that are called for every page, line or letter, bound to cost little.

pypdfium2's own bindings check and convert every argument, at three times the cost. Here nothing is checked: a number
is passed for a number, and an object of ctypes for an address."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pypdfium2.raw as pdfium_c

_INT = ctypes.c_int


class Handle(ctypes.c_void_p):
    """Something that pdfium keeps; false where it gave none. ctypes would make a number of a plain c_void_p."""


def address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _bind(function: Any, result: Any, kind: Any = ctypes.PYFUNCTYPE) -> Callable[..., Any]:
    """Bound so that other threads wait: each of these takes less than a microsecond."""
    return kind(result)(address(function))  # type: ignore[no-any-return]


def _bind_slow(function: Any, result: Any) -> Callable[..., Any]:
    """Bound so that other threads go on."""
    return _bind(function, result, ctypes.CFUNCTYPE)


def places(room: ctypes.Array[Any]) -> tuple[ctypes.c_void_p, ...]:
    """Where each element of `room` is, for pdfium to put an answer there."""
    size = ctypes.sizeof(room) // len(room)
    return tuple(ctypes.c_void_p(ctypes.addressof(room) + size * number) for number in range(len(room)))


meta_text = _bind(pdfium_c.FPDF_GetMetaText, ctypes.c_ulong)
load_page = _bind_slow(pdfium_c.FPDF_LoadPage, Handle)
close_page = _bind_slow(pdfium_c.FPDF_ClosePage, None)
page_box = _bind(pdfium_c.FPDF_GetPageBoundingBox, _INT)
page_rotation = _bind(pdfium_c.FPDFPage_GetRotation, _INT)
load_text = _bind_slow(pdfium_c.FPDFText_LoadPage, Handle)
close_text = _bind_slow(pdfium_c.FPDFText_ClosePage, None)
count_chars = _bind(pdfium_c.FPDFText_CountChars, _INT)
get_text = _bind(pdfium_c.FPDFText_GetText, _INT)
count_rects = _bind(pdfium_c.FPDFText_CountRects, _INT)
get_rect = _bind(pdfium_c.FPDFText_GetRect, _INT)
get_char_box = _bind(pdfium_c.FPDFText_GetLooseCharBox, _INT)
get_matrix = _bind(pdfium_c.FPDFText_GetMatrix, _INT)
get_font_size = _bind(pdfium_c.FPDFText_GetFontSize, ctypes.c_double)
get_font_info = _bind(pdfium_c.FPDFText_GetFontInfo, ctypes.c_ulong)
get_unicode = _bind(pdfium_c.FPDFText_GetUnicode, ctypes.c_uint)
char_index = _bind(pdfium_c.FPDFText_GetCharIndexFromTextIndex, _INT)

count_annotations = _bind(pdfium_c.FPDFPage_GetAnnotCount, _INT)
next_link = _bind(pdfium_c.FPDFLink_Enumerate, _INT)
get_annotation = _bind(pdfium_c.FPDFPage_GetAnnot, Handle)
annotation_subtype = _bind(pdfium_c.FPDFAnnot_GetSubtype, _INT)
annotation_has = _bind(pdfium_c.FPDFAnnot_HasKey, _INT)
close_annotation = _bind(pdfium_c.FPDFPage_CloseAnnot, None)
flatten = _bind_slow(pdfium_c.FPDFPage_Flatten, _INT)
render = _bind_slow(pdfium_c.FPDF_RenderPageBitmap, None)

count_objects = _bind(pdfium_c.FPDFPage_CountObjects, _INT)
get_object = _bind(pdfium_c.FPDFPage_GetObject, Handle)
count_form_objects = _bind(pdfium_c.FPDFFormObj_CountObjects, _INT)
get_form_object = _bind(pdfium_c.FPDFFormObj_GetObject, Handle)
object_type = _bind(pdfium_c.FPDFPageObj_GetType, _INT)
object_matrix = _bind(pdfium_c.FPDFPageObj_GetMatrix, _INT)
object_bounds = _bind(pdfium_c.FPDFPageObj_GetBounds, _INT)
draw_mode = _bind(pdfium_c.FPDFPath_GetDrawMode, _INT)
count_segments = _bind(pdfium_c.FPDFPath_CountSegments, _INT)
get_segment = _bind(pdfium_c.FPDFPath_GetPathSegment, Handle)
segment_type = _bind(pdfium_c.FPDFPathSegment_GetType, _INT)
segment_point = _bind(pdfium_c.FPDFPathSegment_GetPoint, _INT)
segment_closes = _bind(pdfium_c.FPDFPathSegment_GetClose, _INT)
