"""One page of a long list of documents, as ids, and how many the list has: read from an index that holds every column
that is asked for, so that no row is touched that is not shown. Which list it is, is the caller's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from api.db.database import Rows

MAX_OFFSET = 2**62


@dataclass(frozen=True)
class IdList:
    """Documents for which `which` holds, in the order of these columns, all of them up or all of them down. `index` is
    walked for the page and `count_index` for the number, where `count_which` says the same in its columns; "" leaves
    that to the database. `known_total` is the number where somebody keeps it."""

    which: str
    params: Sequence[object]
    order: Sequence[str]
    desc: bool
    index: str = ""
    count_index: str = ""
    count_which: str = ""
    known_total: int | None = None

    def count(self, rows: Rows) -> int:
        if self.known_total is not None:
            return self.known_total
        which = self.count_which or self.which
        found = rows.rows(f"SELECT COUNT(*) FROM document{rows.using(self.count_index)} WHERE {which}", self.params)
        return int(found[0][0])

    def page(self, rows: Rows, page: int, page_size: int) -> tuple[int, list[str]]:
        """How many there are, and the ids of the page. One of the second half is reached from the list's end: what is
        skipped, or sorted, is half of it at most."""
        total = self.count(rows)
        offset = min((page - 1) * page_size, MAX_OFFSET)
        size = min(page_size, total - offset)
        if size <= 0:
            return total, []
        if offset <= total // 2:
            return total, self._part(rows, self.desc, offset, size)
        return total, self._part(rows, not self.desc, total - offset - size, size)[::-1]

    def _part(self, rows: Rows, desc: bool, offset: int, size: int) -> list[str]:
        order = ", ".join(f"{column} DESC" if desc else column for column in self.order)
        found = rows.rows(
            f"SELECT id FROM document{rows.using(self.index)} WHERE {self.which}"
            f" ORDER BY {order} LIMIT {size} OFFSET {offset}",
            self.params,
        )
        return [doc_id for (doc_id,) in found]
