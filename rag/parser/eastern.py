"""Hebrew and Chinese without Unicode, which are easily taken for Cyrillic and Thai: told by the bytes they use.

Judges a sample that is known not to be UTF-8; all other encodings are left to others."""

from __future__ import annotations

import re

HEBREW, CHINESE = "cp1255", "gb18030"
# Fewer bytes beyond ASCII tell nothing.
_MIN_BYTES = 12
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_ASCII_LETTER = re.compile(rb"[A-Za-z]")
_HEBREW_LETTER = re.compile(rb"[\xe0-\xfa]")
# Where Cyrillic has its capitals and five of its commonest letters, and Greek its accents: Hebrew has next to nothing.
_NOT_HEBREW = re.compile(rb"[\xd9-\xdf\xfb-\xff]")
_MOSTLY = 0.9
_HARDLY = 0.005
# Every fifth character or so of a Chinese text is one of these; of bytes that only look like one, every fiftieth.
_COMMON = frozenset("的一是不了在有人我他这中大来上国个到们为和地出时年要以会对可你用于本所其与及或将由并每")
_MIN_COMMON = 0.06
_HAN = re.compile("[\u4e00-\u9fff]")


def tell(sample: bytes) -> str:
    """The encoding, or "" if it is neither."""
    beyond = len(_BEYOND_ASCII.findall(sample))
    if beyond < _MIN_BYTES or beyond < len(_ASCII_LETTER.findall(sample)):
        return ""
    if _is_chinese(sample):
        return CHINESE
    return HEBREW if _is_hebrew(sample, beyond) else ""


def _is_chinese(sample: bytes) -> bool:
    # The sample may start and end within a character.
    text = sample[1:-1].decode("gb2312", "ignore") if len(sample) > 1000 else sample.decode("gb2312", "ignore")
    han = _HAN.findall(text)
    # All but a few bytes make up characters.
    if 2 * len([letter for letter in text if letter > "\x7f"]) < _MOSTLY * len(_BEYOND_ASCII.findall(sample)):
        return False
    return len([letter for letter in han if letter in _COMMON]) >= max(1, _MIN_COMMON * len(han))


def _is_hebrew(sample: bytes, beyond: int) -> bool:
    letters, others = len(_HEBREW_LETTER.findall(sample)), len(_NOT_HEBREW.findall(sample))
    return letters >= _MOSTLY * beyond and others <= _HARDLY * beyond
