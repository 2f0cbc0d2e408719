"""What `pagemill index repair` does."""

from __future__ import annotations

from typing import Any

from api.commands.index_migrate import run_migrate
from api.commands.index_verify import as_facts, show
from api.commands.options import print_json, say
from api.db.services.index_audit import AuditService
from api.db.services.index_repair import Repaired, repair
from api.instance import open_existing_rows
from api.wiring import connect
from common.settings import Settings
from rag.utils.doc_indexes import open_index


def run_repair(settings: Settings, *, dry_run: bool, as_json: bool) -> bool:
    """True if nothing is wrong any more, or will be once the documents are parsed; in a dry run, if nothing is."""
    rows = open_existing_rows(settings, to_write=not dry_run)
    index = open_index(settings)
    audit = AuditService(rows, index).run()
    done = Repaired(0, [], [], [])
    if audit.damage and not dry_run:
        run_migrate(settings, force=True, dry_run=False, tell=_say_nothing if as_json else say)
    if audit.findings and not dry_run:
        done = repair(audit.findings, index, connect(settings).parsing)
    index.close()
    if as_json:
        print_json(as_facts(audit) | {"dry_run": dry_run, "done": _facts(done)})
    else:
        show(audit)
        if not audit.is_sound:
            _tell(done, dry_run)
    return audit.is_sound if dry_run else not done.left


def _say_nothing(text: str) -> None:
    """Programs want JSON alone."""


def _facts(done: Repaired) -> dict[str, Any]:
    return {"deleted_chunks": done.chunks, "parsed_again": done.started, "being_parsed": done.busy}


def _tell(done: Repaired, dry_run: bool) -> None:
    if dry_run:
        say("nothing was changed: this was a dry run")
        return
    say(f"{done.chunks} chunks deleted")
    if done.started:
        say(
            f"{len(done.started)} documents are parsed again: ranges whose chunks are all there are copied, the others"
            " are read anew, and edits of chunks are lost"
        )
    if done.busy:
        say(f"{len(done.busy)} documents are being parsed already")
    if done.left:
        say(f"{len(done.left)} findings are left for you to judge")
