"""The person's own account: name, password and API keys. Keys are made and revoked by the REST API."""

from __future__ import annotations

from flask import Response

from api.apps.auth import caller
from api.apps.services import services
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page

bp = page_blueprint("ui_account", "account")


@bp.get("/account")
def show() -> Response:
    return render_page("account.html", keys=services().accounts.tokens(caller()))
