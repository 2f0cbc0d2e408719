"""Rows as a busy tenant has them after a while, written in bulk: one dataset with nearly all documents, many small
ones, eleven tasks to a document. Most documents are done; some wait for a day that does not come while the bench runs:
no executor touches them, and a page of running documents can be asked for."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.db.database import Rows
from api.db.models import Document, Knowledgebase
from api.db.services.account_service import Caller
from api.db.services.parser_defaults import parser_config
from common.task_state import DocumentRun, TaskState
from rag.parser.blocks import PARSER_VERSION
from rag.utils.embedder import PackagedEmbedder

TASKS_EACH = 11
SMALL_DATASETS = 200
SMALL_SIZE = 5
_DAY_MS = 86_400_000
_WORDS = ("annual", "report", "contract", "invoice", "minutes", "survey", "manual", "draft", "letter", "budget")
_SUFFIXES = (("pdf", "pdf"), ("docx", "doc"), ("xlsx", "doc"), ("md", "doc"), ("png", "visual"))
_RUNS = (
    (DocumentRun.DONE, 88),
    (DocumentRun.RUNNING, 5),
    (DocumentRun.UNSTART, 4),
    (DocumentRun.FAIL, 2),
    (DocumentRun.CANCEL, 1),
)
_TASK_STATES = {
    DocumentRun.DONE: TaskState.DONE,
    DocumentRun.RUNNING: TaskState.PENDING,
    DocumentRun.FAIL: TaskState.FAIL,
    DocumentRun.CANCEL: TaskState.CANCEL,
}
_SLICE = 2000


@dataclass(frozen=True)
class Filled:
    """Of the large dataset: its id, and the ids of a document that is done and of one that waits."""

    dataset_id: str
    documents: int
    tasks: int
    done_id: str
    waiting_id: str


def fill(rows: Rows, caller: Caller, documents: int, small_datasets: int = SMALL_DATASETS) -> Filled:
    """The same rows for the same figures. The schema must be there."""
    filled = fill_documents(rows, caller, documents, small_datasets)
    tasks = _insert_tasks(rows, rows.clock())
    if not rows.is_sqlite:
        for table in ("task", "document", "task_event"):
            rows.rows(f"ANALYZE TABLE {table}")
    return replace(filled, tasks=tasks)


def fill_documents(rows: Rows, caller: Caller, documents: int, small_datasets: int) -> Filled:
    dice, now_ms = random.Random(7), rows.clock()
    datasets = [_id("a", n) for n in range(1 + small_datasets)]
    sizes = [documents, *[SMALL_SIZE] * small_datasets]
    rows.write(_insert_datasets, rows, caller, list(zip(datasets, sizes, strict=True)), now_ms)
    made = _documents(caller, datasets[0], range(documents), dice, now_ms)
    runs = _insert_in_slices(rows, made)
    for number, dataset_id in enumerate(datasets[1:]):
        first = documents + number * SMALL_SIZE
        _insert_in_slices(rows, _documents(caller, dataset_id, range(first, first + SMALL_SIZE), dice, now_ms))
    rows.write(
        rows.execute,
        "UPDATE knowledgebase SET size_bytes ="
        " (SELECT COALESCE(SUM(d.size_bytes), 0) FROM document d WHERE d.kb_id = knowledgebase.id)",
    )
    return Filled(
        datasets[0],
        documents,
        0,
        _id("d", runs.index(int(DocumentRun.DONE))),
        _id("d", runs.index(int(DocumentRun.RUNNING))),
    )


def _id(kind: str, number: int) -> str:
    """Spread over the index as real ids are, and the same in every run."""
    return f"{random.Random(f'{kind}{number}').getrandbits(120):030x}{kind}0"[:32]


def _insert_datasets(rows: Rows, caller: Caller, datasets: Sequence[tuple[str, int]], now_ms: int) -> None:
    for number, (dataset_id, size) in enumerate(datasets):
        Knowledgebase.create(
            id=dataset_id,
            tenant_id=caller.tenant_id,
            created_by=caller.user_id,
            name=f"Dataset {number:03}",
            name_key=f"dataset {number:03}",
            embedding_model=PackagedEmbedder.name,
            parser_config=parser_config("naive", None),
            document_count=size,
            chunk_count=80 * size,
            token_count=8000 * size,
            create_ms=now_ms - number * 1000,
            update_ms=now_ms - number * 700,
        )


def _documents(
    caller: Caller, dataset_id: str, numbers: range, dice: random.Random, now_ms: int
) -> Iterator[dict[str, Any]]:
    config = parser_config("naive", None)
    runs, weights = [run for run, _ in _RUNS], [weight for _, weight in _RUNS]
    for number in numbers:
        run = dice.choices(runs, weights)[0]
        suffix, kind = dice.choice(_SUFFIXES)
        name = f"{dice.choice(_WORDS)} {dice.choice(_WORDS)} {number:06}.{suffix}"
        begun, ended = run is not DocumentRun.UNSTART, run not in (DocumentRun.UNSTART, DocumentRun.RUNNING)
        create_ms = now_ms - dice.randrange(3 * _DAY_MS)
        done = TASKS_EACH - 2 if run is DocumentRun.DONE else 0
        yield {
            "id": _id("d", number),
            "tenant_id": caller.tenant_id,
            "kb_id": dataset_id,
            "created_by": caller.user_id,
            "name": name,
            "name_key": name,
            "file_digest": f"{number:064x}",
            "size_bytes": dice.randrange(1_000, 5_000_000),
            "suffix": suffix,
            "type": kind,
            "chunk_method": "naive",
            "parser_config": config,
            "meta_fields": {"author": dice.choice(_WORDS), "year": dice.randrange(1990, 2026)} if number % 3 else {},
            "run": int(run),
            "generation": int(begun),
            "active_generation": int(begun and run is not DocumentRun.CANCEL),
            "profile": {"kind": "pdf", "unit": "page", "units": 96} if begun else None,
            "open_tasks": TASKS_EACH - 2 if run is DocumentRun.RUNNING else 0,
            "total_tasks": TASKS_EACH - 2 if begun else 0,
            "done_tasks": done,
            "failed_tasks": 1 if run is DocumentRun.FAIL else 0,
            "run_units": 12 * done,
            "run_chunks": 10 * done,
            "run_tokens": 1000 * done,
            "chunk_count": 10 * done,
            "token_count": 1000 * done,
            "error_code": "parser_error" if run is DocumentRun.FAIL else "",
            "error_message": "the file can't be read" if run is DocumentRun.FAIL else "",
            "begin_ms": create_ms + 500 if begun else 0,
            "end_ms": create_ms + 9_000 if ended else 0,
            "create_ms": create_ms,
            "update_ms": create_ms + dice.randrange(60_000),
        }


def _insert_in_slices(rows: Rows, made: Iterator[dict[str, Any]]) -> list[int]:
    """The states of the documents, in the order in which they were made."""
    columns = [field.column_name for field in Document._meta.sorted_fields]
    runs: list[int] = []
    part: list[list[object]] = []
    for values in made:
        row = Document(**values).__data__
        part.append([field.db_value(row[field.name]) for field in Document._meta.sorted_fields])
        runs.append(values["run"])
        if len(part) >= _SLICE:
            rows.write(rows.insert_many, "document", columns, part)
            part = []
    if part:
        rows.write(rows.insert_many, "document", columns, part)
    return runs


def _insert_tasks(rows: Rows, now_ms: int) -> int:
    """Out of the documents by the database itself: a prepare, nine ranges and, where these have ended, a finish; and a
    line of the timeline for each that has ended."""
    numbers = " UNION ALL ".join(f"SELECT {n} AS n" for n in range(TASKS_EACH))
    task_id = _joined(rows, "SUBSTR(d.id, 1, 30)", "(10 + n)")
    state = " ".join(f"WHEN {int(run)} THEN {int(state)}" for run, state in _TASK_STATES.items())
    kind = f"CASE n WHEN 0 THEN 'prepare' WHEN {TASKS_EACH - 1} THEN 'finish' ELSE 'range' END"
    columns = {
        "id": task_id,
        "tenant_id": "d.tenant_id",
        "kb_id": "d.kb_id",
        "doc_id": "d.id",
        "generation": "d.generation",
        "task_type": kind,
        "from_page": "12 * n",
        "to_page": "12 * n + 12",
        "priority": "d.priority",
        "parser_version": str(PARSER_VERSION),
        "state": f"CASE WHEN n = 0 THEN {int(TaskState.DONE)} ELSE CASE d.run {state} END END",
        "claim_no": "1",
        "run_after": f"CASE WHEN d.end_ms = 0 THEN {now_ms + _DAY_MS} ELSE d.begin_ms END",
        "begin_at": "CASE WHEN d.end_ms = 0 THEN 0 ELSE d.begin_ms END",
        "end_at": "d.end_ms",
        "create_ms": "d.begin_ms",
        "error_code": "''",
        "error_message": "''",
    }
    columns |= dict.fromkeys(("attempt", "losses", "retry_count", "lease_until", "waiting_since"), "0")
    columns |= dict.fromkeys(("published_at", "process_duration", "progress", "chunk_count", "token_count"), "0")
    columns |= dict.fromkeys(("claim_token", "owner", "progress_msg", "digest"), "''")
    rows.write(
        rows.execute,
        f"INSERT INTO task ({', '.join(columns)}) SELECT {', '.join(columns.values())}"
        f" FROM document d CROSS JOIN ({numbers}) AS numbers WHERE d.generation > 0"
        f" AND NOT (d.run = {int(DocumentRun.RUNNING)} AND n = {TASKS_EACH - 1})",
    )
    rows.write(
        rows.execute,
        "INSERT INTO task_event (task_id, doc_id, generation, at_ms, kind, claim_no, owner, error_code, message)"
        " SELECT id, doc_id, generation, end_at, 'done', 1, 'bench', '', '' FROM task WHERE end_at > 0 ORDER BY end_at",
    )
    return int(rows.rows("SELECT COUNT(*) FROM task")[0][0])


def _joined(rows: Rows, *parts: str) -> str:
    return " || ".join(parts) if rows.is_sqlite else f"CONCAT({', '.join(parts)})"
