"""Copies of whole documents in the embedded index: noted at once, and made into rows before anybody looks.

A note says which generation of which document is also another document's. Whoever reads or changes chunks settles all
notes first, and the indexer does it when none has come for a while: so nobody misses a chunk that is noted and not
there yet, and the source can't go or change before it is copied. A copy's entry in the log names the rows it was made
of: until the indexer has come to it, its words are found through theirs (embedded_twins.py).

What was adopted is listed until somebody confirms that the rows know of it: whoever asked for it may have died before
they did."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from common.ids import chunk_id
from rag.utils.doc_index import Adopted, Adoption, Scope
from rag.utils.embedded_log import Database, append, take_rows
from rag.utils.embedded_reads import dataset_number

# Notes of more chunks than this would keep whoever settles them waiting.
MOST_CHUNKS = 20_000
_CONFIRMED_AT_ONCE = 500
_NOTES = (
    "SELECT source_dataset, source_document, source_generation, dataset, document, generation, claim_no, created_ms"
    " FROM copy ORDER BY number"
)
_CLAIMS = (
    "SELECT task_no, claim_no, COUNT(*) FROM chunk WHERE dataset = ? AND document = ? AND generation = ?"
    " GROUP BY task_no, claim_no"
)
_CHUNKS = """
INSERT INTO chunk(row, dataset, document, generation, task_no, claim_no, page, ordinal, id, available, token_count,
    created_ms, kind, extra, text, terms)
SELECT ?, ?, ?, ?, task_no, ?, page, ordinal, ?, 1, token_count, ?, kind, extra, text, terms FROM chunk WHERE row = ?
"""


@dataclass(frozen=True)
class _Source:
    """Whose rows are copied, and what they are by (task_no, claim_no) as the asker knows them."""

    dataset: int
    document: str
    generation: int
    claims: dict[tuple[int, int], int]


def note(link: sqlite3.Connection, asked: Adoption) -> bool:
    """Inside the caller's transaction. False where the source is not exactly what it is taken for, the target's vectors
    have another length, or it holds something: rows that a power cut took back may have asked for it before."""
    source = _source(link, asked.source)
    chunks = sum(asked.claims.values())
    if source is None or source.claims != dict(asked.claims) or not 0 < chunks <= MOST_CHUNKS:
        return False
    target = _dataset_like(link, source.dataset, asked.source.tenant_id, asked.dataset_id)
    if target is None or _is_taken(link, target, asked):
        return False
    if _waiting(link) + chunks > MOST_CHUNKS:
        settle_in(link)
    link.execute(
        "INSERT INTO copy(source_dataset, source_document, source_generation, dataset, document, generation, claim_no,"
        " created_ms, chunks) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            source.dataset, source.document, source.generation,
            target, asked.document_id, asked.generation, asked.claim_no, asked.created_ms, chunks,
        ),
    )  # fmt: skip
    link.execute(
        "INSERT INTO adopted(dataset, document, generation, at_ms) VALUES (?, ?, ?, ?)",
        (target, asked.document_id, asked.generation, time.time_ns() // 1_000_000),
    )
    return True


def adopted(link: sqlite3.Connection, rest_ms: int) -> list[Adopted]:
    """Of the oldest that are not confirmed, those that were noted so long ago."""
    found = link.execute(
        "SELECT a.number, d.tenant, d.name, a.document, a.generation"
        f" FROM (SELECT * FROM adopted ORDER BY number LIMIT {_CONFIRMED_AT_ONCE}) a"
        " JOIN dataset d ON d.number = a.dataset WHERE a.at_ms <= ? ORDER BY a.number",
        (time.time_ns() // 1_000_000 - rest_ms,),
    )
    return [Adopted(number, Scope(*place)) for number, *place in found]


def confirm(link: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Inside the caller's transaction."""
    link.executemany("DELETE FROM adopted WHERE number = ?", ((number,) for number in numbers))


def _source(link: sqlite3.Connection, asked: Scope) -> _Source | None:
    """The rows of the document asked for, or, where it is only noted yet, those that it will be made of."""
    number = dataset_number(link, asked.tenant_id, asked.dataset_id)
    if number is None or asked.document_id is None or asked.generation is None:
        return None
    place, claimed = (number, asked.document_id, asked.generation), None
    noted = link.execute(
        "SELECT source_dataset, source_document, source_generation, claim_no FROM copy"
        " WHERE dataset = ? AND document = ? AND generation = ?",
        place,
    ).fetchone()
    if noted:
        *place, claimed = noted
    claims: Counter[tuple[int, int]] = Counter()
    for task_no, claim_no, count in link.execute(_CLAIMS, place):
        claims[task_no, claim_no if claimed is None else claimed] += count
    dataset, document, generation = place
    return _Source(dataset, document, generation, dict(claims))


