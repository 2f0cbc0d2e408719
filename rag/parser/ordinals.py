"""Numbers as lists write them: letters and Roman numerals."""

from __future__ import annotations

_ROMAN = (
    *((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
_MAX_ROMAN = 4999
_MAX_LETTERS = 10


def letters(count: int) -> str:
    """A to Z, then AA, BB, as word processors do."""
    repeats, letter = divmod(max(count, 1) - 1, 26)
    return chr(ord("A") + letter) * min(repeats + 1, _MAX_LETTERS)


def roman(count: int) -> str:
    if not 0 < count <= _MAX_ROMAN:
        return str(count)
    text = ""
    for size, sign in _ROMAN:
        times, count = divmod(count, size)
        text += sign * times
    return text
