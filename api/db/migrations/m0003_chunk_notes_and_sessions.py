"""What users note on single chunks, and the tokens of those who signed in."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS chunk_note (
        tenant_id VARCHAR(32) NOT NULL, chunk_id VARCHAR(64) NOT NULL, doc_id VARCHAR(32) NOT NULL,
        generation INTEGER NOT NULL, keywords {text} NOT NULL, questions {text} NOT NULL, tag_weights {text} NOT NULL,
        deleted INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (tenant_id, chunk_id)) {table}""",
    "CREATE INDEX chunk_note_document ON chunk_note (doc_id, generation)",
    """CREATE TABLE IF NOT EXISTS login_session (
        token_hash VARCHAR(64) NOT NULL, user_id VARCHAR(32) NOT NULL, create_ms BIGINT NOT NULL,
        PRIMARY KEY (token_hash)) {table}""",
    "CREATE INDEX login_session_age ON login_session (create_ms)",
)
