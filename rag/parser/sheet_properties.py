"""What a workbook says of itself: its title, its author and its dates."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from lxml import etree

from common.errors import DocumentError
from rag.parser.text import clean
from rag.parser.zip_parts import ZipParts

_MAX_CHARS = 200
_PARTS = {
    "docProps/core.xml": {"title": "title", "creator": "author", "created": "created", "modified": "modified"},
    "meta.xml": {"title": "title", "initial-creator": "author", "creation-date": "created", "date": "modified"},
}


def properties(path: Path, name: str) -> dict[str, str]:
    """Title, author, created and modified, as far as they are known."""
    # An old workbook is no archive, and one with damaged details is a workbook still.
    with suppress(DocumentError), ZipParts(path, name) as parts:
        for part, wanted in _PARTS.items():
            if parts.has(part):
                return _texts(parts.xml(part), wanted)
    return {}


def _texts(root: etree._Element, wanted: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for element in root.iter("{*}*"):
        known = wanted.get(etree.QName(element).localname)
        text = " ".join(clean(element.text or "").split())[:_MAX_CHARS]
        if known and text:
            found.setdefault(known, text)
    return found
