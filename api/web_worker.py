"""The web server's worker, gunicorn's with threads, and two ways for it to end. On SIGTERM the server stops: what is in
work may end within the grace. On SIGUSR2 another worker serves in its place: this one takes no new connection and ends
what it has begun, however long that takes; a connection that it promised to keep gets one more answer."""

from __future__ import annotations

import selectors
import signal
import time
from types import FrameType
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

# An upload may take long; who sends nothing is cut off much sooner (server.receive_timeout_s).
_RETIRE_S = 3600.0
_LOOK_S = 1.0


class Worker(ThreadWorker):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.alive: bool
        self.nr_conns: int
        self._is_retiring = False

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
        self.tpool.shutdown(wait=False)
        self.poller.close()
        self.method_queue.close()
        for listener in self.sockets:
            listener.close()

    def finish_request(self, conn: Any, future: Any) -> None:
        """gunicorn closes every connection once it leaves, also one that it has just promised to keep."""
        if self.alive or not self._is_retiring:
            super().finish_request(conn, future)
            return
        self.alive = True
        try:
            super().finish_request(conn, future)
        finally:
            self.alive = False

    def _is_waited_for(self, spent_s: float) -> bool:
        if self._is_retiring:
            return self.nr_conns > 0 and spent_s < _RETIRE_S and bool(self.is_parent_alive())
        return self.nr_conns > len(self.keepalived_conns) and spent_s < float(self.cfg.graceful_timeout)

    def _look(self) -> None:
        self.notify()
        self.wait_for_and_dispatch_events(timeout=_LOOK_S)
        self.murder_keepalived()
        self.murder_pending()
