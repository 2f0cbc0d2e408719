"""The web server's worker, gunicorn's with threads, and two ways for it to end. On SIGTERM the server stops: what is in
work may end within the grace. On SIGUSR2 another worker serves in its place: this one takes no new connection and ends
what it has begun, however long that takes; a connection that it promised to keep gets one more answer.

Connections that send the head of a request slowly, and those that do not close, wait in the loop, not in a thread."""

from __future__ import annotations

import selectors
import signal
import socket
import time
from collections import deque
from functools import partial
from types import FrameType
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from api.web_heads import Head, head_of, objection, refusal, with_readable_bodies
from common import logs
from common.ids import new_token

# An upload may take long; who sends nothing is cut off much sooner (server.receive_timeout_s).
_RETIRE_S = 3600.0
_LOOK_S = 1.0
# How long a client that was answered may take to close, and at a stop one that was accepted to send something.
_LINGER_S = 2.0
_STOP_PENDING_S = 1.0
_DROPPED_BYTES = 64 * 1024


class Worker(ThreadWorker):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alive: bool
        self.nr_conns: int
        self.wsgi: Any
        self._is_retiring = False
        self._leaving: deque[Any] = deque()

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
        """A thread is taken when the head of a request is there; until then it is waited for in the loop."""
        held = conn.parser.unreader.buf.getvalue() if conn.parser is not None else b""
        found = head_of(conn.sock, held)
        if found is Head.PARTIAL:
            self._wait_for_head(conn)
            return
        conn.data_ready, conn.head_until_s, conn.objection = True, None, objection(found)
        super().enqueue_req(conn)

    def _wait_for_head(self, conn: Any) -> None:
        now_s = time.monotonic()
        conn.timeout = getattr(conn, "head_until_s", None) or now_s + self.app.settings.server.receive_timeout_s
        conn.head_until_s = conn.timeout
        if now_s >= conn.timeout:
            self.nr_conns -= 1
            conn.close()
            return
        conn.sock.setblocking(False)
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def handle(self, conn: Any) -> Any:
        if conn.objection is None:
            return super().handle(conn)
        self.handle_error(None, conn.sock, conn.client, conn.objection)
        return False

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
            self.nr_conns -= 1
            conn.close()
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

    def _close_late(self, conns: deque[Any], now_s: float) -> None:
        while conns and conns[0].timeout <= now_s:
            self._close(conns.popleft())

    def _close(self, conn: Any) -> None:
        self.poller.unregister(conn.sock)
        self.nr_conns -= 1
        conn.close()

    def _is_waited_for(self, spent_s: float) -> bool:
        if self._is_retiring:
            return self.nr_conns > 0 and spent_s < _RETIRE_S and bool(self.is_parent_alive())
        idle = len(self.keepalived_conns) + (len(self.pending_conns) if spent_s > _STOP_PENDING_S else 0)
        return self.nr_conns > idle and spent_s < float(self.cfg.graceful_timeout)

    def _look(self) -> None:
        self.notify()
        self.wait_for_and_dispatch_events(timeout=_LOOK_S)
        self.murder_keepalived()
        self.murder_pending()
        self._close_late(self._leaving, time.monotonic())
