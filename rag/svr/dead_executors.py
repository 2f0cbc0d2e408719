"""What is done for executors that the supervisor saw die: their tasks and roles are free at once, and not only when
the leases end."""

from __future__ import annotations

import logging

from api.db.database import Rows
from api.db.services.executor_registry import ExecutorRegistry
from api.db.services.role_service import RoleService
from api.db.services.task_service import TaskService
from common.errors import Outage

log = logging.getLogger(__name__)


class DeadExecutors:
    """Owners that may still hold something. A database that is away, or a document that somebody else works on at this
    moment, is waited for: `hand_back` is called until nobody is left."""

    def __init__(self, rows: Rows, tasks: TaskService) -> None:
        self._rows = rows
        self._tasks = tasks
        self._roles = RoleService(rows)
        self._registry = ExecutorRegistry(rows)
        self._owners: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._owners)

    def add(self, owner: str, why: str) -> None:
        self._owners[owner] = why

    def hand_back(self) -> None:
        try:
            self._owners = {owner: why for owner, why in self._owners.items() if not self._free(owner, why)}
        except Outage as exc:
            log.debug("dead executors' tasks can't be handed back now: %s", exc)
        finally:
            # The supervisor asks the database only now and then.
            self._rows.close_connection()

    def _free(self, owner: str, why: str) -> bool:
        """Whether it holds nothing any more."""
        self._registry.mark_dead(owner, why)
        self._roles.step_down_from_all(owner)
        count = self._tasks.hand_back(owner, "its process died")
        if count:
            log.warning("%d tasks of %s go back", count, owner.partition(":")[0])
        return not self._tasks.holds_any(owner)
