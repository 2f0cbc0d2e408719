"""The one entry to reading files: finds the kind of a file and hands on to the module that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag.parser import csv_rows, kinds, markdown, pdf, text
from rag.parser.blocks import Block, FileKind, Profile

_PROFILES = {
    FileKind.PDF: pdf.profile,
    FileKind.TEXT: text.profile,
    FileKind.MARKDOWN: markdown.profile,
    FileKind.CSV: csv_rows.profile,
}


def profile(path: Path, name: str) -> Profile:
    """What the file at `path`, called `name` by its owner, is and how it splits.

    Raises a DocumentError where it can't be read."""
    return _PROFILES[kinds.detect(path, name)](path, name)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int) -> Iterator[Block]:
    """The blocks of the units from `from_unit`, counted from 0, up to but without `to_unit`."""
    match profile.kind:
        case FileKind.PDF:
            return pdf.read(path, profile, from_unit, to_unit)
        case FileKind.CSV:
            return csv_rows.read(path, profile, from_unit, to_unit)
        case FileKind.MARKDOWN:
            return markdown.read(path, profile)
        case FileKind.TEXT:
            return text.read(path, profile)
