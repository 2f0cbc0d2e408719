"""The size of all files of a dataset, kept beside its other counts; documents of one state in the order of their names;
and counts by kind of file for which either of the two names of a kind is enough."""

STATEMENTS = (
    "ALTER TABLE knowledgebase ADD COLUMN size_bytes BIGINT NOT NULL DEFAULT 0",
    """UPDATE knowledgebase SET size_bytes = (SELECT COALESCE(SUM(d.size_bytes), 0) FROM document d
        WHERE d.kb_id = knowledgebase.id AND d.deleted_ms = 0)""",
    "DROP INDEX document_run {on_document}",
    "CREATE INDEX document_run ON document (kb_id, deleted_ms, run, name_key, id)",
    "DROP INDEX document_kind {on_document}",
    "CREATE INDEX document_kind ON document (kb_id, deleted_ms, type, suffix)",
)
