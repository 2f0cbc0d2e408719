"""Letters that a PDF keeps in another form than a text does: ligatures, shapes of Arabic letters, words that are
written from right to left, and glyphs that stand for nothing known."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Protocol

from msgspec.structs import replace

from rag.parser.layout import Line

_LIGATURES = "\ufb00-\ufb06\ufb13-\ufb17"
_RIGHT_TO_LEFT = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc"
_ODD = re.compile(f"[{_LIGATURES}{_RIGHT_TO_LEFT}]")
_SHAPES = re.compile("[\ufb00-\ufdfb\ufe70-\ufefc]+")
# A run of letters, and spaces or marks between them, that is read from right to left.
_RUN = re.compile(f"[{_RIGHT_TO_LEFT}](?:[{_RIGHT_TO_LEFT}\\s\u200f'\"\u05be.,:;!?()-]*[{_RIGHT_TO_LEFT}])?")
_LETTER = re.compile(f"[{_RIGHT_TO_LEFT}]")
_UNKNOWN = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f]|\\(cid:\\d+\\)")
# The hyphen of a line's end is none of them: lines are parted there.
_NOISE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffd\uffff\ue000-\uf8ff]")
_SHOWN = bytes([0x09, 0x0A, 0x0D, *range(0x20, 0x7F)])
# What letters of the fonts Symbol and Wingdings show, which Word takes for the marks of lists.
_SYMBOLS = str.maketrans(
    {
        "\uf06e": "\u25a0",
        "\uf06f": "\u25a1",
        "\uf076": "\u2756",
        "\uf0a7": "\u25aa",
        "\uf0a8": "\u25a1",
        "\uf0b7": "\u2022",
        "\uf0d8": "\u27a2",
        "\uf0e0": "\u2192",
        "\uf0fc": "\u2713",
    }
)
_MIN_UNKNOWN = 0.2
_MIRRORED = str.maketrans("()[]{}<>", ")(][}{><")


class Places(Protocol):
    def box(self, index: int) -> tuple[float, float, float, float]: ...


def has_odd_letters(text: str) -> bool:
    return not text.isascii() and _ODD.search(text) is not None


def plain_letters(line: Line, places: Places) -> Line:
    """The line with the letters that a person would type, in the order in which they are read."""
    text = line.text
    if text.isascii():
        return line
    if _LETTER.search(text) and line.count == len(text) and _is_drawn_backwards(line, places):
        text = _RUN.sub(lambda run: run[0][::-1].translate(_MIRRORED), text)
    text = shaped(text)
    # Places in the text are no longer those of the spans.
    return replace(line, text=text, spans=() if len(text) != len(line.text) else line.spans)


def shaped(text: str) -> str:
    """Without ligatures, and with Arabic letters instead of their shapes."""
    if text.isascii():
        return text
    return _SHAPES.sub(lambda shapes: unicodedata.normalize("NFKC", shapes[0]), text)


def _is_drawn_backwards(line: Line, places: Places) -> bool:
    """Whether letters that are read from right to left stand in the text from left to right."""
    forward = backward = 0
    for run in _RUN.finditer(line.text):
        lefts = [places.box(line.first + at)[0] for at in range(run.start(), run.end()) if _LETTER.match(line.text[at])]
        forward += sum(after < before for before, after in pairwise(lefts))
        backward += sum(after > before for before, after in pairwise(lefts))
    return backward > forward


def has_noise(text: str) -> bool:
    """Whether the text has control characters, or glyphs that stand for nothing known."""
    if text.isascii():
        return bool(text.encode().translate(None, _SHOWN))
    # A search for so many characters is slow, and hardly a page has one.
    if "\ufffd" not in text and text.replace("\r\n", "").replace("\ufffe", "").isprintable():
        return False
    return _NOISE.search(text) is not None


def with_symbols(text: str) -> str:
    """With the signs that private letters of well-known fonts show."""
    return text.translate(_SYMBOLS)


def is_unusable(text: str) -> bool:
    """Whether the page's font does not say which letters its glyphs are."""
    if not has_noise(text) and "(cid:" not in text:
        return False
    unknown = sum(len(found) for found in _UNKNOWN.findall(text))
    return unknown > _MIN_UNKNOWN * len(text)
