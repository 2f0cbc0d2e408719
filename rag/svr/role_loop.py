"""A service that one executor runs for all: while it holds the role it takes a turn every tick, else it asks for the
role now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from api.db.services.role_service import RoleService
from common.errors import Outage
from rag.svr.fence import steady_s

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Role:
    name: str
    holder: str
    lead_s: float
    tick_s: float = 1.0

    @property
    def ask_s(self) -> float:
        """How often somebody else asks for it: it may have become free at any moment."""
        return min(1.0, self.lead_s / 3)


class Leadership:
    """An executor's hold on a role. Renewed well before it ends, and not on every turn: each renewal is a write."""

    def __init__(self, role: Role, roles: RoleService) -> None:
        self.role = role
        self._roles = roles
        self._until_s = 0.0

    def hold(self) -> bool:
        """Become or stay the holder. False while somebody else is."""
        asked_s = steady_s()
        if asked_s < self._until_s - self.role.lead_s / 2:
            return True
        leads = self._roles.lead(self.role.name, self.role.holder, int(self.role.lead_s * 1000))
        self._until_s = asked_s + self.role.lead_s if leads else 0.0
        return leads

    def step_down(self) -> None:
        if self._until_s:
            self._roles.step_down(self.role.name, self.role.holder)


def run_in_role(leadership: Leadership, turn: Callable[[bool], None], stop: threading.Event) -> None:
    """Until stopped; the role is free for others then. `turn` is told whether this executor holds the role. An outage
    is waited out."""
    role = leadership.role
    leads = False
    while not stop.wait(role.tick_s if leads else role.ask_s):
        try:
            leads = leadership.hold()
            turn(leads)
        except Outage as exc:
            log.warning("%s: %s", role.name, exc)
    leadership.step_down()
