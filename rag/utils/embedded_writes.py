"""Chunks written to and deleted from SQLite, each write with its entry of the log in the same transaction.

Everything is made ready first, so that the transaction, during which other writers wait, only inserts."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from common.errors import InvalidInput
from rag.utils.chunk_input import checked_vectors, clean, last_places
from rag.utils.doc_index import ChunkRecord, Scope, Vectors
from rag.utils.embedded_copies import settle, settle_in
from rag.utils.embedded_log import NO_EXTRA, Database, Extra, append, last_row, take_rows
from rag.utils.embedded_reads import JOINED, as_json, condition, dataset_number

# Rows deleted in one transaction: other writers get their turn between two of them.
_DELETE_SLICE = 5000
_INSERT = (
    "INSERT INTO chunk(row, dataset, document, generation, task_no, claim_no, page, ordinal, id, available,"
    " token_count, created_ms, kind, extra, text, terms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
)


@dataclass(frozen=True)
class Batch:
    """Chunks of one dataset, ready to be inserted: `values` are the columns after row and dataset."""

    tenant: str
    dataset: str
    dimension: int
    ids: list[str]
    values: list[tuple[object, ...]]
    vectors: list[bytes]


def prepare(chunks: Sequence[ChunkRecord], vectors: Vectors) -> list[Batch]:
    """Check and encode. Of several chunks with one id the last counts. Raises InvalidInput."""
    halves = checked_vectors(chunks, vectors).astype(np.float16)
    batches: dict[tuple[str, str], Batch] = {}
    for place in last_places(chunks):
        chunk = chunks[place]
        key = (chunk.tenant_id, chunk.dataset_id)
        batch = batches.setdefault(key, Batch(*key, halves.shape[1], [], [], []))
        batch.ids.append(chunk.id)
        batch.values.append(_values(chunk))
        batch.vectors.append(halves[place].tobytes())
    return list(batches.values())


def insert(database: Database, batches: Sequence[Batch]) -> int:
    """Write all batches in one transaction; the number of its last log entry."""
    sequence = 0
    with database.writing() as link:
        now_ms = time.time_ns() // 1_000_000
        settle_in(link)
        for batch in batches:
            _drop_replaced(link, batch, now_ms)
            number = _dataset_for(link, batch)
            rows = take_rows(link, len(batch.ids))
            records = ((row, number, *values) for row, values in zip(rows, batch.values, strict=True))
            link.executemany(_INSERT, records)
            link.executemany("INSERT INTO vector(row, data) VALUES (?, ?)", zip(rows, batch.vectors, strict=True))
            sequence = append(link, number, "put", np.array([rows[0], rows[-1]]), now_ms)
    return sequence


def delete(database: Database, scope: Scope) -> int:
    """Delete what is in the scope at the call; the number of the last log entry, 0 where nothing was."""
    settle(database)
    with database.reading() as link:
        newest_row = last_row(link)
        number = dataset_number(link, scope.tenant_id, scope.dataset_id)
    if number is None:
        return 0
    where, values = condition(scope, number)
    # The plus keeps SQLite from walking all rows in their order instead of the scope's.
    sql = f"SELECT c.row FROM chunk c WHERE {where} AND +c.row <= ? LIMIT {_DELETE_SLICE}"
    sequence, more = 0, True
    while more:
        with database.writing() as link:
            settle_in(link)
            rows = [row for (row,) in link.execute(sql, (*values, newest_row))]
            if rows:
                sequence = _drop(link, number, rows, time.time_ns() // 1_000_000)
        more = len(rows) == _DELETE_SLICE
    return sequence


def _dataset_for(link: sqlite3.Connection, batch: Batch) -> int:
    """The dataset's number, given with its first chunk. While it holds any, their dimension is fixed."""
    key = (batch.tenant, batch.dataset)
    number = dataset_number(link, *key)
    if number is None:
        sql = "INSERT INTO dataset(tenant, name, dimension) VALUES (?, ?, ?)"
        return int(link.execute(sql, (*key, batch.dimension)).lastrowid or 0)
    held = link.execute("SELECT dimension FROM dataset WHERE number = ?", (number,)).fetchone()[0]
    if held != batch.dimension:
        if link.execute("SELECT 1 FROM chunk WHERE dataset = ? LIMIT 1", (number,)).fetchone():
            raise InvalidInput(f"dataset {batch.dataset} holds vectors of {held} numbers; these have {batch.dimension}")
        link.execute("UPDATE dataset SET dimension = ? WHERE number = ?", (batch.dimension, number))
    return number


def _drop_replaced(link: sqlite3.Connection, batch: Batch, now_ms: int) -> None:
    """Chunks of the same tenant with these ids go, also where they stand in another dataset."""
    found = link.execute(
        f"SELECT c.dataset, c.row {JOINED} WHERE d.tenant = ? AND c.id IN (SELECT value FROM json_each(?))",
        (batch.tenant, as_json(batch.ids)),
    ).fetchall()
    for number in sorted({number for number, _ in found}):
        _drop(link, number, [row for dataset, row in found if dataset == number], now_ms)


def _drop(link: sqlite3.Connection, dataset: int, rows: list[int], now_ms: int) -> int:
    for table in ("chunk", "vector"):
        link.executemany(f"DELETE FROM {table} WHERE row = ?", ((row,) for row in rows))
    return append(link, dataset, "drop", np.array(rows, np.int64), now_ms)


def _values(chunk: ChunkRecord) -> tuple[object, ...]:
    extra = Extra(
        tuple(map(clean, chunk.headings)),
        chunk.positions,
        tuple(map(clean, chunk.tags)),
        chunk.picture,
        chunk.parent_ordinal,
        clean(chunk.parent),
        tuple((level, clean(title), page) for level, title, page in chunk.contents),
    )
    return (
        chunk.document_id,
        chunk.generation,
        chunk.task_no,
        chunk.claim_no,
        chunk.page,
        chunk.ordinal,
        chunk.id,
        chunk.available,
        chunk.token_count,
        chunk.created_ms,
        chunk.kind,
        msgspec.msgpack.encode(extra) if extra != NO_EXTRA else None,
        clean(chunk.text),
        clean(chunk.terms),
    )
