"""Turns at the interpreter, which only one thread can use at a time. Many threads that want it take it from each other
at every call that lets go of it, and each spends more on that than on its own work: so few are let in at once, and the
others wait in line, where they cost nothing.

A thread that waits for something else steps aside meanwhile; one that keeps its turn for long is not waited for."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

# A turn that lasts longer than this is one more than there should be, from then on.
LONGEST_S = 0.02
# For so long the line is watched after somebody stood in it.
_WATCHED_S = 1.0


class Turns:
    """First come, first served; but who steps aside goes on before those who have not begun."""

    def __init__(self, at_once: int, longest_s: float = LONGEST_S) -> None:
        self._at_once = at_once
        self._longest_s = longest_s
        self._guard = threading.Lock()
        self._since: dict[int, float] = {}
        self._line: deque[tuple[int, threading.Lock]] = deque()
        self._is_watched = threading.Event()
        self._watcher: threading.Thread | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Not within another turn of the same thread."""
        self._take(goes_first=False)
        _own.turns = self
        try:
            yield
        finally:
            _own.turns = None
            self._give_back()

    @contextmanager
    def given_up(self, *, waits_again: bool) -> Iterator[None]:
        self._give_back()
        try:
            yield
        finally:
            if waits_again:
                self._take(goes_first=True)
            else:
                with self._guard:
                    self._since[get_ident()] = time.monotonic()

    @property
    def waiting(self) -> int:
        return len(self._line)

    def _take(self, *, goes_first: bool) -> None:
        with self._guard:
            if len(self._since) < self._at_once:
                self._since[get_ident()] = time.monotonic()
                return
            called = threading.Lock()
            called.acquire()
            (self._line.appendleft if goes_first else self._line.append)((get_ident(), called))
            self._have_watched()
        called.acquire()

    def _give_back(self) -> None:
        with self._guard:
            self._since.pop(get_ident(), None)  # it is not there any more if it has lasted long
            self._call_next()

    def _call_next(self) -> None:
        while self._line and len(self._since) < self._at_once:
            thread_id, called = self._line.popleft()
            self._since[thread_id] = time.monotonic()
            called.release()

    def _have_watched(self) -> None:
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="turns", daemon=True)
            self._watcher.start()
        if not self._is_watched.is_set():
            self._is_watched.set()

    def _watch(self) -> None:
        while self._is_watched.wait():
            seen_s = time.monotonic()
            while time.monotonic() < seen_s + _WATCHED_S:
                if self._line:
                    seen_s = time.monotonic()
                    self._pass_over_long_ones()
                time.sleep(self._longest_s / 2)
            with self._guard:
                if not self._line:
                    self._is_watched.clear()

    def _pass_over_long_ones(self) -> None:
        with self._guard:
            begun_s = time.monotonic() - self._longest_s
            self._since = {thread_id: since_s for thread_id, since_s in self._since.items() if since_s > begun_s}
            self._call_next()


class _Own(threading.local):
    turns: Turns | None = None


_own = _Own()


@contextmanager
def stepping_aside(*, waits_again: bool = True) -> Iterator[None]:
    """While this thread waits for something that is not the interpreter. It goes on at once, without a turn, if others
    wait for what it has got by then (`waits_again=False`). Nothing happens in threads that take no turns."""
    turns = _own.turns
    if turns is None:
        yield
    else:
        with turns.given_up(waits_again=waits_again):
            yield
