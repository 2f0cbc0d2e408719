"""The web server's worker, gunicorn's with threads, and two ways for it to end. On SIGTERM the server stops: what is in
work may end within the grace. On SIGUSR2 another worker serves in its place: this one takes no new connection and ends
what it has begun, however long that takes; a connection that it promised to keep gets one more answer.

Connections that send a request slowly, take an answer slowly, or do not close, wait in the loop, not in a thread; a
large body takes one while it comes, but not all of them are given to such."""

from __future__ import annotations

import contextlib
import selectors
import signal
import socket
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from api.web_answers import AnsweringSocket, Room, SlowReaders
from api.web_bodies import BodyLine, PacedUnreader, TooSlow, with_readable_bodies
from api.web_heads import Come, Look, look_at, objection, refusal
from common import logs
from common.ids import new_token

# An upload may take long; who sends nothing is cut off much sooner (server.receive_timeout_s).
_RETIRE_S = 3600.0
_LOOK_S = 1.0
# How long a client that was answered may take to close, and at a stop one that was accepted to send something.
_LINGER_S = 2.0
_STOP_PENDING_S = 1.0
_DROPPED_BYTES = 64 * 1024
# Of a body that the app left unread only that is dropped which is there. A try may also end because its thread had to
# wait for the interpreter: the connection was promised to be kept, so there are several.
_UNREAD_S = 0.001
_UNREAD_TRIES = 8
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@dataclass
class _Awaited:
    """A request of which a part is there."""

    until_s: float
    seen_bytes: int = 0
    is_told: bool = False


