"""Jobs and datasets followed as they go: Server-Sent Events, and a WebSocket. A request is checked as any other; then
its connection is handed to the live room, and the thread that answered it is free."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, cast

from flask import Blueprint, Flask, Response, current_app, request

from api.apps import problems
from api.apps.access import tenant_of_document, usable
from api.apps.auth import given_key, require_caller, sign_in_by
from api.apps.job_json import job_json
from api.apps.job_requests import FollowQuery, last_event_id
from api.apps.jobs import jobs
from api.apps.openapi.operation import Surface, describe, undescribed
from api.apps.problems import Problem
from api.apps.services import Services
from api.db.services.job_changes import JobChanges
from api.live.framing import Ending
from api.live.sse import SseFraming
from api.live.takeover import take_over
from api.live.watch import Watch
from api.live.websocket import WebSocketFraming, accept_token
from common.errors import NotFound, Outage, Unauthorized

bp = Blueprint("job_events", __name__)
problems.register(bp)
socket_bp = Blueprint("job_sockets", __name__)
problems.register(socket_bp)

_TAG = "Events"
_SSE = ("text/event-stream",)
_KEY = "pagemill.live"
_SOCKET = "gunicorn.socket"
_EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
Follow = Callable[[socket.socket, bytes], None]


def register(app: Flask, box: Services) -> None:
    """Nothing is opened and no thread starts before somebody follows."""
    app.extensions[_KEY] = Watch(JobChanges(box.datasets.rows, box.settings.tasks), job_json)


def close(app: Flask) -> None:
    """The server stops: followers are told so."""
    cast(Watch, app.extensions[_KEY]).close()


def _watch() -> Watch:
    return cast(Watch, current_app.extensions[_KEY])


class HandedOver(Response):
    """An answer whose head is written, with all that follows, by whoever takes the connection. It comes out of the app
    as any other, so that the log and the headers of every answer see it."""

    def __init__(self, status: int, headers: dict[str, str], follow: Follow) -> None:
        super().__init__(status=status, headers=headers)
        self.headers.pop("Content-Length", None)
        if status == HTTPStatus.SWITCHING_PROTOCOLS:
            self.headers.pop("Content-Type", None)
        self._follow = follow

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        lines = [f"HTTP/1.1 {self.status}", *(f"{name}: {value}" for name, value in self.headers.items()), "", ""]
        self._follow(take_over(environ[_SOCKET]), "\r\n".join(lines).encode("latin-1"))
        raise StopIteration  # gunicorn's word for a connection that is not its own any more


@bp.before_request
def _require_caller() -> None:
    """A browser's EventSource can send no header: the key may be a parameter."""
    if given_key() or not request.args.get("token"):
        require_caller()
    else:
        sign_in_by(request.args["token"])


@bp.get("/jobs/<job_id>/events")
@describe(
    _TAG,
    "Follow a job",
    note="Server-Sent Events: each is the whole job. The stream ends with its final state; 204 where that is known.",
    surface=Surface.PROBLEM,
    query=FollowQuery,
    media=_SSE,
    statuses=(204, 400, 501),
)
def follow_job(job_id: str) -> Response:
    job = jobs().get(tenant_of_document(job_id), job_id)
    since_ms = last_event_id()
    if job.is_final and since_ms is not None and since_ms >= job.update_ms:
        return Response(status=HTTPStatus.NO_CONTENT)  # an EventSource does not come again after it
    watch = _watch()
    return _stream(lambda sock, head: watch.follow_job(sock, head, SseFraming(), job_id))


@bp.get("/datasets/<dataset_id>/events")
@describe(
    _TAG,
    "Follow all documents of a dataset",
    note="Server-Sent Events, without an end.",
    surface=Surface.PROBLEM,
    query=FollowQuery,
    media=_SSE,
    statuses=(400, 501),
)
def follow_dataset(dataset_id: str) -> Response:
    usable(dataset_id)
    since_ms = last_event_id()
    watch = _watch()
    return _stream(lambda sock, head: watch.follow_dataset(sock, head, SseFraming(), dataset_id, since_ms))


def _stream(follow: Follow) -> Response:
    if request.method == "HEAD":
        return Response(headers=_EVENT_STREAM)
    if _watch().is_closed:  # another worker has taken over: who comes again gets there
        return Response(SseFraming().ending(Ending.STOPPING), headers=_EVENT_STREAM)
    _require_room()
    return HandedOver(HTTPStatus.OK, {**_EVENT_STREAM, "Connection": "close", "X-Accel-Buffering": "no"}, follow)


def _require_connection() -> None:
    if _SOCKET not in request.environ:
        raise Problem(HTTPStatus.NOT_IMPLEMENTED, "no_streams", "this web server can't keep a connection open")


def _require_room() -> None:
    _require_connection()
    if not _watch().has_room:
        detail = "as many follow already as this server can serve: come back later"
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, "too_many_followers", detail, headers={"Retry-After": "5"})


@socket_bp.get("/ws/jobs/<job_id>")
@describe(
    _TAG,
    "Follow a job by WebSocket",
    note="One text message a state. The close code says why it ends: 1000 the job has ended; 1011, 1013 come back"
    " later; 1012 the server stops; 4400, 4401, 4404 a wrong id of an event, key or job.",
    surface=Surface.PROBLEM,
    query=FollowQuery,
    status=101,
    statuses=(426, 501),
)
def refuse_plain_request(job_id: str) -> Response:
    raise _upgrade_required()


@socket_bp.get("/ws/jobs/<job_id>", websocket=True)
@undescribed("the same address as a WebSocket")
def follow_by_socket(job_id: str) -> Response:
    """A browser can't see why a handshake is refused: so it is accepted, and closed with a code that says why."""
    key = request.headers.get("Sec-WebSocket-Key", "")
    if not key or request.headers.get("Sec-WebSocket-Version") != "13":
        raise _upgrade_required()
    _require_connection()
    watch, framing = _watch(), WebSocketFraming()
    why = _objection(job_id)

    def follow(sock: socket.socket, head: bytes) -> None:
        if why is None:
            watch.follow_job(sock, head, framing, job_id)
        else:
            watch.refuse(sock, head, framing, why)

    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": accept_token(key)}
    return HandedOver(HTTPStatus.SWITCHING_PROTOCOLS, headers, follow)


def _upgrade_required() -> Problem:
    detail = "this address speaks WebSocket (RFC 6455, version 13) only"
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    return Problem(HTTPStatus.UPGRADE_REQUIRED, "upgrade_required", detail, headers=headers)


def _objection(job_id: str) -> Ending | None:
    try:
        _require_caller()
        last_event_id()
        jobs().get(tenant_of_document(job_id), job_id)
    except Unauthorized:
        return Ending.UNAUTHORIZED
    except NotFound:
        return Ending.UNKNOWN
    except Problem:
        return Ending.UNREADABLE
    except Outage:
        return Ending.UNAVAILABLE
    return None if _watch().has_room else Ending.OVERLOADED
