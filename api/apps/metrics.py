"""`/metrics` for Prometheus: the instance (metrics_families.py), and what this server answered, by route and status.

Open to callers on this machine; to others with `server.metrics_token`. What the names mean is in docs/metrics.md."""

from __future__ import annotations

import hmac
import ipaddress
import time

from flask import Blueprint, Flask, Response, current_app, g, request
from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from api.apps.metrics_families import InstanceCollector
from api.apps.services import Services, services

bp = Blueprint("metrics", __name__)

_KEY = "pagemill.metrics"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
# What a proxy on this machine adds to what comes from elsewhere.
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class HttpMetrics:
    """By the route and not by the path, so that there are no more series than routes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        labels = ("method", "route")
        self.answers = Counter(
            "pagemill_http_requests", "Requests that were answered.", (*labels, "status"), registry=registry
        )
        self.seconds = Histogram(
            "pagemill_http_request_seconds",
            "Time until the answer began; of a stream, not until its end.",
            labels,
            buckets=_BUCKETS,
            registry=registry,
        )


def register(app: Flask, box: Services) -> None:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(InstanceCollector(box))
    app.extensions[_KEY] = HttpMetrics(registry)
    app.after_request(_count)
    app.register_blueprint(bp)


@bp.get("/metrics")
def metrics() -> Response:
    if refusal := _refusal():
        return refusal
    return Response(generate_latest(_metrics().registry), content_type=CONTENT_TYPE_LATEST)


def _refusal() -> Response | None:
    wanted = services().settings.server.metrics_token.get_secret_value()
    if wanted:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode()):
            return None
        answer = Response("the bearer token of server.metrics_token is needed\n", 401, mimetype="text/plain")
        answer.headers["WWW-Authenticate"] = "Bearer"
        return answer
    if _is_local():
        return None
    return Response("set server.metrics_token to read this from another machine\n", 403, mimetype="text/plain")


def _is_local() -> bool:
    """A caller on this machine, and no proxy that speaks for somebody else."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        return ipaddress.ip_address(request.remote_addr or "").is_loopback
    except ValueError:
        return False


def _metrics() -> HttpMetrics:
    found: HttpMetrics = current_app.extensions[_KEY]
    return found


def _count(response: Response) -> Response:
    route = request.url_rule.rule if request.url_rule else "(no route)"
    method = request.method if request.method in _METHODS else "(other)"
    found = _metrics()
    found.answers.labels(method, route, str(response.status_code)).inc()
    if "started_s" in g:
        found.seconds.labels(method, route).observe(time.monotonic() - g.started_s)
    return response
