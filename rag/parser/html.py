"""HTML pages: their encoding, title, author and dates. Their blocks are made by html_blocks, and the images in them are
html_pictures'. The whole page is one unit, read as a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from common.errors import EmptyFile
from rag.parser import charsets
from rag.parser.blocks import PLAIN, Block, BlockKind, FileKind, Profile, ReadOptions, Unit
from rag.parser.html_blocks import PART_CHARS, BlockBuilder, blocks_of
from rag.parser.html_pictures import InlinePictures
from rag.parser.text import detect_encoding

_MAX_TITLE = 200
_DECLARED_BYTES = 4096
# How many blocks may come before the heading that names a page without a title.
_TITLE_BLOCKS = 50

_DECLARED = re.compile(
    rb"""(?:<meta[^<>]{0,500}?charset|<\?xml[^<>]{0,200}?encoding)\s*=\s*["']?\s*([\w.:-]{2,40})""", re.I
)
_AUTHORS = ("author", "dc.creator", "dcterms.creator", "article:author", "citation_author", "creator")
_CREATED = ("article:published_time", "dcterms.created", "dcterms.date", "dc.date", "date", "citation_date", "created")
_MODIFIED = ("article:modified_time", "dcterms.modified", "og:updated_time", "last-modified", "revised", "modified")


def profile(path: Path, name: str, options: ReadOptions = PLAIN) -> Profile:
    """Raises EmptyFile for a page without text. Reads no further than to its first heading or blocks."""
    encoding = page_encoding(path)
    builder = BlockBuilder(InlinePictures().find)
    blocks = list(islice(_until_named(blocks_of(_source(path, encoding), builder), builder), _TITLE_BLOCKS))
    if not blocks:
        raise EmptyFile(f"{name} has no text in it")
    heading = next((block.text for block in blocks if block.kind is BlockKind.HEADING), "")
    title = " ".join(builder.title.split()) or builder.metas.get("og:title", "") or heading
    return Profile(
        kind=FileKind.HTML,
        unit=Unit.WHOLE,
        units=1,
        encoding=encoding,
        title=title[:_MAX_TITLE],
        author=_first(builder.metas, _AUTHORS)[:_MAX_TITLE],
        created=_first(builder.metas, _CREATED),
        modified=_first(builder.metas, _MODIFIED),
    )


def read(path: Path, profile: Profile, from_unit: int, to_unit: int, options: ReadOptions = PLAIN) -> Iterator[Block]:
    """The page's blocks in the order of its source."""
    return blocks_of(_source(path, profile.encoding), BlockBuilder(InlinePictures().find))


def picture(path: Path, part: str) -> str:
    """The address of an image that is in the page itself, by its name in a figure; "" if there is none."""
    pictures = InlinePictures(part)
    for _ in blocks_of(_source(path, page_encoding(path)), BlockBuilder(pictures.find)):
        if pictures.address:
            break
    return pictures.address


def page_encoding(path: Path) -> str:
    """By byte order mark; UTF-8 if all of it is; what the page says; or else the likeliest."""
    detected = detect_encoding(path)
    with path.open("rb") as file:
        declared = declared_encoding(file.read(_DECLARED_BYTES))
    if detected.startswith(("utf-16", "utf-32")) or detected == "utf-8-sig":
        return detected
    if detected == "utf-8" and declared not in charsets.SEVEN_BIT:
        return detected
    return detected if declared in ("", "utf-8") else declared


def declared_encoding(head: bytes) -> str:
    """The encoding that a page names in its head; "" for none that exists."""
    match = _DECLARED.search(head)
    if match is None:
        return ""
    said = charsets.named(match[1].decode("ascii", "replace"))
    # A page that can be searched for its own declaration is not in wide characters, whatever it says.
    return "utf-8" if said.startswith(("utf-16", "utf-32")) else said


def decode_page(data: bytes, label: str = "") -> str:
    """The source of a page that is in memory, and said to be in the encoding `label` by who brought it."""
    return charsets.decode(data, label or declared_encoding(data[:_DECLARED_BYTES]))


def _until_named(blocks: Iterator[Block], builder: BlockBuilder) -> Iterator[Block]:
    for block in blocks:
        yield block
        if builder.title.strip() or block.kind is BlockKind.HEADING:
            return


def _source(path: Path, encoding: str) -> Iterator[str]:
    with path.open(encoding=encoding, errors="replace", newline=None) as file:
        while part := file.read(PART_CHARS):
            yield part


def _first(metas: dict[str, str], names: tuple[str, ...]) -> str:
    return next((metas[name] for name in names if metas.get(name)), "")
