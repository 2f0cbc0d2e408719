"""Documents by when they changed, for those who follow a dataset, and a tenant's by age, for the list of jobs."""

STATEMENTS = (
    "CREATE INDEX document_changed ON document (kb_id, update_ms)",
    "CREATE INDEX document_of_tenant ON document (tenant_id, deleted_ms, create_ms)",
)
