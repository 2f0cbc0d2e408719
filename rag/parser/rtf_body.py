"""From the tokens of an RTF file to blocks: paragraphs, headings, list items, tables and notes.

Pictures, headers and footers, hidden and removed text are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from common.errors import UnreadableFile
from rag.parser.blocks import Block, BlockKind
from rag.parser.prose import MAX_NOTE, pieces
from rag.parser.rtf_state import DESTINATIONS, KNOWN_NEW, SKIPPED, Goes, Group, Header
from rag.parser.rtf_table import Row, to_block
from rag.parser.rtf_tokens import Token, TokenKind, codepage_of_number
from rag.parser.text import clean

_MAX_DEPTH = 5_000
_BODY_LEVEL = 9
_BULLET = re.compile(r"[^\w]+$")
_BREAKS = frozenset(("par", "sect", "page", "column"))
_WRITTEN = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "emspace": " ",
    "enspace": " ",
    "qmspace": " ",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "nestcell": " ",
    "nestrow": "\n",
}
_SYMBOLS = {"~": "\u00a0", "_": "\u2011", "\t": "\t"}
# Bytes like others: they may be the second half of a character.
_ESCAPED = {"\\": b"\\", "{": b"{", "}": b"}"}
_FIXED_CODEPAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
# Most words are about looks: they are passed over at once.
_HANDLED = (
    SKIPPED.union(DESTINATIONS, _WRITTEN, _BREAKS, _FIXED_CODEPAGES)
    .union(("u", "uc", "cell", "row", "f", "plain", "v", "deleted", "ansicpg", "deff", "fcharset", "cpg"))
    .union(("pard", "s", "outlinelevel", "ls", "ilvl", "intbl", "trowd", "cellx", "clmrg", "clvmrg", "trhdr"))
    .union(("yr", "mo", "dy", "hr", "min", "sec"))
)


class RtfReader:
    """Feed it tokens. `header` has the properties of the file, as far as it was read."""

    def __init__(self, name: str) -> None:
        self.header = Header()
        self._name = name
        self._group = Group()
        self._stack: list[Group] = []
        self._is_new = False
        self._texts: dict[Goes, list[str]] = {goes: [] for goes in Goes}
        self._bytes = bytearray()
        self._to_skip = 0
        # Notes and text boxes, which come after the paragraph or the table that they hang on.
        self._hanging: list[Block] = []
        self._on_table: list[Block] = []
        self._style, self._level, self._depth = 0, 0, -1
        self._in_table = False
        self._row = Row()
        self._rows: list[Row] = []

    def read(self, tokens: Iterable[Token]) -> Iterator[Block]:
        for token in tokens:
            if data := token.data or _ESCAPED.get(token.word):
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
                if token.word in _HANDLED or self._is_new or token.word.endswith("Pr"):
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

    def _symbol(self, symbol: str) -> Iterator[Block]:
        if symbol == "*":
            self._is_new = True
        elif symbol in "\r\n":
            yield from self._break()
        elif symbol in _SYMBOLS:
            self._write(_SYMBOLS[symbol])

    def _word(self, word: str, number: int | None) -> Iterator[Block]:
        self._to_skip = 0
        is_new, self._is_new = self._is_new, False
        if word in SKIPPED or (is_new and word not in KNOWN_NEW and word not in DESTINATIONS) or word.endswith("Pr"):
            self._group.is_skipped = True
        elif word in DESTINATIONS:
            self._group.goes = DESTINATIONS[word]
        elif word == "u":
            self._unicode(number or 0)
        elif word in _WRITTEN:
            self._write(_WRITTEN[word])
        elif self._group.goes is Goes.FONT:
            self.header.font_word(word, number or 0)
        elif self._group.goes is Goes.STYLE:
            self.header.style_word(word, number or 0)
        elif self._group.goes in (Goes.CREATED, Goes.MODIFIED):
            self.header.time_word(self._group.goes, word, number or 0)
        elif word in _BREAKS:
            yield from self._break()
        elif word == "cell":
            self._row.cells.append(self._own_text())
        elif word == "row":
            self._end_row()
        else:
            self._format(word, number)

    def _format(self, word: str, number: int | None) -> None:
        group, header = self._group, self.header
        is_on = number != 0
        if word == "f":
            group.codepage = header.fonts.get(number or 0)
        elif word == "plain":
            group.codepage = header.fonts.get(header.default_font)
            group.is_hidden = group.is_deleted = False
        elif word == "v":
            group.is_hidden = is_on
        elif word == "deleted":
            group.is_deleted = is_on
        elif word == "uc":
            group.fallback_chars = max(0, min(number or 0, 16))
        elif word == "ansicpg":
            header.codepage = codepage_of_number(number or 0)
        elif word in _FIXED_CODEPAGES:
            header.codepage = _FIXED_CODEPAGES[word]
        elif word == "deff":
            header.default_font = number or 0
        elif group.goes is Goes.BODY:
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

    def _take_bytes(self, data: bytes) -> None:
        if self._group.is_skipped:
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
