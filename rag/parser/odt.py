"""OpenDocument texts (.odt): the profile, and the blocks of the whole file, which is one unit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions
from rag.parser.odt_body import OdtBody
from rag.parser.odt_package import OdtPackage
from rag.parser.prose import first_heading, whole_profile
from rag.parser.zip_parts import ZipParts


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile, EncryptedFile, WrongKind, or UnreadableFile for a damaged or hostile file."""
    with ZipParts(path, name) as parts:
        package = OdtPackage(parts, name)
        known = package.properties()
        heading = first_heading(OdtBody(package).blocks(), name)
    return whole_profile(FileKind.ODT, known, heading)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    with ZipParts(path, path.name) as parts:
        yield from OdtBody(OdtPackage(parts, path.name)).blocks()
