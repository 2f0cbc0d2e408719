"""The tables, and nothing else. Their columns and indexes are made by api/db/migrations; a test compares the two.

Times ending in `_ms` or named `*_until`, `*_after`, `*_at` are epoch milliseconds by the database's clock, 0 for
"not yet". Rows of documents and tasks change state only through api/db/services/task_service.py."""

from __future__ import annotations

import json
from typing import Any

from peewee import (
    AutoField,
    BigIntegerField,
    CharField,
    CompositeKey,
    DatabaseProxy,
    FloatField,
    IntegerField,
    Model,
    TextField,
)

from common.ids import new_id
from common.task_state import DocumentRun, Priority, TaskState

database_proxy = DatabaseProxy()


class JsonField(TextField):
    def db_value(self, value: Any) -> str | None:
        return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def python_value(self, value: Any) -> Any:
        return None if value is None else json.loads(value)


def id_field(**kwargs: Any) -> CharField:
    return CharField(max_length=32, **kwargs)


class BaseModel(Model):
    class Meta:
        database = database_proxy
        legacy_table_names = False


class SchemaVersion(BaseModel):
    version = IntegerField(primary_key=True)
    applied_ms = BigIntegerField()


class Tenant(BaseModel):
    id = id_field(primary_key=True, default=new_id)
    name = CharField(max_length=128)
    embedding_model = CharField(max_length=255)
    create_ms = BigIntegerField()


class User(BaseModel):
    """A person. The tenant that a user owns has the user's id."""

    id = id_field(primary_key=True, default=new_id)
    email = CharField(max_length=255, unique=True)
    nickname = CharField(max_length=128)
    password_hash = CharField(max_length=255)
    is_superuser = IntegerField(default=0)
    is_active = IntegerField(default=1)
    create_ms = BigIntegerField()


class ApiToken(BaseModel):
    """A key for REST calls. Only its SHA-256 is kept: the key itself has 256 random bits, so no salt is needed."""

    id = id_field(primary_key=True, default=new_id)
    tenant_id = id_field(index=True)
    user_id = id_field()
    name = CharField(max_length=128)
    token_hash = CharField(max_length=64, unique=True)
    hint = CharField(max_length=32)
    create_ms = BigIntegerField()
    last_used_ms = BigIntegerField(default=0)


class Knowledgebase(BaseModel):
    """A dataset. `name_key` is the name as it is compared; NULL once the dataset is deleted."""

    id = id_field(primary_key=True, default=new_id)
    tenant_id = id_field()
    created_by = id_field()
    name = CharField(max_length=128)
    name_key = CharField(max_length=255, null=True)
    avatar = TextField(null=True)
    description = TextField(null=True)
    language = CharField(max_length=32, default="English")
    embedding_model = CharField(max_length=255)
    permission = CharField(max_length=16, default="me")
    chunk_method = CharField(max_length=32, default="naive")
    parser_config = JsonField()
    pagerank = IntegerField(default=0)
    similarity_threshold = FloatField(default=0.2)
    vector_similarity_weight = FloatField(default=0.3)
    document_count = IntegerField(default=0)
    chunk_count = BigIntegerField(default=0)
    token_count = BigIntegerField(default=0)
    size_bytes = BigIntegerField(default=0)
    create_ms = BigIntegerField()
    update_ms = BigIntegerField()
    deleted_ms = BigIntegerField(default=0)

    class Meta:
        indexes = ((("tenant_id", "name_key"), True), (("tenant_id", "deleted_ms", "create_ms"), False))


