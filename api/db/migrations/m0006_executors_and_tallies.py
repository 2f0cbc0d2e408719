"""What operators look back on: tasks that ended, by the minute; executors with how each ended; what they are asked."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS task_tally (
        id {auto}, minute BIGINT NOT NULL, done BIGINT NOT NULL DEFAULT 0, failed BIGINT NOT NULL DEFAULT 0,
        retried BIGINT NOT NULL DEFAULT 0, lost BIGINT NOT NULL DEFAULT 0, cancelled BIGINT NOT NULL DEFAULT 0,
        reused BIGINT NOT NULL DEFAULT 0, pages BIGINT NOT NULL DEFAULT 0, reused_pages BIGINT NOT NULL DEFAULT 0,
        chunks BIGINT NOT NULL DEFAULT 0, tokens BIGINT NOT NULL DEFAULT 0, cache_hits BIGINT NOT NULL DEFAULT 0,
        cache_misses BIGINT NOT NULL DEFAULT 0) {table}""",
    "CREATE INDEX task_tally_minute ON task_tally (minute)",
    """CREATE TABLE IF NOT EXISTS executor (
        owner VARCHAR(128) NOT NULL PRIMARY KEY, name VARCHAR(128) NOT NULL, boot_ms BIGINT NOT NULL,
        seen_ms BIGINT NOT NULL, end_ms BIGINT NOT NULL, ended VARCHAR(16) NOT NULL, reason VARCHAR(255) NOT NULL,
        beat {text} NOT NULL) {table}""",
    "CREATE INDEX executor_end ON executor (end_ms)",
    """CREATE TABLE IF NOT EXISTS executor_order (
        name VARCHAR(128) NOT NULL PRIMARY KEY, wanted VARCHAR(16) NOT NULL, owner VARCHAR(128) NOT NULL,
        by_user VARCHAR(255) NOT NULL, at_ms BIGINT NOT NULL) {table}""",
    """CREATE TABLE IF NOT EXISTS lost_task (
        owner VARCHAR(128) NOT NULL, task_id VARCHAR(32) NOT NULL, claim_no INTEGER NOT NULL, at_ms BIGINT NOT NULL,
        PRIMARY KEY (owner, task_id, claim_no)) {table}""",
)
