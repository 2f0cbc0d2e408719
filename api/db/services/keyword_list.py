"""A page of a dataset's documents whose names have some words in them. No index finds these: every name is looked at.
One walk does for few of them, which are put in order by themselves; of many, the first end the walk soon."""

from __future__ import annotations

from dataclasses import replace

from api.db.database import Rows
from api.db.services.id_page import IdList, counted
from api.db.services.task_sql import marks

NAME_INDEX = "document_name"
_FEW = 50


def keyword_page(
    rows: Rows, listed: IdList, dataset_id: str, words: str, page: int, page_size: int
) -> tuple[int, list[str]]:
    """How many there are, and the ids of the page; `listed` is the same list as it is walked where there are many."""
    holds = f"kb_id = ? AND {rows.containing('name_key')}"  # those that are deleted have no name
    found = rows.rows(
        f"SELECT name_key, id FROM document{rows.using(NAME_INDEX)} WHERE {holds} ORDER BY name_key LIMIT {_FEW}",
        (dataset_id, words),
    )
    if len(found) == _FEW:
        others = counted(rows, f"{holds} AND name_key > ?", (dataset_id, words, found[-1][0]), NAME_INDEX)
        return replace(listed, total=_FEW + others.read(rows)).page(rows, page, page_size)
    if not found:
        return 0, []
    ids = [doc_id for _, doc_id in found]
    few = IdList(f"deleted_ms = 0 AND id IN ({marks(ids)})", ids, listed.order, listed.desc, total=len(ids))
    return few.page(rows, page, page_size)