class Document(BaseModel):
    """A file in a dataset. `generation` is the newest parse, `active_generation` the one that is searched (0: none).

    `open_tasks` counts the tasks of `generation` that have not ended; `index_seq` is its newest index write and
    `visible_seq` how far the index was when the active generation was made visible."""

    id = id_field(primary_key=True, default=new_id)
    tenant_id = id_field()
    kb_id = id_field()
    created_by = id_field()
    name = CharField(max_length=255)
    name_key = CharField(max_length=255, null=True)
    file_digest = CharField(max_length=64)
    size_bytes = BigIntegerField()
    suffix = CharField(max_length=32)
    type = CharField(max_length=16)
    chunk_method = CharField(max_length=32)
    parser_config = JsonField()
    meta_fields = JsonField()
    status = IntegerField(default=1)
    run = IntegerField(default=int(DocumentRun.UNSTART))
    paused = IntegerField(default=0)
    priority = IntegerField(default=int(Priority.NORMAL))
    generation = IntegerField(default=0)
    active_generation = IntegerField(default=0)
    profile = JsonField(null=True)
    open_tasks = IntegerField(default=0)
    total_tasks = IntegerField(default=0)
    done_tasks = IntegerField(default=0)
    failed_tasks = IntegerField(default=0)
    failed_pages = IntegerField(default=0)
    reused_tasks = IntegerField(default=0)
    run_units = IntegerField(default=0)
    run_chunks = IntegerField(default=0)
    run_tokens = BigIntegerField(default=0)
    chunk_count = IntegerField(default=0)
    token_count = BigIntegerField(default=0)
    index_seq = BigIntegerField(default=0)
    visible_seq = BigIntegerField(default=0)
    error_code = CharField(max_length=64, default="")
    error_message = TextField(default="")
    begin_ms = BigIntegerField(default=0)
    end_ms = BigIntegerField(default=0)
    create_ms = BigIntegerField()
    update_ms = BigIntegerField()
    deleted_ms = BigIntegerField(default=0)

    class Meta:
        indexes = (
            (("kb_id", "name_key"), True),
            (
                ("kb_id", "deleted_ms", "create_ms", "id", "update_ms", "run", "type", "suffix", "name_key"),
                False,
            ),
            (("kb_id", "deleted_ms", "run", "name_key", "id"), False),
            (("tenant_id", "file_digest"), False),
            (("deleted_ms",), False),
            (("kb_id", "visible_seq"), False),
            (("kb_id", "deleted_ms", "update_ms", "id", "run"), False),
            (("kb_id", "deleted_ms", "type", "suffix"), False),
            (("tenant_id", "deleted_ms", "create_ms", "id"), False),
            (("tenant_id", "deleted_ms", "run", "create_ms", "id"), False),
        )


class Task(BaseModel):
    """A unit of work: prepare, one range, or finish. `published_at` 0 means that no message stands for it."""

    id = id_field(primary_key=True)
    tenant_id = id_field()
    kb_id = id_field()
    doc_id = id_field()
    generation = IntegerField()
    task_type = CharField(max_length=16)
    from_page = IntegerField(default=0)
    to_page = IntegerField(default=0)
    priority = IntegerField()
    parser_version = IntegerField()
    state = IntegerField(default=int(TaskState.PENDING))
    attempt = IntegerField(default=0)
    losses = IntegerField(default=0)
    retry_count = IntegerField(default=0)
    claim_no = IntegerField(default=0)
    claim_token = CharField(max_length=32, default="")
    owner = CharField(max_length=128, default="")
    lease_until = BigIntegerField(default=0)
    run_after = BigIntegerField()
    waiting_since = BigIntegerField(default=0)
    published_at = BigIntegerField(default=0)
    begin_at = BigIntegerField(default=0)
    end_at = BigIntegerField(default=0)
    process_duration = FloatField(default=0.0)
    progress = FloatField(default=0.0)
    progress_msg = CharField(max_length=255, default="")
    digest = CharField(max_length=64, default="")
    chunk_count = IntegerField(default=0)
    token_count = IntegerField(default=0)
    error_code = CharField(max_length=64, default="")
    error_message = TextField(default="")
    failed_pages = JsonField(null=True)
    reused = IntegerField(default=0)
    create_ms = BigIntegerField()

    class Meta:
        indexes = (
            (("state", "published_at", "priority", "tenant_id", "run_after", "id"), False),
            (("doc_id", "generation", "from_page"), False),
        )


class TaskEvent(BaseModel):
    """A line of a task's timeline."""

    id = AutoField()
    task_id = id_field()
    doc_id = id_field()
    generation = IntegerField()
    at_ms = BigIntegerField()
    kind = CharField(max_length=16)
    claim_no = IntegerField()
    owner = CharField(max_length=128, default="")
    error_code = CharField(max_length=64, default="")
    message = TextField(default="")
    detail = JsonField(null=True)

    class Meta:
        indexes = ((("task_id", "id"), False), (("doc_id", "id"), False))


class StaleChunks(BaseModel):
    """Chunks that are never answered and are to be swept: a lost claim's (`task_no`, `claim_no`), or, with `task_no`
    -1, a whole generation's (0: all of the document's). Stays until a sweep that no zombie can outlive found none;
    before `sweep_ms` nothing is swept, since another parse may still reuse it."""

    doc_id = id_field()
    generation = IntegerField()
    task_no = IntegerField()
    claim_no = IntegerField()
    tenant_id = id_field()
    kb_id = id_field()
    at_ms = BigIntegerField()
    sweep_ms = BigIntegerField(default=0)

    class Meta:
        primary_key = CompositeKey("doc_id", "generation", "task_no", "claim_no")
        indexes = ((("at_ms",), False), (("sweep_ms",), False))


