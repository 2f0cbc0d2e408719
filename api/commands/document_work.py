"""What `pagemill ingest` and `pagemill search` do. Apart from their options (documents.py), since this needs the whole
of the services, and commands that do not should start without them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from api.apps.services import Services
from api.commands.options import err, out, print_json
from api.db.services.account_service import Caller
from api.db.services.dataset_service import DatasetFilter, NewDataset
from api.db.services.document_service import NewDocument
from api.db.services.document_views import DocumentView
from api.db.services.retrieval_service import Found, Question
from api.wiring import connect
from common.errors import NotFound, PagemillError
from common.settings import Settings
from common.task_state import DocumentRun

_LOOK_EVERY_S = 0.25
_COPY_BYTES = 1 << 20
_SNIPPET_WORDS = 60
_WORDS_BEFORE = 12
_ENDED = (DocumentRun.DONE, DocumentRun.FAIL, DocumentRun.CANCEL)


@dataclass
class Ingested:
    """One file on its way in; `error` is set where it did not get that far."""

    path: Path
    document: DocumentView | None = None
    error: str = ""

    @property
    def has_ended(self) -> bool:
        return self.document is None or self.document.run in _ENDED

    @property
    def is_done(self) -> bool:
        return self.document is not None and self.document.run is DocumentRun.DONE


def run_ingest(settings: Settings, files: Sequence[Path], dataset: str, *, wait: bool, as_json: bool) -> bool:
    """True if all files did what was asked of them."""
    services = connect(settings)
    caller = services.accounts.admin()
    dataset_id = _dataset(services, caller, dataset, create=True)
    work = [_upload(services, caller, dataset_id, path) for path in files]
    started = [w.document.id for w in work if w.document]
    services.parsing.start(started)
    if wait:
        _follow(services, caller, work, quiet=as_json)
    else:
        _look(services, caller, work)
    if as_json:
        print_json([_as_facts(w) for w in work])
    else:
        _summarise(work)
    return all(w.is_done if wait else w.document is not None for w in work)


def run_search(settings: Settings, question: str, dataset: str | None, *, limit: int, as_json: bool) -> None:
    services = connect(settings)
    caller = services.accounts.admin()
    ids: tuple[str, ...]
    if dataset is not None:
        ids = (_dataset(services, caller, dataset, create=False),)
    else:
        ids = tuple(d.id for d in services.datasets.page(caller.tenant_id, DatasetFilter(page_size=1000)).datasets)
    if not ids:
        raise NotFound("there is no dataset yet: `pagemill ingest FILE --dataset NAME` makes one")
    answer = services.retrieval.ask(caller.tenant_id, Question(question, ids, page_size=limit, highlight=True))
    if as_json:
        print_json([_hit_facts(found) for found in answer.chunks])
        return
    if not answer.chunks:
        out.print("nothing found")
    for found in answer.chunks:
        _print_hit(found)


def _dataset(services: Services, caller: Caller, name: str, *, create: bool) -> str:
    page = services.datasets.page(caller.tenant_id, DatasetFilter(name=name))
    if page.datasets:
        return page.datasets[0].id
    if not create:
        raise NotFound(f"there is no dataset with the name {name!r}")
    return services.datasets.create(caller, NewDataset(name)).id


def _upload(services: Services, caller: Caller, dataset_id: str, path: Path) -> Ingested:
    """Store a file and its row. What goes wrong with one file does not stop the others."""
    upload = services.store.begin_upload()
    try:
        with path.open("rb") as file:
            while piece := file.read(_COPY_BYTES):
                upload.write(piece)
        new = NewDocument(path.name, upload.keep(caller.tenant_id))
        return Ingested(path, services.documents.add(caller, dataset_id, [new])[0])
    except OSError as exc:
        return Ingested(path, error=f"can't be read: {exc.strerror}")
    except PagemillError as exc:
        return Ingested(path, error=exc.public_message)
    finally:
        upload.discard()


def _look(services: Services, caller: Caller, work: list[Ingested]) -> None:
    for w in work:
        if w.document is not None and not w.has_ended:
            w.document = services.documents.get(caller.tenant_id, w.document.id)


def _follow(services: Services, caller: Caller, work: list[Ingested], *, quiet: bool) -> None:
    """Show a bar per file until all have ended. Ctrl-C stops the watching, not the work."""
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), TextColumn("{task.fields[says]}"), console=err, disable=quiet) as bars:
        tasks: list[tuple[Ingested, TaskID]] = [(w, bars.add_task(w.path.name, total=1.0, says=w.error)) for w in work]
        _look(services, caller, work)
        while not all(w.has_ended for w in work):
            time.sleep(_LOOK_EVERY_S)
            _look(services, caller, work)
            for w, bar in tasks:
                if w.document is not None:
                    bars.update(bar, completed=max(0.0, w.document.progress), says=w.document.progress_msg)


def _summarise(work: list[Ingested]) -> None:
    for w in work:
        says = w.error if w.document is None else w.document.progress_msg or "queued"
        out.print(f"{w.path.name}: {says}", markup=False, highlight=False)


def _as_facts(w: Ingested) -> dict[str, object]:
    if w.document is None:
        return {"file": str(w.path), "run": None, "error": w.error}
    return {
        "file": str(w.path),
        "document_id": w.document.id,
        "run": w.document.run.name,
        "chunk_count": w.document.chunk_count,
        "progress_msg": w.document.progress_msg,
    }


def _hit_facts(found: Found) -> dict[str, object]:
    return {
        "document": found.document_name,
        "page": found.chunk.page,
        "positions": found.chunk.positions,
        "similarity": round(found.similarity, 4),
        "term_similarity": round(found.term_similarity, 4),
        "vector_similarity": round(found.vector_similarity, 4),
        "text": found.chunk.text,
    }


def _print_hit(found: Found) -> None:
    out.print(f"[bold]{found.similarity:.2f}[/bold]  {found.document_name}, page {found.chunk.page}", highlight=False)
    out.print(Padding(_snippet(found.highlight or found.chunk.text), (0, 0, 1, 6)), highlight=False)


def _snippet(marked: str) -> Text:
    """The stretch of a chunk in which most of the question's words stand, these in bold."""
    words = " ".join(marked.split()).split(" ")
    hits = [index for index, word in enumerate(words) if "<em>" in word]
    best = max(hits, key=lambda i: sum(i <= h < i + _SNIPPET_WORDS for h in hits), default=0)
    first = max(0, best - _WORDS_BEFORE)
    text = Text("… " if first else "")
    for piece in re.split(r"(<em>.*?</em>)", " ".join(words[first : first + _SNIPPET_WORDS])):
        bare = re.sub(r"</?em>", "", piece)
        text.append(bare, "bold" if piece.startswith("<em>") else "")
    return text if first + _SNIPPET_WORDS >= len(words) else text.append(" …")
