"""Decodes JSON piece by piece: a value that is small comes whole, a larger one is entered, and its members come one
by one. What is held at any time is a window of the text, never the tree of the file."""

from __future__ import annotations

import json
from json import JSONDecodeError
from typing import NamedTuple, NoReturn, TextIO

from common.errors import UnreadableFile

MAX_WHOLE_CHARS = 1 << 20
MAX_SCALAR_CHARS = 16 << 20

_READ_CHARS = 1 << 16
_SPACE = " \t\n\r"
# No word of JSON is longer: an error so near to the end of the window may be the cut of the window itself.
_LONGEST_WORD = 16


class Members(tuple[tuple[str, "Value"], ...]):
    """An object's members in order, also those of the same name."""


Value = str | bool | None | list["Value"] | Members


class TooLong(Exception):
    """The value at this place is larger than asked for."""


class Place(NamedTuple):
    line: int
    column: int


def _word(text: str) -> str:
    return text


# Numbers stay as they are written; line ends within strings are no reason to refuse a file.
DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_int=_word, parse_float=_word, parse_constant=_word, strict=False
)


class JsonText:
    """The text of a file, and the place in it up to which it was taken."""

    def __init__(self, file: TextIO, name: str) -> None:
        self._file = file
        self._name = name
        self._text = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._column = 1

    def peek(self) -> str:
        """The next character that is no white space; "" at the end."""
        while True:
            while self._at < len(self._text):
                if (found := self._text[self._at]) not in _SPACE:
                    return found
                self._at += 1
            if self._ended:
                return ""
            self._read_on()

    def take(self, wanted: str) -> None:
        if self.peek() != wanted:
            self.fail(f"'{wanted}' is expected")
        self._at += 1

    def value(self, most: int = MAX_WHOLE_CHARS) -> Value:
        """The value that starts here. Raises TooLong if it ends more than `most` characters on, and takes nothing
        then; UnreadableFile for what is no JSON."""
        start = self.peek()
        if start not in "[{":
            most = MAX_SCALAR_CHARS
        while True:
            try:
                value, end = DECODER.raw_decode(self._text, self._at)
            except JSONDecodeError as exc:
                if self._ended or not self._may_be_cut(exc):
                    self.fail(reason(exc), exc.pos, exc)
            except RecursionError as exc:
                raise UnreadableFile(f"{self._name} is nested too deeply near line {self.place().line}") from exc
            else:
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value  # type: ignore[no-any-return]
            if len(self._text) - self._at > most:
                if start in "[{":
                    raise TooLong
                self.fail(f"there is a value of more than {most:,} characters")
            self._read_on()

    def fail(self, reason: str, at: int | None = None, cause: Exception | None = None) -> NoReturn:
        place = self.place(self._at if at is None else at)
        message = f"{self._name} is not valid JSON: line {place.line}, column {place.column}: {reason}"
        raise UnreadableFile(message) from cause

    def place(self, at: int | None = None) -> Place:
        """Where in the file a position in the window is."""
        before = self._text[: self._at if at is None else at]
        lines = before.count("\n")
        column = len(before) - before.rfind("\n") if lines else self._column + len(before)
        return Place(self._line + lines, column)

    def _may_be_cut(self, error: JSONDecodeError) -> bool:
        return error.pos >= len(self._text) - _LONGEST_WORD or error.msg.startswith("Unterminated")

    def _read_on(self) -> None:
        """Drops what was taken, and reads as much again as is left: a value of any size is tried a few times."""
        self._line, self._column = self.place()
        left = self._text[self._at :]
        data = self._file.read(max(_READ_CHARS, len(left)))
        self._ended = not data
        self._text, self._at = left + data, 0


def reason(error: JSONDecodeError) -> str:
    message = error.msg
    return message[:1].lower() + message[1:].removesuffix(" at").removesuffix(" starting")
