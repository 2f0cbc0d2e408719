"""The one entry to reading files: finds the kind of a file and hands on to the module that reads it.

A module of a kind has two functions, `profile(path, name, options)` and `read(path, profile, from_unit, to_unit,
options)`; both raise a DocumentError where the file can't be read."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from rag.parser import kinds
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions

# By name: a parser process imports the libraries of a kind with the first file of that kind.
_MODULES = {
    FileKind.PDF: "pdf",
    FileKind.TEXT: "text",
    FileKind.MARKDOWN: "markdown",
    FileKind.CSV: "csv_rows",
    FileKind.SHEETS: "sheets",
    FileKind.DOCX: "docx",
    FileKind.ODT: "odt",
    FileKind.RTF: "rtf",
    FileKind.PPTX: "pptx",
    FileKind.HTML: "html",
    FileKind.EPUB: "epub",
    FileKind.EMAIL: "email_parts",
    FileKind.MBOX: "email_parts",
    FileKind.JSON: "json_values",
    FileKind.JSON_LINES: "json_values",
    FileKind.CODE: "code",
    FileKind.IMAGE: "image",
    FileKind.LEGACY_OFFICE: "legacy_office",
}


class Parser(Protocol):
    def profile(self, path: Path, name: str, options: ReadOptions = PLAIN) -> Profile: ...

    def read(
        self, path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN
    ) -> Iterator[Block]: ...


def parser_of(kind: FileKind) -> Parser:
    return cast(Parser, import_module(f"rag.parser.{_MODULES[kind]}"))


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """What the file at `path`, called `name` by its owner, is and how it splits."""
    return parser_of(kinds.detect(path, name)).profile(path, name, options)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of the units from `from_unit`, counted from 0, up to but without `to_unit`."""
    return parser_of(profile.kind).read(path, profile, from_unit, to_unit, options)
