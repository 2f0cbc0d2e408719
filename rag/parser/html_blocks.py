"""From HTML to blocks, tag by tag, for pages, chapters of books and messages.

The parser reports tags and text as it meets them, always well nested, and no tree is built: a page of any size and
depth is read in little memory, and its blocks come while it is read. Nothing is fetched, no script is run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from lxml import etree

from rag.parser.blocks import Block, BlockKind, Picture
from rag.parser.html_tables import TableFrame
from rag.parser.html_tags import (
    BLOCKS,
    CELLS,
    DROPPED,
    ENDS_HEADING,
    ENDS_NAVIGATION,
    HEADINGS,
    IN_TABLE,
    LISTS,
    is_footnote,
    is_hidden,
    pieces,
    without_tags,
)
from rag.parser.html_text import Context, OpenList, texts_of
from rag.parser.text import MAX_CHARS, clean

# Deeper than any page is meant to be. What is nested further is read as text without structure, for looking up
# the tag that an end belongs to takes the longer the more are open.
MAX_DEPTH = 512
PART_CHARS = 16_384
MAX_NESTED_LISTS = 100
MAX_HEADING = 1000
_MAX_METAS = 200
_MAX_META = 500

_SOFT = (BlockKind.LIST_ITEM, BlockKind.HEADING, BlockKind.CAPTION, BlockKind.CODE)
FindPicture = Callable[[str], str]


class BlockBuilder:
    """What the parser reports to. `take` gives the blocks that are complete; `title` and `metas` are of the head.

    `find_picture` knows the part of the file that an image's address means, "" for none."""

    def __init__(self, find_picture: FindPicture | None = None) -> None:
        self.title = ""
        self.metas: dict[str, str] = {}
        self.depth = 0
        self._find_picture = find_picture
        self._done: list[Block] = []
        self._contexts: list[Context] = []
        self._lists: list[OpenList] = []
        self._tables: list[TableFrame] = []
        self._figures: list[Block] = []
        self._text: list[str] = []
        self._size = 0
        self._mark = ""
        self._dropping = 0
        self._dropped = ""
        self._in_title = False
        self._in_body = False
        self._is_flat = False

    def take(self) -> list[Block]:
        done, self._done = self._done, []
        return done

    # What the parser calls.

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.depth += 1
        if self._dropping:
            self._dropping += 1
            if self._dropped != "nav" or tag not in ENDS_NAVIGATION:
                return
            self._dropping = 0
        if self._drops(tag, attributes):
            self._dropping, self._dropped = 1, tag
        else:
            self._open(tag, attributes)

    def end(self, tag: str) -> None:
        self.depth -= 1
        if self._dropping:
            self._dropping -= 1
        else:
            self._close(tag)

    def data(self, text: str) -> None:
        if self._dropping:
            return
        if self._in_title:
            self.title = (self.title + text)[:_MAX_META]
            return
        if self._kind is not BlockKind.CODE:
            text = text.replace("\n", " ").replace("\r", " ")
        self._add(text)

    def comment(self, text: str) -> None:
        """Marked sections are comments to HTML, and text to who wrote them."""
        if text.startswith("[CDATA["):
            self.data(text[7:].removesuffix("]]"))

    def close(self) -> None:
        self.collapse()

    def flatten(self) -> None:
        """From here on no tag is closed that could be: nothing may depend on one."""
        self.collapse()
        self._is_flat = True

    def collapse(self) -> None:
        """Ends whatever is open."""
        self._flush()
        while self._tables:
            self._close_table()
        self._contexts.clear()
        self._lists.clear()
        self._dropping, self._in_title = 0, False

    # Tags.

    def _drops(self, tag: str, attributes: Mapping[str, str]) -> bool:
        if self._is_flat:
            return tag in DROPPED and tag != "nav"
        return tag in DROPPED or (bool(attributes) and is_hidden(tag, attributes))

    def _open(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in ENDS_HEADING and self._kind is BlockKind.HEADING and any(part.strip() for part in self._text):
            self._leave(self._contexts[-1].tag)
        if tag == "br":
            self._add("\n")
        elif tag == "img":
            self._image(attributes)
        elif tag in HEADINGS:
            self._enter(Context(tag, BlockKind.HEADING, HEADINGS[tag]))
        elif tag in LISTS:
            self._lists.append(OpenList(tag, attributes))
            self._enter(Context(tag, BlockKind.LIST_ITEM, min(len(self._lists), MAX_NESTED_LISTS)))
        elif tag in ("li", "dt"):
            self._flush()
            self._mark = self._lists[-1].mark(attributes) if self._lists else ""
        elif tag == "pre":
            self._enter(Context(tag, BlockKind.CODE))
        elif tag == "figcaption" or tag == "caption":
            self._enter(Context(tag, BlockKind.CAPTION))
        elif tag == "aside":
            self._enter(Context(tag, BlockKind.FOOTNOTE if is_footnote(attributes) else BlockKind.PARAGRAPH))
        elif tag == "table":
            self._open_table(attributes)
        elif self._tables and tag in IN_TABLE:
            self._open_in_table(tag, attributes)
        elif tag == "title" and not self._in_body:
            self._in_title = not self.title
        elif tag == "meta":
            self._meta(attributes)
        elif tag in BLOCKS:
            self._in_body = self._in_body or tag == "body"
            self._break()
        elif tag in CELLS:
            self._add(" ")

    def _close(self, tag: str) -> None:
        if tag == "li":
            self._flush()
        elif tag in LISTS:
            self._leave(tag)
            if self._lists and self._lists[-1].tag == tag:
                self._lists.pop()
        elif tag in HEADINGS or tag in ("pre", "figcaption", "caption", "aside"):
            self._leave(tag)
        elif tag == "table":
            self._close_table()
        elif tag in CELLS and self._tables:
            self._leave(tag)
            self._tables[-1].close_cell()
        elif tag == "thead" and self._tables:
            self._tables[-1].open_head(False)
        elif tag == "title":
            self._in_title = False
        elif tag in BLOCKS:
            self._break()

    def _open_table(self, attributes: Mapping[str, str]) -> None:
        self._enter(Context("table", BlockKind.PARAGRAPH))
        if self._tables:
            self._tables[-1].is_layout = True
        self._tables.append(TableFrame(attributes))

    def _open_in_table(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._flush()
        table = self._tables[-1]
        if tag in CELLS:
            table.open_cell(attributes, tag == "th")
            self._enter(Context(tag, BlockKind.PARAGRAPH))
        elif tag == "tr":
            if table.is_full:
                self._sink_around().extend(table.take())
            table.open_row()
        else:
            table.open_head(tag == "thead")

    def _close_table(self) -> None:
        if not self._tables:
            return
        self._flush()
        self._leave("table")
        around = self._sink_around()
        around.extend(self._tables.pop().take())

    def _image(self, attributes: Mapping[str, str]) -> None:
        """An image in the middle of a text stands for its words, any other is a figure."""
        words = " ".join(clean(attributes.get("alt", "")).split())[:MAX_CHARS]
        part = self._find_picture(attributes.get("src", "")) if self._find_picture else ""
        within = any(piece.strip() for piece in self._text)
        if within and not part:
            self._add(f" {words} " if words else "")
        elif words or part:
            figure = Block(kind=BlockKind.FIGURE, text=words, page=1, picture=Picture(part=part) if part else None)
            self._figures.append(figure)
            if not within:
                self._flush()

    def _meta(self, attributes: Mapping[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").lower()
        if name and len(self.metas) < _MAX_METAS:
            self.metas.setdefault(name[:_MAX_META], clean(attributes.get("content", ""))[:_MAX_META].strip())

    # Text.

    @property
    def _kind(self) -> BlockKind:
        return self._contexts[-1].kind if self._contexts else BlockKind.PARAGRAPH

    def _enter(self, context: Context) -> None:
        self._flush()
        self._contexts.append(context)

    def _leave(self, tag: str) -> None:
        self._flush()
        if any(context.tag == tag for context in self._contexts[-4:]):
            while self._contexts.pop().tag != tag:
                pass

    def _add(self, text: str) -> None:
        self._text.append(text)
        self._size += len(text)
        if self._size > MAX_CHARS:
            *whole, rest = pieces("".join(self._text))
            for piece in whole:
                self._text, self._size = [piece], 0
                self._flush()
            self._text, self._size = [rest], len(rest)

    def _break(self) -> None:
        """The edge of a block: within a list item, a heading or a caption only a new line."""
        if self._kind not in _SOFT:
            self._flush()
        elif self._text and not self._text[-1].endswith("\n"):
            self._add("\n")

    def _flush(self) -> None:
        if self._text:
            context = self._contexts[-1] if self._contexts else Context("", BlockKind.PARAGRAPH)
            joined = clean("".join(self._text)).replace("\xad", "")
            self._text, self._size = [], 0
            for text in texts_of(joined, context.kind):
                self._sink().append(self._block(text, context))
        if self._figures:
            self._sink().extend(self._figures)
            self._figures = []

    def _block(self, text: str, context: Context) -> Block:
        if context.kind is BlockKind.LIST_ITEM:
            text, self._mark = self._mark + text, ""
        if context.kind is BlockKind.HEADING and len(text) > MAX_HEADING:
            return Block(kind=BlockKind.PARAGRAPH, text=text, page=1)
        return Block(kind=context.kind, text=text, page=1, level=context.level)

    def _sink(self) -> list[Block]:
        return self._tables[-1].sink if self._tables else self._done

    def _sink_around(self) -> list[Block]:
        return self._tables[-2].sink if len(self._tables) > 1 else self._done


def blocks_of(parts: Iterable[str], builder: BlockBuilder) -> Iterator[Block]:
    """The blocks of a page whose source comes in parts, best of PART_CHARS."""
    parser = etree.HTMLParser(target=builder, encoding="utf-8", recover=True, no_network=True, huge_tree=False)
    flat = fed = False
    for part in parts:
        if not flat and builder.depth > MAX_DEPTH:
            flat = True
            builder.flatten()
        source = clean(part)
        parser.feed((without_tags(source) if flat else source).encode("utf-8", "replace"))
        fed = fed or bool(source.strip())
        yield from builder.take()
    if fed:
        parser.close()
    yield from builder.take()


def blocks_of_text(source: str, find_picture: FindPicture | None = None) -> Iterator[Block]:
    """The blocks of a page that is in memory."""
    parts = (source[start : start + PART_CHARS] for start in range(0, len(source), PART_CHARS))
    return blocks_of(parts, BlockBuilder(find_picture))
