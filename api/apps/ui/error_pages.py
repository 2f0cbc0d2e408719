"""Refusals and failures as pages for people: what happened, what to do now, and the request's id for whoever reads the
log. The REST API's own shapes of an error are envelope's and problems'."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from http import HTTPStatus

from flask import Blueprint, Flask, Response, g, request
from werkzeug.exceptions import HTTPException, NotFound

from api.apps import envelope
from api.apps.problems import Problem, no_route, problem_of
from api.apps.ui.rendering import render_page
from common import errors

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Told:
    status: int
    title: str
    text: str


_TITLES = {
    HTTPStatus.FORBIDDEN: "This is not allowed",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "This is too large",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many tries",
    HTTPStatus.SERVICE_UNAVAILABLE: "A part of the server is away",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong",
}
_NOTHING_HERE = "No such page, or it belongs to somebody else. It may also have been deleted."


def register_in(blueprint: Blueprint) -> None:
    blueprint.register_error_handler(errors.PagemillError, _known)
    blueprint.register_error_handler(Problem, _problem)
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(Exception, _uncaught)


def register(app: Flask) -> None:
    """For addresses that no page has. Programs are answered as before."""
    app.register_error_handler(NotFound, _no_route)


def _no_route(error: NotFound) -> Response:
    is_page = not request.path.startswith(envelope.API_PATHS) and request.accept_mimetypes.accept_html
    wants_page = is_page and request.accept_mimetypes["text/html"] > request.accept_mimetypes["application/json"]
    return _http(error) if wants_page else no_route(error)


def _known(error: errors.PagemillError) -> Response:
    if isinstance(error, errors.Outage):
        log.warning("request %s: %s: %s", g.request_id, error.code, error.public_message)
    return _problem(problem_of(error))


def _problem(problem: Problem) -> Response:
    text = _NOTHING_HERE if problem.status == HTTPStatus.NOT_FOUND else problem.detail
    response = _page(int(problem.status), text)
    response.headers.update(problem.headers)
    response.headers.pop("WWW-Authenticate", None)  # a browser would ask for a key
    return response


def _http(error: HTTPException) -> Response:
    status = error.code or int(HTTPStatus.INTERNAL_SERVER_ERROR)
    text = _NOTHING_HERE if status == HTTPStatus.NOT_FOUND else error.description or ""
    return _page(status, text)


def _uncaught(error: Exception) -> Response:
    log.error("request %s failed", g.request_id, exc_info=error)
    return _page(int(HTTPStatus.INTERNAL_SERVER_ERROR), "The server's log has what happened, under the number below.")


def _page(status: int, text: str) -> Response:
    told = Told(status, _TITLES.get(HTTPStatus(status), HTTPStatus(status).phrase), _sentence(text))
    response = render_page("error.html", told=told, request_id=g.request_id)
    response.status_code = status
    return response


def _sentence(text: str) -> str:
    """As the first word of a sentence; the errors' own words begin small."""
    return text[:1].upper() + text[1:]
