"""What an instance that was started before has: its rows, its accounts, its queue. For commands that look at them."""

from __future__ import annotations

from api.db.database import Rows, open_rows
from api.db.migrations import current, migrate, newest
from api.db.services.account_service import AccountService
from common.errors import NotFound
from common.settings import Settings
from rag.utils.embedder import PackagedEmbedder
from rag.utils.redis_conn import Queue


def open_existing_rows(settings: Settings) -> Rows:
    """The rows of an instance that was started before. Raises NotFound where there is none."""
    missing = NotFound(f"there is no Pagemill in {settings.data_dir} yet: start one with `pagemill up`")
    if not settings.database.url and not (settings.data_dir / "pagemill.db").exists():
        raise missing
    rows = open_rows(settings.database_url)
    rows.check()
    if current(rows) == 0:
        raise missing
    if current(rows) > newest():
        migrate(rows)  # raises DatabaseTooNew
    return rows


def open_accounts(settings: Settings) -> AccountService:
    return AccountService(open_existing_rows(settings), PackagedEmbedder.name)


def open_queue(settings: Settings) -> Queue:
    return Queue(settings.queue_url, settings.queue.namespace)
