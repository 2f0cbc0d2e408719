"""A page's answer: its template with what every page knows, and the headers that keep it to itself."""

from __future__ import annotations

from flask import Response, g, make_response, render_template

from api.apps.browser_sessions import csrf_token, session_token
from api.apps.services import services
from api.apps.ui.navigation import sections
from api.db.services.user_service import UserView

# require-trusted-types-for: no text becomes markup, whatever a script of ours does with it.
_CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self';"
    " object-src 'none'; frame-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self';"
    " require-trusted-types-for 'script'"
)
_HEADERS = {
    "Content-Security-Policy": _CSP,
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "private, no-store",
}


def render_page(template: str, **context: object) -> Response:
    """`template` extends layout.html; what it gets is escaped. No row is read: an outage of them is told by it too."""
    person: UserView | None = g.get("person")
    token = session_token() if person else ""
    page = render_template(
        template,
        person=person,
        sections=sections(is_admin=person.is_superuser) if person else (),
        section=g.get("section", ""),
        csrf_token=csrf_token(token) if token else "",
        version=services().version,
        **context,
    )
    return with_headers(make_response(page))


def with_headers(response: Response) -> Response:
    response.headers.update(_HEADERS)
    return response
