"""The tags that the chunks of datasets have, as far as a search may see them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from api.db.database import Rows
from api.db.services.visibility import searched_documents
from rag.utils.doc_index import DocIndex, Scope

_AT_ONCE = 1000


class TagService:
    def __init__(self, rows: Rows, index: DocIndex) -> None:
        self._rows = rows
        self._index = index

    def counts(self, tenant_id: str, dataset_ids: Sequence[str]) -> Counter[str]:
        """Goes through all chunks: tags are no field that the index counts by."""
        counts: Counter[str] = Counter()
        for dataset_id in dataset_ids:
            offset = 0
            while part := self._index.list(Scope(tenant_id, dataset_id), offset, _AT_ONCE).chunks:
                tagged = [chunk for chunk in part if chunk.tags]
                shown = searched_documents(self._rows, tenant_id, {chunk.document_id for chunk in tagged})
                for chunk in tagged:
                    if (document := shown.get(chunk.document_id)) is not None and document.shows(chunk):
                        counts.update(chunk.tags)
                offset += len(part)
        return counts
