"""What becomes of an answer that its client does not take at once."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from api.web_answers import AnsweringSocket, Room, SlowReaders

_LARGE = bytes(range(256)) * 40_000


@pytest.fixture
def pair() -> Iterator[tuple[AnsweringSocket, socket.socket]]:
    ours, theirs = socket.socketpair()
    sock = AnsweringSocket(ours, Room(), silent_s=0.2)
    with sock, theirs:
        theirs.settimeout(10)
        yield sock, theirs


def taken(theirs: socket.socket, sock: AnsweringSocket, size: int) -> bytes:
    got = b""
    while len(got) < size:
        sock.send_kept()
        got += theirs.recv(1 << 20)
    return got


def test_what_does_not_fit_is_kept_and_goes_out_in_order(
    pair: tuple[AnsweringSocket, socket.socket], tmp_path: Path
) -> None:
    sock, theirs = pair
    (tmp_path / "file").write_bytes(_LARGE)
    sock.sendall(b"head")
    assert not sock.has_kept
    sock.sendall(_LARGE)
    with (tmp_path / "file").open("rb") as file:
        assert sock.sendfile(file, offset=100, count=1_000_000) == 1_000_000
    sock.sendall(b"end")
    wanted = b"head" + _LARGE + _LARGE[100:1_000_100] + b"end"
    assert sock.has_kept
    assert taken(theirs, sock, len(wanted)) == wanted
    assert not sock.has_kept


def test_a_thread_waits_where_there_is_no_room(pair: tuple[AnsweringSocket, socket.socket]) -> None:
    ours, theirs = socket.socketpair()
    with AnsweringSocket(ours, Room(most_bytes=1), silent_s=10) as sock, theirs:
        sender = threading.Thread(target=sock.sendall, args=(_LARGE,))
        sender.start()
        got = b""
        while len(got) < len(_LARGE):
            got += theirs.recv(1 << 20)
        sender.join()
        assert (got == _LARGE, sock.has_kept) == (True, False)


def test_of_an_answer_that_is_made_on_the_way_little_is_kept(pair: tuple[AnsweringSocket, socket.socket]) -> None:
    sock, _ = pair
    with pytest.raises(BrokenPipeError):
        for _ in range(1000):
            sock.sendall(_LARGE[:100_000])


def test_what_is_kept_is_given_back_at_the_end() -> None:
    ours, theirs = socket.socketpair()
    room = Room(most_bytes=1_000_000)
    with theirs, AnsweringSocket(ours, room, silent_s=0.1) as sock:
        with pytest.raises(BrokenPipeError):
            sock.sendall(_LARGE)
        assert room.is_full
    assert not room.is_full


def test_a_file_that_has_become_shorter_ends_the_answer(
    pair: tuple[AnsweringSocket, socket.socket], tmp_path: Path
) -> None:
    sock, _ = pair
    (tmp_path / "file").write_bytes(b"short")
    with (tmp_path / "file").open("rb") as file, pytest.raises(BrokenPipeError):
        sock.sendfile(file, count=100)
        sock.send_kept()


def test_who_takes_a_little_is_waited_for_and_who_takes_nothing_is_not(
    pair: tuple[AnsweringSocket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    sock, theirs = pair
    now_s, gone = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    readers, poller = SlowReaders(10.0, gone.append), selectors.DefaultSelector()
    conn = SimpleNamespace(sock=sock)
    sock.sendall(_LARGE)
    readers.add(poller, conn, lambda: pytest.fail("it has not taken all of it"))
    now_s[0] = 10.0
    assert theirs.recv(1 << 20)
    readers.look(poller)
    assert not gone
    now_s[0] = 20.0
    readers.look(poller)
    assert gone == [conn]
    assert not poller.get_map()
