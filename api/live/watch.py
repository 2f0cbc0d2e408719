"""The thread that looks at the rows for all followers, a few times a second while there are any and never otherwise,
and has the hub tell them. A round that takes long makes the next one wait longer: it never has more than a fifth of a
core's time."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from api.db.services.job_views import JobView
from api.live.connection import Connection
from api.live.followers import Follower, Followers
from api.live.framing import Ending, Framing
from api.live.hub import Hub
from api.live.rounds import Changes, Rounds
from common.errors import Outage

log = logging.getLogger(__name__)
_LOOK_S = 0.25
# Those who come at the same time are looked at together.
_GATHER_S = 0.05
_PAUSE_FACTOR = 4


class WatchedChanges(Changes, Protocol):
    def let_go(self) -> None: ...


class Watch:
    def __init__(
        self, changes: WatchedChanges, shown: Callable[[JobView], Mapping[str, Any]], hub: Hub | None = None
    ) -> None:
        self._changes = changes
        self._hub = hub or Hub()
        self._shown = shown
        self._rounds = Rounds(changes, shown)
        self._followers = Followers()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._joined = threading.Event()
        self._stop = threading.Event()

    @property
    def has_room(self) -> bool:
        return self._hub.has_room

    @property
    def is_closed(self) -> bool:
        return self._stop.is_set()

    def follow_job(self, sock: socket.socket, head: bytes, framing: Framing, job_id: str) -> None:
        """Tell its state now, and every other one until it ends; then the connection ends too."""
        self._follow(head, Follower(self._connection(sock, framing), job_id=job_id))

    def follow_dataset(
        self, sock: socket.socket, head: bytes, framing: Framing, dataset_id: str, since_ms: int | None
    ) -> None:
        """Tell the states of documents on their way and, with `since_ms`, of those that changed since; then changes."""
        self._follow(head, Follower(self._connection(sock, framing), dataset_id=dataset_id, since_ms=since_ms))

    def refuse(self, sock: socket.socket, head: bytes, framing: Framing, why: Ending) -> None:
        """Say why, and no more."""
        connection = self._connection(sock, framing)
        self._hub.adopt(connection, head)
        self._hub.end(connection, why)

    def close(self) -> None:
        """Everybody is told that the server stops."""
        self._stop.set()
        self._joined.set()
        self._hub.close()
        if self._thread is not None:
            self._thread.join(_LOOK_S * 4)

    def run_once(self) -> None:
        """One round. Raises Outage where the rows can't be read: nobody is told anything then."""
        told = self._rounds.run_once(self._followers.now())
        self._hub.tell(told.events)
        for connection in told.finished:
            self._followers.remove(connection)
            self._hub.end(connection, Ending.FINISHED)

    def _connection(self, sock: socket.socket, framing: Framing) -> Connection:
        return Connection(sock, framing, self._followers.remove)

    def _follow(self, head: bytes, follower: Follower) -> None:
        self._followers.add(follower)
        self._hub.adopt(follower.connection, head)
        self._joined.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        self._rounds = Rounds(self._changes, self._shown)
        try:
            while not self._stop.is_set():
                if not len(self._followers):
                    self._rounds = Rounds(self._changes, self._shown)
                    self._changes.let_go()
                    self._joined.wait()
                self._joined.clear()
                self._pause_after(self._timed_round())
        finally:
            self._give_up()

    def _timed_round(self) -> float:
        begin_s = time.monotonic()
        try:
            self.run_once()
        except Outage as exc:
            log.warning("followers are told nothing for now: %s", exc.public_message)
        return time.monotonic() - begin_s

    def _pause_after(self, spent_s: float) -> None:
        self._stop.wait(max(_GATHER_S, spent_s * _PAUSE_FACTOR))
        self._joined.wait(max(0.0, _LOOK_S - _GATHER_S))

    def _give_up(self) -> None:
        """Also after an error that nobody foresaw: followers come again, and find a new thread."""
        with self._lock:
            self._thread = None
        why = Ending.STOPPING if self._stop.is_set() else Ending.UNAVAILABLE
        for follower in self._followers.now():
            self._followers.remove(follower.connection)
            self._hub.end(follower.connection, why)
        self._changes.let_go()
