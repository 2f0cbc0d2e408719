"""Documents of a dataset: add uploaded files, list, get. Their bytes are in the store before a row speaks of them.

Parsing them is left to parse_service.py, what is shown of a running parse to document_views.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peewee import IntegrityError

from api.db.database import Rows
from api.db.models import Document, Knowledgebase
from api.db.records import fetch, insert
from api.db.services import dataset_counts
from api.db.services.account_service import Caller
from api.db.services.document_list import DocumentCounts, DocumentFilter, counts, page_ids
from api.db.services.document_views import DocumentView, views
from api.db.services.file_types import VIRTUAL, chunk_method_of, type_of
from api.db.services.naming import extension, free_name, name_key
from api.db.services.task_sql import marks
from common.errors import Conflict, NotFound
from common.ids import new_id
from common.settings import TaskSettings
from rag.utils.object_store import StoredFile

MAX_NAME_BYTES = 255
_NAME_RACES = 20
_SLICE = 500


@dataclass(frozen=True)
class NewDocument:
    """A file that the store keeps, and the name it was uploaded under. One that `is_virtual` has no bytes, only chunks
    that are added to it, and keeps its name or is refused."""

    name: str
    file: StoredFile
    is_virtual: bool = False


@dataclass(frozen=True)
class DocumentPage:
    total: int
    documents: list[DocumentView]


class DocumentService:
    def __init__(self, rows: Rows, settings: TaskSettings) -> None:
        self._rows = rows
        self._max_attempts = settings.max_attempts

    def add(self, caller: Caller, dataset_id: str, new: Sequence[NewDocument]) -> list[DocumentView]:
        """Insert all documents or none; taken names become `name(1).ext`. Raises NotFound for an unknown dataset."""
        return self._rows.write(self._add, caller, dataset_id, new, _ids_in_order(len(new)))

    def get(self, tenant_id: str, document_id: str, dataset_id: str | None = None) -> DocumentView:
        """Raises NotFound for a document that is unknown, deleted, another tenant's or of another dataset."""
        which, params = "WHERE id = ? AND tenant_id = ? AND deleted_ms = 0", [document_id, tenant_id]
        if dataset_id is not None:
            which, params = f"{which} AND kb_id = ?", [*params, dataset_id]
        found = self._rows.read(self._views, which, params)
        if not found:
            raise NotFound(f"You don't own the document {document_id}.")
        return found[0]

    def page(self, tenant_id: str, dataset_id: str, wanted: DocumentFilter) -> DocumentPage:
        """Raises NotFound for a dataset that is not the tenant's."""
        return self._rows.read(self._page, tenant_id, dataset_id, wanted)

    def counts(self, tenant_id: str, dataset_id: str, wanted: DocumentFilter) -> DocumentCounts:
        """Of all that the filter lets through, whatever the page. Raises NotFound as `page` does."""
        self._rows.read(self._document_count, tenant_id, dataset_id)
        return self._rows.read(counts, self._rows, dataset_id, wanted)

    def known(self, tenant_id: str, dataset_ids: Sequence[str], document_ids: Sequence[str]) -> set[str]:
        """Those of the documents that are in one of the datasets."""
        homes = self.of_tenant(tenant_id, document_ids)
        wanted = set(dataset_ids)
        return {document_id for document_id, dataset_id in homes.items() if dataset_id in wanted}

    def of_tenant(self, tenant_id: str, document_ids: Sequence[str]) -> dict[str, str]:
        """Those of the documents that are the tenant's, each with its dataset."""
        found: dict[str, str] = {}
        for start in range(0, len(document_ids), _SLICE):
            part = document_ids[start : start + _SLICE]
            which = f"tenant_id = ? AND deleted_ms = 0 AND id IN ({marks(part)})"
            sql = f"SELECT id, kb_id FROM document WHERE {which}"
            found |= dict(self._rows.read(self._rows.rows, sql, (tenant_id, *part)))
        return found

    def _add(
        self, caller: Caller, dataset_id: str, new: Sequence[NewDocument], ids: Sequence[str]
    ) -> list[DocumentView]:
        # Run again after a commit whose reply was lost, it finds what it inserted.
        if self._rows.is_in_doubt:
            there = {row.id: row for row in fetch(self._rows, Document, f"WHERE id IN ({marks(ids)})", ids)}
            if there:
                return views(self._rows, [there[doc_id] for doc_id in ids], self._max_attempts)
        which = "WHERE id = ? AND tenant_id = ? AND deleted_ms = 0"
        found = fetch(self._rows, Knowledgebase, which, (dataset_id, caller.tenant_id))
        if not found:
            raise dataset_counts.unknown(dataset_id)
        (dataset,) = found
        size_bytes = sum(one.file.size_bytes for one in new)
        dataset_counts.add_documents(self._rows, caller.tenant_id, dataset_id, len(new), size_bytes)
        now_ms = self._rows.clock()
        return views(
            self._rows,
            [self._insert(caller, dataset, *one, now_ms) for one in zip(new, ids, strict=True)],
            self._max_attempts,
        )

    def _insert(self, caller: Caller, dataset: Knowledgebase, new: NewDocument, doc_id: str, now_ms: int) -> Document:
        def taken(keys: Sequence[str]) -> set[str]:
            which = f"FROM document WHERE kb_id = ? AND name_key IN ({marks(keys)})"
            return {key for (key,) in self._rows.rows(f"SELECT name_key {which}", (dataset.id, *keys))}

        for _ in range(_NAME_RACES):
            if new.is_virtual and taken([name_key(new.name)]):
                raise Conflict("Duplicated document name in the same dataset.")
            row = _row(caller, dataset, new, free_name(new.name, taken, MAX_NAME_BYTES))
            row.id, row.create_ms, row.update_ms = doc_id, now_ms, now_ms
            try:
                insert(self._rows, [row])
            except IntegrityError:
                # Somebody else took the name meanwhile. Those who lost look for the next one after each other.
                self._rows.rows(f"SELECT id FROM knowledgebase WHERE id = ?{self._rows.for_update}", (dataset.id,))
            else:
                return row
        raise Conflict("the names of these files are being taken by others: try again")

    def _page(self, tenant_id: str, dataset_id: str, wanted: DocumentFilter) -> DocumentPage:
        whole = self._document_count(tenant_id, dataset_id)
        total, ids = page_ids(self._rows, dataset_id, whole, wanted)
        found = {view.id: view for view in self._views(f"WHERE id IN ({marks(ids)})", ids)} if ids else {}
        shown = [found[doc_id] for doc_id in ids if doc_id in found]
        return DocumentPage(total, [d for d in shown if _in_time(d, wanted)])

    def _document_count(self, tenant_id: str, dataset_id: str) -> int:
        """Raises NotFound where the dataset is not the tenant's: its documents are not asked for it one by one."""
        found = self._rows.rows(
            "SELECT document_count FROM knowledgebase WHERE id = ? AND tenant_id = ? AND deleted_ms = 0",
            (dataset_id, tenant_id),
        )
        if not found:
            raise NotFound(f"You don't own the dataset {dataset_id}.")
        return int(found[0][0])

    def _views(self, which: str, params: Sequence[object]) -> list[DocumentView]:
        return views(self._rows, fetch(self._rows, Document, which, params), self._max_attempts)


def _ids_in_order(count: int) -> list[str]:
    """Files of one call have one time: the newest first are they in the order in which they came."""
    return sorted((new_id() for _ in range(count)), reverse=True)


def _in_time(document: DocumentView, wanted: DocumentFilter) -> bool:
    if wanted.create_ms_from and document.create_ms < wanted.create_ms_from:
        return False
    return not (wanted.create_ms_to and document.create_ms > wanted.create_ms_to)


def _row(caller: Caller, dataset: Knowledgebase, new: NewDocument, name: str) -> Document:
    return Document(
        tenant_id=dataset.tenant_id,
        kb_id=dataset.id,
        created_by=caller.user_id,
        name=name,
        name_key=name_key(name),
        file_digest=new.file.digest,
        size_bytes=new.file.size_bytes,
        suffix=extension(name),
        type=VIRTUAL if new.is_virtual else type_of(name) or "doc",
        chunk_method=chunk_method_of(name, dataset.chunk_method),
        parser_config=dataset.parser_config,
        meta_fields={},
    )
