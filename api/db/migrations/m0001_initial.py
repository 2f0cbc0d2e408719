"""The first schema."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS schema_version (
        version INTEGER NOT NULL PRIMARY KEY, applied_ms BIGINT NOT NULL) {table}""",
    """CREATE TABLE IF NOT EXISTS tenant (
        id VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(128) NOT NULL, embedding_model VARCHAR(255) NOT NULL,
        create_ms BIGINT NOT NULL) {table}""",
    """CREATE TABLE IF NOT EXISTS user (
        id VARCHAR(32) NOT NULL PRIMARY KEY, email VARCHAR(255) NOT NULL, nickname VARCHAR(128) NOT NULL,
        password_hash VARCHAR(255) NOT NULL, is_superuser INTEGER NOT NULL, is_active INTEGER NOT NULL,
        create_ms BIGINT NOT NULL) {table}""",
    "CREATE UNIQUE INDEX user_email ON user (email)",
    """CREATE TABLE IF NOT EXISTS api_token (
        id VARCHAR(32) NOT NULL PRIMARY KEY, tenant_id VARCHAR(32) NOT NULL, user_id VARCHAR(32) NOT NULL,
        name VARCHAR(128) NOT NULL, token_hash VARCHAR(64) NOT NULL, hint VARCHAR(32) NOT NULL,
        create_ms BIGINT NOT NULL, last_used_ms BIGINT NOT NULL) {table}""",
    "CREATE UNIQUE INDEX api_token_hash ON api_token (token_hash)",
    "CREATE INDEX api_token_tenant ON api_token (tenant_id)",
    """CREATE TABLE IF NOT EXISTS knowledgebase (
        id VARCHAR(32) NOT NULL PRIMARY KEY, tenant_id VARCHAR(32) NOT NULL, created_by VARCHAR(32) NOT NULL,
        name VARCHAR(128) NOT NULL, name_key VARCHAR(255), avatar {text}, description {text},
        language VARCHAR(32) NOT NULL, embedding_model VARCHAR(255) NOT NULL, permission VARCHAR(16) NOT NULL,
        chunk_method VARCHAR(32) NOT NULL, parser_config {text} NOT NULL, pagerank INTEGER NOT NULL,
        similarity_threshold DOUBLE NOT NULL, vector_similarity_weight DOUBLE NOT NULL,
        document_count INTEGER NOT NULL, chunk_count BIGINT NOT NULL, token_count BIGINT NOT NULL,
        create_ms BIGINT NOT NULL, update_ms BIGINT NOT NULL, deleted_ms BIGINT NOT NULL) {table}""",
    "CREATE UNIQUE INDEX knowledgebase_name ON knowledgebase (tenant_id, name_key)",
    "CREATE INDEX knowledgebase_list ON knowledgebase (tenant_id, deleted_ms, create_ms)",
    """CREATE TABLE IF NOT EXISTS document (
        id VARCHAR(32) NOT NULL PRIMARY KEY, tenant_id VARCHAR(32) NOT NULL, kb_id VARCHAR(32) NOT NULL,
        created_by VARCHAR(32) NOT NULL, name VARCHAR(255) NOT NULL, name_key VARCHAR(255),
        file_digest VARCHAR(64) NOT NULL, size_bytes BIGINT NOT NULL, suffix VARCHAR(32) NOT NULL,
        type VARCHAR(16) NOT NULL, chunk_method VARCHAR(32) NOT NULL, parser_config {text} NOT NULL,
        meta_fields {text} NOT NULL, status INTEGER NOT NULL, run INTEGER NOT NULL, paused INTEGER NOT NULL,
        priority INTEGER NOT NULL, generation INTEGER NOT NULL, active_generation INTEGER NOT NULL, profile {text},
        open_tasks INTEGER NOT NULL, total_tasks INTEGER NOT NULL, done_tasks INTEGER NOT NULL,
        failed_tasks INTEGER NOT NULL, reused_tasks INTEGER NOT NULL, run_chunks INTEGER NOT NULL,
        run_tokens BIGINT NOT NULL, chunk_count INTEGER NOT NULL, token_count BIGINT NOT NULL,
        index_seq BIGINT NOT NULL, visible_seq BIGINT NOT NULL, error_code VARCHAR(64) NOT NULL,
        error_message {text} NOT NULL, begin_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, create_ms BIGINT NOT NULL,
        update_ms BIGINT NOT NULL, deleted_ms BIGINT NOT NULL) {table}""",
    "CREATE UNIQUE INDEX document_name ON document (kb_id, name_key)",
    "CREATE INDEX document_list ON document (kb_id, deleted_ms, create_ms)",
    "CREATE INDEX document_run ON document (kb_id, deleted_ms, run)",
    "CREATE INDEX document_file ON document (tenant_id, file_digest)",
    """CREATE TABLE IF NOT EXISTS task (
        id VARCHAR(32) NOT NULL PRIMARY KEY, tenant_id VARCHAR(32) NOT NULL, kb_id VARCHAR(32) NOT NULL,
        doc_id VARCHAR(32) NOT NULL, generation INTEGER NOT NULL, task_type VARCHAR(16) NOT NULL,
        from_page INTEGER NOT NULL, to_page INTEGER NOT NULL, priority INTEGER NOT NULL,
        parser_version INTEGER NOT NULL, state INTEGER NOT NULL, attempt INTEGER NOT NULL, losses INTEGER NOT NULL,
        retry_count INTEGER NOT NULL, claim_no INTEGER NOT NULL, claim_token VARCHAR(32) NOT NULL,
        owner VARCHAR(128) NOT NULL, lease_until BIGINT NOT NULL, run_after BIGINT NOT NULL,
        waiting_since BIGINT NOT NULL, published_at BIGINT NOT NULL, begin_at BIGINT NOT NULL,
        end_at BIGINT NOT NULL, process_duration DOUBLE NOT NULL, progress DOUBLE NOT NULL,
        progress_msg VARCHAR(255) NOT NULL, digest VARCHAR(64) NOT NULL, chunk_count INTEGER NOT NULL,
        token_count INTEGER NOT NULL, error_code VARCHAR(64) NOT NULL, error_message {text} NOT NULL,
        create_ms BIGINT NOT NULL) {table}""",
    "CREATE INDEX task_queue ON task (state, published_at, priority, tenant_id, run_after, id)",
    "CREATE INDEX task_document ON task (doc_id, generation, from_page)",
    """CREATE TABLE IF NOT EXISTS task_event (
        id {auto}, task_id VARCHAR(32) NOT NULL, doc_id VARCHAR(32) NOT NULL, generation INTEGER NOT NULL,
        at_ms BIGINT NOT NULL, kind VARCHAR(16) NOT NULL, claim_no INTEGER NOT NULL, owner VARCHAR(128) NOT NULL,
        error_code VARCHAR(64) NOT NULL, message {text} NOT NULL, detail {text}) {table}""",
    "CREATE INDEX task_event_task ON task_event (task_id, id)",
    "CREATE INDEX task_event_document ON task_event (doc_id, id)",
    """CREATE TABLE IF NOT EXISTS stale_chunks (
        doc_id VARCHAR(32) NOT NULL, generation INTEGER NOT NULL, task_no INTEGER NOT NULL,
        claim_no INTEGER NOT NULL, tenant_id VARCHAR(32) NOT NULL, kb_id VARCHAR(32) NOT NULL, at_ms BIGINT NOT NULL,
        PRIMARY KEY (doc_id, generation, task_no, claim_no)) {table}""",
    "CREATE INDEX stale_chunks_at ON stale_chunks (at_ms)",
    """CREATE TABLE IF NOT EXISTS file_profile (
        tenant_id VARCHAR(32) NOT NULL, file_digest VARCHAR(64) NOT NULL, suffix VARCHAR(32) NOT NULL,
        parser_version INTEGER NOT NULL, profile {text} NOT NULL, create_ms BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, file_digest, suffix, parser_version)) {table}""",
    """CREATE TABLE IF NOT EXISTS lease (
        name VARCHAR(64) NOT NULL PRIMARY KEY, holder VARCHAR(128) NOT NULL, until_ms BIGINT NOT NULL) {table}""",
)
