"""Pages of long lists out of indexes alone: one that has every column that documents are filtered or ordered by, and
for the other orders and counts the id, or what is counted, at the end of each."""

STATEMENTS = (
    "CREATE INDEX document_page ON document (kb_id, deleted_ms, create_ms, id, update_ms, run, type, suffix, name_key)",
    "DROP INDEX document_list {on_document}",
    "DROP INDEX document_changed {on_document}",
    "CREATE INDEX document_changed ON document (kb_id, deleted_ms, update_ms, id)",
    "DROP INDEX document_run {on_document}",
    "CREATE INDEX document_run ON document (kb_id, deleted_ms, run, size_bytes)",
    "DROP INDEX document_of_tenant {on_document}",
    "CREATE INDEX document_of_tenant ON document (tenant_id, deleted_ms, create_ms, id)",
    "CREATE INDEX document_jobs ON document (tenant_id, deleted_ms, run, create_ms, id)",
)
