"""What the readers of word-like documents share: blocks of a bounded size, code in one piece, the first heading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from common.errors import EmptyFile
from rag.parser.blocks import Block, BlockKind, FileKind, Profile, Unit
from rag.parser.text import MAX_CHARS

MAX_NOTE = 4 * MAX_CHARS
MAX_TITLE = 200
# A title stands at the top, or there is none.
_TITLE_WITHIN = 50


def pieces(text: str) -> Iterator[str]:
    """The text in parts of at most MAX_CHARS, cut at a space if there is one."""
    start = 0
    while len(text) - start > MAX_CHARS:
        cut = text.rfind(" ", start + MAX_CHARS // 2, start + MAX_CHARS) + 1 or start + MAX_CHARS
        yield text[start:cut]
        start = cut
    yield text[start:]


def joined_code(blocks: Iterable[Block]) -> Iterator[Block]:
    """Lines of code that follow each other become one block."""
    held: list[str] = []
    size = 0
    for block in blocks:
        if held and (block.kind is not BlockKind.CODE or size + len(block.text) > MAX_CHARS):
            yield Block(kind=BlockKind.CODE, text="\n".join(held), page=1)
            held, size = [], 0
        if block.kind is BlockKind.CODE:
            held.append(block.text)
            size += len(block.text) + 1
        else:
            yield block
    if held:
        yield Block(kind=BlockKind.CODE, text="\n".join(held), page=1)


def whole_profile(kind: FileKind, known: Mapping[str, str], heading: str) -> Profile:
    """Of a document that is one unit, from what its properties say; its first heading stands in for a title."""
    return Profile(
        kind=kind,
        unit=Unit.WHOLE,
        units=1,
        title=known.get("title") or heading,
        author=known.get("author", ""),
        created=known.get("created", ""),
        modified=known.get("modified", ""),
    )


def first_heading(blocks: Iterable[Block], name: str) -> str:
    """The first heading near the top, "" if there is none. Raises EmptyFile if there is no block at all."""
    count = 0
    for count, block in enumerate(blocks, start=1):
        if block.kind is BlockKind.HEADING:
            return block.text[:MAX_TITLE]
        if count >= _TITLE_WITHIN:
            break
    if not count:
        raise EmptyFile(f"{name} has no text in it")
    return ""
