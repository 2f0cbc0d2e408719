"""The search page: a question to some knowledge bases, and what it finds with its scores and reasons. The asking itself
is the REST API's, by static/js/search.js; all that is chosen stands in the address."""

from __future__ import annotations

from flask import Response

from api.apps.auth import caller
from api.apps.services import services
from api.apps.ui.navigation import Section
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from api.db.services.dataset_service import DatasetFilter, DatasetView

bp = page_blueprint("ui_search", "search")
SECTION = Section(20, "search", "Search", "ui_search.show", "search")

_MOST = 1000


@bp.get("/search")
def show() -> Response:
    wanted = DatasetFilter(page_size=_MOST, teams=services().team.tenants_of(caller().user_id))
    found = services().datasets.page(caller().tenant_id, wanted).datasets
    served = services().datasets.embedding_model
    values = {
        "datasets": [_dataset(dataset, served) for dataset in sorted(found, key=lambda one: one.name.casefold())],
        "model": served,
        "rerankModel": services().retrieval.rerank_model,
    }
    return render_page("search.html", datasets=found, values=values)


def _dataset(dataset: DatasetView, served_model: str) -> dict[str, object]:
    return {
        "id": dataset.id,
        "name": dataset.name,
        "documents": dataset.document_count,
        "chunks": dataset.chunk_count,
        "model": dataset.embedding_model,
        "canBeAsked": dataset.embedding_model == served_model,
        "threshold": dataset.similarity_threshold,
        "weight": dataset.vector_similarity_weight,
    }
