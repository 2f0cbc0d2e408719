"""What the tags of HTML mean to a reader, as tables, and what their attributes say."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rag.parser.text import MAX_CHARS

DROPPED = frozenset(
    ("script", "style", "noscript", "template", "nav", "iframe", "noframes", "annotation", "annotation-xml")
)
# A navigation that was never closed ends where the page itself begins.
ENDS_NAVIGATION = frozenset(("main", "article", "h1"))
HEADINGS = {f"h{level}": level for level in range(1, 7)}
LISTS = frozenset(("ul", "ol", "menu", "dir", "dl"))
CELLS = frozenset(("td", "th"))
IN_TABLE = frozenset(("td", "th", "tr", "thead", "tbody", "tfoot"))
# Tags whose edges part the text.
BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "div", "dt"),
        *("fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html", "legend", "li"),
        *("main", "optgroup", "option", "p", "pre", "search", "section", "select", "summary", "table", "tbody"),
        *("tfoot", "thead", "title", "tr"),
    )
)
# These never are inside of a heading, whatever a page that forgot to close it says.
ENDS_HEADING = frozenset(
    ("p", "div", "section", "article", "main", "ul", "ol", "dl", "table", "pre", "figure", "blockquote")
)

_HIDDEN_STYLE = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_BREAK = "<br><br>"
_BREAKS = re.compile(r"(?:<br><br>\s*){2,}")
_TAG = re.compile(
    r"</?(?!(?:script|style|noscript|template|iframe|textarea|title)\b)([a-z][a-z0-9]{0,20})\b[^<>]{0,4096}>",
    re.IGNORECASE,
)


def is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    # Some pages hide all of themselves until a script has run.
    if tag in ("html", "body"):
        return False
    return (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or attributes.get("role") == "navigation"
        or bool(_HIDDEN_STYLE.search(attributes.get("style", "")))
    )


def is_footnote(attributes: Mapping[str, str]) -> bool:
    said = f"{attributes.get('role', '')} {attributes.get('epub:type', '')}"
    return "footnote" in said or "endnote" in said


def number(said: str, default: int) -> int:
    said = said.strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 7 else default


def without_tags(source: str) -> str:
    """The source with nothing that nests: blank lines where blocks were."""
    return _BREAKS.sub(_BREAK, _TAG.sub(_flat_tag, source))


def pieces(text: str, separator: str = " ") -> list[str]:
    """The text in parts of at most MAX_CHARS, cut behind a separator if there is one; at least one part."""
    found = []
    start = 0
    while len(text) - start > MAX_CHARS:
        cut = text.rfind(separator, start + MAX_CHARS // 2, start + MAX_CHARS) + 1 or start + MAX_CHARS
        found.append(text[start:cut])
        start = cut
    return [*found, text[start:]]


def _flat_tag(match: re.Match[str]) -> str:
    tag = match[1].lower()
    if tag in CELLS:
        return " "
    return _BREAK if tag in BLOCKS or tag in HEADINGS or tag in LISTS else ""
