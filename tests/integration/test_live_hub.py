"""The hub over real sockets: many followers, one thread; who is slow is cut off, and a stop is told."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from api.live.connection import Connection
from api.live.framing import Ending, Event
from api.live.hub import Hub
from api.live.hub_loop import HubConfig
from api.live.sse import SseFraming
from api.live.takeover import take_over
from api.live.websocket import WebSocketFraming
from tests.waiting import PATIENCE_S, wait_until

HEAD = b"HTTP/1.1 200 OK\r\n\r\n"


class Follower:
    """The far end of a connection that the hub has."""

    def __init__(self, hub: Hub, *, is_socket: bool = False) -> None:
        near, self.sock = socket.socketpair()
        near.setblocking(False)
        self.sock.settimeout(PATIENCE_S)
        self.is_gone = threading.Event()
        framing = WebSocketFraming() if is_socket else SseFraming()
        self.connection = Connection(near, framing, lambda _: self.is_gone.set())
        hub.adopt(self.connection, HEAD)

    def read_to_end(self) -> bytes:
        read = b""
        while piece := self.sock.recv(65536):
            read += piece
        self.sock.close()
        return read


@pytest.fixture
def hub() -> Iterator[Hub]:
    opened = Hub(HubConfig(heartbeat_s=1.0, max_waiting_bytes=100_000, max_stall_s=2.0, end_grace_s=1.0))
    yield opened
    opened.close()


def test_everybody_is_told_in_order_by_one_thread(hub: Hub) -> None:
    before = threading.active_count()
    followers = [Follower(hub) for _ in range(100)]
    for number in range(3):
        hub.tell([(f.connection, Event(number, "{}")) for f in followers])
    for follower in followers:
        hub.end(follower.connection, Ending.FINISHED)
    read = {follower.read_to_end() for follower in followers}
    events = b"".join(b"id: %d\ndata: {}\n\n" % number for number in range(3))
    assert read == {HEAD + b"retry: 2000\n\n" + events + b": the job has ended\n\n"}
    assert threading.active_count() <= before + 1
    wait_until(lambda: all(follower.is_gone.is_set() for follower in followers), what="the end of all connections")
    assert hub.connections == 0


def test_one_that_takes_nothing_is_cut_off_and_others_are_not(hub: Hub) -> None:
    slow, quick = Follower(hub), Follower(hub)
    big = Event(1, '"' + "x" * 30_000 + '"')
    heard = 0
    while not slow.is_gone.is_set():
        hub.tell([(slow.connection, big), (quick.connection, big)])
        while heard < len(big.data):
            heard += len(quick.sock.recv(65536))
        heard -= len(big.data)
    assert not quick.is_gone.is_set()
    assert slow.connection.waiting_bytes > 100_000
    for follower in (slow, quick):
        follower.sock.close()


def test_one_that_stalls_with_little_waiting_is_cut_off_too(hub: Hub) -> None:
    slow = Follower(hub)
    slow.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    hub.tell([(slow.connection, Event(1, "x" * 80_000))])
    wait_until(slow.is_gone.is_set, what="the cut")
    assert 0 < slow.connection.waiting_bytes < 100_000
    slow.sock.close()


def test_silence_is_filled_with_heartbeats(hub: Hub) -> None:
    follower = Follower(hub)
    read = b""
    while read.count(b": still here\n\n") < 2:
        read += follower.sock.recv(4096)
    assert read.startswith(HEAD)
    follower.sock.close()
    wait_until(follower.is_gone.is_set, what="the end of a follower that left")


def test_a_stop_is_told_and_nobody_is_taken_after_it(hub: Hub) -> None:
    follower, follower_by_socket = Follower(hub), Follower(hub, is_socket=True)
    hub.close()
    assert follower.read_to_end().endswith(b"retry: 1000\n: the server is stopping: connect again\n\n")
    assert b"the server is stopping" in follower_by_socket.read_to_end()
    assert not hub.has_room


def test_who_follows_for_long_has_to_come_again() -> None:
    hub = Hub(HubConfig(max_age_s=0.5))
    assert (
        follower_end(Follower(hub)) == b"retry: 1000\n: connect again: who follows is asked for a key now and then\n\n"
    )
    hub.close()


def follower_end(follower: Follower) -> bytes:
    return follower.read_to_end().removeprefix(HEAD + b"retry: 2000\n\n")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_unforeseen_error_leaves_no_connection_open(hub: Hub) -> None:
    follower = Follower(hub)
    (thread,) = (one for one in threading.enumerate() if one.name == "live-hub")
    hub.tell([(follower.connection, None)])  # type: ignore[list-item]
    assert follower_end(follower) == b""
    thread.join(PATIENCE_S)  # what it raised is told at its very end, and must not reach the next test
    again = Follower(hub)
    hub.end(again.connection, Ending.FINISHED)
    assert follower_end(again) == b": the job has ended\n\n"


def test_there_is_room_for_so_many_and_no_more() -> None:
    hub = Hub(HubConfig(max_connections=1))
    assert hub.has_room
    follower = Follower(hub)
    wait_until(lambda: not hub.has_room, what="a full hub")
    follower.sock.close()
    wait_until(lambda: hub.has_room, what="room again")
    hub.close()


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        HubConfig(heartbeat_s=0)


def test_a_connection_that_was_taken_over_survives_its_server() -> None:
    """The server shuts its side down and closes it, as it does with every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        held, _ = listener.accept()
    taken = take_over(held)
    with pytest.raises(OSError, match="not connected"):
        held.shutdown(socket.SHUT_WR)
    held.close()
    assert not os.get_inheritable(taken.fileno())
    taken.send(b"hello")
    assert client.recv(10) == b"hello"
    taken.close()
    assert client.recv(10) == b""
    client.close()
