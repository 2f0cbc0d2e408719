"""What a file is, decided by its bytes. The name is a hint between kinds of text, and a promise that is
checked where it says PDF. Reading the file is left to the module of its kind."""

from __future__ import annotations

import codecs
import re
import zipfile
import zlib
from pathlib import Path, PurePath

from common.errors import EmptyFile, EncryptedFile, UnreadableFile, WrongKind
from rag.parser import ole
from rag.parser.blocks import FileKind

SUPPORTED = (
    "PDF, Word, Excel, PowerPoint, OpenDocument, RTF, HTML, EPUB, e-mail, JSON, CSV, Markdown, text, source code and"
    " pictures are supported"
)

_HEAD_BYTES = 65536
# pdfium looks for the header in the first kilobyte, so files with junk before it open everywhere.
_PDF_WINDOW = 1024 + len(b"%PDF-")

_CODE_SUFFIXES = "py js ts jsx tsx java c cc cpp h hpp cs go rs rb php sh kt swift scala sql r lua pl yml yaml toml ini"
_BY_SUFFIX = {
    ".md": FileKind.MARKDOWN,
    ".markdown": FileKind.MARKDOWN,
    ".mdx": FileKind.MARKDOWN,
    ".csv": FileKind.CSV,
    ".tsv": FileKind.CSV,
    ".html": FileKind.HTML,
    ".htm": FileKind.HTML,
    ".xhtml": FileKind.HTML,
    ".json": FileKind.JSON,
    ".jsonl": FileKind.JSON_LINES,
    ".ndjson": FileKind.JSON_LINES,
    ".ldjson": FileKind.JSON_LINES,
    ".jsonlines": FileKind.JSON_LINES,
    ".geojson": FileKind.JSON,
    ".eml": FileKind.EMAIL,
    ".mbox": FileKind.MBOX,
    **{f".{suffix}": FileKind.CODE for suffix in _CODE_SUFFIXES.split()},
}
_IMAGES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
# The streams that tell what an OLE file is.
_OLE_STREAMS = (
    (ole.ENCRYPTED_PACKAGE, None),
    (ole.WORD, FileKind.LEGACY_OFFICE),
    (ole.POWERPOINT, FileKind.LEGACY_OFFICE),
    *((name, FileKind.SHEETS) for name in ole.WORKBOOKS),
)
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\0", "an xz archive"),
    (b"(\xb5/\xfd", "a Zstandard archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"%!PS", "a PostScript file"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x7fELF", "a Linux program"),
    (b"MZ", "a Windows program"),
    (b"ID3", "an MP3 recording"),
    (b"OggS", "an Ogg recording"),
)
# Signatures that a text could begin with by chance: they count only if the rest is no text.
_WEAK = (b"MZ", b"ID3", b"BZh", b"OggS")
_ZIPPED = (
    ("word/", FileKind.DOCX),
    ("xl/", FileKind.SHEETS),
    ("ppt/", FileKind.PPTX),
)
_MIMETYPES = {
    b"application/epub+zip": FileKind.EPUB,
    b"application/vnd.oasis.opendocument.text": FileKind.ODT,
    b"application/vnd.oasis.opendocument.spreadsheet": FileKind.SHEETS,
}
_MAX_MEMBERS_SEEN = 10_000
_MAIL_HEADERS = re.compile(
    rb"(?:From |(?:From|To|Cc|Subject|Date|Received|Return-Path|Delivered-To|Message-ID|MIME-Version|Content-Type"
    rb"|X-[\w-]+):)[^\r\n]*",
    re.IGNORECASE,
)
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


