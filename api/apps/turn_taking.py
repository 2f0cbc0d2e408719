"""Requests take turns at the interpreter (common/turns.py): each is read and its answer sent beside the others, and
what happens in between is done a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from flask import Flask

from common.turns import Turns, stepping_aside


class _Body(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...
    def readline(self, size: int = -1, /) -> bytes: ...
    def __iter__(self) -> Iterator[bytes]: ...


class _BodyAside:
    """A request's body. Whoever waits for more of it has no turn meanwhile: it may come slowly."""

    def __init__(self, body: _Body) -> None:
        self._body = body

    def read(self, size: int = -1, /) -> bytes:
        with stepping_aside():
            return self._body.read(size)

    def readline(self, size: int = -1, /) -> bytes:
        with stepping_aside():
            return self._body.readline(size)

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line


def register(app: Flask, turns: Turns) -> None:
    """An answer that is made while it is sent, as a download is, is made without a turn."""
    inner = app.wsgi_app

    def in_turn(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        environ["wsgi.input"] = _BodyAside(environ["wsgi.input"])
        with turns.turn():
            return inner(environ, start_response)

    app.wsgi_app = in_turn  # type: ignore[method-assign]
