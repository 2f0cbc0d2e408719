"""Copies of whole documents in the embedded index: noted at once, and made into rows before anybody looks.

A note says which generation of which document is also another document's. Whoever reads or changes chunks settles all
notes first, and the indexer does it when it hears of one: so nobody misses a chunk that is noted and not there yet, and
the source can't go or change before it is copied. A copy's entry in the log names the rows it was made of: until the
indexer has come to it, its words are found through theirs (embedded_twins.py)."""

from __future__ import annotations

import sqlite3
import time

import numpy as np

from common.ids import chunk_id
from rag.utils.doc_index import Adoption
from rag.utils.embedded_log import Database, append, take_rows
from rag.utils.embedded_reads import dataset_number, tally

# A note of more chunks than this would keep whoever settles it waiting.
MOST_CHUNKS = 20_000
_CHUNKS = """
INSERT INTO chunk(row, dataset, document, generation, task_no, claim_no, page, ordinal, id, available, token_count,
    created_ms, kind, extra, text, terms)
SELECT ?, ?, ?, ?, task_no, ?, page, ordinal, ?, 1, token_count, ?, kind, extra, text, terms FROM chunk WHERE row = ?
"""


def note(link: sqlite3.Connection, asked: Adoption) -> bool:
    """Inside the caller's transaction, in which all earlier notes are settled. False where the source is not exactly
    what it is taken for, or the target's vectors have another length."""
    source = dataset_number(link, asked.source.tenant_id, asked.source.dataset_id)
    held = {(each.task_no, each.claim_no): each.count for each in tally(link, asked.source)}
    if source is None or held != dict(asked.claims) or not 0 < sum(held.values()) <= MOST_CHUNKS:
        return False
    target = _dataset_like(link, source, asked.source.tenant_id, asked.dataset_id)
    if target is None:
        return False
    link.execute(
        "INSERT INTO copy(source_dataset, source_document, source_generation, dataset, document, generation, claim_no,"
        " created_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            source, asked.source.document_id, asked.source.generation,
            target, asked.document_id, asked.generation, asked.claim_no, asked.created_ms,
        ),
    )  # fmt: skip
    return True


def settle(database: Database) -> bool:
    """Make the chunks of every note. False where there was none."""
    with database.reading() as link:
        if not _waiting(link):
            return False
    with database.writing() as link:
        settle_in(link)
    return True


def settle_in(link: sqlite3.Connection) -> None:
    """The same inside the caller's transaction."""
    if not _waiting(link):
        return
    now_ms = time.time_ns() // 1_000_000
    notes = link.execute(
        "SELECT source_dataset, source_document, source_generation, dataset, document, generation, claim_no, created_ms"
        " FROM copy ORDER BY number"
    ).fetchall()
    for place in notes:
        _copy(link, *place, now_ms=now_ms)
    link.execute("DELETE FROM copy")


def _waiting(link: sqlite3.Connection) -> bool:
    return link.execute("SELECT 1 FROM copy LIMIT 1").fetchone() is not None


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
