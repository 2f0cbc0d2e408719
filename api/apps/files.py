"""RAGFlow's file manager, which stands beside its datasets. Here every file belongs to a dataset, so there is none: its
routes say so, in its envelope."""

from __future__ import annotations

from flask import Blueprint, Response

from api.apps.auth import require_caller
from api.apps.envelope import DATA, ApiError, expect_full
from api.apps.openapi.operation import Surface, describe

bp = Blueprint("files", __name__)
bp.before_request(expect_full)
bp.before_request(require_caller)

_ROUTES = (
    ("/files", ("GET", "POST", "DELETE")),
    ("/files/<file_id>", ("GET",)),
    ("/files/move", ("POST",)),
    ("/files/link-to-datasets", ("POST",)),
    ("/file/upload", ("POST",)),
    ("/file/create", ("POST",)),
    ("/file/list", ("GET",)),
    ("/file/rm", ("POST",)),
    ("/file/mv", ("POST",)),
    ("/file/rename", ("POST",)),
    ("/file/convert", ("POST",)),
    ("/file/get/<file_id>", ("GET",)),
    ("/documents/upload", ("POST",)),
)


@describe("Files", "Not available", note="Every file belongs to a dataset: upload it there.", surface=Surface.FULL)
def not_available(file_id: str = "") -> Response:
    raise ApiError(DATA, "Files outside of datasets are not available: upload to /datasets/{id}/documents")


for _path, _methods in _ROUTES:
    bp.add_url_rule(_path, _path, not_available, methods=list(_methods))
