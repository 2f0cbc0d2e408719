"""Counts by kind of file out of an index that holds little else, and pages by time of change that know the state."""

STATEMENTS = (
    "CREATE INDEX document_kind ON document (kb_id, deleted_ms, suffix, type)",
    "DROP INDEX document_changed {on_document}",
    "CREATE INDEX document_changed ON document (kb_id, deleted_ms, update_ms, id, run)",
)
