"""The executor's one database thread. Requests queue up; what has queued is answered in one transaction, and the
answers enter trio in one hop. Batches form by themselves under load, and an idle executor pays no delay."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from api.db.services.task_requests import Request
from api.db.services.task_service import Answer, TaskService
from common.errors import PagemillError

_LARGEST_BATCH = 256

Reply = Answer | PagemillError


@dataclass(frozen=True)
class _Asked:
    request: Request
    callback: Callable[[Reply], None]


class RowsThread:
    """`close` answers what was asked before it. An error that is not Pagemill's own ends the thread, which calls
    `on_crash` in trio's: the executor must end then, and every claim goes back."""

    def __init__(self, tasks: TaskService, token: trio.lowlevel.TrioToken, on_crash: Callable[[], None]) -> None:
        self._tasks = tasks
        self._token = token
        self._on_crash = on_crash
        self._asked: queue.SimpleQueue[list[_Asked] | None] = queue.SimpleQueue()
        self._gathered: list[_Asked] = []
        self._thread = threading.Thread(target=self._run, name="rows", daemon=True)
        self._thread.start()

    def submit(self, request: Request, callback: Callable[[Reply], None]) -> None:
        """From any thread. `callback` runs in trio's thread with the answer or the error."""
        self._asked.put([_Asked(request, callback)])

    async def ask(self, request: Request) -> Answer:
        """The answer to a request. Raises what the rows raised. On cancellation the request is done all the same.

        What is asked in one turn of trio goes to the thread as one batch."""
        done = trio.Event()
        replies: list[Reply] = []

        def arrived(reply: Reply) -> None:
            replies.append(reply)
            done.set()

        if not self._gathered:
            self._token.run_sync_soon(self._send_gathered)
        self._gathered.append(_Asked(request, arrived))
        await done.wait()
        reply = replies[0]
        if isinstance(reply, PagemillError):
            raise reply
        return reply

    async def close(self) -> None:
        self._send_gathered()
        self._asked.put(None)
        await trio.to_thread.run_sync(self._thread.join)

    def _send_gathered(self) -> None:
        if self._gathered:
            self._asked.put(self._gathered)
            self._gathered = []

    def _run(self) -> None:
        in_order = False
        try:
            while (first := self._asked.get()) is not None:
                batch, last = self._queued_behind(first)
                replies = self._answer([asked.request for asked in batch])
                self._token.run_sync_soon(_deliver, batch, replies)
                if last:
                    break
            in_order = True
        finally:
            if not in_order:
                self._token.run_sync_soon(self._on_crash)

    def _queued_behind(self, first: list[_Asked]) -> tuple[list[_Asked], bool]:
        batch = first
        while len(batch) < _LARGEST_BATCH:
            try:
                asked = self._asked.get_nowait()
            except queue.Empty:
                break
            if asked is None:
                return batch, True
            batch += asked
        return batch, False

    def _answer(self, requests: Sequence[Request]) -> list[Reply]:
        """All in one transaction; after two failures each alone, so that one bad request spoils no other."""
        for _ in range(2):
            try:
                return list(self._tasks.apply(requests))
            except PagemillError as exc:
                failure = exc
        if len(requests) == 1:
            return [failure]
        replies: list[Reply] = []
        for request in requests:
            try:
                replies += self._tasks.apply([request])
            except PagemillError as exc:
                replies.append(exc)
        return replies


def _deliver(batch: Sequence[_Asked], replies: Sequence[Reply]) -> None:
    for asked, reply in zip(batch, replies, strict=True):
        asked.callback(reply)
