"""Where a tenant wants to hear of outcomes, and each outcome that is to be told or was."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS webhook (
        id VARCHAR(32) NOT NULL PRIMARY KEY, tenant_id VARCHAR(32) NOT NULL, kb_id VARCHAR(32) NOT NULL,
        url {text} NOT NULL, secret VARCHAR(255) NOT NULL, on_done INTEGER NOT NULL, on_failed INTEGER NOT NULL,
        on_cancelled INTEGER NOT NULL, create_ms BIGINT NOT NULL) {table}""",
    "CREATE INDEX webhook_tenant ON webhook (tenant_id, create_ms)",
    """CREATE TABLE IF NOT EXISTS webhook_delivery (
        webhook_id VARCHAR(32) NOT NULL, doc_id VARCHAR(32) NOT NULL, generation INTEGER NOT NULL,
        outcome VARCHAR(16) NOT NULL, end_ms BIGINT NOT NULL, id VARCHAR(32) NOT NULL, kb_id VARCHAR(32) NOT NULL,
        name VARCHAR(255) NOT NULL, chunk_count INTEGER NOT NULL, token_count BIGINT NOT NULL,
        error_code VARCHAR(64) NOT NULL, error_message {text} NOT NULL, create_ms BIGINT NOT NULL,
        state INTEGER NOT NULL, attempts INTEGER NOT NULL, next_ms BIGINT NOT NULL, last_ms BIGINT NOT NULL,
        status INTEGER NOT NULL, problem {text} NOT NULL,
        PRIMARY KEY (webhook_id, doc_id, generation, outcome, end_ms)) {table}""",
    "CREATE UNIQUE INDEX webhook_delivery_id ON webhook_delivery (id)",
    "CREATE INDEX webhook_delivery_due ON webhook_delivery (state, next_ms, webhook_id)",
    "CREATE INDEX webhook_delivery_log ON webhook_delivery (webhook_id, create_ms)",
    "CREATE INDEX webhook_delivery_age ON webhook_delivery (create_ms)",
)
