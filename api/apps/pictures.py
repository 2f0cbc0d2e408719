"""Pictures of a document: its pages, and the figures on them or inside it. Always PNG, drawn by another process."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from threading import BoundedSemaphore
from typing import Annotated

import msgspec
from flask import Blueprint, Response, request
from PIL import Image
from pydantic import Field

from api.apps.access import usable
from api.apps.auth import require_caller
from api.apps.envelope import ARGUMENT, ApiError, plain
from api.apps.openapi.operation import describe
from api.apps.requests import Loose, params
from api.apps.services import services
from api.apps.shapes.chunks import PageFacts
from api.db.services.document_views import DocumentView
from api.db.services.task_plan import read_options
from common.errors import Backlogged
from rag.flow.digest import password_mark
from rag.parser.blocks import Box
from rag.parser.picture_process import MAX_WIDTH, MIN_WIDTH, SCALE_KEY, Shot, draw_one
from rag.utils.picture_cache import PictureCache

bp = Blueprint("pictures", __name__)
bp.before_request(require_caller)

# Raise it whenever the picture of an unchanged file may change: it goes into names and ETags.
_VERSION = 2
_WIDTH = 900
_MAX_NUMBER = 1_000_000
_MAX_PART_CHARS = 1000
_CACHE_CONTROL = "private, max-age=3600"
# Drawing takes a core: more at once would only make all of them late.
_DRAWING = BoundedSemaphore(2)
_WAIT_S = 20.0
_PNG = ("image/png",)
_Side = Annotated[int, Field(ge=0, le=_MAX_NUMBER, description="Points, from the upper left corner")]


class PagePicture(Loose):
    width: Annotated[int, Field(ge=0, le=_MAX_NUMBER, description="Pixels; brought into what can be drawn")] = _WIDTH


class FigurePicture(Loose):
    """`part`, or `page` and all four sides."""

    part: Annotated[str, Field(max_length=_MAX_PART_CHARS, description="A picture inside the document")] = ""
    page: _Side = 0
    left: _Side = 0
    right: _Side = 0
    top: _Side = 0
    bottom: _Side = 0
    width: Annotated[int, Field(ge=0, le=_MAX_NUMBER, description="Pixels; its own where it is not given")] = 0


@bp.get("/datasets/<dataset_id>/documents/<document_id>/pages/<int:page>.png")
@describe("Chunks", "The picture of a page", query=PagePicture, media=_PNG, statuses=(304,))
def page_picture(dataset_id: str, document_id: str, page: int) -> Response:
    document = _document(dataset_id, document_id)
    if page > _MAX_NUMBER:
        raise ApiError(ARGUMENT, f"`page` should be a number up to {_MAX_NUMBER}")
    return _send(document, Shot("", page=page, width=_width(_WIDTH)))


@bp.get("/datasets/<dataset_id>/documents/<document_id>/pictures")
@bp.get("/documents/images/<dataset_id>/documents/<document_id>/pictures")
@describe("Chunks", "The picture of a figure", query=FigurePicture, media=_PNG, statuses=(304,))
def figure(dataset_id: str, document_id: str) -> Response:
    """`part` names a picture inside a document; `page` and four sides, in points, a place on a page. The second address
    is the one that clients of RAGFlow make of a chunk's `image_id`."""
    document = _document(dataset_id, document_id)
    part = params().get("part", "")
    if len(part) > _MAX_PART_CHARS:
        raise ApiError(ARGUMENT, f"`part` has at most {_MAX_PART_CHARS} characters")
    if part:
        return _send(document, Shot("", part=part, width=_width(0)))
    page, left, right, top, bottom = (_number(key) for key in ("page", "left", "right", "top", "bottom"))
    return _send(document, Shot("", page=page, box=Box(page, left, right, top, bottom), width=_width(0)))


def _document(dataset_id: str, document_id: str) -> DocumentView:
    tenant_id = usable(dataset_id).tenant_id
    return services().documents.get(tenant_id, document_id, dataset_id)


def _number(key: str) -> int:
    given = params().get(key, "")
    if not given.isascii() or not given.isdecimal() or int(given[:9]) > _MAX_NUMBER or len(given) > 9:
        raise ApiError(ARGUMENT, f"`{key}` should be a number from 0 to {_MAX_NUMBER}")
    return int(given)


def _width(default: int) -> int:
    return max(MIN_WIDTH, min(MAX_WIDTH, _number("width"))) if params().get("width") else default


@bp.get("/datasets/<dataset_id>/documents/<document_id>/pages/<int:page>")
@describe("Chunks", "The size of a page, in the points of places", query=PagePicture, answer=PageFacts)
def page_facts(dataset_id: str, document_id: str, page: int) -> Response:
    """How large a page is, in the points that places of chunks are told in; its picture is drawn by then."""
    document = _document(dataset_id, document_id)
    if page > _MAX_NUMBER:
        raise ApiError(ARGUMENT, f"`page` should be a number up to {_MAX_NUMBER}")
    shot = Shot("", page=page, width=_width(_WIDTH))
    password = read_options(document.parser_config).password
    data = _drawn(document, shot, password, _name(shot, password, document.file_digest))
    width, height = _points(data)
    address = f"/api/v1/datasets/{dataset_id}/documents/{document_id}/pages/{page}.png?width={shot.width}"
    facts = {"page": page, "page_count": document.page_count, "width": width, "height": height, "picture": address}
    return plain(facts)


def _points(png: bytes) -> tuple[float, float]:
    with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
        scale = float(picture.info[SCALE_KEY])
        return round(picture.width / scale, 2), round(picture.height / scale, 2)


def _send(document: DocumentView, shot: Shot) -> Response:
    """What was drawn once is not drawn again; a caller that has it is told so without a look at the file."""
    password = read_options(document.parser_config).password
    name = _name(shot, password, document.file_digest)
    tag = f"{document.file_digest}-{name}"
    if request.if_none_match.contains(tag):
        response = Response(status=304)
    else:
        response = Response(_drawn(document, shot, password, name), mimetype="image/png")
    response.set_etag(tag)
    response.headers["Cache-Control"] = _CACHE_CONTROL
    response.headers["Content-Security-Policy"] = "default-src 'none'"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _drawn(document: DocumentView, shot: Shot, password: str, name: str) -> bytes:
    box = services()
    cache = PictureCache(box.settings.pictures_dir)

    def make(out: Path) -> None:
        if not _DRAWING.acquire(timeout=_WAIT_S):
            raise Backlogged("too many pictures are being drawn; try again in a while")
        try:
            with box.store.local_path(document.tenant_id, document.file_digest) as path:
                draw_one(path, document.name, msgspec.structs.replace(shot, out=str(out.absolute())), password)
        finally:
            _DRAWING.release()

    return cache.get(document.file_digest, name, make)


def _name(shot: Shot, password: str, file_digest: str) -> str:
    """The password counts: who has the same file without it must not be shown what another's opened."""
    parts = [f"v{_VERSION}"]
    if shot.part:
        parts.append(hashlib.sha256(shot.part.encode("utf-8", "replace")).hexdigest()[:32])
    else:
        parts.append(str(shot.page))
    if shot.box is not None:
        parts.append("_".join(map(str, (shot.box.left, shot.box.right, shot.box.top, shot.box.bottom))))
    parts.append(str(shot.width))
    if password:
        parts.append(password_mark(password, file_digest)[:32])
    return "-".join(parts)
