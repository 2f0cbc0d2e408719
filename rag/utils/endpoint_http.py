"""One call to the endpoint of a model: POST {url}/embeddings, or another path for another kind. Says in plain words
what went wrong, and what a task should do about it. What is asked, and what the answer means, is in
endpoint_embedder.py and endpoint_reranker.py.

The key goes into the request's header and nowhere else: not into a log, and not into an error."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import urllib3
from urllib3.exceptions import (
    EmptyPoolError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    SSLError,
)
from urllib3.exceptions import TimeoutError as Urllib3Timeout

from common.errors import EmbeddingRefused, EmbeddingUnavailable, Outage, PagemillError, SettingsError
from common.settings import EmbeddingSettings, RerankSettings
from common.turns import stepping_aside
from common.version import VERSION

LONGEST_RETRY_AFTER_S = 900.0
_CONNECT_S = 10.0
_PIECE_BYTES = 1 << 16
_MOST_ANSWER_BYTES = 256 << 20
_MOST_SAID = 300
# So many characters of a key in a row are not told. Endpoints show four of them to say which key they speak of.
_TOLD_OF_KEY = 8
_SIZES = r"(tokens?|context|length|inputs?|texts?|batch|sequence|array)"
_EXCESS = r"(too (many|long|large)|exceed|(larger|longer|less|fewer) than|at most|max(imum)?\b)"
_TOO_MUCH = re.compile(rf"{_EXCESS}.{{0,80}}{_SIZES}|{_SIZES}.{{0,80}}{_EXCESS}", re.IGNORECASE | re.DOTALL)
# What llama.cpp says of a text that is too long, with the status of an error of its own.
_TOO_LARGE = re.compile(r"input.{0,60}too (large|long)", re.IGNORECASE | re.DOTALL)
_REMEDIES = {
    401: "check {}.api_key",
    403: "check {}.api_key, and what it may be used for",
    404: "check {}.url and {}.model",
}


@dataclass(frozen=True)
class Endpoint:
    """A kind of endpoint: its section of the settings, its path, what it is called, and which errors tell of it."""

    section: str
    path: str
    called: str
    unavailable: type[Outage]
    refused: type[PagemillError]


EMBEDDING = Endpoint("embedding", "/embeddings", "the embedding endpoint", EmbeddingUnavailable, EmbeddingRefused)


class TooMuch(Exception):
    """The endpoint takes less in one call. `refusal` is the error where less can't be asked."""

    def __init__(self, refusal: PagemillError) -> None:
        super().__init__(refusal.public_message)
        self.refusal = refusal


@dataclass(frozen=True)
class _Pause:
    """While the endpoint wants to be left alone, it is: whoever comes meanwhile hears why, and how long."""

    until_s: float = 0.0
    why: str = ""

    @property
    def left_s(self) -> float:
        return self.until_s - time.monotonic()


