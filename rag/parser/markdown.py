"""Markdown: headings, list items, code fences and tables as blocks of their own. The whole file is one unit.

Line-based: what decides where a chunk may be cut is how a line begins. Marks within a line stay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rag.parser import text
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions

_MAX_TITLE = 200
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-{2,})[ \t]*$")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+\S")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_TABLE_RULE = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile for a file of white space."""
    base = msgspec.structs.replace(text.profile(path, name, options), kind=FileKind.MARKDOWN)
    title = next(
        (block.text for block in read(path, base, 0, base.units, options) if block.kind is BlockKind.HEADING), ""
    )
    return msgspec.structs.replace(base, title=title[:_MAX_TITLE])


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    reader = _Reader()
    for line in text.lines(path, profile.encoding):
        yield from reader.feed(line)
    yield from reader.flush()


class _Reader:
    """Collects the lines of the block that is open; `feed` gives the blocks that a line completes."""

    def __init__(self) -> None:
        self._kind = BlockKind.PARAGRAPH
        self._lines: list[str] = []
        self._size = 0
        self._fence = ""

    def feed(self, line: str) -> Iterator[Block]:
        if self._size + len(line) > text.MAX_CHARS:
            yield from self.flush()
        if self._fence:
            yield from self._feed_code(line)
        elif fence := _FENCE.match(line):
            yield from self._open(BlockKind.CODE, line)
            self._fence = fence[1]
        elif not line.strip():
            yield from self.flush()
        elif heading := _HEADING.match(line):
            yield from self.flush()
            yield from _heading(heading[2] or "", len(heading[1]))
        elif self._underlines(line):
            title = self._take()
            yield from _heading(title, 1 if "=" in line else 2)
        elif self._kind is BlockKind.PARAGRAPH and len(self._lines) == 1 and self._rules(line):
            self._kind = BlockKind.TABLE
            self._add(line)
        elif _ITEM.match(line):
            yield from self._open(BlockKind.LIST_ITEM, line)
        else:
            self._add(line)

    def flush(self) -> Iterator[Block]:
        kind, joined = self._kind, self._take()
        if joined.strip():
            yield Block(kind=kind, text=joined, page=1)

    def _feed_code(self, line: str) -> Iterator[Block]:
        if not self._lines:  # the block was cut for its size
            self._kind = BlockKind.CODE
        self._add(line)
        stripped = line.strip()
        if stripped.startswith(self._fence) and not stripped.strip(self._fence[0]):
            self._fence = ""
            yield from self.flush()

    def _underlines(self, line: str) -> bool:
        return self._kind is BlockKind.PARAGRAPH and bool(self._lines) and bool(_UNDERLINE.match(line))

    def _rules(self, line: str) -> bool:
        return "|" in self._lines[0] and "|" in line and bool(_TABLE_RULE.match(line))

    def _open(self, kind: BlockKind, line: str) -> Iterator[Block]:
        yield from self.flush()
        self._kind = kind
        self._add(line)

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _take(self) -> str:
        joined = "\n".join(self._lines)
        self._kind, self._lines, self._size = BlockKind.PARAGRAPH, [], 0
        return joined


def _heading(title: str, level: int) -> Iterator[Block]:
    if title.strip():
        yield Block(kind=BlockKind.HEADING, text=title.strip(), page=1, level=level)
