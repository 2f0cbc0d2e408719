"""Executors as rows: each boot of one, until when it was seen, and how it ended. What happens this second is in the
heartbeats, in Redis; this is what is left of them when Redis, or the executor, is gone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from api.db.database import Rows
from api.db.services import tally_service
from api.db.services.tally_service import Tally

_COLUMNS = "owner, name, boot_ms, seen_ms, end_ms, ended, reason, beat"
# The most that are told of at once; a crash every few seconds makes many in a day.
MOST_ENDED = 50


class Ended(StrEnum):
    """How an executor ended; empty while it runs."""

    NOT = ""
    LEFT = "left"
    DEAD = "dead"
    SILENT = "silent"


@dataclass(frozen=True)
class ExecutorRow:
    owner: str
    name: str
    boot_ms: int
    seen_ms: int
    end_ms: int
    ended: Ended
    reason: str
    beat: Mapping[str, Any]


def note_lost(rows: Rows, owner: str, task_id: str, claim_no: int) -> None:
    """Within the transaction that takes a claim from an executor that is gone."""
    ignore = "INSERT OR IGNORE" if rows.is_sqlite else "INSERT IGNORE"
    rows.execute(
        f"{ignore} INTO lost_task (owner, task_id, claim_no, at_ms) VALUES (?, ?, ?, {rows.now_ms})",
        (owner, task_id, claim_no),
    )


class ExecutorRegistry:
    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def register(self, owner: str, name: str, beat: Mapping[str, Any]) -> None:
        """A new boot. One that ran under the same name and did not say how it ended has died."""
        self._rows.write(self._register, owner, name, json.dumps(beat))

    def refresh(self, owner: str, beat: Mapping[str, Any], looked_up: tuple[int, int]) -> None:
        """It is there, whatever was thought of it meanwhile. `looked_up` are texts found and not found in the embedding
        cache since the last call."""
        self._rows.write(self._refresh, owner, json.dumps(beat), looked_up)

    def leave(self, owner: str, reason: str) -> None:
        self._end(Ended.LEFT, reason, "owner = ?", (owner,))

    def mark_dead(self, owner: str, reason: str) -> None:
        """By who saw its process end. One that left in order stays so."""
        self._end(Ended.DEAD, reason, "owner = ?", (owner,))

    def mark_silent(self, after_ms: int) -> int:
        """Those that were not seen for so long, by nobody who could tell why. Returns how many."""
        silent = f"seen_ms < {self._rows.now_ms} - ?"
        if not self._rows.read(
            self._rows.rows, f"SELECT 1 FROM executor WHERE end_ms = 0 AND {silent} LIMIT 1", (after_ms,)
        ):
            return 0
        return self._end(Ended.SILENT, "nothing was heard of it any more", silent, (after_ms,))

    def forget(self, kept_ms: int) -> None:
        """What ended longer ago than this, with what was lost."""
        old = f"end_ms > 0 AND end_ms < {self._rows.now_ms} - ?"
        if self._rows.read(self._rows.rows, f"SELECT 1 FROM executor WHERE {old} LIMIT 1", (kept_ms,)):
            self._rows.write(self._rows.execute, f"DELETE FROM executor WHERE {old}", (kept_ms,))
        lost = f"at_ms < {self._rows.now_ms} - ?"
        if self._rows.read(self._rows.rows, f"SELECT 1 FROM lost_task WHERE {lost} LIMIT 1", (2 * kept_ms,)):
            self._rows.write(self._rows.execute, f"DELETE FROM lost_task WHERE {lost}", (2 * kept_ms,))

    def running(self) -> list[ExecutorRow]:
        """By name."""
        return self._find("end_ms = 0 ORDER BY name, boot_ms")

    def ended(self) -> list[ExecutorRow]:
        """The newest first."""
        return self._find(f"end_ms > 0 ORDER BY end_ms DESC, owner LIMIT {MOST_ENDED}")

    def count_lost(self) -> int:
        """Those that did not end in order, as far back as they are kept."""
        found = self._rows.read(
            self._rows.rows, f"SELECT COUNT(*) FROM executor WHERE end_ms > 0 AND ended != '{Ended.LEFT}'"
        )
        return int(found[0][0])

    def _find(self, which: str) -> list[ExecutorRow]:
        found = self._rows.read(self._rows.rows, f"SELECT {_COLUMNS} FROM executor WHERE {which}")
        return [_row(*row) for row in found]

    def _register(self, owner: str, name: str, beat: str) -> None:
        now = self._rows.now_ms
        self._rows.execute(
            f"UPDATE executor SET end_ms = seen_ms, ended = '{Ended.DEAD}', reason = 'it was started again'"
            " WHERE name = ? AND owner != ? AND end_ms = 0",
            (name, owner),
        )
        self._rows.execute(
            f"REPLACE INTO executor ({_COLUMNS}) VALUES (?, ?, {now}, {now}, 0, '', '', ?)", (owner, name, beat)
        )

    def _refresh(self, owner: str, beat: str, looked_up: tuple[int, int]) -> None:
        self._rows.execute(
            f"UPDATE executor SET seen_ms = {self._rows.now_ms}, end_ms = 0, ended = '', reason = '', beat = ?"
            " WHERE owner = ?",
            (beat, owner),
        )
        tally_service.add(self._rows, Tally(cache_hits=looked_up[0], cache_misses=looked_up[1]))

    def _end(self, ended: Ended, reason: str, which: str, params: tuple[object, ...]) -> int:
        done = self._rows.write(
            self._rows.execute,
            f"UPDATE executor SET end_ms = {self._rows.now_ms}, ended = '{ended}', reason = ?"
            f" WHERE end_ms = 0 AND {which}",
            (reason[:255], *params),
        )
        return int(done.rowcount)


def _row(
    owner: str, name: str, boot_ms: int, seen_ms: int, end_ms: int, ended: str, reason: str, beat: str
) -> ExecutorRow:
    return ExecutorRow(owner, name, boot_ms, seen_ms, end_ms, Ended(ended), reason, json.loads(beat))
