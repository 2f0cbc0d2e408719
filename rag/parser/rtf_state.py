"""What an RTF file says of itself before its text (fonts, styles, title), and the state of its groups."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto

from rag.parser.rtf_tokens import DEFAULT_CODEPAGE, codepage_of_charset, codepage_of_number

_HEADING = re.compile(r"heading ?([1-9])$")
_MAX_ENTRIES = 10_000
_BODY_LEVEL = 9


class Goes(Enum):
    """Where the text of a group goes."""

    BODY = auto()
    LABEL = auto()
    NOTE = auto()
    BOX = auto()
    PICTURE = auto()
    PROPERTY = auto()
    DESCRIPTION = auto()
    FONT = auto()
    STYLE = auto()
    TITLE = auto()
    AUTHOR = auto()
    CREATED = auto()
    MODIFIED = auto()
    NOWHERE = auto()


DESTINATIONS = {
    "fonttbl": Goes.FONT,
    "stylesheet": Goes.STYLE,
    "title": Goes.TITLE,
    "author": Goes.AUTHOR,
    "creatim": Goes.CREATED,
    "revtim": Goes.MODIFIED,
    "listtext": Goes.LABEL,
    "pntext": Goes.LABEL,
    "footnote": Goes.NOTE,
    "shptxt": Goes.BOX,
    "pict": Goes.PICTURE,
    # A property of a shape or a picture: its name, and its value if that is one which describes it.
    "sn": Goes.PROPERTY,
    "sv": Goes.DESCRIPTION,
    # The words that only the groups inside these are of use for.
    **dict.fromkeys(("info", "shpinst", "shp", "sp", "picprop"), Goes.NOWHERE),
}
# Nothing inside these is text of the document.
SKIPPED = frozenset(
    (
        *("colortbl", "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf"),
        *("fldinst", "annotation", "atnid", "atnauthor", "ftnsep", "ftnsepc", "ftncn", "aftnsep", "aftnsepc"),
        *("aftncn", "objdata", "shprslt", "xe", "tc", "tcn", "rxe", "private", "template", "filetbl", "revtbl"),
        *(
            "rsidtbl",
            "generator",
            "nonesttables",
            "nonshppict",
            "pntxta",
            "pntxtb",
            "bkmkstart",
            "bkmkend",
            "listtable",
        ),
        *("listoverridetable", "subject", "operator", "manager", "company", "category", "keywords", "comment"),
        *("doccomm", "hlinkbase", "printim", "buptim", "userprops", "xmlnstbl"),
    )
)
# Marked as new (`\*`) for old programs, and nevertheless worth reading.
KNOWN_NEW = frozenset(("shpinst", "moMath", "moMathPara", "footnote", "shppict"))

FIXED_CODEPAGES = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}


@dataclass
class Group:
    """What a closing brace brings back."""

    goes: Goes = Goes.BODY
    is_skipped: bool = False
    is_hidden: bool = False
    is_deleted: bool = False
    codepage: str | None = None
    fallback_chars: int = 1


@dataclass
class Header:
    """The tables of fonts and styles, and the properties."""

    codepage: str = DEFAULT_CODEPAGE
    default_font: int = 0
    fonts: dict[int, str | None] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    captions: set[int] = field(default_factory=set)
    times: dict[Goes, dict[str, int]] = field(default_factory=dict)
    _font: int = 0
    _style: int = 0

    def font_word(self, word: str, number: int) -> None:
        if word == "f":
            self._font = number
        elif word == "fcharset" and len(self.fonts) < _MAX_ENTRIES:
            self.fonts[self._font] = codepage_of_charset(number)
        elif word == "cpg" and len(self.fonts) < _MAX_ENTRIES:
            self.fonts[self._font] = codepage_of_number(number)

    def style_word(self, word: str, number: int) -> None:
        if word == "s":
            self._style = number
        elif word == "outlinelevel" and number < _BODY_LEVEL and len(self.levels) < _MAX_ENTRIES:
            self.levels[self._style] = number + 1

    def style_name(self, name: str) -> None:
        """The end of a style's group, whose text is its name."""
        name = name.strip().rstrip(";").strip().lower()
        if heading := _HEADING.match(name):
            self.levels.setdefault(self._style, int(heading[1]))
        elif name == "title":
            self.levels[self._style] = 1
        elif name == "caption":
            self.captions.add(self._style)
        self._style = 0

    def time_word(self, which: Goes, word: str, number: int) -> None:
        if word in ("yr", "mo", "dy", "hr", "min", "sec"):
            self.times.setdefault(which, {})[word] = number

    def time(self, which: Goes) -> str:
        """As in 2024-05-31T12:00:00; "" if the file does not say."""
        found = self.times.get(which, {})
        if not 1 <= found.get("yr", 0) <= 9999:
            return ""
        clock = ":".join(f"{found.get(part, 0):02d}" for part in ("hr", "min", "sec"))
        return f"{found['yr']:04d}-{found.get('mo', 1):02d}-{found.get('dy', 1):02d}T{clock}"


def set_letters(word: str, number: int | None, group: Group, header: Header) -> bool:
    """Take a word that says how letters are written, and whether they are seen; False if it is none."""
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
    elif word in FIXED_CODEPAGES:
        header.codepage = FIXED_CODEPAGES[word]
    elif word == "deff":
        header.default_font = number or 0
    else:
        return False
    return True
