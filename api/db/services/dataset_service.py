"""Datasets: create, list, get. A dataset belongs to a tenant; a list may have those that teams share (team_service.py).

Counts of chunks and tokens are kept by the document's own transitions (document_sql.py), those of documents and their
bytes by uploads and deletes (dataset_counts.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from peewee import SQL, IntegrityError, fn

from api.db.database import Rows
from api.db.models import Knowledgebase
from api.db.records import fetch
from api.db.services.account_service import Caller
from api.db.services.document_totals import run_counts
from api.db.services.id_page import MAX_OFFSET
from api.db.services.naming import free_name, name_key
from api.db.services.parser_defaults import parser_config
from api.db.services.task_sql import marks
from common.errors import Conflict, InvalidInput, NotFound
from common.ids import new_id
from common.task_state import DocumentRun

MAX_NAME_BYTES = 128
_NAME_RACES = 20
_SLICE = 500


@dataclass(frozen=True)
class NewDataset:
    name: str
    avatar: str | None = None
    description: str | None = None
    embedding_model: str | None = None
    permission: str = "me"
    chunk_method: str = "naive"
    parser_config: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class DatasetFilter:
    """`teams` are tenants whose shared datasets are listed with the tenant's own."""

    page: int = 1
    page_size: int = 30
    orderby: str = "create_time"
    desc: bool = True
    ids: tuple[str, ...] | None = None
    name: str | None = None
    keywords: str = ""
    chunk_method: str = ""
    owner_ids: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnerCount:
    id: str
    nickname: str
    count: int


@dataclass(frozen=True)
class DatasetView:
    id: str
    tenant_id: str
    created_by: str
    nickname: str
    name: str
    avatar: str | None
    description: str | None
    language: str
    embedding_model: str
    permission: str
    chunk_method: str
    parser_config: Mapping[str, Any]
    pagerank: int
    similarity_threshold: float
    vector_similarity_weight: float
    document_count: int
    chunk_count: int
    token_count: int
    size_bytes: int
    create_ms: int
    update_ms: int


@dataclass(frozen=True)
class DatasetPage:
    total: int
    datasets: list[DatasetView]


class DatasetService:
    def __init__(self, rows: Rows, embedding_model: str) -> None:
        """`embedding_model` is the one that this server embeds with."""
        self._rows = rows
        self.embedding_model = embedding_model

    @property
    def rows(self) -> Rows:
        return self._rows

    def create(self, caller: Caller, new: NewDataset) -> DatasetView:
        """A dataset under the name asked for, or the next free one (`a(1)`).

        Raises InvalidInput for a name that is too long, NotFound for a model that this server does not have."""
        size = len(new.name.encode())
        if not new.name or size > MAX_NAME_BYTES:
            raise InvalidInput(f"Dataset name length is {size} which is larger than {MAX_NAME_BYTES} bytes")
        for _ in range(_NAME_RACES):
            try:
                dataset_id = self._rows.write(self._create, caller, new, new_id())
            except IntegrityError:
                continue  # somebody else took the name meanwhile: the next one is looked for
            return self.get(caller.tenant_id, dataset_id)
        raise Conflict(f"the name {new.name!r} is being taken by others: try again")

    def get(self, tenant_id: str, dataset_id: str) -> DatasetView:
        """Raises NotFound for a dataset that is unknown, deleted or another tenant's."""
        found = self.get_all(tenant_id, [dataset_id])
        if not found:
            raise NotFound(f"You don't own the dataset {dataset_id}.")
        return found[0]

    def get_all(self, tenant_id: str, dataset_ids: Sequence[str]) -> list[DatasetView]:
        """Those of the datasets that are the tenant's."""
        found: list[DatasetView] = []
        for start in range(0, len(dataset_ids), _SLICE):
            found += self._rows.read(self._get_all, tenant_id, dataset_ids[start : start + _SLICE])
        return found

    def page(self, tenant_id: str, wanted: DatasetFilter) -> DatasetPage:
        return self._rows.read(_page, self._rows, tenant_id, wanted)

    def owners(self, tenant_id: str, wanted: DatasetFilter) -> list[OwnerCount]:
        """Whose datasets the filter lets through, and how many of each; the page does not matter."""
        return self._rows.read(_owners, self._rows, tenant_id, wanted)

    def run_counts(self, dataset_ids: Sequence[str]) -> dict[str, dict[DocumentRun, int]]:
        """How many documents of each dataset are in each state."""
        return self._rows.read(run_counts, self._rows, dataset_ids)

    def _get_all(self, tenant_id: str, dataset_ids: Sequence[str]) -> list[DatasetView]:
        which = f"WHERE id IN ({marks(dataset_ids)}) AND tenant_id = ? AND deleted_ms = 0"
        return _views(self._rows, fetch(self._rows, Knowledgebase, which, (*dataset_ids, tenant_id)))

    def _create(self, caller: Caller, new: NewDataset, dataset_id: str) -> str:
        if Knowledgebase.get_or_none(Knowledgebase.id == dataset_id) is not None:
            return dataset_id  # the commit went through, its reply was lost
        model = new.embedding_model or self.embedding_model
        if model != self.embedding_model:
            raise NotFound(f"Model {model} not found: this server embeds with {self.embedding_model}")

        def taken(keys: Sequence[str]) -> set[str]:
            which = (Knowledgebase.tenant_id == caller.tenant_id) & Knowledgebase.name_key.in_(list(keys))
            return {row.name_key or "" for row in Knowledgebase.select(Knowledgebase.name_key).where(which)}

        name = free_name(new.name, taken, MAX_NAME_BYTES)
        now_ms = self._rows.clock()
        row = Knowledgebase.create(
            id=dataset_id,
            tenant_id=caller.tenant_id,
            created_by=caller.user_id,
            name=name,
            name_key=name_key(name),
            avatar=new.avatar,
            description=new.description,
            embedding_model=model,
            permission=new.permission,
            chunk_method=new.chunk_method,
            parser_config=parser_config(new.chunk_method, new.parser_config),
            create_ms=now_ms,
            update_ms=now_ms,
        )
        return str(row.id)


