"""Knowledge bases, the first page: a card for each, and on a new instance the three first steps."""

from __future__ import annotations

from flask import Response

from api.apps.auth import caller
from api.apps.services import services
from api.apps.ui.navigation import Section
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from api.db.services.dataset_service import DatasetFilter

bp = page_blueprint("ui_datasets", "datasets")
SECTION = Section(10, "datasets", "Knowledge bases", "ui_datasets.index", "books")


@bp.get("/")
def index() -> Response:
    page = services().datasets.page(caller().tenant_id, DatasetFilter(page_size=100))
    return render_page("datasets.html", datasets=page.datasets, total=page.total)
