"""Rich Text Format: the profile, and the blocks of the whole file, which is one unit."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import EmptyFile, UnreadableFile, WrongKind
from rag.parser.blocks import PLAIN, Block, FileKind, Profile, ReadOptions, Unit
from rag.parser.prose import MAX_TITLE, first_heading
from rag.parser.rtf_body import RtfReader
from rag.parser.rtf_pictures import RtfPictures
from rag.parser.rtf_state import Goes
from rag.parser.rtf_tokens import tokens

MAX_BYTES = 512 << 20

_HEAD_BYTES = 64


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile, WrongKind, or UnreadableFile for a file that is damaged or too large."""
    reader = RtfReader(name)
    with _opened(path, name) as data:
        heading = first_heading(reader.read(tokens(data)), name)
    return Profile(
        kind=FileKind.RTF,
        unit=Unit.WHOLE,
        units=1,
        title=(reader.property(Goes.TITLE) or heading)[:MAX_TITLE],
        author=reader.property(Goes.AUTHOR)[:MAX_TITLE],
        created=reader.header.time(Goes.CREATED),
        modified=reader.header.time(Goes.MODIFIED),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    with _opened(path, path.name) as data:
        yield from RtfReader(path.name).read(tokens(data))


def picture(path: Path, part: str) -> bytes:
    """The bytes of a picture by its name in a figure; empty if there is none."""
    pictures = RtfPictures(part)
    with _opened(path, path.name) as data:
        for _ in RtfReader(path.name, pictures).read(tokens(data)):
            if pictures.found:
                break
    return pictures.found


@contextmanager
def _opened(path: Path, name: str) -> Iterator[mmap.mmap]:
    """The bytes from where the format begins; the file is read as far as it is used."""
    size = path.stat().st_size
    if not size:
        raise EmptyFile(f"{name} is empty")
    if size > MAX_BYTES:
        raise UnreadableFile(f"{name} is too large: RTF files of up to {MAX_BYTES >> 20} MiB are read")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if not data[:_HEAD_BYTES].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{\\rtf"):
            raise WrongKind(f"{name} is not an RTF document")
        yield data
