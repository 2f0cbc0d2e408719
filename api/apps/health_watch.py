"""The health of the parts with a limit in time: a part that hangs is told as such and keeps nobody waiting.

Each part has a thread of its own, so that one that does not come back hides only itself. However many look, a part is
asked about every two seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from api.apps.health import PartState, check_part

_LIMIT_S = 2.0
_KEEP_S = 2.0


class HealthWatch:
    def __init__(
        self, parts: Mapping[str, Callable[[], None]], limit_s: float = _LIMIT_S, keep_s: float = _KEEP_S
    ) -> None:
        self._probes = [_Probe(part, check) for part, check in parts.items()]
        self._limit_s = limit_s
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._states: list[PartState] = []
        self._asked_s = -keep_s

    def look(self) -> list[PartState]:
        """In at most the limit, whatever the parts do."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._asked_s >= self._keep_s or not self._states:
                for probe in self._probes:
                    probe.ask()
                self._states = [probe.answer(now_s + self._limit_s) for probe in self._probes]
                self._asked_s = time.monotonic()
            return self._states


class _Probe:
    def __init__(self, part: str, check: Callable[[], None]) -> None:
        self._part = part
        self._check = check
        self._changed = threading.Condition()
        self._asked_s = 0.0
        self._is_asked = False
        self._state: PartState | None = None
        self._thread: threading.Thread | None = None

    def ask(self) -> None:
        """Begin a check, unless the last one is still under way."""
        with self._changed:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"health of {self._part}", daemon=True)
                self._thread.start()
            if not self._is_asked:
                self._is_asked = True
                self._asked_s = time.monotonic()
                self._state = None
                self._changed.notify_all()

    def answer(self, until_s: float) -> PartState:
        with self._changed:
            while self._state is None and (left_s := until_s - time.monotonic()) > 0:
                self._changed.wait(left_s)
            if self._state is not None:
                return self._state
            waited_s = time.monotonic() - self._asked_s
            return PartState(self._part, f"it has not answered for {waited_s:.0f} s", waited_s * 1000)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._is_asked:
                    self._changed.wait()
            state = check_part(self._part, self._check)
            with self._changed:
                self._state = state
                self._is_asked = False
                self._changed.notify_all()
