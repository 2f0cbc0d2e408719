"""Word documents (.docx, .docm, .dotx): the profile, and the blocks of the whole file, which is one unit.

Headers and footers, comments and removed text are left out. Macros are never looked at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions
from rag.parser.docx_body import Body
from rag.parser.docx_package import Package
from rag.parser.prose import first_heading, whole_profile
from rag.parser.zip_parts import ZipParts


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile, EncryptedFile, WrongKind, or UnreadableFile for a damaged or hostile file."""
    with ZipParts(path, name) as parts:
        package = Package(parts, name)
        known = package.properties()
        heading = first_heading(Body(package).blocks(), name)
    return whole_profile(FileKind.DOCX, known, heading)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    with ZipParts(path, path.name) as parts:
        yield from Body(Package(parts, path.name)).blocks()
