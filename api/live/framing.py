"""What a follower is told, and the contract of those that put it into bytes. Pure: no socket is touched here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


@dataclass(frozen=True)
class Event:
    """`id` is where to go on from after a loss of the connection; `data` is JSON. One with a `name` is no state."""

    id: int
    data: str
    name: str = ""


class Ending(Enum):
    """Why a connection ends from this side: the code that a WebSocket is closed with, and a word for people."""

    FINISHED = (1000, "the job has ended")
    STOPPING = (1012, "the server is stopping: connect again")
    EXPIRED = (1012, "connect again: who follows is asked for a key now and then")
    UNREADABLE = (4400, "last_event_id should be an id that an event had")
    UNAUTHORIZED = (4401, "no API key was given, or it is not known")
    UNKNOWN = (4404, "there is no such job")
    OVERLOADED = (1013, "too many followers: connect again later")
    UNAVAILABLE = (1011, "the server can't answer now: connect again later")

    def __init__(self, code: int, reason: str) -> None:
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class Received:
    """What a peer's bytes ask for: an answer, and whether the connection is over with it."""

    answer: bytes = b""
    is_over: bool = False


class Framing(Protocol):
    """One connection's way of speaking; not shared between connections."""

    waits_for_peer: bool
    """Whether the peer answers an ending before the connection is closed."""

    def opening(self) -> bytes:
        """What comes after the HTTP head."""

    def event(self, event: Event) -> bytes: ...

    def heartbeat(self) -> bytes: ...

    def ending(self, why: Ending) -> bytes: ...

    def received(self, data: bytes) -> Received: ...
