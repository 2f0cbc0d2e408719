"""Pages that could not be read, results of ranges for reuse, answers for repeated requests, and when to sweep."""

STATEMENTS = (
    "ALTER TABLE task ADD COLUMN failed_pages {text}",
    "ALTER TABLE task ADD COLUMN reused INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE document ADD COLUMN failed_pages INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE document ADD COLUMN run_units INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE stale_chunks ADD COLUMN sweep_ms BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX stale_chunks_sweep ON stale_chunks (sweep_ms)",
    """CREATE TABLE IF NOT EXISTS range_result (
        tenant_id VARCHAR(32) NOT NULL, digest VARCHAR(64) NOT NULL, kb_id VARCHAR(32) NOT NULL,
        doc_id VARCHAR(32) NOT NULL, generation INTEGER NOT NULL, task_no INTEGER NOT NULL,
        claim_no INTEGER NOT NULL, chunk_count INTEGER NOT NULL, token_count INTEGER NOT NULL,
        create_ms BIGINT NOT NULL, PRIMARY KEY (tenant_id, digest)) {table}""",
    "CREATE INDEX range_result_document ON range_result (doc_id, generation)",
    """CREATE TABLE IF NOT EXISTS idempotency (
        tenant_id VARCHAR(32) NOT NULL, route VARCHAR(128) NOT NULL, idempotency_key VARCHAR(255) NOT NULL,
        body_hash VARCHAR(64) NOT NULL, answer {text} NOT NULL, create_ms BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, route, idempotency_key)) {table}""",
    "CREATE INDEX idempotency_age ON idempotency (create_ms)",
    "CREATE INDEX document_deleted ON document (deleted_ms)",
    "CREATE INDEX document_visible ON document (kb_id, visible_seq)",
)