class FreshCopy(BaseModel):
    """A document that is DONE by chunks that the index has adopted. Stays until these survive a power cut: where one
    took them before that, the document is parsed anew."""

    doc_id = id_field(primary_key=True)
    generation = IntegerField()
    tenant_id = id_field()
    kb_id = id_field()
    at_ms = BigIntegerField()


class FileProfile(BaseModel):
    """What `prepare` found out about a file's content, so that a known file is split at once. Its name's ending is part
    of the key: it decides between kinds of text."""

    tenant_id = id_field()
    file_digest = CharField(max_length=64)
    suffix = CharField(max_length=32)
    parser_version = IntegerField()
    profile = JsonField()
    create_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("tenant_id", "file_digest", "suffix", "parser_version")


class RangeResult(BaseModel):
    """Where the chunks of a finished range are, by the digest of all that decides them."""

    tenant_id = id_field()
    digest = CharField(max_length=64)
    kb_id = id_field()
    doc_id = id_field()
    generation = IntegerField()
    task_no = IntegerField()
    claim_no = IntegerField()
    chunk_count = IntegerField()
    token_count = IntegerField()
    create_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("tenant_id", "digest")
        indexes = ((("doc_id", "generation"), False),)


class Idempotency(BaseModel):
    """The answer to a request that carried a key of its caller's: written in the same transaction as its effect."""

    tenant_id = id_field()
    route = CharField(max_length=128)
    idempotency_key = CharField(max_length=255)
    body_hash = CharField(max_length=64)
    answer = JsonField()
    create_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("tenant_id", "route", "idempotency_key")
        indexes = ((("create_ms",), False),)


class Lease(BaseModel):
    """A role that one process holds at a time, such as the leader of the relay."""

    name = CharField(max_length=64, primary_key=True)
    holder = CharField(max_length=128)
    until_ms = BigIntegerField()


class TaskTally(BaseModel):
    """How tasks ended in one minute (minutes since 1970; 0: all that are older than is kept by the minute). Every batch
    adds a line in its own transaction; lines of the same minute are made one now and then, so sums never go back."""

    id = AutoField()
    minute = BigIntegerField(index=True)
    done = BigIntegerField(default=0)
    failed = BigIntegerField(default=0)
    retried = BigIntegerField(default=0)
    lost = BigIntegerField(default=0)
    cancelled = BigIntegerField(default=0)
    reused = BigIntegerField(default=0)
    pages = BigIntegerField(default=0)
    reused_pages = BigIntegerField(default=0)
    chunks = BigIntegerField(default=0)
    tokens = BigIntegerField(default=0)
    cache_hits = BigIntegerField(default=0)
    cache_misses = BigIntegerField(default=0)


class Executor(BaseModel):
    """One boot of an executor. `ended` is how: left, dead or silent; empty while it runs. `beat` is its last words."""

    owner = CharField(max_length=128, primary_key=True)
    name = CharField(max_length=128)
    boot_ms = BigIntegerField()
    seen_ms = BigIntegerField()
    end_ms = BigIntegerField(default=0, index=True)
    ended = CharField(max_length=16, default="")
    reason = CharField(max_length=255, default="")
    beat = JsonField()


class ExecutorOrder(BaseModel):
    """What an operator wants of an executor, until it is taken back. With an `owner` only that boot is meant."""

    name = CharField(max_length=128, primary_key=True)
    wanted = CharField(max_length=16)
    owner = CharField(max_length=128)
    by_user = CharField(max_length=255)
    at_ms = BigIntegerField()


class LostTask(BaseModel):
    """A claim that was taken from an executor that is gone."""

    owner = CharField(max_length=128)
    task_id = id_field()
    claim_no = IntegerField()
    at_ms = BigIntegerField()

    class Meta:
        primary_key = CompositeKey("owner", "task_id", "claim_no")


MODELS = (
    SchemaVersion,
    Tenant,
    User,
    ApiToken,
    Knowledgebase,
    Document,
    Task,
    TaskEvent,
    StaleChunks,
    FreshCopy,
    FileProfile,
    RangeResult,
    Idempotency,
    Lease,
    TaskTally,
    Executor,
    ExecutorOrder,
    LostTask,
)
