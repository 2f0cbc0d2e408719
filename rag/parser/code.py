"""Source code: blocks of whole definitions, told by blank lines and indentation alone. The whole file is one unit,
and its text is kept to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from rag.parser import text
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions

# A definition larger than this, such as a class, is cut at the blank lines between its parts.
LARGE_CHARS = 3000
_MAX_CUTS = 8
_TAB = 4
# A line that begins so belongs to what is above the blank line.
_CLOSER = re.compile(r"[})\]]|(?:end|else|elif|except|finally|catch|fi|done|esac)\b|#\s*(?:endif|else|elif)\b")


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile for a file of white space."""
    return msgspec.structs.replace(text.profile(path, name, options), kind=FileKind.CODE)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """One block per definition at the left edge, or per group of lines without a blank one between."""
    for lines in _definitions(text.lines(path, profile.encoding)):
        for part in _parts(lines):
            yield Block(kind=BlockKind.CODE, text="\n".join(part), page=1)


def _definitions(source: Iterator[str]) -> Iterator[list[str]]:
    """Groups of lines, none longer than MAX_CHARS: a new one begins at the left edge after a blank line."""
    held: list[str] = []
    size = 0
    for line in source:
        starts = bool(held) and not held[-1].strip() and _starts_anew(line)
        if starts or size + len(line) >= text.MAX_CHARS:
            yield from _trimmed(held)
            held, size = [], 0
        held.append(line)
        size += len(line) + 1
    yield from _trimmed(held)


def _parts(lines: list[str]) -> Iterator[list[str]]:
    """The lines, or, of a large definition, its parts between blank lines, those least indented first."""
    waiting = [(lines, 0)]
    while waiting:
        part, cuts = waiting.pop()
        edges = _edges(part) if cuts < _MAX_CUTS and sum(map(len, part)) > LARGE_CHARS else []
        if not edges:
            yield part
            continue
        bounds = [0, *edges, len(part)]
        smaller = [kept for first, end in pairwise(bounds) for kept in _trimmed(part[first:end])]
        waiting += [(each, cuts + 1) for each in reversed(smaller)]


def _edges(lines: list[str]) -> list[int]:
    """Where a line follows a blank one, and is indented no more than any other that does."""
    after = [index for index in range(1, len(lines)) if lines[index].strip() and not lines[index - 1].strip()]
    least = min((_indent(lines[index]) for index in after), default=0)
    return [index for index in after if _indent(lines[index]) == least]


def _starts_anew(line: str) -> bool:
    return bool(line.strip()) and not line[0].isspace() and not _CLOSER.match(line)


def _indent(line: str) -> int:
    return sum(_TAB if character == "\t" else 1 for character in line[: len(line) - len(line.lstrip())])


def _trimmed(lines: list[str]) -> Iterator[list[str]]:
    """The lines without the blank ones around them, if any are left."""
    first, end = 0, len(lines)
    while first < end and not lines[first].strip():
        first += 1
    while end > first and not lines[end - 1].strip():
        end -= 1
    if first < end:
        yield lines[first:end]
