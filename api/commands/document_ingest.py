"""What `pagemill ingest` does. Apart from its options (documents.py), since this needs the whole of the services."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from api.apps.services import Services
from api.commands.options import NOT_RUNNING, err, is_utf8, print_json, printable, say
from api.db.services.account_service import Caller
from api.db.services.dataset_service import MAX_NAME_BYTES, DatasetFilter, NewDataset
from api.db.services.document_service import NewDocument
from api.db.services.document_views import DocumentView
from api.db.services.file_names import has_control_characters, require_file_name, require_supported
from api.instance import require_writable_rows
from api.wiring import connect
from common.errors import InvalidInput, PagemillError, QueueUnavailable
from common.settings import Settings
from common.task_state import DocumentRun
from rag.svr.data_folder import DataFolder
from rag.utils.object_store import StoredFile

_LOOK_EVERY_S = 0.25
_LOOK_FOR_EXECUTORS_EVERY_S = 1.0
_PATIENCE_S = 15.0
_COPY_BYTES = 1 << 20
_ENDED = (DocumentRun.DONE, DocumentRun.FAIL, DocumentRun.CANCEL)


@dataclass
class Ingested:
    """One file on its way in; `error` is set where it did not get that far."""

    path: Path
    file: StoredFile | None = None
    document: DocumentView | None = None
    error: str = ""

    @property
    def name(self) -> str:
        return printable(self.path.name or str(self.path))

    @property
    def has_ended(self) -> bool:
        return self.document is None or self.document.run in _ENDED

    @property
    def is_done(self) -> bool:
        return self.document is not None and self.document.run is DocumentRun.DONE


def run_ingest(settings: Settings, files: Sequence[Path], dataset: str, *, wait: bool, as_json: bool) -> bool:
    """True if all files did what was asked of them."""
    dataset = _dataset_name(dataset)
    require_writable_rows(settings)
    # Its warning of a bell that nobody hears is for servers; here the last line says what it means.
    logging.getLogger("api.wiring").addHandler(logging.NullHandler())
    services = connect(settings)
    caller = services.accounts.admin()
    work = [_store(services, caller, path) for path in files]
    if any(w.file for w in work):
        dataset_id = _dataset(services, caller, dataset)
        for w in work:
            _add(services, caller, dataset_id, w)
    services.parsing.start([w.document.id for w in work if w.document])
    executors = _Executors(settings, services)
    if wait and executors.may_come:
        _follow(services, caller, work, executors, quiet=as_json)
    else:
        _look(services, caller, work)
    if as_json:
        print_json([_facts(w) for w in work])
    else:
        _summarise(work)
    if not all(w.has_ended for w in work) and not executors.may_come:
        say(f"queued; {executors.why_missing}", err)
    return all(w.is_done if wait else w.document is not None for w in work)


class _Executors:
    """Whether anybody is there to do the work. Those of an instance that has just been started are waited for."""

    def __init__(self, settings: Settings, services: Services) -> None:
        self._folder = DataFolder(settings)
        self._services = services
        self._missed_since_s: float | None = None
        self._look_at_s = 0.0
        self.may_come = self._any_alive() or self._folder.address() is not None

    @property
    def why_missing(self) -> str:
        return "no executor is alive: `pagemill doctor` may tell why" if self._folder.address() else NOT_RUNNING

    def look(self) -> None:
        now_s = time.monotonic()
        if now_s < self._look_at_s:
            return
        self._look_at_s = now_s + _LOOK_FOR_EXECUTORS_EVERY_S
        if self._any_alive():
            self._missed_since_s = None
        elif self._missed_since_s is None:
            self._missed_since_s = now_s
        elif now_s - self._missed_since_s > _PATIENCE_S:
            self.may_come = False

    def _any_alive(self) -> bool:
        try:
            return self._services.executors_alive() > 0
        except QueueUnavailable:
            return False


def _dataset_name(given: str) -> str:
    """As REST has it. Raises InvalidInput."""
    name = given.strip()
    if not name:
        raise InvalidInput("--dataset: a dataset's name can't be empty")
    if has_control_characters(name):
        raise InvalidInput("--dataset: a dataset's name can't have control characters")
    if len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidInput(f"--dataset: a dataset's name has at most {MAX_NAME_BYTES} bytes")
    return name


def _dataset(services: Services, caller: Caller, name: str) -> str:
    page = services.datasets.page(caller.tenant_id, DatasetFilter(name=name))
    return page.datasets[0].id if page.datasets else services.datasets.create(caller, NewDataset(name)).id


def _store(services: Services, caller: Caller, path: Path) -> Ingested:
    """Check and store a file. What goes wrong with one does not stop the others."""
    try:
        with path.open("rb") as file:
            if not is_utf8(path.name):
                raise InvalidInput("its name is not valid UTF-8")
            require_file_name(path.name)
            require_supported(path.name)
            upload = services.store.begin_upload()
            try:
                while piece := file.read(_COPY_BYTES):
                    upload.write(piece)
                return Ingested(path, upload.keep(caller.tenant_id))
            finally:
                upload.discard()
    except OSError as exc:
        return Ingested(path, error=f"can't be read: {exc.strerror}")
    except PagemillError as exc:
        return Ingested(path, error=exc.public_message)


def _add(services: Services, caller: Caller, dataset_id: str, w: Ingested) -> None:
    if w.file is None:
        return
    try:
        w.document = services.documents.add(caller, dataset_id, [NewDocument(w.path.name, w.file)])[0]
    except PagemillError as exc:
        w.error = exc.public_message


def _look(services: Services, caller: Caller, work: list[Ingested]) -> None:
    for w in work:
        if w.document is not None and not w.has_ended:
            w.document = services.documents.get(caller.tenant_id, w.document.id)


def _follow(services: Services, caller: Caller, work: list[Ingested], executors: _Executors, *, quiet: bool) -> None:
    """Show a bar per file until all have ended or nobody works on them. Ctrl-C stops the watching, not the work."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[says]}", markup=False),
    )
    with Progress(*columns, console=err, disable=quiet) as bars:
        tasks: list[tuple[Ingested, TaskID]] = [(w, bars.add_task(w.name, total=1.0, says=w.error)) for w in work]
        _look(services, caller, work)
        while executors.may_come and not all(w.has_ended for w in work):
            time.sleep(_LOOK_EVERY_S)
            _look(services, caller, work)
            executors.look()
            for w, bar in tasks:
                if w.document is not None:
                    bars.update(bar, completed=max(0.0, w.document.progress), says=w.document.progress_msg)


def _summarise(work: list[Ingested]) -> None:
    for w in work:
        says = w.error if w.document is None else w.document.progress_msg or "queued"
        say(f"{w.name}: {printable(says)}")


def _facts(w: Ingested) -> dict[str, object]:
    if w.document is None:
        return {"file": printable(str(w.path)), "run": None, "error": w.error}
    return {
        "file": str(w.path),
        "document_id": w.document.id,
        "run": w.document.run.name,
        "chunk_count": w.document.chunk_count,
        "progress_msg": w.document.progress_msg,
    }
