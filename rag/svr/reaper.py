"""The reaper: takes back the tasks whose lease ran out, and starts documents anew whose tasks no executor of today can
read, or whose chunks a power cut took. One executor does it for all."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from api.db.services.fresh_copies import FreshCopies
from api.db.services.parse_service import ParseService
from api.db.services.role_service import RoleService
from api.db.services.task_service import TaskService
from common.settings import Settings
from rag.svr.fence import steady_s
from rag.svr.role_loop import Leadership, Role, run_in_role

log = logging.getLogger(__name__)
ROLE = "reaper"
_LEAD_S = 6.0
_OUTDATED_EVERY_S = 60.0


@dataclass(frozen=True)
class ReaperConfig:
    holder: str
    lease_s: float

    @staticmethod
    def of(settings: Settings, holder: str) -> ReaperConfig:
        return ReaperConfig(holder, settings.executor.lease_s)


class Reaper:
    def __init__(
        self, config: ReaperConfig, roles: RoleService, tasks: TaskService, parsing: ParseService, copies: FreshCopies
    ) -> None:
        self._config = config
        self._leadership = Leadership(Role(ROLE, config.holder, _LEAD_S), roles)
        self._roles = roles
        self._tasks = tasks
        self._parsing = parsing
        self._copies = copies
        self._last_tick_s = steady_s()
        self._last_clock_ms = 0
        self._not_before_s = 0.0
        self._outdated_due_s = 0.0

    def run(self, stop: threading.Event) -> None:
        run_in_role(self._leadership, self._turn, stop)

    def run_once(self) -> bool:
        """One turn. False where another executor does this."""
        leads = self._leadership.hold()
        self._turn(leads)
        return leads

    def _turn(self, leads: bool) -> None:
        """The clocks are watched also while another executor reaps: its successor must not start with a doubt."""
        may_reap = self._may_reap()
        if not leads:
            return
        if may_reap:
            lost = self._tasks.reap()
            if lost:
                log.warning("%d tasks of lost executors go back", lost)
        if steady_s() >= self._outdated_due_s:
            self._outdated_due_s = steady_s() + _OUTDATED_EVERY_S
            self._restart_outdated()
        self._copies.check()
        self._copies.drop_orphans()

    def _may_reap(self) -> bool:
        """Not when this host slept, or the database's clock jumped: everybody's leases look over then, and one more
        lease tells who is really gone."""
        now_s, clock_ms = steady_s(), self._roles.clock_ms()
        passed_s = now_s - self._last_tick_s
        clock_passed_s = (clock_ms - self._last_clock_ms) / 1000 if self._last_clock_ms else passed_s
        self._last_tick_s, self._last_clock_ms = now_s, clock_ms
        if max(passed_s, clock_passed_s) > self._config.lease_s:
            self._not_before_s = now_s + self._config.lease_s
        return now_s >= self._not_before_s

    def _restart_outdated(self) -> None:
        restarted = self._parsing.restart_outdated()
        if restarted:
            log.warning("%d documents of an older parser version are parsed anew", len(restarted))
