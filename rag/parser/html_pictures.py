"""Images that are in an HTML page itself, as `data:` addresses: which there are, and the bytes of one of them."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes

# Images smaller than this are spacers and dots.
_MIN_CHARS = 512
_SCHEME = "data:image/"
_NO_PIXELS = "svg"
_NAME = "data:"


class InlinePictures:
    """Counts the images that are in the page: the first is `data:1`. Others are never looked for.

    The address of the one that is called `wanted` is kept in `address`."""

    def __init__(self, wanted: str = "") -> None:
        self.address = ""
        self._wanted = wanted
        self._seen = 0

    def find(self, address: str) -> str:
        """The name of the image at an address; "" for one that is elsewhere, or is no figure."""
        if not address[: len(_SCHEME)].lower().startswith(_SCHEME):
            return ""
        self._seen += 1
        # Drawings that are made of lines are icons, and nothing here draws them.
        if len(address) < _MIN_CHARS or address[len(_SCHEME) :].lower().startswith(_NO_PIXELS):
            return ""
        name = f"{_NAME}{self._seen}"
        if name == self._wanted:
            self.address = address
        return name


def content(address: str) -> bytes:
    """The bytes of a `data:` address. Raises ValueError where it has none."""
    head, comma, body = address.partition(",")
    if not comma:
        raise ValueError("the address ends before its data")
    data = unquote_to_bytes(body)
    if not head.lower().rstrip().endswith(";base64"):
        return data
    letters = b"".join(data.split()).rstrip(b"=")
    try:
        return base64.b64decode(letters + b"=" * (-len(letters) % 4))
    except binascii.Error as exc:
        raise ValueError("the data are not in base 64") from exc
