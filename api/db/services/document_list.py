"""Which documents a dataset's list shows: its filters and orders as conditions on indexes that hold all they need
(migrations 7, 9 and 10). Metadata alone is not in an index: asking for it reads every document that the other filters
leave."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from api.db.database import Rows
from api.db.services.document_totals import of_dataset
from api.db.services.file_types import TYPES
from api.db.services.id_page import MAX_OFFSET, Count, IdList, counted
from api.db.services.keyword_list import NAME_INDEX, keyword_page
from api.db.services.metadata_edits import weighed_summary
from api.db.services.naming import name_key
from api.db.services.task_sql import marks
from common.task_state import DocumentRun

# With every column that is filtered or ordered by; by time of change, with the state.
_PAGE, _CHANGED = "document_page", "document_changed"
# By name, of which only deleted documents have none; by state, then name; by kind of file.
_NAME, _RUN, _KIND = NAME_INDEX, "document_run", "document_kind"
_NAMED = "name_key IS NOT NULL"
_COLUMNS = {"create_time": "create_ms", "update_time": "update_ms", "name": "name_key"}


@dataclass(frozen=True)
class DocumentFilter:
    """Empty tuples, "" and None ask for everything. The times are applied to the page, as RAGFlow does."""

    page: int = 1
    page_size: int = 30
    orderby: str = "create_time"
    desc: bool = True
    keywords: str = ""
    ids: tuple[str, ...] = ()
    name: str = ""
    suffixes: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    runs: tuple[DocumentRun, ...] = ()
    create_ms_from: int = 0
    create_ms_to: int = 0
    metadata_meets: Callable[[Mapping[str, Any]], bool] | None = None

    @property
    def names_documents(self) -> bool:
        return bool(self.ids or self.name)

    @property
    def is_by_state_only(self) -> bool:
        return not (self.names_documents or self.keywords or self.suffixes or self.types)

    @property
    def is_by_kind_only(self) -> bool:
        return not (self.names_documents or self.keywords or self.runs)

    @property
    def is_by_words_only(self) -> bool:
        return not (self.names_documents or self.suffixes or self.types or self.runs)

    @property
    def is_for_all(self) -> bool:
        return self.is_by_state_only and not self.runs


@dataclass(frozen=True)
class DocumentCounts:
    """How many documents there are of each suffix, state, and value of each key of metadata."""

    total: int
    suffixes: Counter[str]
    runs: Counter[DocumentRun]
    metadata: dict[str, dict[str, int]]
    without_metadata: int


def page_ids(rows: Rows, dataset_id: str, whole: int, wanted: DocumentFilter) -> tuple[int, list[str]]:
    """How many documents the filter lets through, and those of the page in their order; `whole` is how many the dataset
    has. Called within a read."""
    listed = id_list(rows, dataset_id, wanted, whole)
    if wanted.metadata_meets is None:
        if wanted.keywords and wanted.is_by_words_only:
            words = wanted.keywords.casefold()
            return keyword_page(rows, listed, dataset_id, words, wanted.page, wanted.page_size)
        return listed.page(rows, wanted.page, wanted.page_size)
    found = _with_metadata(rows, listed, f"{_COLUMNS[wanted.orderby]}, id", wanted)
    ordered = [doc_id for _, doc_id in sorted(((row[0], row[1]) for row in found), reverse=wanted.desc)]
    offset = min((wanted.page - 1) * wanted.page_size, MAX_OFFSET)
    return len(ordered), ordered[offset : offset + wanted.page_size]


def counts(rows: Rows, dataset_id: str, wanted: DocumentFilter) -> DocumentCounts:
    """Of all that the filter lets through, whatever the page. Called within a read."""
    found = _with_metadata(rows, id_list(rows, dataset_id, wanted), "suffix, run", wanted)
    noted = Counter(metadata for _, _, metadata in found)
    values = weighed_summary((json.loads(metadata), count) for metadata, count in noted.items())
    return DocumentCounts(
        total=len(found),
        suffixes=Counter(suffix for suffix, _, _ in found),
        runs=Counter(DocumentRun(run) for _, run, _ in found),
        metadata={key: dict(told["values"]) for key, told in values.items()},
        without_metadata=noted["{}"],
    )


def id_list(rows: Rows, dataset_id: str, wanted: DocumentFilter, whole: int | None = None) -> IdList:
    """Without what is asked of the metadata. `whole` is how many documents the dataset has, where that is known."""
    conditions, params = _filtered(rows, wanted)
    column = _COLUMNS[wanted.orderby]
    listed = IdList(
        which=" AND ".join(["kb_id = ?", "deleted_ms = 0", *conditions]),
        params=[dataset_id, *params],
        order=[column, "id"],
        desc=wanted.desc,
        total=_total(rows, dataset_id, wanted, whole),
        index=_index(wanted),
        back_cost=rows.back_cost,
    )
    if listed.index != _NAME:
        return listed
    which = " AND ".join(["kb_id = ?", _NAMED, *conditions])
    return replace(listed, which=which, order=[column], back_cost=1)  # no two have the same


def _index(wanted: DocumentFilter) -> str:
    if wanted.names_documents:
        return ""
    if wanted.orderby == "name":
        if wanted.is_by_words_only:
            return _NAME
        return _RUN if wanted.is_by_state_only else _PAGE
    return _CHANGED if wanted.is_by_state_only and wanted.orderby == "update_time" else _PAGE


def _total(rows: Rows, dataset_id: str, wanted: DocumentFilter, whole: int | None) -> Count | int:
    """By the shortest index that holds what is asked for: all of it is walked."""
    if wanted.is_for_all and whole is not None:
        return whole
    if wanted.is_by_state_only:
        return of_dataset(dataset_id).count(rows, wanted.runs)
    if wanted.is_by_kind_only and not wanted.types:
        wanted = replace(wanted, types=TYPES)  # its index begins with them
    conditions, params = _filtered(rows, wanted)
    which = " AND ".join(["kb_id = ?", "deleted_ms = 0", *conditions])
    index = "" if wanted.names_documents else _KIND if wanted.is_by_kind_only else _PAGE
    return counted(rows, which, [dataset_id, *params], index)


def _filtered(rows: Rows, wanted: DocumentFilter) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    params: list[object] = []
    lists: dict[str, Sequence[object]] = {
        "id": wanted.ids,
        "suffix": [suffix.lower() for suffix in wanted.suffixes],
        "type": wanted.types,
        "run": [int(run) for run in wanted.runs],
    }
    for column, values in lists.items():
        if values:
            conditions.append(f"{column} IN ({marks(values)})")
            params += values
    if wanted.name:
        conditions.append("name_key = ? AND name = ?")
        params += [name_key(wanted.name), wanted.name]
    if wanted.keywords:
        conditions.append(rows.containing("name_key"))
        params.append(wanted.keywords.casefold())
    return conditions, params


def _with_metadata(rows: Rows, listed: IdList, columns: str, wanted: DocumentFilter) -> list[Sequence[Any]]:
    """Two columns and the metadata, as it is written, of the documents whose metadata is as wanted. Many documents say
    the same, and each text is judged once."""
    meets = wanted.metadata_meets or (lambda _: True)
    found = rows.table(f"{columns}, meta_fields", f"FROM document WHERE {listed.which}", listed.params)
    wanted_texts = {text for text in {row[2] for row in found} if meets(json.loads(text))}
    return [row for row in found if row[2] in wanted_texts]
