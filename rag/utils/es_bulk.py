"""Bulk requests to Elasticsearch, and what became of each of their lines. Lines that it could not take just now are
sent again for a while; lines that it will never take are told apart and named."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from elasticsearch import ApiError

from rag.utils.es_link import Link, reason_of, will_pass

Action = Literal["create", "index", "delete"]
_MOST_LINES = 500
_MOST_BYTES = 8 << 20
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0
_MOST_DOUBLINGS = 8
_REFUSED, _GONE, _TAKEN = 400, 404, 409


@dataclass(frozen=True)
class Line:
    """What is done with one id; `document` is JSON."""

    action: Action
    id: str
    document: bytes = b""


@dataclass
class Outcome:
    """Ids by what became of them. `taken` were to be created and exist already; `gone` were to be deleted and do not
    exist, or their index does not; `refused` come with a reason, which will stay."""

    done: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Deadline:
    """Until when something is tried again. No request outlives it, as far as this side can tell."""

    at_s: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        return Deadline(time.monotonic() + seconds)

    @property
    def left_s(self) -> float:
        return self.at_s - time.monotonic()

    def pause(self, tries: int) -> bool:
        """Wait before the next try, longer each time. False where there is no time for one."""
        pause_s = min(_FIRST_PAUSE_S * 2 ** min(tries, _MOST_DOUBLINGS), _LONGEST_PAUSE_S)
        if self.left_s < pause_s:
            return False
        time.sleep(pause_s)
        return True


class Bulk:
    def __init__(self, link: Link, timeout_s: float) -> None:
        self._link = link
        self._timeout_s = timeout_s

    def send(self, alias: str, lines: Sequence[Line], deadline: Deadline) -> Outcome:
        """Raises IndexUnavailable when some are still not taken at the deadline, or the server is away. The alias is
        never taken for an index that could be made: where it is missing, every line of it is `gone`."""
        outcome = Outcome()
        for part in _parts(lines):
            self._send_part(alias, part, deadline, outcome)
        return outcome

    def _send_part(self, alias: str, part: Sequence[Line], deadline: Deadline, outcome: Outcome) -> None:
        tries = 0
        while part:
            part, why = self._send_once(alias, part, deadline, outcome)
            if part and not deadline.pause(tries):
                raise self._link.unavailable(f"{len(part)} chunks were not taken: {why}")
            tries += 1

    def _send_once(
        self, alias: str, part: Sequence[Line], deadline: Deadline, outcome: Outcome
    ) -> tuple[list[Line], str]:
        """Those that may be taken later, and why not now."""
        with self._link.asking(max(0.1, min(self._timeout_s, deadline.left_s))) as client:
            try:
                answer = client.bulk(index=alias, operations=_written(part), require_alias=True)
            except ApiError as exc:
                if not will_pass(exc):
                    raise
                return list(part), reason_of(exc.body)
        later: list[Line] = []
        why = ""
        for line, item in zip(part, answer["items"], strict=True):
            result = item[line.action]
            if not self._settled(line, result, outcome):
                later.append(line)
                why = reason_of(result)
        return later, why

    def _settled(self, line: Line, result: dict[str, Any], outcome: Outcome) -> bool:
        status = result["status"]
        if status < _REFUSED:
            outcome.done.append(line.id)
        elif status == _REFUSED:
            outcome.refused[line.id] = reason_of(result)
        elif status == _GONE:
            outcome.gone.append(line.id)
        elif status == _TAKEN and line.action == "create":
            outcome.taken.append(line.id)
        else:  # too busy, no room, a shard on the move, writes blocked for a moment
            return False
        return True


def _parts(lines: Sequence[Line]) -> Iterator[list[Line]]:
    part: list[Line] = []
    size = 0
    for line in lines:
        if part and (len(part) == _MOST_LINES or size + len(line.document) > _MOST_BYTES):
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line.document)
    if part:
        yield part


def _written(part: Sequence[Line]) -> Any:
    """As the client sends it: lines that are JSON already."""
    written: list[bytes] = []
    for line in part:
        written.append(msgspec.json.encode({line.action: {"_id": line.id}}))
        if line.action != "delete":
            written.append(line.document)
    return written
