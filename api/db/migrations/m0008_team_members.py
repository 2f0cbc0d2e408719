"""Who may use a tenant's datasets besides its owner."""

STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS team_member (
        tenant_id VARCHAR(32) NOT NULL, user_id VARCHAR(32) NOT NULL, create_ms BIGINT NOT NULL,
        PRIMARY KEY (tenant_id, user_id)) {table}""",
    "CREATE INDEX team_member_user ON team_member (user_id, tenant_id)",
)