def nicknames(rows: Rows, user_ids: set[str]) -> dict[str, str]:
    """The names that users go by; called within a read or a write."""
    if not user_ids:
        return {}
    ids = list(user_ids)
    found: list[Any] = rows.rows(f"SELECT id, nickname FROM user WHERE id IN ({marks(ids)})", ids)
    return dict(found)


def _owned(tenant_id: str) -> Any:
    return (Knowledgebase.tenant_id == tenant_id) & (Knowledgebase.deleted_ms == 0)


def _visible(tenant_id: str, teams: Sequence[str]) -> Any:
    if not teams:
        return _owned(tenant_id)
    shared = Knowledgebase.tenant_id.in_(list(teams)) & (Knowledgebase.permission == "team")
    return ((Knowledgebase.tenant_id == tenant_id) | shared) & (Knowledgebase.deleted_ms == 0)


def _owners(rows: Rows, tenant_id: str, wanted: DatasetFilter) -> list[OwnerCount]:
    query = _filtered(Knowledgebase.select(Knowledgebase.tenant_id, fn.COUNT(SQL("*"))), tenant_id, wanted)
    counts = dict(query.group_by(Knowledgebase.tenant_id).tuples())
    names = nicknames(rows, set(counts))
    return [OwnerCount(one, names.get(one, ""), count) for one, count in sorted(counts.items())]


def _filtered(query: Any, tenant_id: str, wanted: DatasetFilter) -> Any:
    query = query.where(_visible(tenant_id, wanted.teams))
    if wanted.owner_ids:
        query = query.where(Knowledgebase.tenant_id.in_(list(wanted.owner_ids)))
    if wanted.ids is not None:
        query = query.where(Knowledgebase.id.in_(list(wanted.ids)))
    if wanted.name is not None:
        key = name_key(wanted.name)
        query = query.where((Knowledgebase.name_key == key) & (Knowledgebase.name == wanted.name))
    if wanted.keywords:
        query = query.where(Knowledgebase.name_key.contains(wanted.keywords.casefold()))
    if wanted.chunk_method:
        query = query.where(Knowledgebase.chunk_method == wanted.chunk_method)
    return query


def _page(rows: Rows, tenant_id: str, wanted: DatasetFilter) -> DatasetPage:
    query = _filtered(Knowledgebase.select(), tenant_id, wanted)
    column = Knowledgebase.update_ms if wanted.orderby == "update_time" else Knowledgebase.create_ms
    order = column.desc() if wanted.desc else column.asc()
    offset = min((wanted.page - 1) * wanted.page_size, MAX_OFFSET)
    part = query.order_by(order, Knowledgebase.name, Knowledgebase.id).limit(wanted.page_size).offset(offset)
    return DatasetPage(query.count(), _views(rows, list(part)))


def _views(rows: Rows, found: Sequence[Knowledgebase]) -> list[DatasetView]:
    names = nicknames(rows, {row.created_by for row in found})
    columns = set(DatasetView.__dataclass_fields__) - {"nickname"}
    return [
        DatasetView(nickname=names.get(row.created_by, ""), **{column: getattr(row, column) for column in columns})
        for row in found
    ]
