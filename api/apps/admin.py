"""What operators see and ask for, under /admin: executors, queues, health, history, settings. For administrators only;
plain HTTP, errors as problems. Failed tasks and users have modules of their own."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Literal

from flask import Blueprint, Response, jsonify, request

from api.apps import problems
from api.apps.admin_json import executors_json, groups_json, health_json, history_json, queue_json
from api.apps.auth import caller, require_caller
from api.apps.openapi.operation import Surface, describe
from api.apps.problems import FieldError, Problem, wrong_fields
from api.apps.requests import Loose, params
from api.apps.services import services
from api.apps.shapes.admin import History, Ordered, Overview, Setting
from common.errors import QueueUnavailable

_SPANS = {"30m": 30, "24h": 24 * 60}
TAG = "Administration"
_PROBLEM = Surface.PROBLEM
FORBIDDEN = (int(HTTPStatus.FORBIDDEN),)


class HistoryQuery(Loose):
    span: Literal["30m", "24h"] = "30m"


def require_admin() -> None:
    """A blueprint's before_request, behind `require_caller`."""
    if request.method != "OPTIONS" and not caller().is_superuser:
        raise Problem(HTTPStatus.FORBIDDEN, "forbidden", "this is for administrators only")


def admin_blueprint(name: str) -> Blueprint:
    made = Blueprint(name, __name__)
    problems.register(made)
    made.before_request(require_caller)
    made.before_request(require_admin)
    return made


bp = admin_blueprint("admin")


@bp.get("/admin/overview")
@describe(TAG, "Health, executors, queues, failures", surface=_PROBLEM, answer=Overview, statuses=FORBIDDEN)
def overview() -> Response:
    """All that the overview shows, in one call: it is asked for every other second."""
    return jsonify(overview_facts())


@bp.get("/admin/history")
@describe(
    TAG,
    "What ended, by the minute",
    surface=_PROBLEM,
    query=HistoryQuery,
    answer=History,
    statuses=(*FORBIDDEN, 422),
)
def history() -> Response:
    """Tasks that ended, pages and chunks by the minute, over `span`: 30m or 24h."""
    span = params().get("span", "30m")
    if span not in _SPANS:
        raise wrong_fields(FieldError("span", f"allowed: {', '.join(_SPANS)}"))
    return jsonify(history_facts(span))


@bp.get("/admin/settings")
@describe(TAG, "The settings in force", surface=_PROBLEM, answer=list[Setting], statuses=FORBIDDEN)
def settings() -> Response:
    """As they were read at this server's start; secrets are masked."""
    found = services().settings.effective
    return jsonify([{"key": one.key, "value": one.value, "source": one.source} for one in found])


@bp.post("/admin/executors/<path:name>/drain")
@describe(TAG, "Let an executor take nothing new", surface=_PROBLEM, answer=Ordered, statuses=(*FORBIDDEN, 400))
def drain(name: str) -> Response:
    """Take nothing new, finish what is in hand, then stay idle until it is resumed."""
    services().executor_orders.drain(name, _who())
    return _ordered(name)


@bp.post("/admin/executors/<path:name>/resume")
@describe(TAG, "Let an executor go on", surface=_PROBLEM, answer=Ordered, statuses=(*FORBIDDEN, 400))
def resume(name: str) -> Response:
    services().executor_orders.resume(name)
    return _ordered(name)


@bp.post("/admin/executors/<path:name>/restart")
@describe(TAG, "Let an executor start again", surface=_PROBLEM, answer=Ordered, statuses=(*FORBIDDEN, 400))
def restart(name: str) -> Response:
    """Drain, then leave; who supervises it starts it again."""
    services().executor_orders.restart(name, _who())
    return _ordered(name)


def overview_facts() -> dict[str, Any]:
    box = services()
    return {
        "now_ms": box.tallies.now_ms(),
        "version": box.version,
        "health": health_json(box.health_watch.look()),
        "executors": executors_json(box.executor_view.look()),
        "queue": _queue(),
        "failed": groups_json(box.failed_kept.get()),
    }


def history_facts(span: str) -> dict[str, Any]:
    now_ms = services().tallies.now_ms()
    tallies, now_minute = services().tallies.by_minute(_SPANS[span])
    return {"span": span, "now_ms": now_ms} | history_json(tallies, now_minute)


def _ordered(name: str) -> Response:
    order = services().executor_orders.all().get(name)
    return jsonify({"name": name, "wanted": str(order.wanted) if order else ""})


def _who() -> str:
    person = services().users.get(caller().user_id)
    return person.email if person else ""


def _queue() -> dict[str, Any]:
    """By the rows; what stands in the streams only while Redis answers."""
    found = services().queue_kept.get()
    try:
        return queue_json(found, services().streams(), "")
    except QueueUnavailable as exc:
        return queue_json(found, (), exc.public_message)
