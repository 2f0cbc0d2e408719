"""An address with a slash too many, as a client makes it whose base address ends in one, is the address without it.
Flask would send such a client elsewhere, by a page that no program reads."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from flask import Flask

_SLASHES = re.compile("//+")


def register(app: Flask) -> None:
    inner = app.wsgi_app

    def with_single_slashes(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if "//" in environ.get("PATH_INFO", ""):
            environ["PATH_INFO"] = _SLASHES.sub("/", environ["PATH_INFO"])
        return inner(environ, start_response)

    app.wsgi_app = with_single_slashes  # type: ignore[method-assign]
