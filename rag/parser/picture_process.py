"""Has pictures drawn by a process of their own (page_picture.py), which may crash or hang without harm, and says what
the two tell each other: one request on stdin, and a line on stdout for each shot, in JSON."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from common.errors import ParserLost, ParserTimeout, from_code
from rag.parser.blocks import Box

MIN_WIDTH = 64
MAX_WIDTH = 2000
BOX_DPI = 150
# The text of a PNG under which the pixels of a point of the page stand.
SCALE_KEY = "pagemill scale"
# Not from the settings: their libraries take longer to load than a page to draw.
_ROOT = Path(__file__).resolve().parents[2]
_START_S = 20.0
_SHOT_S = 10.0


class Shot(msgspec.Struct, frozen=True):
    """What to draw into the file `out`: page `page`, or the `box` on it, or else the picture `part`.

    `width` is in pixels; without one, `dpi` decides."""

    out: str
    page: int = 1
    box: Box | None = None
    part: str = ""
    width: int = 0
    dpi: int = BOX_DPI


class PictureRequest(msgspec.Struct, frozen=True):
    parent: int
    path: str
    name: str
    shots: tuple[Shot, ...]
    password: str = ""


class Made(msgspec.Struct, frozen=True, tag="made"):
    """`scale` is the pixels of a point of the page."""

    scale: float


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """An error by its code in common.errors, with a message that is safe to show."""

    code: str
    message: str


_answer: msgspec.json.Decoder[Made | Refused] = msgspec.json.Decoder(Made | Refused)


def draw_one(path: Path, name: str, shot: Shot, password: str = "") -> Made:
    """Raises a DocumentError, InvalidInput or ParserLost where there is no picture."""
    (answer,) = draw(path, name, [shot], password)
    if isinstance(answer, Refused):
        raise from_code(answer.code, answer.message)
    return answer


def draw(path: Path, name: str, shots: Sequence[Shot], password: str = "") -> list[Made | Refused]:
    """An answer for each shot. One that kills the process is refused, and the others are drawn by another."""
    answers: list[Made | Refused] = []
    while len(answers) < len(shots):
        rest = tuple(shots[len(answers) :])
        request = PictureRequest(os.getpid(), str(path.absolute()), name, rest, password)
        given, error = _run(request, _START_S + _SHOT_S * len(rest))
        answers += given[: len(rest)]
        if len(answers) < len(shots):
            answers.append(Refused(error.code, error.public_message))
    return answers


def _run(request: PictureRequest, timeout_s: float) -> tuple[list[Made | Refused], ParserLost]:
    """The answers that came, and the error of the first that did not."""
    error = ParserLost(f"{request.name} can't be drawn: the process that does it died")
    try:
        # The thread that starts it waits for it, so that the process, which dies with this thread, ends first.
        done = subprocess.run(
            [sys.executable, "-m", "rag.parser.page_picture"],
            input=msgspec.json.encode(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_ROOT,
            timeout=timeout_s,
            check=False,
        )
        lines = done.stdout
    except subprocess.TimeoutExpired as exc:
        lines = exc.stdout or b""
        error = ParserTimeout(f"{request.name} can't be drawn within {timeout_s:g} s")
    try:
        return [_answer.decode(line) for line in lines.split(b"\n")[:-1]], error
    except msgspec.DecodeError:
        return [], error
