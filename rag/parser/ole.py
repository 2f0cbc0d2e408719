"""Old Office containers (OLE): which streams are in one, told by their names."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
WORD = "WordDocument"
POWERPOINT = "PowerPoint Document"
ENCRYPTED_PACKAGE = "EncryptedPackage"
ENCRYPTED_POWERPOINT = "EncryptedSummary"
WORKBOOKS = ("Workbook", "Book")
HEADER_BYTES = 512

_READ_BYTES = 1 << 20
_DIRECTORY_BYTES = 16384


def is_container(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def directory(path: Path) -> bytes:
    """The start of the container's own list of streams, whose names are UTF-16."""
    with path.open("rb") as file:
        header = file.read(HEADER_BYTES)
        sector_bytes = 1 << min(int.from_bytes(header[30:32], "little"), 16)
        file.seek((int.from_bytes(header[48:52], "little") + 1) * sector_bytes)
        return file.read(_DIRECTORY_BYTES)


def streams(path: Path, names: Collection[str]) -> set[str]:
    """Those of `names` that the container has, its embedded documents included."""
    wanted = {name: name.encode("utf-16-le") for name in names}
    longest = max(len(mark) for mark in wanted.values())
    found: set[str] = set()
    tail = b""
    with path.open("rb") as file:
        while (data := file.read(_READ_BYTES)) and len(found) < len(wanted):
            window = tail + data
            found |= {name for name, mark in wanted.items() if mark in window}
            tail = window[-longest:]
    return found
