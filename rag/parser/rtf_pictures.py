"""The pictures of an RTF file as they are met: which are figures, and the bytes of the one that is asked for."""

from __future__ import annotations

from rag.parser.blocks import Block, BlockKind, Picture
from rag.parser.text import MAX_CHARS

MAX_BYTES = 64 << 20

# Formats that can be shown; the others are drawings of Windows or of the Mac, and are left out unless they have words.
SHOWN = frozenset(("pngblip", "jpegblip"))
# Smaller ones are spacers and dots.
_MIN_BYTES = 128
_NAME = "pict:"
_NO_DIGITS = bytes(sorted(set(range(256)) - set(b"0123456789abcdefABCDEF")))


class RtfPictures:
    """Counts the pictures: the first is `pict:1`. Keeps the bytes of the one that is called `wanted` in `found`.

    A picture opens, gets its format, its data and its words, and closes; it is given when its text goes on."""

    def __init__(self, wanted: str = "") -> None:
        self.found = b""
        self._wanted = wanted
        self._seen = 0
        self._is_shown = False
        self._digits = bytearray()
        self._size = 0
        self._words = ""
        self._waiting: list[str] = []

    def open(self) -> None:
        self._seen += 1
        self._is_shown, self._size = False, 0
        self._digits.clear()

    def show(self) -> None:
        """The open picture is in a format that can be shown."""
        self._is_shown = True

    def describe(self, words: str) -> None:
        self._words = " ".join(words.split())[:MAX_CHARS]

    def add(self, digits: bytes) -> None:
        """Data of the open picture, as they stand in the file: two digits a byte."""
        self._size += len(digits) // 2
        if self._is_wanted and self._size <= MAX_BYTES:
            self._digits += digits

    def add_binary(self, data: bytes) -> None:
        self._size += len(data)
        if self._is_wanted and self._size <= MAX_BYTES:
            self._digits += data.hex().encode()

    def close(self) -> None:
        is_figure = self._is_shown and self._size >= _MIN_BYTES
        self._waiting.append(f"{_NAME}{self._seen}" if is_figure else "")
        if is_figure and self._is_wanted:
            digits = self._digits.translate(None, _NO_DIGITS)
            self.found = bytes.fromhex(digits[: len(digits) // 2 * 2].decode("ascii"))

    def take(self) -> list[Block]:
        """The figures that were closed: the one of a shape, and no more than one, has its words."""
        figures = []
        for part in self._waiting:
            if part or self._words:
                picture = Picture(part=part) if part else None
                figures.append(Block(kind=BlockKind.FIGURE, text=self._words, page=1, picture=picture))
                self._words = ""
        self._waiting, self._words = [], ""
        return figures

    @property
    def _is_wanted(self) -> bool:
        return self._wanted == f"{_NAME}{self._seen}"
