"""Which Latin encoding a text is in, told by whether its letters make up one language's alphabet.

General detectors weigh all letters, most of which are ASCII and the same in every one of these; here only the
others count. Texts in other scripts are left to a general detector."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import NamedTuple

# Windows' own, and much the most common: where nothing speaks for another, it is this.
COMMON = "cp1252"

_WESTERN = (
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüß",  # German
    "áéíñóúü",  # Spanish
    "àáâãçéêíóôõúü",  # Portuguese
    "àèéìíîòóùú",  # Italian
    "àçèéíïòóúü",  # Catalan
    "æøåéô",  # Danish, Norwegian
    "åäöéü",  # Swedish, Finnish
    "áðéíóúýþæö",  # Icelandic
    "áèéêëïóöü",  # Dutch
)
_CENTRAL = (
    "ąćęłńóśźż",  # Polish
    "áčďéěíňóřšťúůýž",  # Czech
    "áäčďéíĺľňóôŕšťúýž",  # Slovak
    "áéíóöőúüű",  # Hungarian
    "ăâîşţșț",  # Romanian
    "čćđšž",  # Croatian, Slovene
)
_TURKISH = ("çğıöşüİ",)
_BALTIC = (
    "ąčęėįšųūž",  # Lithuanian
    "āčēģīķļņšūž",  # Latvian
    "äõöüšž",  # Estonian
)
_VIETNAMESE = ("àáâăãđèéêìíòóôơõùúưý\u0300\u0301\u0303\u0309\u0323",)
_ALPHABETS = {
    COMMON: (*_WESTERN, *_BALTIC[2:]),
    "iso8859_15": _WESTERN,
    "cp1250": _CENTRAL,
    "iso8859_2": _CENTRAL,
    "cp1254": _TURKISH,
    "cp1257": _BALTIC,
    "cp1258": _VIETNAMESE,
    "cp850": _WESTERN,
    "cp852": _CENTRAL,
}
# The share of letters in one alphabet that speaks for it, and how much more that must be than for the common
# encoding; where that fits as well, one stray letter says nothing.
_FITS = 0.9
_CLEARLY = 0.01
_STRAY_LETTERS = 2
# The share of letters of any western language that speaks for the common encoding: names from all over, say.
_WESTERN_FITS = 0.8

_HIGH = re.compile(rb"[\x80-\xff]")
_WITHIN_A_WORD = re.compile(rb"(?<=[A-Za-z])[\x80-\xff](?=[A-Za-z])")
_REPEATED = re.compile(rb"([\x80-\xff])\1{2,}")
_RUN = re.compile(rb"[\x80-\xff]{3,}")
_BETWEEN_LETTERS = frozenset("\u2019\u2018\u2013\u2014\u2026\u00ad\u00a0\u00b7")
# Signs that count as letters to Unicode, and characters that no text has.
_SIGNS = frozenset("\u00aa\u00ba\u00b5")
_NEVER = frozenset(["\ufffd", *map(chr, range(0x80, 0xA0))])


class _Bytes(NamedTuple):
    """How often each byte beyond ASCII stands in a text, and how often between two ASCII letters."""

    all: Counter[bytes]
    within: Counter[bytes]


class _Fit(NamedTuple):
    """How many letters are in an alphabet, and how many not."""

    good: int
    bad: int

    def share(self) -> float:
        return self.good / (self.good + self.bad or 1)


def tell(sample: bytes) -> str:
    """The encoding's name; "" for a text that is in no Latin script, or in no language known here."""
    if not _is_latin(sample):
        return ""
    found = _Bytes(Counter(_HIGH.findall(sample)), Counter(_WITHIN_A_WORD.findall(sample)))
    fits = {
        encoding: max((_fit(found, encoding, alphabet) for alphabet in alphabets), key=_Fit.share)
        for encoding, alphabets in _ALPHABETS.items()
    }
    common = fits.pop(COMMON)
    best = max(fits, key=lambda encoding: fits[encoding].share())
    if fits[best].share() >= _FITS and _is_clearly_better(fits[best], common):
        return best
    if common.share() >= _FITS or _fit(found, COMMON, "".join(_WESTERN)).share() >= _WESTERN_FITS:
        return COMMON
    return ""


def _is_clearly_better(fit: _Fit, common: _Fit) -> bool:
    if common.share() >= _FITS and common.bad - fit.bad < _STRAY_LETTERS:
        return False
    return fit.share() > common.share() + _CLEARLY


def _is_latin(sample: bytes) -> bool:
    """Latin words have letters beyond ASCII here and there; those of other scripts are made of them."""
    sample = _REPEATED.sub(rb"\1", sample)
    in_runs = sum(len(run) for run in _RUN.findall(sample))
    return in_runs < 0.4 * len(_HIGH.findall(sample))


def _fit(found: _Bytes, encoding: str, alphabet: str) -> _Fit:
    """How the letters fit the alphabet. Signs count only where they can't stand."""
    letters = {*alphabet, *alphabet.upper()}
    good = bad = 0
    for byte, count in found.all.items():
        character = codecs.decode(byte, encoding, "replace")
        if character in letters:
            good += count
        elif character not in _SIGNS and (character.isalpha() or character in _NEVER):
            bad += count
        elif character not in _BETWEEN_LETTERS:
            bad += found.within[byte]
    # Without a letter to judge by, it is the common one.
    return _Fit(good, bad) if good or bad else _Fit(int(encoding == COMMON), 0)
