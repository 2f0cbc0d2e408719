"""What an executor asks of the rows. Requests that queue up are answered in one transaction (task_service.apply).

Every request but a claim names the token of the claim it speaks for; where that claim no longer holds, the
answer is None and nothing has changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from common.task_state import TaskType, chunk_task_no


class ClaimedTask(msgspec.Struct, frozen=True):
    """A task that this executor owns until its lease ends, with all it needs to do the work."""

    id: str
    token: str
    claim_no: int
    task_type: TaskType
    tenant_id: str
    dataset_id: str
    document_id: str
    generation: int
    from_page: int
    to_page: int
    attempt: int
    losses: int
    waiting_since: int
    begin_at: int
    digest: str
    file_digest: str
    file_name: str
    chunk_method: str
    parser_config: str
    profile: str | None
    embedding_model: str
    index_seq: int
    reusable: Reusable | None = None

    @property
    def task_no(self) -> int:
        return chunk_task_no(self.task_type, self.from_page)

    @property
    def held(self) -> Held:
        return Held(self.id, self.token, self.document_id)


class Held(msgspec.Struct, frozen=True):
    """A claim, as its holder names it."""

    task_id: str
    token: str
    document_id: str


@dataclass(frozen=True)
class Claim:
    """Take these tasks, those that can be had: answers a list of ClaimedTask."""

    task_ids: tuple[str, ...]
    owner: str
    token: str


@dataclass(frozen=True)
class Renew:
    """Hold on to these claims: answers the set of task ids that are still held."""

    held: tuple[Held, ...]


@dataclass(frozen=True)
class Progress:
    held: Held
    progress: float
    message: str


@dataclass(frozen=True)
class BadRange:
    """Pages that could not be read: [first, last), counted from 0."""

    first: int
    last: int
    code: str
    reason: str


@dataclass(frozen=True)
class Reusable:
    """Where the chunks of a range with the same digest are, and how many."""

    dataset_id: str
    document_id: str
    generation: int
    task_no: int
    claim_no: int
    chunk_count: int
    token_count: int


@dataclass(frozen=True)
class Written:
    """What a range has put into the index; `failed` are its pages that could not be read, `reused` tells that its
    chunks were copied and not computed, `is_whole` that nothing beside it was missing; `pages` are those of its `units`
    that are pages or slides."""

    chunk_count: int = 0
    token_count: int = 0
    index_seq: int = 0
    failed: tuple[BadRange, ...] = ()
    reused: bool = False
    units: int = 0
    is_whole: bool = True
    pages: int = 0

    @property
    def is_reusable(self) -> bool:
        """Whether another parse would make the same of it."""
        return self.is_whole and not self.failed


@dataclass(frozen=True)
class GoOn:
    """Whoever ends a task takes what follows from it in the same transaction, under a token of its own: the first of
    the ranges it found, or the finish of the document whose last range it read. So these need no message."""

    owner: str
    token: str


@dataclass(frozen=True)
class FinishRange:
    held: Held
    written: Written
    stages: Mapping[str, float] = field(default_factory=dict)
    go_on: GoOn | None = None


@dataclass(frozen=True)
class NewRange:
    from_page: int
    to_page: int
    digest: str


@dataclass(frozen=True)
class FinishPrepare:
    """The profile is known. Either the ranges come now, or (`written`) the only one was read in the same go."""

    held: Held
    profile: Mapping[str, Any]
    ranges: tuple[NewRange, ...]
    written: Written | None = None
    stages: Mapping[str, float] = field(default_factory=dict)
    go_on: GoOn | None = None


@dataclass(frozen=True)
class FinishDocument:
    """Every range of the document is findable up to `visible_seq`: make it visible and DONE, or FAIL."""

    held: Held
    visible_seq: int


@dataclass(frozen=True)
class GiveBack:
    """Back to PENDING. `transition` is retry, wait, drain or lose; only retry uses an attempt, only lose a loss."""

    held: Held
    transition: str
    delay_ms: int = 0
    error_code: str = ""
    message: str = ""


@dataclass(frozen=True)
class Fail:
    held: Held
    error_code: str
    message: str


@dataclass(frozen=True)
class Continued:
    """The answer to an ending that is DONE, and went on."""

    task: ClaimedTask


Ending = FinishRange | FinishPrepare | FinishDocument | GiveBack | Fail
Request = Claim | Renew | Progress | Ending
