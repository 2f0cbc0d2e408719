"""Commands that tell: status, config, doctor."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from api.commands.options import (
    DEFAULT_DATA,
    NOT_RUNNING,
    DataOption,
    JsonOption,
    loaded,
    out,
    print_json,
    print_table,
    say,
    settings_of,
)
from api.db.database import open_rows
from api.db.migrations import current, newest
from api.db.services.overview_service import OverviewService
from api.instance import open_existing_rows, open_queue, require_model, require_rows_file, require_writable_rows
from common.errors import DatabaseTooNew, InvalidInput, NotFound, PagemillError, StoreUnavailable
from common.settings import Settings
from rag.svr.data_folder import DataFolder
from rag.utils.doc_indexes import open_index
from rag.utils.embedders import embedder_name, open_embedder
from rag.utils.folder_store import FolderStore
from rag.utils.reranker import Reranker, open_reranker

_LEAST_FREE_BYTES = 1 << 30


def config(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """The settings in effect and where each came from; secrets are masked."""
    effective = loaded(data).effective
    if as_json:
        print_json({e.key: {"value": e.value, "source": e.source} for e in effective})
    else:
        print_table("Settings in effect", ("key", "value", "from"), [(e.key, e.value, e.source) for e in effective])


def status(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """What is running, what waits, and what became of the documents."""
    facts = _facts(settings_of(data))
    if as_json:
        print_json(facts)
        return
    say(facts["running"] if facts["address"] is None else f"running at {facts['address']}")
    rows = [
        (e["name"], "alive" if e["alive"] else f"silent for {e['age_s']} s", f"{e['slots_used']}/{e['slots']}",
         e["done"], e["failed"], e["retried"], _cached(e), f"{e['rss_bytes'] >> 20} MiB")
        for e in facts["executors"]
    ]  # fmt: skip
    columns = ("name", "state", "slots", "done", "failed", "retried", "cached texts", "memory")
    print_table("Executors", columns, rows)
    print_table("Documents", ("state", "count"), list(facts["documents"].items()))
    print_table("Tasks", ("state", "count"), list(facts["tasks"].items()))


def doctor(data: DataOption = DEFAULT_DATA, as_json: JsonOption = False) -> None:
    """Check every server and folder, and say what to do. Exit code 1 if something is wrong."""
    settings = settings_of(data)
    checks = [_check(name, check, remedy) for name, check, remedy in _checks(settings)]
    if as_json:
        print_json([asdict(c) for c in checks])
    else:
        for c in checks:
            verdict = Text.assemble(("ok   ", "green") if c.ok else ("wrong", "red"), f" {c.part}")
            out.print(verdict if c.ok else verdict.append(f": {c.error}\n      → {c.remedy}"), soft_wrap=True)
    if not all(c.ok for c in checks):
        raise typer.Exit(1)


@dataclass(frozen=True)
class Checked:
    part: str
    ok: bool
    error: str = ""
    remedy: str = ""


def _check(part: str, check: Callable[[], None], remedy: str) -> Checked:
    try:
        check()
    except PagemillError as exc:
        return Checked(part, False, exc.public_message, remedy)
    return Checked(part, True)


def _checks(settings: Settings) -> list[tuple[str, Callable[[], None], str]]:
    model_remedy = "run `make install`, or check embedding.model_dir"
    if settings.embedding.url:
        model_remedy = "check embedding.url, embedding.model, embedding.api_key and that server"
    index_remedy = "check index.url, and that the folder is writable"
    if not settings.embeds_index:
        index_remedy = "check index.url, index.username and index.password or index.api_key, and that server"
    queue_remedy = "start it with `pagemill up`" if settings.owns_queue else "check queue.url and that server"
    reranker = open_reranker(settings.rerank)
    rerank_remedy = "check rerank.url, rerank.model, rerank.api_key and that server"
    of_reranker = [("reranker", lambda: _check_reranker(reranker), rerank_remedy)] if reranker else []
    return [
        ("data folder", DataFolder(settings).check, "correct --data, or let `pagemill up` make the folder"),
        ("disk space", lambda: _check_space(settings), "free some space, or move the data folder"),
        ("database", lambda: _check_rows(settings), "start `pagemill up` once, or check database.url"),
        ("queue", lambda: open_queue(settings).check(), queue_remedy),
        ("store", lambda: _check_store(settings), "check store.url, and that the folder is writable"),
        ("index", lambda: _check_index(settings), index_remedy),
        ("embedding model", lambda: _check_model(settings), model_remedy),
        ("datasets", lambda: _check_datasets(settings), "set that model again, or parse their files into new datasets"),
        *of_reranker,
        ("executors", lambda: _check_executors(settings), "start `pagemill up` or `pagemill executor`"),
    ]


def _check_space(settings: Settings) -> None:
    try:
        free = shutil.disk_usage(settings.data_dir).free
    except OSError as exc:
        raise StoreUnavailable(f"can't be told: {exc.strerror}") from exc
    if free < _LEAST_FREE_BYTES:
        raise StoreUnavailable(f"only {free >> 20} MiB are free where the data folder is")


def _check_rows(settings: Settings) -> None:
    require_rows_file(settings)
    require_writable_rows(settings)
    rows = open_rows(settings.database_url)
    rows.check()
    have = rows.read(current, rows)
    if have > newest():
        raise DatabaseTooNew(f"its schema version {have} is newer than this Pagemill knows ({newest()})")
    if have < newest():
        raise NotFound(f"its schema version is {have}, not {newest()}")


def _check_store(settings: Settings) -> None:
    _require_folder(settings, settings.store_dir)
    FolderStore(settings.store_dir).check()


def _check_index(settings: Settings) -> None:
    if settings.embeds_index:
        _require_folder(settings, settings.index_dir)
    index = open_index(settings)
    index.check()
    index.close()


def _require_folder(settings: Settings, place: Path) -> None:
    """Store and index are made where they are missing; a data folder that was mistyped must not be."""
    if place.is_relative_to(settings.data_dir):
        DataFolder(settings).check()


def _check_model(settings: Settings) -> None:
    """An endpoint is asked for one vector."""
    require_model(settings)
    open_embedder(settings.embedding).embed(["pagemill"])


def _check_datasets(settings: Settings) -> None:
    """Those of another embedding model can't be parsed into, nor searched."""
    _check_rows(settings)
    rows, served = open_rows(settings.database_url), embedder_name(settings.embedding)
    sql = "SELECT embedding_model, COUNT(*) FROM knowledgebase WHERE deleted_ms = 0 AND embedding_model != ?"
    others = rows.read(rows.rows, f"{sql} GROUP BY embedding_model ORDER BY 1", (served,))
    if others:
        told = ", ".join(f"{count} with {model}" for model, count in others)
        raise InvalidInput(f"embedded {told}; this server embeds with {served}")


