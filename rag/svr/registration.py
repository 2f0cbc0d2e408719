"""The executor's own row: it is written at the start, every few seconds and at the end; and what operators ask of the
executor is read there every second and obeyed. A database that is away changes nothing: the last order holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from api.db.services.executor_orders import ExecutorOrders, Wanted
from api.db.services.executor_registry import ExecutorRegistry
from common.errors import Outage
from rag.svr.fence import steady_s

log = logging.getLogger(__name__)
_LOOK_S = 1.0
_WRITE_S = 5.0


@dataclass(frozen=True)
class Me:
    name: str
    owner: str


@dataclass(frozen=True)
class Steering:
    """What an executor can be told, from any thread: `hold` its slots or not, and to `leave`; and what it tells: its
    `beat`, whether it `is_quiet`, and `why` it left; "" where it did not leave in order, which others will notice."""

    beat: Callable[[], dict[str, Any]]
    hold: Callable[[bool], None]
    is_quiet: Callable[[], bool]
    leave: Callable[[], None]
    why: Callable[[], str]


class Registration:
    def __init__(self, me: Me, registry: ExecutorRegistry, orders: ExecutorOrders, steering: Steering) -> None:
        self._me = me
        self._registry = registry
        self._orders = orders
        self._steering = steering
        self._obeyed: Wanted | None = None
        self._is_registered = False
        self._write_due_s = 0.0
        self._looked_up = (0, 0)
        self._leaves = False

    def run(self, stop: threading.Event) -> None:
        while True:
            try:
                self.run_once()
            except Outage as exc:
                log.debug("the executor's row can't be looked at: %s", exc)
            if stop.wait(_LOOK_S):
                break
        why = self._steering.why()
        try:
            self._write()
            if why:
                self._registry.leave(self._me.owner, why)
        except Outage as exc:
            log.debug("the executor's row can't be closed: %s", exc)

    def run_once(self) -> None:
        if not self._is_registered:
            self._registry.register(self._me.owner, self._me.name, self._steering.beat())
            self._is_registered = True
        self._obey(self._orders.wanted(self._me.name, self._me.owner))
        if steady_s() >= self._write_due_s:
            self._write()
            self._write_due_s = steady_s() + _WRITE_S

    def _obey(self, wanted: Wanted) -> None:
        if wanted is not self._obeyed:
            if wanted is not Wanted.RUN or self._obeyed is not None:
                log.info("executor %s was asked to %s", self._me.name, wanted or "go on")
            self._obeyed = wanted
            self._steering.hold(wanted is not Wanted.RUN)
        if wanted is Wanted.RESTART and self._steering.is_quiet() and not self._leaves:
            self._leaves = True
            self._steering.leave()

    def _write(self) -> None:
        beat = self._steering.beat()
        now = (int(beat.get("embedding_cache_hits", 0)), int(beat.get("embedding_cache_misses", 0)))
        new = (now[0] - self._looked_up[0], now[1] - self._looked_up[1])
        self._registry.refresh(self._me.owner, beat, new)
        self._looked_up = now
