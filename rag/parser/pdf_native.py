"""The functions of pdfium that are called for every page or line, bound to take plain addresses.

pypdfium2's own bindings check a typed pointer with every call, at twice the cost."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pypdfium2.raw as pdfium_c

_Address = ctypes.c_void_p
_Int = ctypes.c_int


def _bind(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    address = ctypes.cast(function, _Address).value
    assert address is not None
    return ctypes.CFUNCTYPE(result, *arguments)(address)


def address_of(handle: Any) -> int:
    """The address behind one of pypdfium2's handles."""
    return ctypes.cast(handle, _Address).value or 0


load_page = _bind(pdfium_c.FPDF_LoadPage, _Address, _Address, _Int)
close_page = _bind(pdfium_c.FPDF_ClosePage, None, _Address)
page_box = _bind(pdfium_c.FPDF_GetPageBoundingBox, _Int, _Address, _Address)
page_rotation = _bind(pdfium_c.FPDFPage_GetRotation, _Int, _Address)
load_text = _bind(pdfium_c.FPDFText_LoadPage, _Address, _Address)
close_text = _bind(pdfium_c.FPDFText_ClosePage, None, _Address)
count_chars = _bind(pdfium_c.FPDFText_CountChars, _Int, _Address)
get_text = _bind(pdfium_c.FPDFText_GetText, _Int, _Address, _Int, _Int, _Address)
count_rects = _bind(pdfium_c.FPDFText_CountRects, _Int, _Address, _Int, _Int)
get_rect = _bind(pdfium_c.FPDFText_GetRect, _Int, _Address, _Int, *[_Address] * 4)
get_char_box = _bind(pdfium_c.FPDFText_GetLooseCharBox, _Int, _Address, _Int, _Address)
get_matrix = _bind(pdfium_c.FPDFText_GetMatrix, _Int, _Address, _Int, _Address)
get_font_size = _bind(pdfium_c.FPDFText_GetFontSize, ctypes.c_double, _Address, _Int)
get_font_info = _bind(pdfium_c.FPDFText_GetFontInfo, ctypes.c_ulong, _Address, _Int, _Address, ctypes.c_ulong, _Address)
get_unicode = _bind(pdfium_c.FPDFText_GetUnicode, ctypes.c_uint, _Address, _Int)
char_index = _bind(pdfium_c.FPDFText_GetCharIndexFromTextIndex, _Int, _Address, _Int)

count_objects = _bind(pdfium_c.FPDFPage_CountObjects, _Int, _Address)
get_object = _bind(pdfium_c.FPDFPage_GetObject, _Address, _Address, _Int)
count_form_objects = _bind(pdfium_c.FPDFFormObj_CountObjects, _Int, _Address)
get_form_object = _bind(pdfium_c.FPDFFormObj_GetObject, _Address, _Address, ctypes.c_ulong)
object_type = _bind(pdfium_c.FPDFPageObj_GetType, _Int, _Address)
object_matrix = _bind(pdfium_c.FPDFPageObj_GetMatrix, _Int, _Address, _Address)
object_bounds = _bind(pdfium_c.FPDFPageObj_GetBounds, _Int, _Address, *[_Address] * 4)
draw_mode = _bind(pdfium_c.FPDFPath_GetDrawMode, _Int, _Address, _Address, _Address)
count_segments = _bind(pdfium_c.FPDFPath_CountSegments, _Int, _Address)
get_segment = _bind(pdfium_c.FPDFPath_GetPathSegment, _Address, _Address, _Int)
segment_type = _bind(pdfium_c.FPDFPathSegment_GetType, _Int, _Address)
segment_point = _bind(pdfium_c.FPDFPathSegment_GetPoint, _Int, _Address, _Address, _Address)
segment_closes = _bind(pdfium_c.FPDFPathSegment_GetClose, _Int, _Address)
