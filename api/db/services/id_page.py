"""One page of a long list of documents, as ids, and how many the list has: read from an index that holds every column
that is asked for, so that no row is touched that is not shown. Which list it is, is the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows

MAX_OFFSET = 2**62


@dataclass(frozen=True)
class Count:
    """A statement that answers one number."""

    sql: str
    params: Sequence[object]

    def read(self, rows: Rows) -> int:
        return max(0, int(rows.rows(self.sql, self.params)[0][0]))


def counted(rows: Rows, which: str, params: Sequence[object], index: str = "") -> Count:
    """Every document for which `which` holds, by walking this index, "" for any."""
    return Count(f"SELECT COUNT(*) FROM document{rows.using(index)} WHERE {which}", params)


@dataclass(frozen=True)
class IdList:
    """Documents for which `which` holds, in the order of these columns, all of them up or all of them down; `index` is
    walked for a page, "" leaves that to the database. `total` is the number where it is known, or how to learn it.
    `back_cost` is what a step back through the index costs, in steps forward."""

    which: str
    params: Sequence[object]
    order: Sequence[str]
    desc: bool
    total: Count | int
    index: str = ""
    back_cost: int = 1

    def page(self, rows: Rows, page: int, page_size: int) -> tuple[int, list[str]]:
        """How many there are, and the ids of the page. It is reached from that end of the list from which the way is
        the cheaper one: what is skipped, or sorted, is two thirds of it at most."""
        total = self.total if isinstance(self.total, int) else self.total.read(rows)
        offset = min((page - 1) * page_size, MAX_OFFSET)
        size = min(page_size, total - offset)
        if size <= 0:
            return total, []
        behind = total - offset - size
        there, from_end = (self.back_cost, 1) if self.desc else (1, self.back_cost)
        if offset * there <= behind * from_end:
            return total, self._part(rows, self.desc, offset, size)
        return total, self._part(rows, not self.desc, behind, size)[::-1]

    def _part(self, rows: Rows, desc: bool, offset: int, size: int) -> list[str]:
        order = ", ".join(f"{column} DESC" if desc else column for column in self.order)
        found = rows.rows(
            f"SELECT id FROM document{rows.using(self.index)} WHERE {self.which}"
            f" ORDER BY {order} LIMIT {size} OFFSET {offset}",
            self.params,
        )
        return [doc_id for (doc_id,) in found]