def _waiting(link: sqlite3.Connection) -> int:
    """Chunks that are noted and not made yet."""
    return int(link.execute("SELECT COALESCE(SUM(chunks), 0) FROM copy").fetchone()[0])


def _is_taken(link: sqlite3.Connection, dataset: int, asked: Adoption) -> bool:
    place = (dataset, asked.document_id, asked.generation)
    which = "dataset = ? AND document = ? AND generation = ?"
    found = link.execute(
        f"SELECT EXISTS (SELECT 1 FROM copy WHERE {which}) OR EXISTS (SELECT 1 FROM chunk WHERE {which})",
        (*place, *place),
    )
    return bool(found.fetchone()[0])


def newest_note(database: Database) -> int:
    """The number of the last note that waits; 0 where none does."""
    with database.reading() as link:
        return int(link.execute("SELECT COALESCE(MAX(number), 0) FROM copy").fetchone()[0])


def settle(database: Database) -> bool:
    """Make the chunks of every note that waits at the call, each in a transaction of its own: other writers get their
    turn between two of them. False where there was none."""
    newest = newest_note(database)
    more = newest > 0
    while more:
        with database.writing() as link:
            found = link.execute("SELECT MIN(number) FROM copy").fetchone()[0]
            more = found is not None and found <= newest
            if more:
                settle_in(link, found)
    return newest > 0


def settle_in(link: sqlite3.Connection, up_to: int | None = None) -> None:
    """All of them inside the caller's transaction, or those up to a number."""
    which, values = ("", ()) if up_to is None else (" WHERE number <= ?", (up_to,))
    notes = link.execute(_NOTES.replace(" ORDER", f"{which} ORDER"), values).fetchall()
    if not notes:
        return
    now_ms = time.time_ns() // 1_000_000
    for place in notes:
        _copy(link, *place, now_ms=now_ms)
    link.execute(f"DELETE FROM copy{which}", values)


def _copy(
    link: sqlite3.Connection,
    source_dataset: int,
    source_document: str,
    source_generation: int,
    dataset: int,
    document: str,
    generation: int,
    claim_no: int,
    created_ms: int,
    *,
    now_ms: int,
) -> None:
    found = link.execute(
        "SELECT row, task_no, ordinal FROM chunk WHERE dataset = ? AND document = ? AND generation = ?"
        " ORDER BY task_no, ordinal",
        (source_dataset, source_document, source_generation),
    ).fetchall()
    if not found:
        return  # taken away from outside: whoever looks must not fail for ever, and verify tells what is missing
    rows = take_rows(link, len(found))
    ids = (chunk_id(document, generation, task_no, claim_no, ordinal) for _, task_no, ordinal in found)
    link.executemany(
        _CHUNKS,
        (
            (row, dataset, document, generation, claim_no, id_, created_ms, of)
            for row, id_, (of, _, _) in zip(rows, ids, found, strict=True)
        ),
    )
    sources = [of for of, _, _ in found]
    pairs = zip(rows, sources, strict=True)
    link.executemany("INSERT INTO vector(row, data) SELECT ?, data FROM vector WHERE row = ?", pairs)
    append(link, dataset, "copy", np.array([rows[0], rows[-1], *sources], np.int64), now_ms)


def _dataset_like(link: sqlite3.Connection, source: int, tenant: str, name: str) -> int | None:
    """The number of a dataset whose vectors are as long as the source's; a new one where it has no chunks yet."""
    dimension = link.execute("SELECT dimension FROM dataset WHERE number = ?", (source,)).fetchone()[0]
    number = dataset_number(link, tenant, name)
    if number is None:
        sql = "INSERT INTO dataset(tenant, name, dimension) VALUES (?, ?, ?)"
        return int(link.execute(sql, (tenant, name, dimension)).lastrowid or 0)
    held = link.execute("SELECT dimension FROM dataset WHERE number = ?", (number,)).fetchone()[0]
    return number if held == dimension else None
