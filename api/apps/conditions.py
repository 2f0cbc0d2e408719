"""Under which conditions a file is wanted, and which part of it (RFC 9110): what a request says of both, put such that
werkzeug, which takes every header that it can't read for a part that is not there, does as the RFC says."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from flask import request

from api.apps.problems import Problem

_OURS = ("HTTP_IF_MATCH", "HTTP_IF_RANGE", "HTTP_RANGE")


def conditions_for(etag: str, size_bytes: int) -> dict[str, Any]:
    """The environ by which the answer is made. Problem where the file is another one, or ends before the part."""
    if request.if_match and not request.if_match.contains(etag):
        raise Problem(HTTPStatus.PRECONDITION_FAILED, "precondition_failed", "The file is not the one of If-Match")
    environ = {name: value for name, value in request.environ.items() if name not in _OURS}
    if request.if_none_match.contains_weak(etag):
        return environ
    part = _part(etag, size_bytes)
    if part is not None:
        environ["HTTP_RANGE"] = f"bytes={part[0]}-{part[1]}"
    return environ


def _part(etag: str, size_bytes: int) -> tuple[int, int] | None:
    """The first and the last byte. None: all of it, as for whoever asks for several parts, or for none that is one."""
    wanted = request.range
    if request.method != "GET" or wanted is None or wanted.units != "bytes" or len(wanted.ranges) != 1:
        return None
    if "If-Range" in request.headers and request.if_range.etag != etag:
        return None
    first, end = wanted.ranges[0]
    if first < 0:
        return max(size_bytes + first, 0), size_bytes - 1
    if first >= size_bytes:
        message = f"The file has {size_bytes} bytes, and ends before the part that Range asks for"
        headers = {"Content-Range": f"bytes */{size_bytes}"}
        raise Problem(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "range_not_satisfiable", message, headers=headers)
    return first, min(end or size_bytes, size_bytes) - 1
