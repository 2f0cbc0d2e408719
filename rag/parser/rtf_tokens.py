"""The marks and the text of an RTF file in a row, and the code pages that its bytes are in."""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

_MAX_TEXT = 65_536
_MAX_BINARY = 64 << 20
_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?[0-9]{1,10})? ?"
    rb"|\\'([0-9a-fA-F]{2})"
    rb"|\\([^a-zA-Z])"
    rb"|([{}])"
    rb"|([^\\{}\r\n]{1,%d})"
    rb"|[\r\n]+|\\" % _MAX_TEXT
)
_BY_CHARSET = {
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gbk",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
    255: "cp850",
}
_BY_NUMBER = {10000: "mac_roman", 10001: "shift_jis", 10007: "mac_cyrillic", 65001: "utf-8", 936: "gbk", 1361: "johab"}
DEFAULT_CODEPAGE = "cp1252"


class TokenKind(Enum):
    OPEN = 1
    CLOSE = 2
    WORD = 3
    SYMBOL = 4
    BYTE = 5
    TEXT = 6
    BINARY = 7


class Token(NamedTuple):
    """`word` is a control word or symbol; `data` are bytes of text, or of a picture."""

    kind: TokenKind
    word: str = ""
    number: int | None = None
    data: bytes = b""


_OPEN = Token(TokenKind.OPEN)
_CLOSE = Token(TokenKind.CLOSE)


def tokens(data: bytes | mmap.mmap) -> Iterator[Token]:
    """All tokens but line ends, which mean nothing."""
    position, size = 0, len(data)
    while position < size and (found := _TOKEN.match(data, position)):
        position = found.end()
        word, number, hexed, symbol, brace, text = found.groups()
        if text is not None:
            yield Token(TokenKind.TEXT, data=text)
        elif word is not None:
            amount = int(number) if number else None
            if word == b"bin":
                end = position + max(0, amount or 0)
                yield Token(TokenKind.BINARY, data=data[position : min(end, position + _MAX_BINARY)])
                position = end
            else:
                yield Token(TokenKind.WORD, word.decode("ascii"), amount)
        elif brace is not None:
            yield _OPEN if brace == b"{" else _CLOSE
        elif hexed is not None:
            yield Token(TokenKind.BYTE, data=bytes.fromhex(hexed.decode("ascii")))
        elif symbol is not None:
            yield Token(TokenKind.SYMBOL, symbol.decode("latin-1"))


def codepage_of_charset(charset: int) -> str | None:
    """The code page of a font's character set; None for those that go by the document's."""
    return _BY_CHARSET.get(charset)


def codepage_of_number(number: int) -> str:
    name = _BY_NUMBER.get(number, f"cp{number}")
    try:
        codecs.lookup(name)
    except LookupError:
        return DEFAULT_CODEPAGE
    return name
