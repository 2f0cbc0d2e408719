"""Plain text: its encoding, its lines, and its paragraphs. The whole file is one unit.

No line and no block is longer than MAX_CHARS: a file that is one line of 50 MB costs what any other does."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

import charset_normalizer

from common.errors import EmptyFile
from rag.parser import eastern, latin
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from rag.parser.kinds import wide_encoding

MAX_CHARS = 16_384

_READ_BYTES = 1 << 20
_SAMPLE_BYTES = 65_536
# ASCII and UTF-8 are known to be wrong by then; the others are hardly in use, and taken for what is.
_NEVER = (
    *("ascii", "utf_8", "utf_7", "hp_roman8"),
    *("mac_cyrillic", "mac_greek", "mac_iceland", "mac_latin2", "mac_roman", "mac_turkish"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Characters that mean nothing in a text, and that some stores refuse.
_NOISE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff\ufffe\uffff]")


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile for a file of white space."""
    encoding = detect_encoding(path)
    if not any(line.strip() for line in lines(path, encoding)):
        raise EmptyFile(f"{name} has no text in it")
    return Profile(kind=FileKind.TEXT, unit=Unit.WHOLE, units=1, encoding=encoding)


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """One block per paragraph: lines up to a blank one."""
    for paragraph in paragraphs(lines(path, profile.encoding)):
        yield Block(kind=BlockKind.PARAGRAPH, text=paragraph, page=1)


def paragraphs(source: Iterator[str]) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for line in source:
        if held and (not line.strip() or size + len(line) > MAX_CHARS):
            yield "\n".join(held)
            held, size = [], 0
        if line.strip():
            held.append(line)
            size += len(line) + 1
    if held:
        yield "\n".join(held)


def lines(path: Path, encoding: str) -> Iterator[str]:
    """The lines without their ends. One longer than MAX_CHARS comes in pieces, cut at a space if any."""
    with path.open(encoding=encoding, errors="replace", newline=None) as file:
        rest = ""
        while part := file.readline(MAX_CHARS - len(rest)):
            line = rest + part
            rest = ""
            if not line.endswith("\n") and len(line) >= MAX_CHARS:
                cut = line.rfind(" ", MAX_CHARS // 2) + 1 or len(line)
                line, rest = line[:cut], line[cut:]
            yield clean(line.rstrip("\n"))
        if rest:
            yield clean(rest)


def clean(text: str) -> str:
    """Without control characters; tabs and line ends stay."""
    return _NOISE.sub("", text) if _NOISE.search(text) else text


def detect_encoding(path: Path) -> str:
    """The encoding: by a byte order mark, UTF-8, UTF-16 or UTF-32 by its zeros, or else the likeliest."""
    with path.open("rb") as file:
        head = file.read(_SAMPLE_BYTES)
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if wide := wide_encoding(head):
        return wide
    first_bad = _first_not_utf8(path)
    if first_bad is None:
        return "utf-8"
    return _likeliest(path, first_bad)


def _first_not_utf8(path: Path) -> int | None:
    """Where the file stops being UTF-8, to within a read; None if it never does."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    position = 0
    with path.open("rb") as file:
        while data := file.read(_READ_BYTES):
            try:
                decoder.decode(data)
            except UnicodeDecodeError as exc:
                return max(0, position + exc.start)
            position += len(data)
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return position
    return None


def _likeliest(path: Path, near: int) -> str:
    """Judged by the bytes around the first that is not UTF-8: the start of a file may be plain ASCII."""
    with path.open("rb") as file:
        file.seek(max(0, near - _SAMPLE_BYTES // 2))
        sample = file.read(_SAMPLE_BYTES)
    if _is_damaged_utf8(sample):
        return "utf-8"
    if told := latin.tell(sample) or eastern.tell(sample):
        return told
    best = charset_normalizer.from_bytes(sample, cp_exclusion=list(_NEVER)).best()
    return best.encoding if best is not None else latin.COMMON


def _is_damaged_utf8(sample: bytes) -> bool:
    """A stray byte in a text that else is UTF-8: other encodings seldom look like UTF-8 beyond ASCII."""
    text = sample.decode("utf-8", errors="replace")
    broken = text.count("\ufffd")
    beyond_ascii = sum(1 for character in text if character > "\x7f") - broken
    return beyond_ascii > 3 * broken
