"""JSON: a whole file of one value, or JSON Lines with the line as its unit. Values become lines "path: value".

The file is streamed, so its size does not matter; no single value may be longer than json_stream.MAX_SCALAR_CHARS,
no line of JSON Lines longer than MAX_LINE_CHARS, and no nesting deeper than json_text.MAX_DEPTH."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from json import JSONDecodeError
from pathlib import Path

from common.errors import EmptyFile, UnreadableFile
from rag.parser import kinds
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from rag.parser.held_rows import HeldRows, Start, place_in
from rag.parser.json_stream import DECODER, JsonText, Members, TooLong, Value, reason
from rag.parser.json_text import check_depth, children, element_path, is_plain, lines, member_path
from rag.parser.text import MAX_CHARS, detect_encoding

MAX_LINE_CHARS = 16 << 20

# What is no longer stays together; what is longer becomes a block for each of its members.
_SECTION_CHARS = 2000


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile where there is no value, and UnreadableFile where the first is no JSON."""
    encoding = detect_encoding(path)
    if kinds.detect(path, name) is FileKind.JSON_LINES:
        return _lines_profile(path, name, encoding)
    if next(_whole(path, encoding, name), None) is None:
        raise EmptyFile(f"{name} has no text in it")
    return Profile(kind=FileKind.JSON, unit=Unit.WHOLE, units=1, encoding=encoding)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of the file, or of these lines of it. Raises UnreadableFile that names the line of what is wrong."""
    if profile.kind is FileKind.JSON_LINES:
        yield from _read_lines(path, profile, from_unit, to_unit)
        return
    for text in _whole(path, profile.encoding, "the file"):
        yield Block(kind=BlockKind.PARAGRAPH, text=text, page=1)


# A whole file


def _whole(path: Path, encoding: str, name: str) -> Iterator[str]:
    """The texts of its blocks. Values that follow one another are read too: many files of lines are named so."""
    with path.open(encoding=encoding, errors="replace", newline=None) as file:
        source = JsonText(file, name)
        while first := source.peek():
            if first == "[":
                yield from _array(source, "", 0)
            else:
                yield from _next_sections(source, "", 0)


def _next_sections(source: JsonText, path: str, depth: int) -> Iterator[str]:
    try:
        value = source.value()
    except TooLong:
        check_depth(depth)
        enter = _array if source.peek() == "[" else _object
        yield from enter(source, path, depth)
    else:
        yield from _sections(path, value, depth)


def _array(source: JsonText, path: str, depth: int) -> Iterator[str]:
    source.take("[")
    index = 0
    while source.peek() != "]":
        if index:
            source.take(",")
        # The elements of the file's own array are its records, and need no number.
        yield from _next_sections(source, element_path(path, index) if depth or path else "", depth + 1)
        index += 1
    source.take("]")


def _object(source: JsonText, path: str, depth: int) -> Iterator[str]:
    source.take("{")
    follows = False
    while source.peek() != "}":
        if follows:
            source.take(",")
        if source.peek() != '"':
            source.fail("a name in double quotes is expected")
        key = source.value()
        source.take(":")
        yield from _next_sections(source, member_path(path, str(key)), depth + 1)
        follows = True
    source.take("}")


def _sections(path: str, value: Value, depth: int) -> Iterator[str]:
    """A value as one text if it is short, else its members one by one, plain ones in a row together."""
    if not isinstance(value, list | Members):
        yield from _pieces(lines(path, value))
        return
    short = lines(path, value, _SECTION_CHARS)
    if sum(len(line) + 1 for line in short) <= _SECTION_CHARS:
        yield from _pieces(short)
    else:
        yield from _member_sections(path, value, depth)


def _member_sections(path: str, value: list[Value] | Members, depth: int) -> Iterator[str]:
    check_depth(depth)
    held: list[str] = []
    size = 0
    for child_path, child in children(path, value):
        if is_plain(child):
            for line in lines(child_path, child):
                if held and size + len(line) > _SECTION_CHARS:
                    yield from _pieces(held)
                    held, size = [], 0
                held.append(line)
                size += len(line) + 1
            continue
        yield from _pieces(held)
        held, size = [], 0
        yield from _sections(child_path, child, depth + 1)
    yield from _pieces(held)


def _pieces(found: list[str]) -> Iterator[str]:
    """The lines as one text; one beyond MAX_CHARS is cut, at spaces if it has any."""
    text = "\n".join(found)
    while len(text) > MAX_CHARS:
        cut = text.rfind(" ", MAX_CHARS // 2, MAX_CHARS) + 1 or MAX_CHARS
        yield text[:cut]
        text = text[cut:]
    if text:
        yield text


# JSON Lines


def _lines_profile(path: Path, name: str, encoding: str) -> Profile:
    rows = _held.rows(path, encoding, 0)
    first = next(rows, None)
    if first is None:
        raise EmptyFile(f"{name} has no lines in it")
    _decode(first)
    units = 1 + sum(1 for _ in rows)
    return Profile(kind=FileKind.JSON_LINES, unit=Unit.ROW, units=units, encoding=encoding)


def _read_lines(path: Path, profile: Profile, from_unit: int, to_unit: int) -> Iterator[Block]:
    rows = _held.rows(path, profile.encoding, from_unit)
    for number, line in enumerate(islice(rows, to_unit - from_unit), from_unit + 1):
        for text in _pieces(lines("", _decode(line))):
            yield Block(kind=BlockKind.PARAGRAPH, text=text, page=number)


def _decode(numbered: tuple[int, str]) -> Value:
    number, line = numbered
    try:
        value, end = DECODER.raw_decode(line, len(line) - len(line.lstrip()))
    except JSONDecodeError as exc:
        raise UnreadableFile(f"line {number} is not valid JSON: column {exc.pos + 1}: {reason(exc)}") from exc
    except RecursionError as exc:
        raise UnreadableFile(f"line {number} is nested too deeply") from exc
    if line[end:].strip():
        raise UnreadableFile(f"line {number} is not valid JSON: column {end + 1}: more than one value")
    return value  # type: ignore[no-any-return]


class _Source:
    """The lines of a file with something in them, and their numbers from 1."""

    def __init__(self, path: Path, encoding: str, start: Start) -> None:
        self._file = path.open(encoding=encoding, errors="replace", newline=None)
        self._file.seek(start.place)
        self._line = start.line

    def __iter__(self) -> Iterator[tuple[int, str]]:
        while line := self._file.readline(MAX_LINE_CHARS + 1):
            self._line += 1
            if len(line) > MAX_LINE_CHARS:
                raise UnreadableFile(f"line {self._line} has more than {MAX_LINE_CHARS:,} characters")
            if not line.isspace():
                yield self._line, line

    def here(self) -> Start | None:
        place = place_in(self._file)
        return None if place is None else Start(place, self._line)

    def close(self) -> None:
        self._file.close()


_held = HeldRows(_Source)
