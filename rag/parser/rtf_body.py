"""From the tokens of an RTF file to blocks: paragraphs, headings, list items, tables, notes and pictures.

Headers and footers, hidden and removed text are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from common.errors import UnreadableFile
from rag.parser.blocks import Block, BlockKind
from rag.parser.prose import MAX_NOTE, pieces
from rag.parser.rtf_pictures import SHOWN, RtfPictures
from rag.parser.rtf_state import DESTINATIONS, KNOWN_NEW, SKIPPED, Goes, Group, Header, set_letters
from rag.parser.rtf_table import Row, to_block
from rag.parser.rtf_tokens import Token, TokenKind
from rag.parser.rtf_words import BREAKS, ESCAPED, HANDLED, SYMBOLS, WRITTEN
from rag.parser.text import clean

_MAX_DEPTH = 5_000
_BODY_LEVEL = 9
_BULLET = re.compile(r"[^\w]+$")
# The property of a shape that holds its picture, and the one that describes it.
_PIB, _DESCRIBES = "pib", "wzDescription"
# Where text is that a picture can hang on.
_TEXTS = (Goes.BODY, Goes.NOTE, Goes.BOX)


class RtfReader:
    """Feed it tokens. `header` has the properties of the file, as far as it was read."""

    def __init__(self, name: str, pictures: RtfPictures | None = None) -> None:
        self.header = Header()
        self._name = name
        self._pictures = pictures or RtfPictures()
        self._group = Group()
        self._stack: list[Group] = []
        self._is_new = False
        self._texts: dict[Goes, list[str]] = {goes: [] for goes in Goes}
        self._bytes = bytearray()
        self._to_skip = 0
        # Notes, text boxes and pictures, which come after the paragraph or the table that they hang on.
        self._hanging: list[Block] = []
        self._on_table: list[Block] = []
        self._style, self._level, self._depth = 0, 0, -1
        self._in_table = False
        self._row = Row()
        self._rows: list[Row] = []

    def read(self, tokens: Iterable[Token]) -> Iterator[Block]:
        for token in tokens:
            if token.kind is TokenKind.BINARY:
                self._take_binary(token.data)
                continue
            if data := token.data or ESCAPED.get(token.word):
                self._take_bytes(data)
                continue
            self._flush_bytes()
            if token.kind is TokenKind.OPEN:
                self._open()
            elif token.kind is TokenKind.CLOSE:
                self._close()
                if not self._stack:
                    break
            elif token.kind is TokenKind.SYMBOL:
                yield from self._symbol(token.word)
            elif not self._group.is_skipped:
                if token.word in HANDLED or self._is_new or token.word.endswith("Pr"):
                    yield from self._word(token.word, token.number)
                else:
                    self._to_skip = 0
        self._flush_bytes()
        yield from self._end_paragraph()

    def property(self, which: Goes) -> str:
        return " ".join(_joined(self._texts[which]).split())

    def _open(self) -> None:
        if len(self._stack) >= _MAX_DEPTH:
            raise UnreadableFile(f"{self._name} is damaged: its groups are nested too deeply")
        self._stack.append(self._group)
        self._group = replace(self._group)
        self._is_new = False
        self._to_skip = 0

    def _close(self) -> None:
        closed, self._group = self._group, self._stack.pop() if self._stack else Group()
        self._to_skip = 0
        if closed.is_skipped:
            return
        if closed.goes is Goes.STYLE:
            self.header.style_name(self._take(Goes.STYLE))
        elif closed.goes is Goes.NOTE and self._group.goes is not Goes.NOTE:
            note = self._take(Goes.NOTE).strip()[:MAX_NOTE]
            self._hanging += [Block(kind=BlockKind.FOOTNOTE, text=note, page=1)] if note else []
        elif closed.goes is Goes.BOX and self._group.goes is not Goes.BOX:
            lines = (line.strip() for line in self._take(Goes.BOX).split("\n"))
            parts = (part for line in lines if line for part in pieces(line))
            self._hanging += [Block(kind=BlockKind.PARAGRAPH, text=part, page=1) for part in parts]
        elif closed.goes is Goes.DESCRIPTION and self._group.goes is not Goes.DESCRIPTION:
            self._pictures.describe(self._take(Goes.DESCRIPTION))
        elif closed.goes is Goes.PICTURE and self._group.goes is not Goes.PICTURE:
            self._pictures.close()
        if self._group.goes in _TEXTS and closed.goes not in _TEXTS:
            self._hanging += self._pictures.take()

    def _symbol(self, symbol: str) -> Iterator[Block]:
        if symbol == "*":
            self._is_new = True
        elif symbol in "\r\n":
            yield from self._break()
        elif symbol in SYMBOLS:
            self._write(SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> Iterator[Block]:
        self._to_skip = 0
        is_new, self._is_new = self._is_new, False
        if word in SKIPPED or (is_new and word not in KNOWN_NEW and word not in DESTINATIONS) or word.endswith("Pr"):
            self._group.is_skipped = True
        elif word in DESTINATIONS:
            self._enter(DESTINATIONS[word])
        elif word in SHOWN:
            self._pictures.show()
        elif word == "u":
            self._unicode(number or 0)
        elif word in WRITTEN:
            self._write(WRITTEN[word])
        elif self._group.goes is Goes.FONT:
            self.header.font_word(word, number or 0)
        elif self._group.goes is Goes.STYLE:
            self.header.style_word(word, number or 0)
        elif self._group.goes in (Goes.CREATED, Goes.MODIFIED):
            self.header.time_word(self._group.goes, word, number or 0)
        elif word in BREAKS:
            yield from self._break()
        elif word == "cell":
            self._row.cells.append(self._own_text())
        elif word == "row":
            self._end_row()
        else:
            self._format(word, number)

    def _enter(self, goes: Goes) -> None:
        """The text of this group goes elsewhere from here on."""
        group = self._group
        about = "".join(self._texts[Goes.PROPERTY]).strip()
        if goes is Goes.PROPERTY:
            self._take(goes)
        elif goes is Goes.DESCRIPTION and about != _DESCRIBES:
            goes = Goes.NOWHERE
        elif goes is Goes.PICTURE:
            # In a shape, others are patterns that fill it.
            group.is_skipped = group.is_hidden or group.is_deleted or (group.goes is Goes.NOWHERE and about != _PIB)
            if not group.is_skipped:
                self._pictures.open()
        group.goes = goes

    def _format(self, word: str, number: int | None) -> None:
        if not set_letters(word, number, self._group, self.header) and self._group.goes is Goes.BODY:
            self._format_paragraph(word, number or 0)

    def _format_paragraph(self, word: str, number: int) -> None:
        if word == "pard":
            self._style, self._level, self._depth, self._in_table = 0, 0, -1, False
        elif word == "s":
            self._style = number
        elif word == "outlinelevel":
            self._level = number + 1 if 0 <= number < _BODY_LEVEL else 0
        elif word == "ls":
            self._depth = max(self._depth, 0)
        elif word == "ilvl":
            self._depth = max(0, min(number, 8))
        elif word == "intbl":
            self._in_table = True
        elif word == "trowd":
            self._row = Row(cells=self._row.cells)
        else:
            self._row.define(word, number)

    def _take_binary(self, data: bytes) -> None:
        if self._group.goes is Goes.PICTURE and not self._group.is_skipped:
            self._pictures.add_binary(data)

    def _take_bytes(self, data: bytes) -> None:
        if self._group.is_skipped:
            return
        if self._group.goes is Goes.PICTURE:
            self._pictures.add(data)
            return
        self._is_new = False
        if self._to_skip:
            skipped = min(self._to_skip, len(data))
            self._to_skip -= skipped
            data = data[skipped:]
        self._bytes.extend(data)

    def _flush_bytes(self) -> None:
        if self._bytes:
            data, self._bytes = self._bytes, bytearray()
            self._write(data.decode(self._group.codepage or self.header.codepage, errors="replace"))

    def _unicode(self, code: int) -> None:
        if -0x8000 <= code <= 0x10FFFF:
            self._write(chr(code & 0xFFFF) if code < 0 else chr(code))
        self._to_skip = self._group.fallback_chars

    def _write(self, text: str) -> None:
        group = self._group
        if not (group.is_skipped or group.is_hidden or group.is_deleted or group.goes in (Goes.FONT, Goes.NOWHERE)):
            self._texts[group.goes].append(text)

    def _take(self, goes: Goes) -> str:
        text = _joined(self._texts[goes])
        self._texts[goes] = []
        return text

    def _own_text(self) -> str:
        """The paragraph's text, after its number if it has one that is no bullet."""
        label, text = self._take(Goes.LABEL).strip(), self._take(Goes.BODY).strip()
        if label:
            self._depth = max(self._depth, 0)
        return f"{label} {text}" if label and text and not _BULLET.match(label) else text

    def _break(self) -> Iterator[Block]:
        if self._group.goes is not Goes.BODY:
            self._write("\n")
        elif self._in_table:
            self._texts[Goes.BODY].append("\n")
        else:
            yield from self._end_paragraph()

    def _end_paragraph(self) -> Iterator[Block]:
        text = self._own_text()
        yield from self._end_table()
        if text:
            yield from self._paragraph(text)
        yield from self._hanging
        self._hanging = []

    def _paragraph(self, text: str) -> Iterator[Block]:
        level = self._level or self.header.levels.get(self._style, 0)
        kind = BlockKind.PARAGRAPH
        if level:
            kind, text = BlockKind.HEADING, " ".join(text.split())
        elif self._style in self.header.captions:
            kind = BlockKind.CAPTION
        elif self._depth >= 0:
            kind, level = BlockKind.LIST_ITEM, self._depth + 1
        yield from (Block(kind=kind, text=part, page=1, level=level) for part in pieces(text))

    def _end_row(self) -> None:
        if rest := self._own_text():
            self._row.cells.append(rest)
        if self._row.cells:
            self._rows.append(self._row)
        # The definition holds for the rows after it, until there is another.
        self._row = replace(self._row, cells=[])
        self._on_table += self._hanging
        self._hanging = []

    def _end_table(self) -> Iterator[Block]:
        if self._row.cells:
            self._end_row()
        rows, self._rows = self._rows, []
        if rows and (block := to_block(rows)):
            yield block
        yield from self._on_table
        self._on_table = []


def _joined(parts: list[str]) -> str:
    """As one text; characters that were written in two halves become one."""
    text = "".join(parts)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return clean(text)
