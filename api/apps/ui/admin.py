"""The pages of operators: overview, queues, failed tasks, settings, users. Each is drawn with what is so at this
moment, and kept alive by a module that asks /api/v1/admin again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from flask import Response

from api.apps.admin import history_facts, overview_facts
from api.apps.auth import caller
from api.apps.services import services
from api.apps.ui.navigation import Section
from api.apps.ui.page import page_blueprint
from api.apps.ui.rendering import render_page

bp = page_blueprint("ui_admin", "admin", for_admins=True)
SECTION = Section(90, "admin", "Admin", "ui_admin.overview", "gauge", for_admins=True)


@bp.get("/admin")
def overview() -> Response:
    values = {"overview": overview_facts(), "history": history_facts("30m")}
    return _render("admin/overview.html", "overview", values)


@bp.get("/admin/queues")
def queues() -> Response:
    return _render("admin/queues.html", "queues", {"overview": overview_facts()})


@bp.get("/admin/failed")
def failed() -> Response:
    return _render("admin/failed.html", "failed", {"overview": overview_facts()})


@bp.get("/admin/settings")
def settings() -> Response:
    return render_page("admin/settings.html", tab="settings", settings=services().settings.effective)


@bp.get("/admin/users")
def users() -> Response:
    values = {"users": [asdict(user) for user in services().user_admin.all()], "me": caller().user_id}
    return _render("admin/users.html", "users", values)


def _render(template: str, tab: str, values: Mapping[str, object]) -> Response:
    return render_page(template, tab=tab, values={**values, "tenant_id": caller().tenant_id})
