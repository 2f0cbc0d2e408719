"""Log lines: as text and as JSON, with the ids of what they are about and without secrets."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import trio

from common import logs
from common.settings import LogSettings

log = logging.getLogger("pagemill.tests")
KEY = "ragflow-" + "k" * 43


class Written:
    def __init__(self, form: Literal["text", "json"]) -> None:
        self._out = io.StringIO()
        self.handler = logging.StreamHandler(self._out)
        self.handler.addFilter(logs.AddIds())
        self.handler.setFormatter(logs.formatter(LogSettings(format=form), "exec 3"))

    @property
    def text(self) -> str:
        return self._out.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture(params=["text", "json"])
def written(request: pytest.FixtureRequest) -> Iterator[Written]:
    yield from written_as(request.param)


@pytest.fixture
def as_json() -> Iterator[Written]:
    yield from written_as("json")


def written_as(form: Literal["text", "json"]) -> Iterator[Written]:
    made = Written(form)
    log.addHandler(made.handler)
    log.setLevel(logging.INFO)
    yield made
    log.removeHandler(made.handler)
    logs.now_about()


def test_a_line_of_text_ends_with_its_ids() -> None:
    for made in written_as("text"):
        log.info("before")
        with logs.about(document_id="d1", task_id="t1"):
            log.warning("50%% of %s", "it")
        lines = [line[9:] for line in made.text.splitlines()]
        assert lines[0] == "exec 3       INFO    before"
        assert lines[1] == "exec 3       WARNING 50% of it document_id=d1 task_id=t1"


def test_a_line_of_json_has_them_as_fields(as_json: Written) -> None:
    with logs.about(request_id="r1"), logs.about(document_id="d1"):
        log.info("a %s", "line\nof two", extra={"fields": {"status": 200}})
    log.info("after")
    first, second = as_json.lines
    assert (first["message"], first["request_id"], first["document_id"], first["status"]) == (
        "a line\nof two", "r1", "d1", 200,
    )  # fmt: skip
    assert (first["level"], first["logger"], first["role"]) == ("INFO", "pagemill.tests", "exec 3")
    assert first["time"].endswith("Z") and "task_id" not in first
    assert not {"request_id", "document_id"} & second.keys()


async def test_tasks_and_their_threads_carry_their_own(as_json: Written) -> None:
    async def work(task_id: str, mine: trio.Event, others: trio.Event) -> None:
        with logs.about(task_id=task_id):
            mine.set()
            await others.wait()
            log.info("here")
            await trio.to_thread.run_sync(log.info, "in a thread")

    one, two = trio.Event(), trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work, "t1", one, two)
        nursery.start_soon(work, "t2", two, one)
    log.info("outside")
    told = sorted((line["message"], line.get("task_id")) for line in as_json.lines)
    assert told == [
        ("here", "t1"), ("here", "t2"), ("in a thread", "t1"), ("in a thread", "t2"), ("outside", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        f"key {KEY} is odd",
        "Authorization: Bearer hunter2",
        "{'Authorization': 'Basic hunter2=='}",
        "authorization=hunter2",
        "password=hunter2",
        '{"password": "hunter2", "a": 1}',
        "GET /jobs/1/events?token=hunter2&x=1",
        "embedding.api_key: hunter2",
        "mysql://root:hunter2@host/db",
        "redis://:hunter2@host:1/0",
    ],
)
def test_secrets_are_struck_out(written: Written, said: str) -> None:
    log.info("%s", said)
    try:
        raise RuntimeError(said)
    except RuntimeError:
        log.exception("it failed")
    assert "hunter2" not in written.text and KEY not in written.text
    assert written.text.count("***") >= 2
    assert "RuntimeError" in written.text


def test_other_words_stay(written: Written) -> None:
    said = "max_tokens=512 tokens: 7, the token of a login, GET /system/tokens/<path:token> -> 200 at http://h:80/a@b"
    log.info("%s", said)
    assert said in written.text


def test_lines_of_the_web_server_below_are_written_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    root, below = logging.getLogger(), logging.getLogger("gunicorn.error")
    before, level, own = root.handlers[:], root.level, io.StringIO()
    monkeypatch.setattr(sys, "stderr", out := io.StringIO())
    monkeypatch.setattr(below, "propagate", False)
    monkeypatch.setattr(below, "handlers", [logging.StreamHandler(own)])
    monkeypatch.setattr(below, "filters", [])
    try:
        logs.set_up_logs(LogSettings(format="json"), "server")
        with logs.about(request_id="r1"):
            below.warning("Invalid request")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    line = json.loads(out.getvalue())
    assert (line["message"], line["logger"], line["request_id"]) == ("Invalid request", "gunicorn.error", "r1")
    assert own.getvalue() == ""
