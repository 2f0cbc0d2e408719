"""What operators want of executors: drain, resume, restart. A row, which the executor looks at every second: it can't
be lost with Redis, and holds until it is taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from api.db.database import Rows
from api.db.services.task_sql import marks
from common.errors import InvalidInput, NotFound


class Wanted(StrEnum):
    """`DRAIN`: take nothing new, finish what is in hand, stay idle. `RESTART`: the same, then leave, for whoever
    supervises it to start it again."""

    RUN = ""
    DRAIN = "drain"
    RESTART = "restart"


@dataclass(frozen=True)
class Order:
    """An order for all boots of an executor, or, with an `owner`, for that one."""

    name: str
    wanted: Wanted
    owner: str
    by_user: str
    at_ms: int


class ExecutorOrders:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def drain(self, name: str, by_user: str) -> None:
        """Holds for every later boot under this name too, until `resume`. Raises NotFound."""
        self._rows.write(self._put, name, Wanted.DRAIN, by_user)

    def restart(self, name: str, by_user: str) -> None:
        """Once, of the boot that runs now: the next one works as usual. Raises NotFound."""
        self._rows.write(self._put, name, Wanted.RESTART, by_user)

    def resume(self, name: str) -> None:
        """Take back what was asked. Raises InvalidInput where nothing was."""
        gone = self._rows.write(self._rows.execute, "DELETE FROM executor_order WHERE name = ?", (name,)).rowcount
        if not gone:
            raise InvalidInput(f"executor {name} was not asked to drain")

    def clear(self, names: Sequence[str]) -> None:
        """They are started by a person, who wants them to work."""
        self._rows.write(self._rows.execute, f"DELETE FROM executor_order WHERE name IN ({marks(names)})", names)

    def wanted(self, name: str, owner: str) -> Wanted:
        """What is asked of this boot now."""
        found = self._rows.read(
            self._rows.rows, "SELECT wanted FROM executor_order WHERE name = ? AND owner IN ('', ?)", (name, owner)
        )
        return Wanted(found[0][0]) if found else Wanted.RUN

    def all(self) -> dict[str, Order]:
        found = self._rows.read(self._rows.rows, "SELECT name, wanted, owner, by_user, at_ms FROM executor_order")
        return {row[0]: Order(row[0], Wanted(row[1]), *row[2:]) for row in found}

    def _put(self, name: str, wanted: Wanted, by_user: str) -> None:
        running = self._rows.rows(
            "SELECT owner FROM executor WHERE name = ? AND end_ms = 0 ORDER BY boot_ms DESC LIMIT 1", (name,)
        )
        if not running:
            raise NotFound(f"no executor {name} is running")
        owner = running[0][0] if wanted is Wanted.RESTART else ""
        self._rows.execute(
            f"REPLACE INTO executor_order (name, wanted, owner, by_user, at_ms)"
            f" VALUES (?, ?, ?, ?, {self._rows.now_ms})",
            (name, str(wanted), owner, by_user),
        )
