"""Chunks read out of SQLite: as records, and as what the text and the vector half take of them.

Every function reads in the caller's transaction. Writing is in embedded_writes.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from rag.utils.doc_index import ChunkPage, ChunkPlace, ChunkRecord, Scope, Tally, Vectors
from rag.utils.embedded_log import NO_EXTRA, Extra, Rows, TextRow

_COLUMNS = (
    "c.id, d.tenant, d.name, c.document, c.generation, c.task_no, c.claim_no, c.ordinal, c.page, c.text,"
    " c.terms, c.token_count, c.kind, c.extra, c.available, c.created_ms"
)
# CROSS: chunks are looked up first, whatever SQLite guesses about the size of the tables.
JOINED = "FROM chunk c CROSS JOIN dataset d ON d.number = c.dataset"
# A range of rows up to this length is read by row, and filtered; a longer one by dataset.
_SHORT = 5000
_decode_rows = msgspec.json.Decoder(list[int]).decode
_decode_extra = msgspec.msgpack.Decoder(Extra).decode


def get(link: sqlite3.Connection, tenant: str, ids: Sequence[str]) -> list[ChunkRecord]:
    found = link.execute(
        f"SELECT {_COLUMNS} {JOINED} WHERE d.tenant = ? AND c.id IN (SELECT value FROM json_each(?))",
        (tenant, as_json(ids)),
    )
    by_id = {record.id: record for record in map(_record, found)}
    return [by_id[id_] for id_ in ids if id_ in by_id]


def by_row(link: sqlite3.Connection, rows: Iterable[int]) -> dict[int, ChunkRecord]:
    """The chunks that still stand in these rows."""
    found = link.execute(
        f"SELECT c.row, {_COLUMNS} {JOINED} WHERE c.row IN (SELECT value FROM json_each(?))",
        (as_json(rows),),
    )
    return {values[0]: _record(values[1:]) for values in found}


def total(link: sqlite3.Connection) -> int:
    """Chunks of all tenants."""
    return int(link.execute("SELECT COUNT(*) FROM chunk").fetchone()[0])


def count(link: sqlite3.Connection, scope: Scope) -> int:
    number = dataset_number(link, scope.tenant_id, scope.dataset_id)
    if number is None:
        return 0
    where, values = condition(scope, number)
    return int(link.execute(f"SELECT count(*) FROM chunk c WHERE {where}", values).fetchone()[0])


def page(link: sqlite3.Connection, scope: Scope, offset: int, limit: int) -> ChunkPage:
    number = dataset_number(link, scope.tenant_id, scope.dataset_id)
    if number is None:
        return ChunkPage(0)
    where, values = condition(scope, number)
    # Rows are sorted without their texts, which only those on the page are read for.
    found = link.execute(
        f"SELECT c.row FROM chunk c WHERE {where} ORDER BY c.page, c.task_no, c.ordinal, c.id LIMIT ? OFFSET ?",
        (*values, max(0, limit), max(0, offset)),
    )
    rows = [row for (row,) in found]
    records = by_row(link, rows)
    return ChunkPage(count(link, scope), [records[row] for row in rows])


def chunk_places(link: sqlite3.Connection, scope: Scope) -> list[ChunkPlace]:
    number = dataset_number(link, scope.tenant_id, scope.dataset_id)
    if number is None:
        return []
    where, values = condition(scope, number)
    found = link.execute(
        f"SELECT c.id, c.task_no, c.claim_no, c.page, c.extra FROM chunk c WHERE {where}"
        " ORDER BY c.page, c.task_no, c.ordinal, c.id",
        values,
    )
    return [
        ChunkPlace(id_, task_no, claim_no, page, _decode_extra(extra).positions if extra else ())
        for id_, task_no, claim_no, page, extra in found
    ]


def everything(link: sqlite3.Connection, scope: Scope) -> tuple[list[ChunkRecord], Vectors]:
    """All chunks in the scope and their vectors, in order of task and ordinal."""
    number = dataset_number(link, scope.tenant_id, scope.dataset_id)
    if number is None:
        return [], np.zeros((0, 0), np.float32)
    where, values = condition(scope, number)
    rows = [row for (row,) in link.execute(f"SELECT c.row FROM chunk c WHERE {where} ORDER BY c.row", values)]
    if not rows:
        return [], np.zeros((0, 0), np.float32)
    records = by_row(link, rows)
    order = sorted(range(len(rows)), key=lambda at: (records[rows[at]].task_no, records[rows[at]].ordinal))
    return [records[rows[at]] for at in order], vectors(link, rows)[order]


def dataset_number(link: sqlite3.Connection, tenant: str, dataset: str) -> int | None:
    found = link.execute("SELECT number FROM dataset WHERE tenant = ? AND name = ?", (tenant, dataset)).fetchone()
    return int(found[0]) if found else None


def condition(scope: Scope, number: int) -> tuple[str, list[object]]:
    """A WHERE clause over `chunk c`, and its values."""
    parts: list[tuple[str, object]] = [("c.dataset = ?", number)]
    if scope.document_id is not None:
        parts.append(("c.document = ?", scope.document_id))
    if scope.generation is not None:
        parts.append(("c.generation = ?", scope.generation))
    if scope.claim is not None:
        parts += [("c.task_no = ?", scope.claim[0]), ("c.claim_no = ?", scope.claim[1])]
    return " AND ".join(part for part, _ in parts), [value for _, value in parts]


def places(link: sqlite3.Connection, dataset: int, first: int, last: int) -> list[tuple[str, Rows]]:
    """The documents of a dataset with their rows from one row to another, each once, in no order."""
    plan = "NOT INDEXED" if last - first < _SHORT else "INDEXED BY chunk_place"
    # A list for each document: a million rows would take longer one by one than their vectors do.
    found = link.execute(
        f"SELECT document, json_group_array(row) FROM chunk {plan} WHERE dataset = ? AND row BETWEEN ? AND ?"
        " GROUP BY document",
        (dataset, first, last),
    )
    return [(document, np.array(_decode_rows(rows), np.int64)) for document, rows in found]


def vectors(link: sqlite3.Connection, rows: Sequence[int]) -> Vectors:
    """The vectors of these rows, which are in ascending order and all there. Of length 1; one of zeros stays."""
    found = link.execute(
        "SELECT data FROM vector WHERE row IN (SELECT value FROM json_each(?)) ORDER BY row", (as_json(rows),)
    )
    data = np.frombuffer(b"".join([blob for (blob,) in found]), np.float16)
    matrix = data.reshape(len(rows), -1).astype(np.float32)
    lengths = np.sqrt(np.vecdot(matrix, matrix))
    matrix /= np.where(lengths > 0, lengths, np.float32(1))[:, None]
    return matrix


def texts(link: sqlite3.Connection, first: int, last: int, limit: int) -> list[TextRow]:
    """What the text index takes of the chunks from one row to another, at most `limit` of them."""
    found = link.execute(
        "SELECT row, dataset, document, terms FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row LIMIT ?",
        (first, last, limit),
    )
    return [TextRow(*values) for values in found]


def terms(link: sqlite3.Connection, rows: Iterable[int]) -> dict[int, str]:
    """The analysed words of the chunks that still stand in these rows."""
    found = link.execute("SELECT row, terms FROM chunk WHERE row IN (SELECT value FROM json_each(?))", (as_json(rows),))
    return dict(found)


def tally(link: sqlite3.Connection, scope: Scope | None) -> list[Tally]:
    """What every claim has here, claims of one document together."""
    where, values = "1", list[object]()
    if scope is not None:
        number = dataset_number(link, scope.tenant_id, scope.dataset_id)
        if number is None:
            return []
        where, values = condition(scope, number)
    found = link.execute(
        f"SELECT d.tenant, d.name, c.document, c.generation, c.task_no, c.claim_no, count(*) {JOINED} WHERE {where}"
        " GROUP BY c.dataset, c.document, c.generation, c.task_no, c.claim_no",
        values,
    )
    return [Tally(*row) for row in found]


def as_json(values: Iterable[object]) -> str:
    return msgspec.json.encode(list(values)).decode()


def _record(values: tuple[Any, ...]) -> ChunkRecord:
    *fields, extra, available, created_ms = values
    more = _decode_extra(extra) if extra else NO_EXTRA
    rare = (more.tags, more.picture, more.parent_ordinal, more.parent, more.contents)
    return ChunkRecord(*(*fields, more.headings, more.positions, bool(available), created_ms, *rare))
