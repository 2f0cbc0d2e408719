"""The web app: create_app() puts the blueprints together, and is the only place that does."""

from __future__ import annotations

from flask import Flask
from flask.json.provider import DefaultJSONProvider

from api.apps import (
    chunks,
    datasets,
    deleting,
    documents,
    envelope,
    pages,
    parsing,
    pictures,
    request_log,
    retrieval,
    system,
    tasks,
    toc,
    uploads,
)
from api.apps.services import Services, provide

API_PREFIX = "/api/v1"


def create_app(services: Services) -> Flask:
    app = Flask(__name__, template_folder="../templates", static_folder="../static")
    provide(app, services)
    app.url_map.strict_slashes = False
    assert isinstance(app.json, DefaultJSONProvider)
    app.json.sort_keys = False
    app.json.ensure_ascii = False
    request_log.register(app)
    envelope.register(app)
    uploads.register(app, services.settings.server)
    for blueprint in (
        datasets.bp,
        deleting.bp,
        documents.bp,
        parsing.bp,
        chunks.bp,
        toc.bp,
        pictures.bp,
        retrieval.bp,
        tasks.bp,
        system.bp,
        system.tokens_bp,
    ):
        app.register_blueprint(blueprint, url_prefix=API_PREFIX)
    app.register_blueprint(pages.bp)
    return app
