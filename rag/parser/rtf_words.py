"""The control words of RTF that stand for a character or for the end of a paragraph, and all that are heeded."""

from __future__ import annotations

from rag.parser.rtf_pictures import SHOWN
from rag.parser.rtf_state import DESTINATIONS, FIXED_CODEPAGES, SKIPPED

BREAKS = frozenset(("par", "sect", "page", "column"))
WRITTEN = {
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
SYMBOLS = {"~": "\u00a0", "_": "\u2011", "\t": "\t"}
# Bytes like others: they may be the second half of a character.
ESCAPED = {"\\": b"\\", "{": b"{", "}": b"}"}
# Most words are about looks: they are passed over at once.
HANDLED = (
    SKIPPED.union(DESTINATIONS, WRITTEN, BREAKS, FIXED_CODEPAGES, SHOWN)
    .union(("u", "uc", "cell", "row", "f", "plain", "v", "deleted", "ansicpg", "deff", "fcharset", "cpg"))
    .union(("pard", "s", "outlinelevel", "ls", "ilvl", "intbl", "trowd", "cellx", "clmrg", "clvmrg", "trhdr"))
    .union(("yr", "mo", "dy", "hr", "min", "sec"))
)
