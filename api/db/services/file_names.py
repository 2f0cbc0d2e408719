"""Which names a document may come in under, by REST and by the command line alike. Pure.

How names are compared, and what becomes of one that is taken, is known to naming.py."""

from __future__ import annotations

import unicodedata

from api.db.services.file_types import type_of
from common.errors import InvalidInput

MAX_FILE_NAME_BYTES = 255
UNSUPPORTED = "This type of file has not been supported yet!"
_MAX_SHOWN = 128


def has_control_characters(value: str) -> bool:
    """Or halves of surrogate pairs, which no store takes either."""
    return any(unicodedata.category(char) in ("Cc", "Cs") for char in value)


def require_file_name(name: str) -> None:
    """Raises InvalidInput: a path is refused, not cut down to its end."""
    if not name:
        raise InvalidInput("No file selected!")
    shown = name if len(name) <= _MAX_SHOWN else name[: _MAX_SHOWN - 3] + "..."
    if "/" in name or "\\" in name or name in (".", ".."):
        raise InvalidInput(f"File name must be a plain name, without a path: {shown}")
    if has_control_characters(name):
        raise InvalidInput(f"File name must not have control characters: {shown}")
    if len(name.encode()) > MAX_FILE_NAME_BYTES:
        raise InvalidInput(f"File name must be {MAX_FILE_NAME_BYTES} bytes or less.")


def require_supported(name: str) -> None:
    """Raises InvalidInput for an extension that is not taken."""
    if type_of(name) is None:
        raise InvalidInput(UNSUPPORTED)
