"""Documents whose chunks were adopted a moment ago, until these survive a power cut."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS fresh_copy (
        doc_id VARCHAR(32) NOT NULL PRIMARY KEY, generation INTEGER NOT NULL, tenant_id VARCHAR(32) NOT NULL,
        kb_id VARCHAR(32) NOT NULL, at_ms BIGINT NOT NULL) {table}""",
)
