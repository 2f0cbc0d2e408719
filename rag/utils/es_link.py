"""The connection to Elasticsearch: made from settings, and its failures in our words. It never retries by itself: who
asks knows whether asking again is right."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch, UnsupportedProductError

from common.errors import IndexUnavailable, InvalidInput, SettingsError
from common.settings import IndexSettings
from common.turns import stepping_aside

_CONNECTIONS = 32
# An error of Elasticsearch may quote a whole chunk.
_LONGEST_REASON = 300
_BUSY = (429, 502, 503, 504)


class Link:
    """A client, lent as long as it is open. Opens nothing before the first request. Thread-safe."""

    def __init__(self, settings: IndexSettings) -> None:
        # It logs every request, and every failure that is reported by what we raise.
        logging.getLogger("elastic_transport").setLevel(logging.ERROR)
        parts = urlsplit(settings.url)
        self.address = _address(parts)
        self._client = Elasticsearch(
            self.address,
            request_timeout=settings.timeout_s,
            max_retries=0,
            retry_on_timeout=False,
            connections_per_node=_CONNECTIONS,
            **_credentials(settings, parts),
        )
        self._closed = False

    @contextlib.contextmanager
    def asking(self, timeout_s: float | None = None) -> Iterator[Elasticsearch]:
        """The client; what goes wrong in the block is raised as IndexUnavailable, or InvalidInput where the request
        itself was refused."""
        if self._closed:
            raise IndexUnavailable("the index is closed")
        client = self._client if timeout_s is None else self._client.options(request_timeout=timeout_s)
        try:
            with stepping_aside():
                yield client
        except BadRequestError as exc:
            raise InvalidInput(f"Elasticsearch refused a request: {reason_of(exc.body)}") from exc
        except UnsupportedProductError as exc:
            raise self.unavailable("what answers there is no Elasticsearch") from exc
        except ApiError as exc:
            raise self.unavailable(f"it answered {exc.status_code}: {reason_of(exc.body)}") from exc
        except TransportError as exc:
            raise self.unavailable(shortened(exc.message)) from exc

    def unavailable(self, why: str) -> IndexUnavailable:
        return IndexUnavailable(f"Elasticsearch at {self.address} can't be used: {why}")

    def close(self) -> None:
        self._closed = True
        self._client.close()


def will_pass(exc: ApiError) -> bool:
    """Whether another try may get another answer: it was too busy, a shard is on the move, a migration holds writes."""
    return exc.status_code in _BUSY or "cluster_block_exception" in reason_of(exc.body)


def reason_of(body: Any) -> str:
    """Why, out of the body of an error, or of what says that some of it failed: the innermost cause says it best."""
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict) and error.get("failures"):
        error = error["failures"][0].get("cause", error["failures"][0])
    while isinstance(error, dict):
        cause = error.get("caused_by") or next(iter(error.get("root_cause") or ()), None)
        if cause is None or cause == error:
            return shortened(f"{error.get('type', 'unknown error')}: {error.get('reason', '')}")
        error = cause
    return shortened(str(error))


def shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def _address(parts: SplitResult) -> str:
    """Without the user and password that it may carry."""
    try:
        port = parts.port or {"http": 9200, "https": 443}[parts.scheme]
    except ValueError as exc:
        raise SettingsError(f"index.url: {exc}") from exc
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}{parts.path.rstrip('/')}"


def _credentials(settings: IndexSettings, parts: SplitResult) -> dict[str, Any]:
    username = settings.username or unquote(parts.username or "")
    password = settings.password.get_secret_value() or unquote(parts.password or "")
    key = settings.api_key.get_secret_value()
    if key and username:
        raise SettingsError("index.api_key and index.username are both set: Elasticsearch takes one of them")
    found: dict[str, Any] = {}
    if key:
        found["api_key"] = key
    elif username:
        found["basic_auth"] = (username, password)
    if settings.ca_file and parts.scheme == "https":
        if not os.access(settings.ca_file, os.R_OK):
            raise SettingsError(f"index.ca_file = {settings.ca_file!r}: the file can't be read")
        found["ca_certs"] = settings.ca_file
    return found