def _check_reranker(reranker: Reranker) -> None:
    reranker.scores("pagemill", ["pagemill"])


def _check_executors(settings: Settings) -> None:
    if not any(beat.is_alive for beat in open_queue(settings).executors()):
        raise NotFound("no executor is alive: nothing is being parsed")


def _cached(executor: dict[str, Any]) -> str:
    """Texts whose vectors were known, of all that were looked up; nothing where no endpoint embeds."""
    hits, misses = (int(executor.get(f"embedding_cache_{kind}", 0)) for kind in ("hits", "misses"))
    return f"{hits} of {hits + misses}" if hits + misses else ""


def _facts(settings: Settings) -> dict[str, Any]:
    overview = OverviewService(open_existing_rows(settings))
    address = DataFolder(settings).address()
    try:
        queue = open_queue(settings)
        executors = [{**b.said, "age_s": b.age_s, "alive": b.is_alive} for b in queue.executors()]
        streams = {s.name: {"length": s.length, "pending": s.pending} for s in queue.states()}
    except PagemillError:
        executors, streams = [], {}
    # A queue elsewhere may have executors of other hosts; our own goes down with `pagemill up`.
    runs = address is not None or (not settings.owns_queue and any(e["alive"] for e in executors))
    return {
        "running": "running" if runs else NOT_RUNNING,
        "address": address,
        "executors": executors,
        "streams": streams,
        "documents": overview.documents_by_run(),
        "tasks": overview.tasks_by_state(),
    }
