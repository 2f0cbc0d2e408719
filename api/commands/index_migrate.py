"""What `pagemill index migrate` does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from api.commands.options import say
from api.db.database import Rows
from api.db.services.role_service import RoleService
from api.instance import open_existing_rows
from common.errors import Conflict, NotFound
from common.ids import new_token
from common.settings import Settings
from rag.svr.indexer import is_indexer_there
from rag.svr.role_loop import Leadership, Role, run_in_role
from rag.utils.doc_indexes import open_index

_ROLE = "index migration"
_LEAD_S = 30.0


def run_migrate(settings: Settings, *, force: bool, dry_run: bool, tell: Callable[[str], None] = say) -> None:
    rows = open_existing_rows(settings, to_write=True)
    if force and not dry_run and settings.embeds_index and not is_indexer_there(settings.index_dir):
        raise NotFound("the embedded index is made anew by its indexer, which does not run: start `pagemill up`")
    index = open_index(settings)
    with _alone(rows):
        outdated = index.outdated()
        if dry_run or not (outdated or force):
            tell(f"{len(outdated)} to be made anew: {', '.join(outdated)}" if outdated else "nothing to migrate")
        else:
            tell(f"done: {index.migrate(tell, force=force)} made anew")
    index.close()


@contextmanager
def _alone(rows: Rows) -> Iterator[None]:
    """One migration at a time, whatever host it was started on."""
    leadership = Leadership(Role(_ROLE, new_token(), _LEAD_S), RoleService(rows))
    if not leadership.hold():
        raise Conflict("another migration of the index is at work")
    stop = threading.Event()

    def hold_on() -> None:
        try:
            run_in_role(leadership, lambda leads: None, stop)
        finally:
            rows.close_connection()

    thread = threading.Thread(target=hold_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
