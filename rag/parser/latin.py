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
_TURKISH = ("âçğıîöşûüİ",)
_BALTIC = (
    "ąčęėįšųūž",  # Lithuanian
    "āčēģīķļņšūž",  # Latvian
    "äõöüšž",  # Estonian
)
_ALPHABETS = (
    (COMMON, (*_WESTERN, *_BALTIC[2:])),
    ("iso8859_15", _WESTERN),
    ("cp1250", _CENTRAL),
    ("iso8859_2", _CENTRAL),
    ("cp1254", _TURKISH),
    ("cp1257", _BALTIC),
    ("cp850", _WESTERN),
    ("cp852", _CENTRAL),
)
# The share of letters in one alphabet that speaks for it, and how much more than in any of the common encoding's.
_FITS = 0.9
_CLEARLY = 0.01
# The share of letters of any western language that speaks for the common encoding: names from all over, say.
_WESTERN_FITS = 0.8

_HIGH = re.compile(rb"[\x80-\xff]")
_WITHIN_A_WORD = re.compile(rb"(?<=[A-Za-z])[\x80-\xff](?=[A-Za-z])")
_REPEATED = re.compile(rb"([\x80-\xff])\1{2,}")
_RUN = re.compile(rb"[\x80-\xff]{3,}")
_BETWEEN_LETTERS = frozenset("\u2019\u2018\u2013\u2014\u2026\u00ad\u00a0\u00b7")
_NO_LETTERS = frozenset("\u00aa\u00ba\u00b5")


class _Bytes(NamedTuple):
    """How often each byte beyond ASCII stands in a text, and how often between two ASCII letters."""

    all: Counter[bytes]
    within: Counter[bytes]


def tell(sample: bytes) -> str:
    """The encoding's name; "" for a text that is in no Latin script, or in no language known here."""
    if not _is_latin(sample):
        return ""
    found = _Bytes(Counter(_HIGH.findall(sample)), Counter(_WITHIN_A_WORD.findall(sample)))
    best, best_fit = "", 0.0
    common_fit = 0.0
    for encoding, alphabets in _ALPHABETS:
        fit = max(_fit(found, encoding, alphabet) for alphabet in alphabets)
        if encoding == COMMON:
            common_fit = fit
        elif fit > best_fit:
            best, best_fit = encoding, fit
    if best_fit >= _FITS and best_fit > common_fit + _CLEARLY:
        return best
    if common_fit >= _FITS or _fit(found, COMMON, "".join(_WESTERN)) >= _WESTERN_FITS:
        return COMMON
    return ""


def _is_latin(sample: bytes) -> bool:
    """Latin words have letters beyond ASCII here and there; those of other scripts are made of them."""
    sample = _REPEATED.sub(rb"\1", sample)
    in_runs = sum(len(run) for run in _RUN.findall(sample))
    return in_runs < 0.2 * len(_HIGH.findall(sample))


def _fit(found: _Bytes, encoding: str, alphabet: str) -> float:
    """The share of letters that are in the alphabet; signs count only where they can't stand."""
    letters = {*alphabet, *alphabet.upper()}
    good = bad = 0
    for byte, count in found.all.items():
        character = codecs.decode(byte, encoding, "replace")
        if character in letters:
            good += count
        elif (character.isalpha() and character not in _NO_LETTERS) or character == "\ufffd" or "\x80" <= character <= "\x9f":
            bad += count
        elif character not in _BETWEEN_LETTERS:
            bad += found.within[byte]
    return good / (good + bad) if good + bad else float(encoding == COMMON)
