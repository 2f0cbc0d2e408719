"""Roles that one process holds at a time, by a lease that is a row and the database's clock: the leader of the relay,
the reaper, the sweeper."""

from __future__ import annotations

from api.db.database import Rows


class RoleService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def clock_ms(self) -> int:
        return self._rows.read(self._rows.clock)

    def lead(self, name: str, holder: str, for_ms: int) -> bool:
        """Become or stay the holder of a role. False while somebody else holds it."""
        if self._rows.read(self._is_taken, name, holder):
            return False
        return self._rows.write(self._lead, name, holder, for_ms)

    def step_down(self, name: str, holder: str) -> None:
        self._rows.write(self._rows.execute, "DELETE FROM lease WHERE name = ? AND holder = ?", (name, holder))

    def step_down_from_all(self, holder: str) -> None:
        self._rows.write(self._rows.execute, "DELETE FROM lease WHERE holder = ?", (holder,))

    def _is_taken(self, name: str, holder: str) -> bool:
        """A look before the write: those that wait for their turn do not queue up for the write lock."""
        return bool(
            self._rows.rows(
                f"SELECT 1 FROM lease WHERE name = ? AND holder != ? AND until_ms >= {self._rows.now_ms}",
                (name, holder),
            )
        )

    def _lead(self, name: str, holder: str, for_ms: int) -> bool:
        now = self._rows.now_ms
        ignore = "INSERT OR IGNORE" if self._rows.is_sqlite else "INSERT IGNORE"
        self._rows.execute(f"{ignore} INTO lease (name, holder, until_ms) VALUES (?, '', 0)", (name,))
        won = self._rows.execute(
            f"UPDATE lease SET holder = ?, until_ms = {now} + ? WHERE name = ? AND (holder = ? OR until_ms < {now})",
            (holder, for_ms, name, holder),
        ).rowcount
        return bool(won)
