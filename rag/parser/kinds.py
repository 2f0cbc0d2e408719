"""What a file is, decided by its bytes. The name is a hint between kinds of text, and a promise that is
checked where it says PDF. Reading the file is left to the module of its kind."""

from __future__ import annotations

import codecs
from pathlib import Path, PurePath

from common.errors import EmptyFile, WrongKind
from rag.parser.blocks import FileKind

SUPPORTED = "PDF, plain text, Markdown and CSV files are supported"

_HEAD_BYTES = 65536
# pdfium looks for the header in the first kilobyte, so files with junk before it open everywhere.
_PDF_WINDOW = 1024 + len(b"%PDF-")

_BY_SUFFIX = {
    ".md": FileKind.MARKDOWN,
    ".markdown": FileKind.MARKDOWN,
    ".csv": FileKind.CSV,
    ".tsv": FileKind.CSV,
}

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"BM", "a BMP image"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"(\xb5/\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document (.doc, .xls or .ppt)"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript file"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"ID3", "an MP3 recording"),
    (b"OggS", "an Ogg recording"),
)
# Signatures that a text could begin with by chance: they count only if the rest is no text.
_WEAK = (b"BM", b"MZ", b"ID3", b"GIF8", b"BZh", b"OggS")
_ZIPPED = (
    (b"word/", "a Word document"),
    (b"xl/", "an Excel workbook"),
    (b"ppt/", "a PowerPoint presentation"),
)
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def detect(path: Path, name: str) -> FileKind:
    """The kind of the file at `path`, which its owner calls `name`.

    Raises EmptyFile, or WrongKind that says what the file seems to be."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise EmptyFile(f"{name} is empty")
    suffix = PurePath(name).suffix.lower()
    text = is_text(head)
    if head.startswith(b"%PDF-") or (b"%PDF-" in head[:_PDF_WINDOW] and (suffix == ".pdf" or not text)):
        return FileKind.PDF
    if suffix == ".pdf":
        raise WrongKind(f"{name} is not a PDF: its content looks like {_describe(head, text)}")
    seems = _signature(head, text)
    if seems or not text:
        raise WrongKind(f"{name} is {seems or 'a binary file of an unknown kind'}; {SUPPORTED}")
    return _BY_SUFFIX.get(suffix, FileKind.TEXT)


def is_text(head: bytes) -> bool:
    """Whether bytes from the start of a file read as text in some encoding."""
    if head.startswith(_BOMS) or wide_encoding(head):
        return True
    controls = sum(head.count(bytes([code])) for code in _CONTROLS) / len(head)
    return controls <= (0.10 if _is_utf8(head) else 0.02)


# Bytes that no text needs: a text has next to none of them, random bytes have one in ten.
_CONTROLS = tuple(code for code in (*range(32), 127) if code not in b"\t\n\v\f\r\x1b\x08")


def wide_encoding(head: bytes) -> str:
    """UTF-16 without a byte order mark, known by the zero in every other byte; "" if it is not."""
    even, odd = head[0:4096:2], head[1:4096:2]
    if not odd:
        return ""
    even_zeros, odd_zeros = even.count(0) / len(even), odd.count(0) / len(odd)
    if odd_zeros > 0.4 and even_zeros < 0.05:
        return "utf-16-le"
    if even_zeros > 0.4 and odd_zeros < 0.05:
        return "utf-16-be"
    return ""


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _describe(head: bytes, text: bool) -> str:
    start = head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "HTML"
    if start.startswith(b"<?xml"):
        return "XML"
    return _signature(head, text) or ("text" if text else "a binary file of an unknown kind")


def _signature(head: bytes, text: bool) -> str:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return next((words for mark, words in _ZIPPED if mark in head), "a ZIP archive")
    if head[:4] == b"RIFF" and head[8:12] in (b"WEBP", b"WAVE", b"AVI "):
        return {b"WEBP": "a WebP image", b"WAVE": "a WAV recording"}.get(head[8:12], "an AVI video")
    if head[4:8] == b"ftyp":
        return "an MP4 video"
    for mark, words in _SIGNATURES:
        if head.startswith(mark) and not (text and mark in _WEAK):
            return words
    return ""
