"""Files of e-mail: a single message, which is one unit, and mailboxes, whose units are their messages.

A mailbox is never read whole: where its messages start is found once and kept, and each is read by itself."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from common.errors import EmptyFile, UnreadableFile
from rag.parser import kinds
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from rag.parser.email_message import blocks_of_mail, header, parse, sent
from rag.parser.file_key import FileKey, file_key

MAX_MESSAGE_BYTES = 128 << 20
_MAX_TITLE = 200
_READ_BYTES = 1 << 20
_PEEK_BYTES = 2048
# More than an executor reads in turns. A million messages take 8 MB.
_MAX_MAILBOXES = 8
_MARK = b"\nFrom "
# The line above a message, and the first of its headers. Texts have lines that begin with "From " as well.
_START = re.compile(rb"From (?:(?:[^\n]*\d:\d\d|-)[^\n]*|[ \t\r]*)\n>?[!-9;-~]+[ \t]*:")
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile where there is no text, UnreadableFile for a message that is too large."""
    if kinds.detect(path, name) is FileKind.MBOX:
        return _mailbox_profile(path, name)
    if path.stat().st_size > MAX_MESSAGE_BYTES:
        raise UnreadableFile(f"{name} is too large for a message: over {MAX_MESSAGE_BYTES >> 20} MB")
    mail = parse(path.read_bytes())
    if next(blocks_of_mail(mail, options), None) is None:
        raise EmptyFile(f"{name} has no text in it")
    return Profile(
        kind=FileKind.EMAIL,
        unit=Unit.WHOLE,
        units=1,
        title=header(mail, "Subject")[:_MAX_TITLE],
        author=header(mail, "From")[:_MAX_TITLE],
        created=sent(mail),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The blocks of the message, or of the mailbox's messages in the range; the page is the message's number."""
    if profile.kind is FileKind.EMAIL:
        yield from blocks_of_mail(parse(path.read_bytes()), options)
        return
    starts = _index.starts(path)
    for number in range(from_unit, min(to_unit, len(starts) - 1)):
        for block in _message_blocks(path, starts[number], starts[number + 1], options):
            yield msgspec.structs.replace(block, page=number + 1)


def _mailbox_profile(path: Path, name: str) -> Profile:
    messages = len(_index.starts(path)) - 1
    if messages < 1:
        raise EmptyFile(f"{name} has no messages in it")
    return Profile(kind=FileKind.MBOX, unit=Unit.ROW, units=messages)


def _message_blocks(path: Path, start: int, end: int, options: ReadOptions) -> Iterator[Block]:
    if end - start > MAX_MESSAGE_BYTES:
        yield Block(kind=BlockKind.PARAGRAPH, text="This message is too large, and was not read.", page=1)
        return
    with path.open("rb") as file:
        file.seek(start)
        data = file.read(end - start)
    _, _, message = data.partition(b"\n")
    yield from blocks_of_mail(parse(_QUOTED.sub(rb"\1", message)), options)


class _Index:
    """Where the messages of the last mailboxes start, and, last of all, where each ends."""

    def __init__(self) -> None:
        self._starts: dict[FileKey, array[int]] = {}

    def starts(self, path: Path) -> array[int]:
        key = file_key(path)
        starts = self._starts.pop(key, None)
        if starts is None:
            starts = array("q", _find_starts(path))
            starts.append(key.size)
        self._starts[key] = starts
        while len(self._starts) > _MAX_MAILBOXES:
            del self._starts[next(iter(self._starts))]
        return starts


_index = _Index()


def _find_starts(path: Path) -> Iterator[int]:
    with path.open("rb") as file, path.open("rb") as peek:
        for offset in _candidates(file):
            peek.seek(offset)
            if _START.match(peek.read(_PEEK_BYTES)):
                yield offset


def _candidates(file: BinaryIO) -> Iterator[int]:
    """Where a line begins with "From "."""
    if file.read(len(_MARK) - 1) == _MARK[1:]:
        yield 0
    file.seek(0)
    tail = b""
    position = 0
    while data := file.read(_READ_BYTES):
        window = tail + data
        at = window.find(_MARK)
        while at >= 0:
            yield position - len(tail) + at + 1
            at = window.find(_MARK, at + 1)
        position += len(data)
        tail = window[-(len(_MARK) - 1) :]
