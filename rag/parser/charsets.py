"""Encodings by the names that pages and messages give them, and bytes in memory as text."""

from __future__ import annotations

import codecs
import tempfile
from pathlib import Path

from rag.parser.text import detect_encoding

# As browsers read these names: the larger encoding that files under them are in.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
    "tis-620": "cp874",
}
# No texts are written in these, and some of them fail whatever one asks for.
_REFUSED = (
    "idna",
    "punycode",
    "undefined",
    "unicode_escape",
    "unicode-escape",
    "raw_unicode_escape",
    "raw-unicode-escape",
)
# They look like ASCII, so only who wrote them can tell.
SEVEN_BIT = ("iso2022_jp", "hz", "utf-7")
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def named(label: str) -> str:
    """Python's name of the encoding that is meant; "" if there is none of this name."""
    label = label.strip().strip("\"'")
    if not label.isascii() or not label.isprintable():
        return ""
    try:
        codec = codecs.lookup(label)
        "".encode(codec.name)
    except (LookupError, UnicodeError):  # none of this name, or none of text
        return ""
    return "" if codec.name in _REFUSED else _MEANT.get(codec.name, codec.name)


def decode(data: bytes, label: str = "") -> str:
    """The text of `data`, which is said to be in the encoding `label`. Never fails."""
    said = named(label)
    if said not in SEVEN_BIT and not said.startswith(("utf-16", "utf-32")):
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
    if said in ("", "utf-8") or data.startswith(_MARKS):
        said = _detected(data)
    # Some decoders let through halves of characters, which nothing can store.
    return data.decode(said, errors="replace").encode("utf-8", "replace").decode()


def to_bytes(raw: str) -> bytes:
    """The bytes of a text that a library read as ASCII, with every other byte put away in a lone surrogate."""
    try:
        return raw.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return raw.encode("utf-8", "replace")


def _detected(data: bytes) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_bytes(data)
        return detect_encoding(path)
