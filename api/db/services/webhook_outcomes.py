"""How a document's run ended, kept for every webhook that wants to hear of it: in the transaction that ends the run, so
that an outcome is told if and only if it is so.

A tenant without webhooks pays for one look through an index. Sending is webhook_deliveries.py's."""

from __future__ import annotations

from enum import StrEnum

from api.db.database import Rows
from common.ids import new_token

_COLUMNS = (
    "webhook_id", "doc_id", "generation", "outcome", "end_ms", "id", "kb_id", "name", "chunk_count", "token_count",
    "error_code", "error_message", "create_ms", "state", "attempts", "next_ms", "last_ms", "status", "problem",
)  # fmt: skip


class Outcome(StrEnum):
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


def record(rows: Rows, doc_id: str, outcome: Outcome) -> None:
    """Within the write that ended the run, after it. The same end of the same generation is kept once."""
    found = rows.rows(
        "SELECT w.id, d.id, d.generation, d.end_ms, d.kb_id, d.name, d.chunk_count, d.token_count,"
        " d.error_code, d.error_message"
        f" FROM document d JOIN webhook w ON w.tenant_id = d.tenant_id WHERE d.id = ? AND w.on_{outcome} = 1"
        " AND (w.kb_id = '' OR w.kb_id = d.kb_id)",
        (doc_id,),
    )
    if not found:
        return
    now_ms = rows.clock()
    ignore = "INSERT OR IGNORE" if rows.is_sqlite else "INSERT IGNORE"
    one = f"({', '.join('?' * len(_COLUMNS))})"
    values = [
        (webhook_id, document_id, generation, str(outcome), end_ms, new_token(), *told, now_ms, 0, 0, now_ms, 0, 0, "")
        for webhook_id, document_id, generation, end_ms, *told in found
    ]
    rows.execute(
        f"{ignore} INTO webhook_delivery ({', '.join(_COLUMNS)}) VALUES {', '.join([one] * len(values))}",
        [value for row in values for value in row],
    )
