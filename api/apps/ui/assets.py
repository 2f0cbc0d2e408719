"""Stylesheets, scripts and pictures of the pages, under an address that names their content: browsers keep them for
good, and ask again only when a file has changed. Imports between modules are relative, so they stay in one version."""

from __future__ import annotations

import hashlib
from pathlib import Path

from flask import Blueprint, Flask, Response, current_app, send_from_directory, url_for

bp = Blueprint("ui_assets", __name__)

_KEY = "pagemill.assets"
_KEPT_S = 365 * 24 * 3600


def register(app: Flask) -> None:
    assert app.static_folder is not None
    app.extensions[_KEY] = _version(Path(app.static_folder))
    app.register_blueprint(bp)
    app.add_template_global(asset_url, "asset")


def asset_url(name: str) -> str:
    """The address of a file under static/, such as `js/api.js`."""
    return url_for("ui_assets.asset", version=current_app.extensions[_KEY], name=name)


@bp.get("/assets/<version>/<path:name>")
def asset(version: str, name: str) -> Response:
    assert current_app.static_folder is not None
    is_current = version == current_app.extensions[_KEY]
    answer = send_from_directory(current_app.static_folder, name, max_age=_KEPT_S if is_current else 0)
    if is_current:
        answer.cache_control.immutable = True
    return answer


def _version(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