class EndpointClient:
    """Thread-safe. Connections are kept open; no more are under way at once than the settings allow."""

    def __init__(self, settings: EmbeddingSettings | RerankSettings, endpoint: Endpoint = EMBEDDING) -> None:
        """Connects to nothing. Raises SettingsError for an address or a key that can't be used."""
        self._endpoint = endpoint
        self._address = _address(settings.url, endpoint)
        self._key = read_key(settings, endpoint.section)
        self._timeout_s = settings.timeout_s
        self._most = settings.max_concurrent_requests
        self._headers = {"Content-Type": "application/json", "User-Agent": f"pagemill/{VERSION}"}
        if self._key:
            self._headers["Authorization"] = f"Bearer {self._key}"
        self._pool = urllib3.PoolManager(num_pools=1, maxsize=self._most, block=True)
        self._pause = _Pause()

    def post(self, body: bytes, within_s: float | None = None) -> bytes:
        """The body of the answer. `within_s` is what the caller has left for the whole call; the time of the settings
        counts anew once the answer begins. Raises TooMuch, or an error of the endpoint's kind."""
        pause, timeout_s, began_s = self._pause, within_s or self._timeout_s, time.monotonic()
        if pause.left_s > 0:
            raise self._endpoint.unavailable(pause.why, pause.left_s)
        try:
            with stepping_aside():
                response = self._send(body, timeout_s)
                try:
                    answer = self._read(response, (began_s if within_s else time.monotonic()) + timeout_s)
                finally:
                    response.release_conn()
        except HTTPError as exc:
            raise self._endpoint.unavailable(f"{self._endpoint.called} {self._cause(exc)}") from exc
        if response.status == 200:
            return answer
        raise self._refused(response, self._said(answer))

    def _send(self, body: bytes, timeout_s: float) -> urllib3.BaseHTTPResponse:
        """A connection that was kept open may be closed just as it is used: this is tried once more, on a new one."""
        try:
            return self._request(body, timeout_s)
        except ProtocolError:
            return self._request(body, timeout_s)

    def _request(self, body: bytes, timeout_s: float) -> urllib3.BaseHTTPResponse:
        return self._pool.request(
            "POST",
            self._address,
            body=body,
            headers=self._headers,
            timeout=urllib3.Timeout(connect=min(_CONNECT_S, timeout_s), read=timeout_s),
            pool_timeout=timeout_s,
            retries=False,
            redirect=False,  # the key is for this host alone
            preload_content=False,
        )

    def _read(self, response: urllib3.BaseHTTPResponse, deadline_s: float) -> bytes:
        """All of it, unless it comes too slowly or is too long. A connection with something left is closed."""
        pieces: list[bytes] = []
        size = 0
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > _MOST_ANSWER_BYTES or time.monotonic() > deadline_s:
                response.close()
                what = "gave an answer without end" if size > _MOST_ANSWER_BYTES else self._too_slow
                raise self._endpoint.unavailable(f"{self._endpoint.called} {what}")
        return b"".join(pieces)

    def _refused(self, response: urllib3.BaseHTTPResponse, said: str) -> PagemillError | TooMuch:
        status = response.status
        text = f"{self._endpoint.called} answered {status}" + (f": {said}" if said else "")
        if _is_too_much(status, said):
            return TooMuch(self._endpoint.refused(text))
        if status in (408, 425, 429) or status >= 500:
            wait_s = retry_after_s(response.headers.get("Retry-After"), datetime.now(UTC))
            if wait_s:
                self._pause = _Pause(time.monotonic() + wait_s, text)
            return self._endpoint.unavailable(text, wait_s)
        remedy = "it has moved: check {}.url" if 300 <= status < 400 else _REMEDIES.get(status, "")
        hint = remedy.replace("{}", self._endpoint.section)
        return self._endpoint.refused(f"{text}; {hint}" if hint else text)

    def _said(self, answer: bytes) -> str:
        """What the endpoint gave as its reason: short, on one line, without the key."""
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):
            found = answer.decode("utf-8", "replace")
        for name in ("error", "message", "detail"):
            if isinstance(found, dict) and name in found:
                found = found[name]
        text = found if isinstance(found, str) else json.dumps(found)
        text = without_key(text, self._key)
        text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return text if len(text) <= _MOST_SAID else f"{text[: _MOST_SAID - 1]}…"

    def _cause(self, exc: HTTPError) -> str:
        match exc:
            case NameResolutionError():
                return "can't be reached: its host is not known"
            case NewConnectionError():
                reason = exc.__cause__.strerror if isinstance(exc.__cause__, OSError) else None
                return f"can't be reached: {reason or 'no connection'}"
            case Urllib3Timeout():
                return self._too_slow
            case EmptyPoolError():
                return f"has {self._most} calls under way, and none ended in time"
            case SSLError():
                return f"can't be trusted: {exc}"
            case ProtocolError():
                return "closed the connection before its answer was complete"
            case _:
                return f"gave an answer that can't be read ({type(exc).__name__})"

    @property
    def _too_slow(self) -> str:
        return f"did not answer within {self._timeout_s:g} s"


def _is_too_much(status: int, said: str) -> bool:
    if status in (400, 422):
        return _TOO_MUCH.search(said) is not None
    return status == 413 or (status == 500 and _TOO_LARGE.search(said) is not None)


def read_key(settings: EmbeddingSettings | RerankSettings, section: str) -> str:
    """The endpoint's key; empty where it needs none. Raises SettingsError, which never tells the key."""
    key = settings.api_key.get_secret_value()
    if not key and settings.api_key_file:
        try:
            key = Path(settings.api_key_file).read_text(encoding="utf-8")
        except OSError as exc:
            raise SettingsError(f"{section}.api_key_file = {settings.api_key_file!r}: {exc.strerror}") from exc
        except UnicodeDecodeError:
            raise SettingsError(f"{section}.api_key_file = {settings.api_key_file!r}: it holds no text") from None
    key = key.strip()
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise SettingsError(f"{section}.api_key: allowed: letters, digits and signs of ASCII, without blanks")
    return key


def without_key(text: str, key: str) -> str:
    """Also where only a part of it is told, or it is written as JSON or an address would write it."""
    forms = {form for form in (key, json.dumps(key)[1:-1], quote(key, safe="")) if form}
    for written in forms:
        text = text.replace(written, "***")
    for written in forms:
        start = 0
        while len(written) - start >= min(_TOLD_OF_KEY, len(written)) > 0:
            size = min(_TOLD_OF_KEY, len(written))
            if written[start : start + size] not in text:
                start += 1
                continue
            while start + size < len(written) and written[start : start + size + 1] in text:
                size += 1
            text = text.replace(written[start : start + size], "***")
            start += size
    return text


def retry_after_s(header: str | None, now: datetime) -> float | None:
    """What Retry-After asks for, in seconds or as a date, bounded; None where that is no time to come."""
    if header is None:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit():
        wait_s = float(header[:9])
    else:
        try:
            at = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return None
        wait_s = ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds()
    return min(wait_s, LONGEST_RETRY_AFTER_S) if wait_s > 0 else None


def _address(url: str, endpoint: Endpoint) -> str:
    """Where it is asked. A query, as some endpoints want one, stays behind the path."""
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError as exc:
        raise SettingsError(f"{endpoint.section}.url: {exc}") from exc
    if not has_host:
        raise SettingsError(f"{endpoint.section}.url: allowed: an address with a host, such as https://host/v1")
    if parts.username or parts.password:
        key = f"{endpoint.section}.api_key"
        raise SettingsError(f"{endpoint.section}.url: allowed: an address without a password; a key goes into {key}")
    path = parts.path.rstrip("/")
    if not path.endswith(endpoint.path):
        path += endpoint.path
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))
