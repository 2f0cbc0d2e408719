"""A dataset's counts of documents, their bytes, chunks and tokens. Every submit and every end of a parse changes those
of one row: it is locked by the last statement of a transaction, and not for as long as the rest of it takes."""

from __future__ import annotations

from functools import partial

from api.db.database import Rows
from common.errors import NotFound


def add_documents(rows: Rows, tenant_id: str, dataset_id: str, count: int, size_bytes: int) -> None:
    """Raises NotFound, at the transaction's end, where the dataset has been deleted meanwhile."""
    rows.before_commit(dataset_id, partial(_add_documents, rows, tenant_id, dataset_id, count, size_bytes))


def _add_documents(rows: Rows, tenant_id: str, dataset_id: str, count: int, size_bytes: int) -> None:
    counted = rows.execute(
        "UPDATE knowledgebase SET document_count = document_count + ?, size_bytes = size_bytes + ?"
        " WHERE id = ? AND tenant_id = ? AND deleted_ms = 0",
        (count, size_bytes, dataset_id, tenant_id),
    )
    if not counted.rowcount:
        raise unknown(dataset_id)


def unknown(dataset_id: str) -> NotFound:
    return NotFound(f"Can't find the dataset with ID {dataset_id}!")


def add(rows: Rows, dataset_id: str, *, documents: int = 0, size_bytes: int = 0, chunks: int, tokens: int) -> None:
    """What has come, or with less than 0 has gone."""
    if documents or chunks or tokens:
        rows.before_commit(dataset_id, partial(_add, rows, dataset_id, documents, size_bytes, chunks, tokens))


def _add(rows: Rows, dataset_id: str, documents: int, size_bytes: int, chunks: int, tokens: int) -> None:
    rows.execute(
        "UPDATE knowledgebase SET document_count = document_count + ?, size_bytes = size_bytes + ?,"
        " chunk_count = chunk_count + ?, token_count = token_count + ? WHERE id = ?",
        (documents, size_bytes, chunks, tokens, dataset_id),
    )
