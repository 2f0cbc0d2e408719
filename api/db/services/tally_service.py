"""How many tasks ended how, by the minute: counted in the transaction in which they end, so nothing is counted twice or
lost. Lines are only ever added, then put together: executors never wait for each other, and sums never go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from api.db.database import Rows
from api.db.services.task_sql import marks

MINUTE_MS = 60_000
# A day, and the hour that is being added to.
KEPT_MINUTES = 25 * 60
_LINES_AT_ONCE = 500


@dataclass
class Tally:
    """What some tasks add up to. `retried` went back for an error or an outage, `lost` with their executor; `reused`
    ranges were copied and not read, and their pages are in `reused_pages` and not in `pages`."""

    done: int = 0
    failed: int = 0
    retried: int = 0
    lost: int = 0
    cancelled: int = 0
    reused: int = 0
    pages: int = 0
    reused_pages: int = 0
    chunks: int = 0
    tokens: int = 0
    cache_hits: int = 0
    cache_misses: int = 0


_NAMES = tuple(field.name for field in fields(Tally))
_COLUMNS = ", ".join(_NAMES)
_SUMS = ", ".join(f"COALESCE(SUM({name}), 0)" for name in _NAMES)


def add(rows: Rows, tally: Tally) -> None:
    """Within the transaction of what is counted."""
    values = tuple(getattr(tally, name) for name in _NAMES)
    if any(values):
        minute = f"{rows.now_ms} / {MINUTE_MS}" if rows.is_sqlite else f"{rows.now_ms} DIV {MINUTE_MS}"
        rows.execute(f"INSERT INTO task_tally (minute, {_COLUMNS}) VALUES ({minute}, {marks(values)})", values)


class TallyService:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def total(self) -> Tally:
        """Since this instance's rows were made."""
        return Tally(*map(int, self._rows.read(self._rows.rows, f"SELECT {_SUMS} FROM task_tally")[0]))

    def by_minute(self, minutes: int) -> tuple[list[Tally], int]:
        """The last so many minutes, oldest first, and which the last one is: it has just begun."""
        now_minute = self.now_minute()
        found = self._rows.read(
            self._rows.rows,
            f"SELECT minute, {_SUMS} FROM task_tally WHERE minute > ? GROUP BY minute",
            (now_minute - minutes,),
        )
        known = {int(minute): Tally(*map(int, sums)) for minute, *sums in found}
        return [known.get(minute, Tally()) for minute in range(now_minute - minutes + 1, now_minute + 1)], now_minute

    def now_ms(self) -> int:
        return self._rows.read(self._rows.clock)

    def now_minute(self) -> int:
        return self.now_ms() // MINUTE_MS

    def fold(self) -> int:
        """Make one line of each minute's, and of all that is older than is kept. Returns how many lines went."""
        oldest = self.now_minute() - KEPT_MINUTES
        if self._rows.read(self._rows.rows, "SELECT 1 FROM task_tally WHERE minute BETWEEN 1 AND ? LIMIT 1", (oldest,)):
            self._rows.write(
                self._rows.execute, "UPDATE task_tally SET minute = 0 WHERE minute BETWEEN 1 AND ?", (oldest,)
            )
        crowded = self._rows.read(
            self._rows.rows, "SELECT minute FROM task_tally GROUP BY minute HAVING COUNT(*) > 1 ORDER BY minute"
        )
        return sum(self._fold_all(int(minute)) for (minute,) in crowded)

    def _fold_all(self, minute: int) -> int:
        """In short transactions: executors wait for the same lock."""
        gone = 0
        while part := self._rows.write(self._fold, minute):
            gone += part
        return gone

    def _fold(self, minute: int) -> int:
        """By the ids that were summed: a line that commits meanwhile stays for the next time."""
        lines = self._rows.rows(
            f"SELECT id, {_COLUMNS} FROM task_tally WHERE minute = ? ORDER BY id LIMIT {_LINES_AT_ONCE}"
            f"{self._rows.for_update}",
            (minute,),
        )
        if len(lines) < 2:
            return 0
        ids = [line[0] for line in lines]
        self._rows.execute(f"DELETE FROM task_tally WHERE id IN ({marks(ids)})", ids)
        sums = _summed([line[1:] for line in lines])
        self._rows.insert_many("task_tally", ("minute", *_NAMES), [(minute, *sums)])
        return len(lines) - 1


def _summed(lines: Sequence[Sequence[int]]) -> list[int]:
    return [sum(map(int, column)) for column in zip(*lines, strict=True)]
