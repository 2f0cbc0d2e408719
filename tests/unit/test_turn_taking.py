"""Requests take turns: a few at a time are worked on, and whoever waits for the rest of a body is not one of them."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import Flask, Response, request
from werkzeug.test import EnvironBuilder, run_wsgi_app

from api.apps import turn_taking
from common.turns import Turns
from tests.waiting import PATIENCE_S, wait_until

_NEVER_S = 3600.0


class SlowBody(io.RawIOBase):
    """Comes when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = threading.Event()
        self.comes = threading.Event()
        self._rest = b"body"

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        self.is_asked.set()
        assert self.comes.wait(PATIENCE_S)
        rest, self._rest = self._rest, b""
        return rest


class World:
    def __init__(self) -> None:
        self.turns = Turns(1, _NEVER_S)
        self.inside = threading.Event()
        self.may_end = threading.Event()
        app = Flask(__name__)
        app.add_url_rule("/echo", "echo", lambda: request.get_data(), methods=["POST"])
        app.add_url_rule("/hold", "hold", self._hold)
        app.add_url_rule("/fail", "fail", self._fail)
        app.add_url_rule("/parts", "parts", lambda: Response(self._parts()))
        turn_taking.register(app, self.turns)
        self.app = app

    def get(self, path: str) -> tuple[str, bytes]:
        found, status, _ = run_wsgi_app(self.app.wsgi_app, EnvironBuilder(path=path).get_environ())
        return status, b"".join(found)

    def post(self, body: SlowBody) -> bytes:
        environ = EnvironBuilder(path="/echo", method="POST").get_environ()
        environ |= {"wsgi.input": body, "CONTENT_LENGTH": "4"}
        found, _, _ = run_wsgi_app(self.app.wsgi_app, environ)
        return b"".join(found)

    def _hold(self) -> str:
        self.inside.set()
        assert self.may_end.wait(PATIENCE_S)
        return "held"

    def _fail(self) -> str:
        raise LookupError("nothing")

    def _parts(self) -> Iterator[bytes]:
        self.inside.set()
        assert self.may_end.wait(PATIENCE_S)
        yield b"parts"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as opened:
        yield opened


def test_the_next_request_waits_for_its_turn(world: World, pool: ThreadPoolExecutor) -> None:
    first = pool.submit(world.get, "/hold")
    assert world.inside.wait(PATIENCE_S)
    second = pool.submit(world.get, "/hold")
    wait_until(lambda: world.turns.waiting == 1, PATIENCE_S, "the second in the line")
    world.may_end.set()
    assert first.result(PATIENCE_S) == second.result(PATIENCE_S) == ("200 OK", b"held")


def test_a_body_that_comes_slowly_holds_up_nobody(world: World, pool: ThreadPoolExecutor) -> None:
    body = SlowBody()
    upload = pool.submit(world.post, body)
    assert body.is_asked.wait(PATIENCE_S)
    world.may_end.set()
    assert world.get("/hold")[1] == b"held"
    body.comes.set()
    assert upload.result(PATIENCE_S) == b"body"


def test_neither_does_an_answer_that_is_made_while_it_is_sent(world: World, pool: ThreadPoolExecutor) -> None:
    download = pool.submit(world.get, "/parts")
    assert world.inside.wait(PATIENCE_S)
    assert world.post(_ready()) == b"body"
    world.may_end.set()
    assert download.result(PATIENCE_S)[1] == b"parts"


def test_a_request_that_fails_gives_its_turn_back(world: World) -> None:
    assert world.get("/fail")[0].startswith("500")
    assert world.post(_ready()) == b"body"


def _ready() -> SlowBody:
    body = SlowBody()
    body.comes.set()
    return body
