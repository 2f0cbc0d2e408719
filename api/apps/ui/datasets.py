"""Knowledge bases: the first page with a card for each and, on a new instance, the first three steps; the forms that
make and change one. The forms send to the REST API."""

from __future__ import annotations

from flask import Response, request

from api.apps.auth import caller
from api.apps.requests import bounded
from api.apps.services import services
from api.apps.ui.chunk_methods import METHODS, NAMES
from api.apps.ui.dataset_cards import Card, cards_of
from api.apps.ui.navigation import Section
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page
from api.apps.views import dataset_json
from api.db.services.dataset_service import DatasetFilter
from api.db.services.parser_defaults import parser_config
from common.errors import QueueUnavailable

bp = page_blueprint("ui_datasets", "datasets")
SECTION = Section(10, "datasets", "Knowledge bases", "ui_datasets.index", "books")

_PAGE_SIZE = 24
_MAX_SEARCH = 128


@bp.get("/")
def index() -> Response:
    wanted = DatasetFilter(
        page=bounded(request.args.get("page"), 1),
        page_size=_PAGE_SIZE,
        orderby="update_time",
        keywords=request.args.get("q", "")[:_MAX_SEARCH].strip(),
        teams=services().team.tenants_of(caller().user_id),
    )
    page = services().datasets.page(caller().tenant_id, wanted)
    cards = cards_of(page.datasets)
    return render_page(
        "datasets.html",
        cards=cards,
        total=page.total,
        wanted=wanted,
        pages=-(-page.total // _PAGE_SIZE),
        method_names=NAMES,
        guide=_guide(cards, page.total) if wanted.page == 1 and not wanted.keywords else None,
        outage=outage(),
    )


@bp.get("/datasets/new")
def new() -> Response:
    return _form({"chunk_method": "naive", "parser_config": parser_config("naive", None)}, 0)


@bp.get("/datasets/<dataset_id>/settings")
def edit(dataset_id: str) -> Response:
    dataset = services().datasets.get(caller().tenant_id, dataset_id)
    return _form(dataset_json(dataset), dataset.chunk_count)


def outage() -> str:
    """What keeps everything from being parsed, in a sentence; "" where nothing does."""
    try:
        alive = services().executors_alive()
    except QueueUnavailable as exc:
        return f"{exc.public_message}. Uploads are kept, and parsed when it is back."
    return "" if alive else "No executor is running: nothing is parsed until one is started with `pagemill executor`."


def _guide(cards: list[Card], total: int) -> dict[str, object] | None:
    """The first steps; None once there is more than one knowledge base, or the first has ten documents."""
    if total > 1:
        return None
    first = cards[0].dataset if cards else None
    if first is not None and first.document_count >= 10:
        return None
    return {
        "dataset": first,
        "has_file": first is not None and first.document_count > 0,
        "can_ask": first is not None and first.chunk_count > 0,
    }


def _form(dataset: dict[str, object], chunk_count: int) -> Response:
    model = services().datasets.embedding_model
    return render_page("dataset_form.html", dataset=dataset, chunk_count=chunk_count, methods=METHODS, models=[model])
