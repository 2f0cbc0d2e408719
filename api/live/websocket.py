"""WebSocket: one text message a state. The frames are wsproto's; the handshake is answered by who took the request."""

from __future__ import annotations

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Ping, Pong, TextMessage
from wsproto.utilities import LocalProtocolError, generate_accept_token

from api.live.framing import Ending, Event, Received


def accept_token(key: str) -> str:
    """The answer to a handshake's Sec-WebSocket-Key."""
    return generate_accept_token(key.encode("latin-1", "replace")).decode()


class WebSocketFraming:
    waits_for_peer = True

    def __init__(self) -> None:
        self._connection = Connection(ConnectionType.SERVER)

    def opening(self) -> bytes:
        return b""

    def event(self, event: Event) -> bytes:
        """The id goes with the state: a WebSocket has no other place for it."""
        return self._send(TextMessage(f'{{"id": "{event.id}", {event.data[1:]}'))

    def heartbeat(self) -> bytes:
        return self._send(Ping())

    def ending(self, why: Ending) -> bytes:
        return self._send(CloseConnection(why.code, why.reason))

    def received(self, data: bytes) -> Received:
        """Pings are answered, a close is confirmed, bytes that are no frame end it; messages mean nothing here."""
        answer = b""
        self._connection.receive_data(data)
        for event in self._connection.events():
            if isinstance(event, Ping):
                answer += self._send(event.response())
            elif isinstance(event, CloseConnection):
                return Received(answer + self._send(event.response()), is_over=True)
        return Received(answer)

    def _send(self, event: TextMessage | Ping | Pong | CloseConnection) -> bytes:
        """b"" where the connection is being closed already."""
        try:
            return self._connection.send(event)
        except LocalProtocolError:
            return b""