class Worker(ThreadWorker):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alive: bool
        self.nr_conns: int
        self.wsgi: Any
        self._is_retiring = False
        self._leaving: deque[Any] = deque()
        self._bodies = BodyLine(self.cfg.threads)
        self._room = Room()
        self._readers = SlowReaders(self.app.settings.server.send_timeout_s, self._forget)

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self.wsgi = with_readable_bodies(self.wsgi)

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGUSR2, self._retire)
        signal.siginterrupt(signal.SIGUSR2, False)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._is_retiring = False
        super().handle_exit(sig, frame)

    def _retire(self, sig: int, frame: FrameType | None) -> None:
        self._is_retiring = self.alive
        super().handle_exit(sig, frame)

    def run(self) -> None:
        """Until a signal says otherwise; `alive` is what threads look at when they promise to keep a connection."""
        self.poller.register(self.method_queue.fileno(), selectors.EVENT_READ, self.method_queue.run_callbacks)
        while self.alive and self.is_parent_alive():
            self.set_accept_enabled(self.nr_conns < self.worker_connections)
            self._look()
        self.set_accept_enabled(False)
        if self._is_retiring:
            self.app.say_goodbye()
        began_s = time.monotonic()
        while self._is_waited_for(time.monotonic() - began_s):
            self._look()
        self.murder_keepalived(force=True)
        self._close_late(self._leaving, float("inf"))
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def enqueue_req(self, conn: Any) -> None:
        """A thread is taken when all of a request is there, or the head of a large one; until then it is waited for in
        the loop."""
        if not isinstance(conn.sock, AnsweringSocket):
            conn.sock = AnsweringSocket(conn.sock, self._room, self.app.settings.server.send_timeout_s)
        held = conn.parser.unreader.buf.getvalue() if conn.parser is not None else b""
        awaited: _Awaited | None = getattr(conn, "awaited", None)
        look = look_at(conn.sock, held, awaited.seen_bytes if awaited is not None else -1)
        if look.come is Come.PARTIAL:
            limit_s = self.app.settings.server.receive_timeout_s
            conn.awaited = awaited or _Awaited(time.monotonic() + limit_s)
            self._wait_for_rest(conn, conn.awaited, look)
            return
        conn.data_ready, conn.awaited, conn.objection = True, None, objection(look.come)
        conn.is_told = awaited is not None and awaited.is_told
        if look.come is not Come.STREAMED or self._bodies.enter(conn):
            super().enqueue_req(conn)

    def _wait_for_rest(self, conn: Any, awaited: _Awaited, look: Look) -> None:
        awaited.seen_bytes = look.size
        if time.monotonic() >= awaited.until_s:
            self._give_up(conn)
            return
        conn.timeout = awaited.until_s
        conn.sock.setblocking(False)
        if look.expects_leave and not awaited.is_told:
            awaited.is_told = True
            with contextlib.suppress(OSError):  # who is gone is met by the next look
                conn.sock.send(_GO_ON)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def murder_pending(self) -> None:
        """Those that were here first are first in line, except for who has sent a piece since."""
        now_s = time.monotonic()
        while self.pending_conns and self.pending_conns[0].timeout <= now_s:
            conn = self.pending_conns.popleft()
            self.poller.unregister(conn.sock)
            self._give_up(conn)

    def _give_up(self, conn: Any) -> None:
        if conn.awaited.seen_bytes > 0:
            limit_s = self.app.settings.server.receive_timeout_s
            self.handle_error(None, conn.sock, conn.client, TooSlow(f"the request was not whole after {limit_s} s"))
        self._leave(conn)

    def handle(self, conn: Any) -> Any:
        if conn.objection is not None:
            self.handle_error(None, conn.sock, conn.client, conn.objection)
            return False
        if not conn.initialized:
            conn.init()
            conn.parser.unreader = PacedUnreader(conn.parser, self.app.settings.server)
        conn.parser.unreader.begin()
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Any) -> Any:
        if conn.is_told:  # it would be told again
            req._expected_100_continue = False
        return super().handle_request(req, conn)

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:
        finish = conn.parser.finish_body
        return keepalive and any(finish(deadline=time.monotonic() + _UNREAD_S) for _ in range(_UNREAD_TRIES))

    def handle_error(self, req: Any, client: socket.socket, addr: Any, exc: BaseException) -> None:
        """In the API's envelope, in place of gunicorn's page."""
        request_id = new_token()
        status, answer = refusal(exc, request_id)
        with logs.about(request_id=request_id):
            if status == 500:
                self.log.error("a request failed outside of the app", exc_info=exc)
            else:
                self.log.warning("no request from %s: %s: %s", (addr or ("",))[0], type(exc).__name__, exc)
        try:
            client.sendall(answer)
        except OSError as gone:
            self.log.debug("nobody is there to be told: %s", gone)

    def finish_request(self, conn: Any, future: Any) -> None:
        """gunicorn closes every connection once it leaves, also one that it has just promised to keep; and waits, with
        all others, until a client closes one that is not kept."""
        following = self._bodies.leave(conn)
        if following is not None:
            super().enqueue_req(following)
        if conn.sock.has_kept:
            self._readers.add(self.poller, conn, partial(self._go_on, conn, future))
        else:
            self._go_on(conn, future)

    def _go_on(self, conn: Any, future: Any) -> None:
        """All of the answer is out."""
        is_kept = not future.cancelled() and future.exception() is None and future.result()
        if not is_kept or not (self.alive or self._is_retiring):
            self._leave(conn)
            return
        if self.alive or not self._is_retiring:
            super().finish_request(conn, future)
            return
        self.alive = True
        try:
            super().finish_request(conn, future)
        finally:
            self.alive = False

    def _leave(self, conn: Any) -> None:
        """The answer is out. Closed with bytes unread it could be lost: these are dropped until the client closes."""
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drop_rest, conn))
        except OSError:
            self._forget(conn)
            return
        conn.timeout = time.monotonic() + _LINGER_S
        self._leaving.append(conn)

    def _drop_rest(self, conn: Any, sock: socket.socket) -> None:
        try:
            if sock.recv(_DROPPED_BYTES):
                return
        except BlockingIOError:
            return
        except OSError as exc:
            self.log.debug("a client is gone: %s", exc)
        self._leaving.remove(conn)
        self._close(conn)

    def _forget(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()

    def _close_late(self, conns: deque[Any], now_s: float) -> None:
        while conns and conns[0].timeout <= now_s:
            self._close(conns.popleft())

    def _close(self, conn: Any) -> None:
        self.poller.unregister(conn.sock)
        self._forget(conn)

    def _is_waited_for(self, spent_s: float) -> bool:
        if self._is_retiring:
            return self.nr_conns > 0 and spent_s < _RETIRE_S and bool(self.is_parent_alive())
        idle = len(self.keepalived_conns) + (len(self.pending_conns) if spent_s > _STOP_PENDING_S else 0)
        return self.nr_conns > idle and spent_s < float(self.cfg.graceful_timeout)

    def notify(self) -> None:
        """The arbiter kills nobody for not being heard of (`timeout` is 0), so no file is touched for it."""

    def _look(self) -> None:
        self.notify()
        self.wait_for_and_dispatch_events(timeout=_LOOK_S)
        self.murder_keepalived()
        self.murder_pending()
        self._readers.look(self.poller)
        self._close_late(self._leaving, time.monotonic())