def detect(path: Path, name: str) -> FileKind:
    """The kind of the file at `path`, which its owner calls `name`.

    Raises EmptyFile, or WrongKind that says what the file seems to be."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise EmptyFile(f"{name} is empty")
    if head.startswith(b"%PDF-"):
        return FileKind.PDF
    suffix = PurePath(name).suffix.lower()
    text = is_text(head)
    if b"%PDF-" in head[:_PDF_WINDOW] and (suffix == ".pdf" or not text):
        return FileKind.PDF
    if suffix == ".pdf":
        raise WrongKind(f"{name} is not a PDF: its content looks like {_describe(head, text)}")
    kind = _packed_kind(path, name, head) or (FileKind.IMAGE if _is_image(head) else None)
    if kind is not None:
        return kind
    seems = _signature(head, text)
    if seems or not text:
        raise WrongKind(f"{name} is {seems or 'a binary file of an unknown kind'}; {SUPPORTED}")
    if head.startswith(b"{\\rtf"):
        return FileKind.RTF
    return _BY_SUFFIX.get(suffix) or _text_kind(head)


def _packed_kind(path: Path, name: str, head: bytes) -> FileKind | None:
    """What is in a ZIP or an OLE container; None for other files, and for containers of something else."""
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zipped_kind(path, name)
    return _ole_kind(path, name) if head.startswith(ole.MAGIC) else None


def _zipped_kind(path: Path, name: str) -> FileKind | None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member.filename for member in archive.infolist()[:_MAX_MEMBERS_SEEN]]
            if "mimetype" in members:
                with archive.open("mimetype") as declared:
                    return _MIMETYPES.get(declared.read(200).strip())
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, zlib.error) as exc:
        raise UnreadableFile(f"{name} is a damaged ZIP file, as Office and EPUB files are") from exc
    return next((kind for folder, kind in _ZIPPED if any(m.startswith(folder) for m in members)), None)


def _ole_kind(path: Path, name: str) -> FileKind | None:
    if path.stat().st_size < ole.HEADER_BYTES:
        raise UnreadableFile(f"{name} is cut off: the start of an old Office file and no more")
    directory = ole.directory(path)
    for stream, kind in _OLE_STREAMS:
        if stream.encode("utf-16-le") in directory:
            if kind is None:
                raise EncryptedFile(f"{name} is encrypted and needs a password, which Office files can't be given here")
            return kind
    return None


def _is_image(head: bytes) -> bool:
    if head.startswith(_IMAGES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP"):
        return True
    return head.startswith(b"BM") and head[6:10] == bytes(4) and int.from_bytes(head[14:18], "little") in _BMP_HEADERS


def _text_kind(head: bytes) -> FileKind:
    """For a text whose name says nothing."""
    start = head[:2048].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return FileKind.HTML
    lines = head[:4096].splitlines()[:4]
    if len(lines) >= 3 and sum(bool(_MAIL_HEADERS.match(line)) for line in lines) >= 3:
        return FileKind.MBOX if lines[0].startswith(b"From ") else FileKind.EMAIL
    return FileKind.TEXT


def is_text(head: bytes) -> bool:
    """Whether bytes from the start of a file read as text in some encoding."""
    if head.startswith(_BOMS) or wide_encoding(head):
        return True
    controls = sum(head.count(bytes([code])) for code in _CONTROLS) / len(head)
    return controls <= (0.10 if _is_utf8(head) else 0.02)


# Bytes that no text needs: a text has next to none of them, random bytes have one in ten.
_CONTROLS = tuple(code for code in (*range(32), 127) if code not in b"\t\n\v\f\r\x1b\x08")


def wide_encoding(head: bytes) -> str:
    """UTF-16 or UTF-32 without a byte order mark, known by the zeros in every other byte, or in three of four; "" if
    it is neither."""
    if wider := _wider_encoding(head[: len(head) // 4 * 4][:4096]):
        return wider
    even, odd = head[0:4096:2], head[1:4096:2]
    if not odd:
        return ""
    even_zeros, odd_zeros = even.count(0) / len(even), odd.count(0) / len(odd)
    if odd_zeros > 0.4 and even_zeros < 0.05:
        return "utf-16-le"
    if even_zeros > 0.4 and odd_zeros < 0.05:
        return "utf-16-be"
    return ""


def _wider_encoding(head: bytes) -> str:
    quarters = [head[at::4] for at in range(4)]
    if not head or any(quarters[3]) == any(quarters[0]):
        return ""
    encoding = "utf-32-be" if any(quarters[3]) else "utf-32-le"
    try:
        text = head.decode(encoding)
    except UnicodeDecodeError:
        return ""
    return encoding if text.count("\x00") < 0.05 * len(text) else ""


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
        # Of OpenDocument the first part says what it is, and is not packed.
        if b"mimetypeapplication/vnd.oasis.opendocument.presentation" in head[:128]:
            return "an OpenDocument presentation (to be read, save it as .pptx)"
        return "a ZIP archive"
    if head.startswith(ole.MAGIC):
        return "an old Office file of an unknown kind"
    if _is_image(head):
        return "a picture"
    if head[:4] == b"RIFF" and head[8:12] in (b"WAVE", b"AVI "):
        return "a WAV recording" if head[8:12] == b"WAVE" else "an AVI video"
    if head[4:8] == b"ftyp":
        return "an MP4 video"
    for mark, words in _SIGNATURES:
        if head.startswith(mark) and not (text and mark in _WEAK):
            return words
    return ""
