"""Blocks as one Markdown document, or as one HTML page that needs nothing from anywhere.

What stands in a document is text to both: whatever could be markup in it is escaped. Tables that Markdown has no way
to write, with cells over several columns or rows, are written as HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from rag.parser.blocks import Block, BlockKind, Cell, FileKind, Profile, Table, Unit

_BULLET = re.compile(r"^[\u2022\u2023\u2043\u25aa\u25cf\u25e6\u2219*\-\u2013\u2014]\s+")
_NUMBER = re.compile(r"^(\d{1,9}[.)])\s+")
# Blocks of Markdown files that have their own marks in their text.
_WRITTEN = (BlockKind.PARAGRAPH, BlockKind.LIST_ITEM, BlockKind.TABLE, BlockKind.CODE)
# A character is escaped only where it would mean something: text should stay readable.
_MARKUP = re.compile(
    r"[\\`]|\*(?=\S)|(?<=\S)\*|(?<!\w)_(?=\S)|(?<=\S)_(?!\w)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|\[(?=\^)|\](?=[(\[:])|~(?=~)"
)
_LINE_START = re.compile(r"^(\s*)(#{1,6}(?=\s|$)|[-+>](?=\s)|=+$|-+$|\|)", re.MULTILINE)
_LINE_NUMBER = re.compile(r"^(\s*\d{1,9})([.)])(?=\s)", re.MULTILINE)
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem}"
    "section{border-top:1px solid #ccc;margin-top:2rem}.page{color:#666;font-size:.8rem}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #999;padding:.2rem .5rem;text-align:left;"
    "vertical-align:top}pre{background:#f4f4f4;padding:.8rem;overflow:auto}.caption{font-style:italic}"
    ".footnote{font-size:.85rem}figure{border:1px dashed #999;padding:.8rem;margin:1rem 0;color:#666}"
)


def to_markdown(profile: Profile, blocks: Iterable[Block]) -> str:
    """GitHub's Markdown, with a comment where a page begins. Files that are Markdown stay as they were written."""
    writer = _Markdown(as_it_is=profile.kind is FileKind.MARKDOWN)
    parts: list[str] = []
    for page, group in groupby(blocks, key=_page_of(profile)):
        if page:
            parts.append(f"<!-- {profile.unit.value} {page} -->")
        for is_list, members in groupby(group, key=lambda block: block.kind is BlockKind.LIST_ITEM):
            written = [writer.block(block) for block in members]
            parts += ["\n".join(written)] if is_list else written
    return "\n\n".join(part for part in parts if part.strip()) + "\n"


def to_html(profile: Profile, blocks: Iterable[Block], name: str) -> str:
    """One page, in sections by the document's pages."""
    title = html.escape(profile.title or name)
    sections = []
    for page, group in groupby(blocks, key=_page_of(profile)):
        body = "\n".join(_html_parts(group))
        label = f"{profile.unit.value.capitalize()} {page}"
        sections.append(
            f'<section id="page-{page}">\n<p class="page">{label}</p>\n{body}\n</section>' if page else body
        )
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def _page_of(profile: Profile) -> Callable[[Block], int]:
    """The page of a block; 0 for all where there are none."""
    shown = profile.unit in (Unit.PAGE, Unit.SLIDE)
    return lambda block: block.page if shown else 0


