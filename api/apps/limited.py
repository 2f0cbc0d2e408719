"""An answer of another server with a limit in time: whoever asks waits no longer, whatever that server does.

The asking is done by a thread of its own. One that is late is not asked a second time: until it comes back, everybody
is told at once for how long it has been silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Silent(Exception):
    """No answer within the limit."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(f"it has not answered for {waited_s:.0f} s")
        self.waited_s = waited_s


class Limited(Generic[T]):
    """`find` may raise `expected`, which is raised to those who asked."""

    def __init__(self, name: str, find: Callable[[], T], limit_s: float, expected: type[Exception]) -> None:
        self._name = name
        self._find = find
        self._limit_s = limit_s
        self._expected = expected
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._asked_s: float | None = None
        self._is_begun = False
        self._found: T | Exception | None = None

    def begin(self) -> None:
        """Ask, and wait for nothing: the next `get` has the answer."""
        with self._changed:
            self._ask()
            self._is_begun = True

    def get(self) -> T:
        """An answer to a question that was asked by this call or begun before it. Raises Silent."""
        with self._changed:
            if not self._is_begun:
                self._ask()
            self._is_begun = False
            while (asked_s := self._asked_s) is not None:
                waited_s = time.monotonic() - asked_s
                if waited_s >= self._limit_s:
                    raise Silent(waited_s)
                self._changed.wait(self._limit_s - waited_s)
            found = self._found
        if isinstance(found, self._expected):
            raise found
        return found  # type: ignore[return-value]

    def _ask(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        if self._asked_s is None:
            self._asked_s = time.monotonic()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._asked_s is None:
                    self._changed.wait()
            found: T | Exception
            try:
                found = self._find()
            except self._expected as exc:
                found = exc
            with self._changed:
                self._found = found
                self._asked_s = None
                self._changed.notify_all()
