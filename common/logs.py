"""How every process writes its log: one line per event on stderr, for people or as JSON. A line names the request, the
document and the task that it is about, where there is one; keys and passwords are struck out of it."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from common.settings import LogSettings

_NOTHING: Mapping[str, str] = {}
_ids: ContextVar[Mapping[str, str]] = ContextVar("log_ids", default=_NOTHING)

# What is kept of each, and what is struck out behind it.
_SECRETS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(ragflow-)[\w-]{16,}",
        r"(\bbearer\s+)[^\s\"',]+",
        r"(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:\w+ +)?)[^\s\"',]+",
        r"(\b\w*(?:password|passwd|secret|token|api_?key)[\"']?\s*[:=]\s*[\"']?)[^\s\"'&,;}]+",
        r"(://[^\s:/@]*:)[^\s@/]+(?=@)",
    )
)


def now_about(*, request_id: str = "", document_id: str = "", task_id: str = "") -> None:
    """Lines of this thread carry these ids from now on, and no others; without any, none."""
    _ids.set(_given(request_id, document_id, task_id))


@contextmanager
def about(*, request_id: str = "", document_id: str = "", task_id: str = "") -> Iterator[None]:
    """Lines written inside carry these ids beside those from around, also in threads and tasks of trio begun there."""
    mark = _ids.set({**_ids.get(), **_given(request_id, document_id, task_id)})
    try:
        yield
    finally:
        _ids.reset(mark)


def without_secrets(text: str) -> str:
    """No line should hold one: this is for what libraries and errors of others bring along."""
    for pattern in _SECRETS:
        text = pattern.sub(r"\1***", text)
    return text


def set_up_logs(settings: LogSettings, role: str) -> None:
    """To be called once, at the start of a process. `role` stands in every line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(AddIds())
    handler.setFormatter(formatter(settings, role))
    logging.basicConfig(level=settings.level, handlers=[handler], force=True)
    logging.getLogger("pdfminer").setLevel(logging.ERROR)
    logging.getLogger("gunicorn.error").addFilter(_HAND_OVER)


def formatter(settings: LogSettings, role: str) -> logging.Formatter:
    return _JsonFormatter(role) if settings.format == "json" else _TextFormatter(role)


class AddIds(logging.Filter):
    """In the thread and task that writes the line: what happens to it later may happen elsewhere."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.__dict__["ids"] = _ids.get()
        return True


class _TextFormatter(logging.Formatter):
    def __init__(self, role: str) -> None:
        super().__init__(f"%(asctime)s {role.replace('%', '%%'):<12} %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        ids = "".join(f" {name}={value}" for name, value in _ids_of(record).items())
        return super().formatMessage(record) + ids

    def format(self, record: logging.LogRecord) -> str:
        return without_secrets(super().format(record))


class _JsonFormatter(logging.Formatter):
    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z",
            "level": record.levelname,
            "logger": record.name,
            "role": self._role,
            "pid": record.process,
            "message": without_secrets(record.getMessage()),
            **_ids_of(record),
            **_fields_of(record),
        }
        if record.exc_info:
            line["exception"] = without_secrets(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class _HandOver(logging.Filter):
    """The web server below ours has a handler and a form of its own: its lines are written as all others are."""

    def filter(self, record: logging.LogRecord) -> bool:
        logging.getLogger().handle(record)
        return False


_HAND_OVER = _HandOver()


def _given(request_id: str, document_id: str, task_id: str) -> dict[str, str]:
    ids = {"request_id": request_id, "document_id": document_id, "task_id": task_id}
    return {name: value for name, value in ids.items() if value}


def _ids_of(record: logging.LogRecord) -> Mapping[str, str]:
    return getattr(record, "ids", _NOTHING)


def _fields_of(record: logging.LogRecord) -> Mapping[str, object]:
    """What a line says in words, once more for programs: given as `extra={"fields": ...}`."""
    return getattr(record, "fields", {})
