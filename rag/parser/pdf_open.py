"""Opens PDF files, with their password if they have one, and holds the last for its next range.

pdfium is not thread-safe: one process reads one document at a time."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from common.errors import EncryptedFile, UnreadableFile
from rag.parser import pdf_native as native
from rag.parser.blocks import PLAIN, ReadOptions
from rag.parser.file_key import file_key
from rag.parser.layout import Page
from rag.parser.pdf_page import read_page

_SAMPLE_PAGES = 12
# pdfium keeps what it has read of a document until that is closed: after as many pages it is opened anew, which takes
# some milliseconds, the more the further in its next page is. Memory stays what it is however many pages there are.
_PAGES_AT_ONCE = 1_000
_MAX_OPENINGS = 20
# For most of what a document says of itself; where pdfium puts it.
_metadata_room = ctypes.create_string_buffer(1024)


class OpenFile:
    """One open document, and the pages already read of it for the profile."""

    def __init__(self, path: Path, name: str, password: str) -> None:
        self.path = path
        self.key = (file_key(path), password)
        self.document = _load(path, name, password)
        self._name, self._password = name, password
        self._sampled: dict[int, Page] = {}
        self._merged: dict[int, int] = {}
        self._read, self._most = 0, max(_PAGES_AT_ONCE, len(self.document) // _MAX_OPENINGS)

    def page(self, index: int, *, ocr: bool) -> Page:
        sampled = self._sampled.get(index)
        if sampled is not None:
            return sampled
        if self._read >= self._most and self._is_unchanged():
            self._open_anew()
        self._read += 1
        return read_page(self.document, self.path, index, ocr=ocr, merged=self._merged)

    def sample(self) -> list[Page]:
        """Some pages from all over the document. Those that are pictures are left for their range to read."""
        pages = []
        for index in _spread(len(self.document), _SAMPLE_PAGES):
            # A bad page is reported by the range that it is in, not by the whole document.
            with suppress(UnreadableFile):
                page = self.page(index, ocr=False)
                pages.append(page)
                if page.is_whole:
                    self._sampled[index] = page
        return pages

    def metadata(self, key: str) -> str:
        """What the document says of itself; empty if nothing."""
        name, room = key.encode(), _metadata_room
        count = native.meta_text(self.document.raw, name, room, len(room))
        if count > len(room):
            room = ctypes.create_string_buffer(count)
            native.meta_text(self.document.raw, name, room, count)
        return str(memoryview(room)[: max(0, count - 2)], "utf-16-le", "replace")

    def close(self) -> None:
        self.document.close()

    def _open_anew(self) -> None:
        document = _load(self.path, self._name, self._password)
        self.document.close()
        self.document = document
        # What was made a part of pages was so in the memory of the other.
        self._merged.clear()
        self._read = 0

    def _is_unchanged(self) -> bool:
        """A file that was replaced or removed while it is read is read on as it was."""
        try:
            return file_key(self.path) == self.key[0]
        except FileNotFoundError:
            return False


class _Held:
    """The document that was read last."""

    def __init__(self) -> None:
        self._open: OpenFile | None = None

    def get(self, path: Path, name: str, password: str) -> OpenFile:
        if self._open is not None and self._open.key == (file_key(path), password):
            return self._open
        self.release()
        self._open = OpenFile(path, name, password)
        return self._open

    def release(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None


_held = _Held()


def open_file(path: Path, name: str, options: ReadOptions = PLAIN) -> OpenFile:
    """The file, opened unless it is the one that was read last.

    Raises EncryptedFile, or UnreadableFile for a file that pdfium can't open."""
    return _held.get(path, name, options.password)


def release() -> None:
    """Close the file that was read last."""
    _held.release()


def _load(path: Path, name: str, password: str) -> pdfium.PdfDocument:
    # Not by PdfDocument(path): it takes a file without pages for one that fails, with the error of the last
    # file that did.
    for secret in _encoded(password):
        raw = pdfium_c.FPDF_LoadDocument(os.fsencode(path) + b"\0", secret)
        if raw:
            return pdfium.PdfDocument(raw)
        error = pdfium_c.FPDF_GetLastError()
        if error == pdfium_c.FPDF_ERR_SECURITY:
            raise EncryptedFile(f"{name} is encrypted in a way that can't be read")
        if error != pdfium_c.FPDF_ERR_PASSWORD:
            raise UnreadableFile(f"{name} is damaged and can't be opened as a PDF")
    if password:
        raise EncryptedFile(f"{name} is encrypted, and the password given for it is wrong")
    raise EncryptedFile(f"{name} is encrypted and needs a password")


def _encoded(password: str) -> Iterator[bytes | None]:
    """Newer files take a password in UTF-8, older ones in Latin-1."""
    if not password:
        yield None
        return
    yield password.encode("utf-8", "replace") + b"\0"
    if not password.isascii():
        with suppress(UnicodeEncodeError):
            yield password.encode("latin-1") + b"\0"


def _spread(count: int, most: int) -> list[int]:
    """At most `most` of 0..count-1, evenly, with the first and the last."""
    if count <= most:
        return list(range(count))
    return [position * (count - 1) // (most - 1) for position in range(most)]
