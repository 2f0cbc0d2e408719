"""Safe reading of documents that are ZIP archives of parts (Word, OpenDocument, PowerPoint, EPUB).

Nothing is unpacked to disk. Members, bytes and compression are bounded by what is really read, never by what the
archive says of itself, and XML is parsed without entities and without the network."""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from lxml import etree

from common.errors import EncryptedFile, UnreadableFile
from rag.parser import ole

MAX_MEMBERS = 20_000
MAX_PART_BYTES = 256 << 20
MAX_XML_BYTES = 96 << 20  # its tree takes several times as much
MAX_TOTAL_BYTES = 1 << 30
# Text seldom shrinks by more than 1:50. Small parts may: they cost nothing.
MAX_RATIO = 250
_RATIO_FROM_BYTES = 8 << 20

_READ_BYTES = 1 << 20
_MAX_DIRECTORY_BYTES = 8 << 20
_TAIL_BYTES = 22 + 65_535 + 20 + 56
_IS_ENCRYPTED = 0x1
# All that the formats allow. The others could also take memory far beyond what they give.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, RuntimeError)


class ZipParts:
    """The parts of a zipped document by name. `name` is what its owner calls the file, for the messages.

    Raises UnreadableFile for what is damaged or too large, EncryptedFile for what needs a password."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self._left = MAX_TOTAL_BYTES
        _refuse_ole(path, name)
        if _directory_bytes(path) > _MAX_DIRECTORY_BYTES:
            raise UnreadableFile(f"{name} has too many parts in it")
        try:
            self._zip = zipfile.ZipFile(path)
        except _DAMAGE as exc:
            raise UnreadableFile(f"{name} is damaged and can't be opened") from exc
        members = self._zip.infolist()
        if len(members) > MAX_MEMBERS:
            self._zip.close()
            raise UnreadableFile(f"{name} has too many parts in it: {len(members)}, and {MAX_MEMBERS} are allowed")
        self._members = {safe: info for info in members if not info.is_dir() and (safe := _safe_name(info.filename))}
        # Names of parts are the same in any case; some programs rely on that.
        self._folded = {part.casefold(): part for part in self._members}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._zip.close()

    def names(self) -> list[str]:
        """The parts in the archive's order; names that lead out of the archive are left out."""
        return list(self._members)

    def has(self, part: str) -> bool:
        return self._find(part) is not None

    def size(self, part: str) -> int:
        """How large the part says it is. Raises UnreadableFile if there is none."""
        return self._info(part).file_size

    def read(self, part: str, most: int = MAX_PART_BYTES) -> bytes:
        """The bytes of a part of at most `most` bytes."""
        info = self._info(part)
        if info.flag_bits & _IS_ENCRYPTED:
            raise EncryptedFile(f"{self.name} is encrypted and needs a password")
        if info.compress_type not in _METHODS:
            raise UnreadableFile(f"{self.name} is compressed in a way that can't be read")
        try:
            return self._decompress(info, min(most, self._left))
        except _DAMAGE as exc:
            raise UnreadableFile(f"{self.name} is damaged: its part {part} can't be read") from exc

    def xml(self, part: str) -> etree._Element:
        """The root element of a part that is XML, without comments and processing instructions."""
        return parse_xml(self.read(part, MAX_XML_BYTES), f"{self.name} is damaged: its part {part}")

    def _decompress(self, info: zipfile.ZipInfo, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        with self._zip.open(info) as file:
            while data := file.read(_READ_BYTES):
                parts.append(data)
                size += len(data)
                if size > most or (size > _RATIO_FROM_BYTES and size > MAX_RATIO * max(1, info.compress_size)):
                    raise UnreadableFile(f"{self.name} is too large once unpacked: its part {info.filename}")
        self._left -= size
        return b"".join(parts)

    def _info(self, part: str) -> zipfile.ZipInfo:
        found = self._find(part)
        if found is None:
            raise UnreadableFile(f"{self.name} is damaged: its part {part} is missing")
        return self._members[found]

    def _find(self, part: str) -> str | None:
        wanted = part.lstrip("/")
        return wanted if wanted in self._members else self._folded.get(wanted.casefold())


def parse_xml(data: bytes, what: str) -> etree._Element:
    """The root element. Raises UnreadableFile, whose message begins with `what`, for bad or hostile XML."""
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as exc:
        raise UnreadableFile(f"{what} is not valid XML") from exc
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and next(declared.iterentities(), None) is not None:
        raise UnreadableFile(f"{what} declares entities, which are not allowed in it")
    return root


def resolve(base: str, target: str) -> str:
    """The part that `target`, a relative or absolute reference in the part `base`, means; "" if it is outside."""
    target = unquote(target.split("#", 1)[0])
    joined = target if target.startswith("/") else posixpath.join(posixpath.dirname(base), target)
    return _safe_name(joined)


def _safe_name(name: str) -> str:
    """The name without detours; "" for one that leads out of the archive."""
    normal = posixpath.normpath(name.replace("\\", "/")).lstrip("/")
    return "" if normal == "." or normal == ".." or normal.startswith("../") else normal


def _refuse_ole(path: Path, name: str) -> None:
    """An encrypted Office document is an old-style container with the ZIP archive locked inside."""
    if not ole.is_container(path):
        return
    if ole.streams(path, [ole.ENCRYPTED_PACKAGE]):
        raise EncryptedFile(f"{name} is encrypted and needs a password")
    raise UnreadableFile(f"{name} is an old Office document under a new name")


def _directory_bytes(path: Path) -> int:
    """The size of the archive's directory, which zipfile would read at once; 0 where there is none."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read(_TAIL_BYTES)
    end = tail.rfind(b"PK\x05\x06")
    if end < 0 or len(tail) < end + 22:
        return 0
    (directory,) = struct.unpack_from("<L", tail, end + 12)
    wide = tail.rfind(b"PK\x06\x06", 0, end)
    if wide >= 0 and len(tail) >= wide + 56:
        directory = max(0 if directory == 0xFFFFFFFF else directory, *struct.unpack_from("<Q", tail, wide + 40))
    return int(directory)
