"""Checks a workbook before it is handed to the library that reads it, which lays every sheet out as a full grid
from its first cell to its last and ends the process where memory runs out.

So the parts are unpacked once, in pieces, to see how large they really are and how far apart the cells stand."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from common.errors import EncryptedFile, UnreadableFile
from rag.parser.sheet_area import watch_of

MAX_TOTAL_BYTES = 1 << 30
MAX_MEMBERS = 20_000
# Sheets of the same row over and over shrink by 1:100; bombs go for 1:1000. Small parts may: they cost nothing.
MAX_RATIO = 250
_RATIO_FROM_BYTES = 16 << 20
_READ_BYTES = 1 << 20
_DEFLATE_LIMIT = 1040
# All that workbooks use. The others could also take memory far beyond what they give.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MANIFEST = "META-INF/manifest.xml"

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# How a locked package says so, and the record after the first one of an old workbook with a password.
_LOCKED = re.compile(
    re.escape("EncryptedPackage".encode("utf-16-le")) + rb"|\x09\x08\x10\x00[\s\S]{16}(?:\x86\x00\x00\x00)?\x2f\x00"
)
_LOCKED_BYTES = 64
_OLE_HEAD_BYTES = 512
# Where the head says how many sectors the directory and the tables of sectors take.
_OLE_COUNTS = (40, 44, 64, 72)
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, expat.ExpatError),
    *(EOFError, OSError, ValueError, NotImplementedError),
)


def check(path: Path, name: str) -> None:
    """Raises EncryptedFile, or UnreadableFile for what is damaged, a bomb, or spread too far."""
    with path.open("rb") as file:
        if file.read(len(_OLE)) == _OLE:
            _check_container(path, name)
            return
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive, path.stat().st_size, name)
    except _DAMAGE as exc:
        raise UnreadableFile(f"{name} is damaged and can't be opened as a workbook") from exc
    except RuntimeError as exc:  # what zipfile raises for a part with a password
        raise EncryptedFile(f"{name} is encrypted; save it without a password") from exc


def _check_container(path: Path, name: str) -> None:
    """Refuses one with a password, and one that claims more tables than it has room for."""
    tail = b""
    with path.open("rb") as file:
        head = file.read(_OLE_HEAD_BYTES).ljust(_OLE_HEAD_BYTES, b"\0")
        sectors = path.stat().st_size // _OLE_HEAD_BYTES
        if any(struct.unpack_from("<I", head, offset)[0] > sectors for offset in _OLE_COUNTS):
            raise UnreadableFile(f"{name} is damaged and can't be opened as a workbook")
        while data := file.read(_READ_BYTES):
            if _LOCKED.search(tail + data):
                raise EncryptedFile(f"{name} is protected by a password; save it without one")
            tail = data[-_LOCKED_BYTES:]


def _check_archive(archive: zipfile.ZipFile, packed_bytes: int, name: str) -> None:
    members = archive.infolist()
    if len(members) > MAX_MEMBERS:
        raise UnreadableFile(f"{name} has too many parts in it: {len(members):,}")
    _refuse_locked_parts(archive, name)
    seen = 0
    for info in members:
        part = info.filename.lower()
        if not part.endswith((".xml", ".bin")):
            continue
        watch = watch_of(part, name)
        for data in _unpacked(archive, info):
            seen += len(data)
            if seen > MAX_TOTAL_BYTES or (seen > _RATIO_FROM_BYTES and seen > MAX_RATIO * packed_bytes):
                raise UnreadableFile(f"{name} is too large once unpacked")
            watch.feed(data)
        watch.end()


def _refuse_locked_parts(archive: zipfile.ZipFile, name: str) -> None:
    """OpenDocument locks its parts one by one, and lists them with the key's details."""
    if _MANIFEST in archive.namelist():
        with archive.open(_MANIFEST) as file:
            if b"encryption-data" in file.read(_READ_BYTES):
                raise EncryptedFile(f"{name} is protected by a password; save it without one")


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    if info.compress_type not in _METHODS:
        raise NotImplementedError
    # The size an archive states is not to be trusted: let zipfile go on to where the data really ends.
    info.file_size = info.compress_size * _DEFLATE_LIMIT + _READ_BYTES
    with archive.open(info) as file:
        while data := file.read(_READ_BYTES):
            yield data
