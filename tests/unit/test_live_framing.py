"""What followers are sent, byte by byte: Server-Sent Events and WebSocket frames."""

from __future__ import annotations

import json

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, Pong, TextMessage
from wsproto.events import Event as Frame

from api.live.framing import Ending, Event
from api.live.sse import SseFraming
from api.live.websocket import WebSocketFraming, accept_token


def frames(client: Connection, data: bytes) -> list[Frame]:
    client.receive_data(data)
    return list(client.events())


def test_an_event_has_an_id_and_its_data_line_by_line() -> None:
    sse = SseFraming()
    assert sse.event(Event(7, '{"a": "é"}')) == 'id: 7\ndata: {"a": "é"}\n\n'.encode()
    assert sse.event(Event(8, "x\ny", name="reset")) == b"id: 8\nevent: reset\ndata: x\ndata: y\n\n"


def test_an_event_stream_says_when_to_come_again() -> None:
    sse = SseFraming()
    assert sse.opening() == b"retry: 2000\n\n"
    assert sse.heartbeat().startswith(b":")
    assert sse.ending(Ending.STOPPING).startswith(b"retry: 1000\n")
    assert b"retry" not in sse.ending(Ending.FINISHED)
    assert sse.received(b"anything").is_over is False


def test_a_socket_carries_states_with_their_ids() -> None:
    server, client = WebSocketFraming(), Connection(ConnectionType.CLIENT)
    (message,) = frames(client, server.event(Event(7, '{"status": "done", "name": "é"}')))
    assert isinstance(message, TextMessage)
    assert json.loads(message.data) == {"id": "7", "status": "done", "name": "é"}


def test_a_socket_answers_pings_and_confirms_a_close() -> None:
    server, client = WebSocketFraming(), Connection(ConnectionType.CLIENT)
    (ping,) = frames(client, server.heartbeat())
    assert isinstance(ping, Ping)
    received = server.received(client.send(Ping(b"x")) + client.send(BytesMessage(b"ignored")))
    assert not received.is_over
    assert [type(f) for f in frames(client, received.answer)] == [Pong]
    received = server.received(client.send(CloseConnection(1001)))
    assert received.is_over
    (closed,) = frames(client, received.answer)
    assert isinstance(closed, CloseConnection) and closed.code == 1001
    assert server.event(Event(1, "{}")) == server.ending(Ending.STOPPING) == b""


def test_a_socket_is_closed_with_a_code_that_says_why() -> None:
    for why, code in ((Ending.FINISHED, 1000), (Ending.STOPPING, 1012), (Ending.UNKNOWN, 4404)):
        server, client = WebSocketFraming(), Connection(ConnectionType.CLIENT)
        (closed,) = frames(client, server.ending(why))
        assert isinstance(closed, CloseConnection)
        assert (closed.code, closed.reason) == (code, why.reason)
        assert server.received(client.send(closed.response())).is_over


def test_bytes_that_are_no_frame_end_a_socket() -> None:
    server, client = WebSocketFraming(), Connection(ConnectionType.CLIENT)
    received = server.received(b"GET / HTTP/1.1\r\n\r\n")
    (closed,) = frames(client, received.answer)
    assert received.is_over and isinstance(closed, CloseConnection) and closed.code == 1002


def test_the_handshake_of_the_standards_example() -> None:
    assert accept_token("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