class _Markdown:
    def __init__(self, *, as_it_is: bool) -> None:
        self._as_it_is = as_it_is
        self._footnotes = 0

    def block(self, block: Block) -> str:
        if self._as_it_is and block.table is None and block.kind in _WRITTEN:
            return block.text.strip("\n")
        match block.kind:
            case BlockKind.HEADING:
                return f"{'#' * _level(block)} {self._inline(block.text)}"
            case BlockKind.LIST_ITEM:
                return self._item(block)
            case BlockKind.TABLE:
                return self._table(_table_of(block))
            case BlockKind.CODE:
                return _fenced(block.text)
            case BlockKind.FIGURE:
                words = self._inline(block.text)
                return f"**[{_figure_label(block)}]**" + (f" {words}" if words else "")
            case BlockKind.CAPTION:
                words = self._inline(block.text)
                return f"*{words}*" if words else ""
            case BlockKind.FOOTNOTE:
                self._footnotes += 1
                return f"[^{self._footnotes}]: {self._inline(block.text)}"
            case BlockKind.PARAGRAPH:
                return self._escaped(block.text.strip())

    def _item(self, block: Block) -> str:
        indent = "    " * max(0, min(block.level, 8) - 1)
        number = _NUMBER.match(block.text)
        text = block.text[number.end() :] if number else _BULLET.sub("", block.text)
        return f"{indent}{number[1] if number else '-'} {self._inline(text)}"

    def _table(self, table: Table) -> str:
        spans = any(cell.columns != 1 or cell.rows != 1 for row in table.rows for cell in row)
        if spans or table.header_rows > 1:
            return _html_table(table)
        width = max((len(row) for row in table.rows), default=0)
        if not width:
            return ""
        rows = [[self._cell(cell) for cell in row] + [""] * (width - len(row)) for row in table.rows]
        if not table.header_rows:
            rows.insert(0, [""] * width)
        rows.insert(1, ["---"] * width)
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)

    def _cell(self, cell: Cell) -> str:
        text = self._escaped(cell.text.strip()).replace("|", "\\|")
        return "<br>".join(line.strip() for line in text.splitlines())

    def _inline(self, text: str) -> str:
        return self._escaped(" ".join(text.split()))

    def _escaped(self, text: str) -> str:
        if self._as_it_is:
            return text
        text = _MARKUP.sub(lambda found: "\\" + found[0], text)
        return _LINE_NUMBER.sub(r"\1\\\2", _LINE_START.sub(r"\1\\\2", text))


def _level(block: Block) -> int:
    return max(1, min(6, block.level))


def _figure_label(block: Block) -> str:
    return f"Figure, page {block.page}" if block.picture is None or not block.picture.part else "Figure"


def _fenced(code: str) -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", code)), default=0))
    return f"{fence}\n{code.strip(chr(10))}\n{fence}"


def _table_of(block: Block) -> Table:
    """Of a table without cells of its own, by the tabs and line ends in its text."""
    if block.table is not None:
        return block.table
    return Table(tuple(tuple(Cell(text) for text in row.split("\t")) for row in block.text.splitlines()))


def _html_parts(blocks: Iterable[Block]) -> Iterator[str]:
    for is_list, group in groupby(blocks, key=lambda block: block.kind is BlockKind.LIST_ITEM):
        if is_list:
            items = "\n".join(f"<li>{_words(_BULLET.sub('', block.text))}</li>" for block in group)
            yield f"<ul>\n{items}\n</ul>"
        else:
            yield from (_html_block(block) for block in group)


def _html_block(block: Block) -> str:
    words = _words(block.text)
    match block.kind:
        case BlockKind.HEADING:
            return f"<h{_level(block)}>{words}</h{_level(block)}>"
        case BlockKind.TABLE:
            return _html_table(_table_of(block))
        case BlockKind.CODE:
            return f"<pre><code>{html.escape(block.text)}</code></pre>"
        case BlockKind.FIGURE:
            return f"<figure>{_figure_label(block)}{'<br>' + words if words else ''}</figure>"
        case BlockKind.CAPTION | BlockKind.FOOTNOTE:
            return f'<p class="{block.kind.value}">{words}</p>'
        case _:
            return f"<p>{words}</p>"


def _html_table(table: Table) -> str:
    head, body = table.rows[: table.header_rows], table.rows[table.header_rows :]
    parts = (
        f"<thead>\n{_html_rows(head, 'th')}\n</thead>\n" if head else "",
        f"<tbody>\n{_html_rows(body, 'td')}\n</tbody>\n" if body else "",
    )
    return f"<table>\n{''.join(parts)}</table>"


def _html_rows(rows: Sequence[Sequence[Cell]], tag: str) -> str:
    return "\n".join(f"<tr>{''.join(_html_cell(cell, tag) for cell in row)}</tr>" for row in rows)


def _html_cell(cell: Cell, tag: str) -> str:
    spans = "".join(
        f' {name}="{count}"' for name, count in (("colspan", cell.columns), ("rowspan", cell.rows)) if count > 1
    )
    return f"<{tag}{spans}>{_words(cell.text)}</{tag}>"


def _words(text: str) -> str:
    return html.escape(text.strip()).replace("\n", "<br>")
