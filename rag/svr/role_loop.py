"""The loop of a service that one executor runs for all: while it holds the role it takes a turn every tick, else it
asks for the role now and then."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from api.db.services.role_service import RoleService
from common.errors import Outage

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Role:
    name: str
    holder: str
    lead_s: float
    tick_s: float = 1.0


def run_in_role(role: Role, roles: RoleService, turn: Callable[[bool], None], stop: threading.Event) -> None:
    """Until stopped; the role is free for others then. An outage is waited out."""
    leads = False
    while not stop.wait(role.tick_s if leads else role.lead_s / 3):
        try:
            leads = take_turn(role, roles, turn)
        except Outage as exc:
            log.warning("%s: %s", role.name, exc)
    if leads:
        roles.step_down(role.name, role.holder)


def take_turn(role: Role, roles: RoleService, turn: Callable[[bool], None]) -> bool:
    """One turn; `turn` is told whether this executor holds the role, and so are we."""
    leads = roles.lead(role.name, role.holder, int(role.lead_s * 1000))
    turn(leads)
    return leads
