"""Server-Sent Events: text that a browser's EventSource reads, with the ids that it comes back with."""

from __future__ import annotations

from api.live.framing import Ending, Event, Received

_RETRY_MS = 2000
_RETRY_AFTER_STOP_MS = 1000


class SseFraming:
    waits_for_peer = False

    def opening(self) -> bytes:
        return f"retry: {_RETRY_MS}\n\n".encode()

    def event(self, event: Event) -> bytes:
        """States have no name: they are what `onmessage` gets."""
        name = f"event: {event.name}\n" if event.name else ""
        data = "".join(f"data: {line}\n" for line in event.data.split("\n"))
        return f"id: {event.id}\n{name}{data}\n".encode()

    def heartbeat(self) -> bytes:
        return b": still here\n\n"

    def ending(self, why: Ending) -> bytes:
        if why in (Ending.STOPPING, Ending.EXPIRED):
            return f"retry: {_RETRY_AFTER_STOP_MS}\n: {why.reason}\n\n".encode()
        return f": {why.reason}\n\n".encode()

    def received(self, data: bytes) -> Received:
        """Nothing that a peer sends means anything here."""
        return Received()
