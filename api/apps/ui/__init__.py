"""The web UI: pages for people, rendered here and kept alive by small modules under static/js. docs/ui.md has its
rules, and how to add a page: write its module, and name it in PAGES."""

from __future__ import annotations

from flask import Flask

from api.apps.ui import (
    account,
    admin,
    assets,
    datasets,
    document,
    documents,
    error_pages,
    formats,
    navigation,
    search,
    sign_in,
)

PAGES = (
    sign_in,
    datasets,
    documents,
    document,
    search,
    account,
    admin,
)


def register(app: Flask) -> None:
    assets.register(app)
    formats.register(app)
    navigation.register(app, PAGES)
    for page in PAGES:
        app.register_blueprint(page.bp)
        if hasattr(page, "data_bp"):
            app.register_blueprint(page.data_bp)
    error_pages.register(app)
