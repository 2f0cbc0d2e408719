"""What a letter's font says of it: whether it is bold, and whether all of its letters are as wide."""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache

from rag.parser import pdf_native as native

BOLD, MONO = 1, 2

_BOLD = re.compile(rb"bold|black|heavy|demi|bx\d|-bd\b|-medi(?:ital)?$", re.IGNORECASE)
_MONO = re.compile(rb"mono|courier|consol|cmtt|cmsltt|cmitt|tt\d+$|^[a-z]{2}tt$|menlo|typewriter|fixed", re.IGNORECASE)
# Half as wide as their own Han letters, and no type for code.
_EAST_ASIAN = re.compile(rb"mincho|gothic|song|simsun|ming|hei|kai|batang|gulim|cjk|dotum", re.IGNORECASE)
_FIXED_PITCH, _FORCE_BOLD = 1, 1 << 18
_MAX_NAME = 128

# Where pdfium puts its answers: one process reads one page at a time.
_name = ctypes.create_string_buffer(_MAX_NAME)
_flags = ctypes.c_int()
_flags_at = ctypes.pointer(_flags)


def font_style(textpage: native.Handle, index: int) -> int:
    """BOLD and MONO, as far as they are true of the letter's font."""
    length = native.get_font_info(textpage, index, _name, _MAX_NAME, _flags_at)
    if not length:  # a space that pdfium put in
        length = native.get_font_info(textpage, index + 1, _name, _MAX_NAME, _flags_at)
    return style_of(_name.value, _flags.value) if 0 < length <= _MAX_NAME else 0


@lru_cache(maxsize=1_000)
def style_of(name: bytes, flags: int) -> int:
    bold = flags & _FORCE_BOLD or _BOLD.search(name)
    mono = (flags & _FIXED_PITCH or _MONO.search(name)) and not _EAST_ASIAN.search(name)
    return (BOLD if bold else 0) | (MONO if mono else 0)
