"""The bytes of a picture that is inside a document and has a name there: a part of a zipped document, or the picture of
that number in an HTML page or an RTF file, as figures name them."""

from __future__ import annotations

from pathlib import Path

from common.errors import InvalidInput, NotFound, UnreadableFile
from rag.parser.blocks import FileKind

MAX_BYTES = 64 << 20


def read_part(path: Path, name: str, kind: FileKind, part: str) -> bytes:
    """Raises InvalidInput for a document whose pictures have no names, NotFound for a name that it does not have, and
    UnreadableFile for a picture that is damaged or too large."""
    if kind is FileKind.HTML:
        data = _in_page(path, part)
    elif kind is FileKind.RTF:
        from rag.parser import rtf

        data = rtf.picture(path, part)
    else:
        data = _zipped(path, name, part)
    if not data:
        raise NotFound(f"{name} has no part {part}")
    if len(data) > MAX_BYTES:
        raise UnreadableFile(f"{part} is too large a picture to be shown")
    return data


def _in_page(path: Path, part: str) -> bytes:
    from rag.parser import html, html_pictures  # lxml, which the others don't need

    address = html.picture(path, part)
    try:
        return html_pictures.content(address) if address else b""
    except ValueError as exc:
        raise UnreadableFile(f"{part} is damaged: {exc}") from exc


def _zipped(path: Path, name: str, part: str) -> bytes:
    with path.open("rb") as file:
        if file.read(2) != b"PK":
            raise InvalidInput(f"{name} has no pictures with names")
    from rag.parser.zip_parts import ZipParts

    with ZipParts(path, name) as parts:
        return parts.read(part, MAX_BYTES) if parts.has(part) else b""
