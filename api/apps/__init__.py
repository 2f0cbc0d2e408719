"""The web app: create_app() puts the blueprints together, and is the only place that does."""

from __future__ import annotations

from flask import Flask
from flask.json.provider import DefaultJSONProvider
from werkzeug.middleware.proxy_fix import ProxyFix

from api.apps import (
    admin,
    admin_failed,
    admin_users,
    api_docs,
    chunk_edits,
    chunks,
    datasets,
    deleting,
    document_updates,
    documents,
    downloads,
    envelope,
    files,
    graph,
    ingest,
    ingestions,
    job_events,
    job_timeline,
    jobs,
    limits,
    metadata,
    metrics,
    models,
    older,
    pages,
    parsing,
    pictures,
    problems,
    reading,
    request_log,
    retrieval,
    search,
    slashes,
    system,
    tags,
    tasks,
    team,
    toc,
    turn_taking,
    ui,
    uploads,
    users,
    webhooks,
)
from api.apps.services import Services, provide
from common.turns import Turns

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
    problems.register_in_envelope(app)
    limits.register(app, services.settings.server)
    uploads.register(app, services.settings.server)
    job_events.register(app, services)
    metrics.register(app, services)
    for blueprint in (
        datasets.bp,
        deleting.bp,
        documents.bp,
        document_updates.bp,
        downloads.bp,
        parsing.bp,
        ingest.bp,
        ingestions.bp,
        chunks.bp,
        chunk_edits.bp,
        toc.bp,
        pictures.bp,
        reading.bp,
        retrieval.bp,
        search.bp,
        metadata.bp,
        tags.bp,
        graph.bp,
        tasks.bp,
        team.bp,
        jobs.bp,
        job_events.bp,
        job_timeline.bp,
        webhooks.bp,
        models.bp,
        files.bp,
        users.open_bp,
        users.bp,
        system.bp,
        system.tokens_bp,
        admin.bp,
        admin_failed.bp,
        admin_users.bp,
        api_docs.bp,
    ):
        app.register_blueprint(blueprint, url_prefix=API_PREFIX)
    for blueprint in (older.open_bp, older.bp):
        app.register_blueprint(blueprint, url_prefix=older.PREFIX)
    app.register_blueprint(job_events.socket_bp)
    app.register_blueprint(pages.bp)
    ui.register(app)
    slashes.register(app)
    if services.settings.server.proxies:
        _believe_proxies(app, services.settings.server.proxies)
    app.register_blueprint(api_docs.page_bp)
    if services.datasets.rows.is_sqlite:  # elsewhere most of a request is waiting for the database's server
        turn_taking.register(app, Turns(services.settings.server.at_once))
    return app


def _believe_proxies(app: Flask, count: int) -> None:
    """What they say of address, scheme and host; with it cookies are Secure behind TLS, and limits go by caller."""
    app.wsgi_app = ProxyFix(app.wsgi_app, x_for=count, x_proto=count, x_host=count)  # type: ignore[method-assign]
