"""What an instance that was started before has: its rows, its accounts, its queue. For commands that look at them, and
for those that must know before they start that it can be worked with."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from api.db.database import Rows, open_rows
from api.db.migrations import current, migrate, newest
from api.db.services.account_service import AccountService
from api.db.services.parse_service import Doorbell
from common.errors import NotFound, QueueUnavailable, RowsUnavailable, SettingsError
from common.settings import Settings
from rag.utils.embedder import POTION, model_dir
from rag.utils.embedders import embedder_name, open_embedder
from rag.utils.redis_conn import Queue

_MODEL_FILES = ("model.safetensors", "tokenizer.json", "config.json")

log = logging.getLogger(__name__)


def open_existing_rows(settings: Settings, *, to_write: bool = False) -> Rows:
    """The rows of an instance that was started before.

    Raises NotFound where there is none, RowsUnavailable where they can't be read, or written if that is asked."""
    require_rows_file(settings)
    if to_write:
        require_writable_rows(settings)
    rows = open_rows(settings.database_url)
    rows.check()
    have = rows.read(current, rows)
    if have == 0:
        raise _missing(settings)
    if have > newest():
        migrate(rows)  # raises DatabaseTooNew
    return rows


def require_rows_file(settings: Settings) -> None:
    """Raises NotFound where the data folder should hold the rows and does not."""
    if settings.database.url:
        return
    try:
        if (settings.data_dir / "pagemill.db").exists():
            return
    except OSError as exc:
        raise SettingsError(
            f"the data folder {settings.data_dir} can't be used: {exc.strerror}; choose another with --data"
        ) from exc
    raise _missing(settings)


def require_writable_rows(settings: Settings) -> None:
    """Raises RowsUnavailable for a SQLite file, its lock or its folder that this user may not write."""
    parts = urlsplit(settings.database_url)
    if parts.scheme != "sqlite":
        return
    path = Path(unquote(parts.path)[1:])
    for place in (path.parent, path, path.with_name(path.name + ".lock")):
        if os.access(place, os.F_OK) and not os.access(place, os.W_OK):
            raise RowsUnavailable(f"the database can't be written: {place} is read-only")


def require_model(settings: Settings) -> None:
    """Raises SettingsError where the embedding model is not installed, or an endpoint can't be asked with what is set.
    Whether it is the right model, and whether the endpoint is there, is found out by those who embed."""
    if settings.embedding.url:
        open_embedder(settings.embedding)
        return
    if settings.embedding.model != POTION:
        raise SettingsError(f"embedding.model = {settings.embedding.model!r}: allowed: {POTION!r}")
    for name in _MODEL_FILES:
        path = model_dir(settings.embedding) / name
        if not os.access(path, os.R_OK):
            raise SettingsError(f"the embedding model is not installed: {path} is missing; run `make install`")


def open_accounts(settings: Settings, *, to_write: bool = False) -> AccountService:
    return AccountService(open_existing_rows(settings, to_write=to_write), embedder_name(settings.embedding))


def open_queue(settings: Settings) -> Queue:
    return Queue(settings.queue_url, settings.queue.namespace)


def _missing(settings: Settings) -> NotFound:
    return NotFound(f"there is no Pagemill in {settings.data_dir} yet: start one with `pagemill up`")


def quiet_doorbell(messages: Queue) -> Doorbell:
    """Rings that are lost while the queue is away are made up for by the relay and by the next renewal."""

    def tasks_waiting() -> None:
        try:
            messages.ring()
        except QueueUnavailable as exc:
            log.warning("the relay was not rung: %s", exc)

    def tasks_cancelled(task_ids: Sequence[str]) -> None:
        try:
            messages.announce_cancelled(task_ids)
        except QueueUnavailable as exc:
            log.warning("%d cancels were not announced: %s", len(task_ids), exc)

    return Doorbell(tasks_waiting, tasks_cancelled)
