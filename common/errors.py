"""Every error Pagemill raises on purpose, in one tree. Each knows its code, what a task that meets it
should do (its verdict), and a message that is safe to show to a user.

PagemillError
├── SettingsError            a setting is wrong; names the key, the value and what is allowed
├── InvalidInput             the caller's request can't be done as it stands
│   ├── NotFound             no such thing, or not the caller's
│   ├── Conflict             it exists, but not in a state that allows this
│   ├── KeyReused            an Idempotency-Key came again with another request
│   ├── Backlogged           too much is waiting already; come back later
│   └── Unauthorized         no or unknown credentials
├── DocumentError            the file itself is the cause; another attempt would end the same
│   ├── WrongKind            its bytes are not what its name says, or of a kind that is not read
│   ├── EmptyFile            nothing in it
│   ├── EncryptedFile        needs a password that was not given or is wrong
│   ├── NoPages              it opens, and has no page
│   ├── UnreadableFile       it is damaged beyond reading
│   ├── PagesOutside         the pages asked for are not in it
│   └── BadPage              a page can't be read, and the settings say that this fails the document
├── EmbeddingRefused         the embedding endpoint won't do it as it is set up; another attempt would end the same
├── AttemptFailed            the task's own error; worth another attempt
│   └── EmbeddingFailed      the embedding endpoint answered numbers that are none
├── ParserLost               the parser process died or ran out of memory: a loss
│   ├── ParserTimeout        it took longer than it may
│   ├── ParserKilled         somebody killed it (SIGKILL): an operator, or the kernel for want of memory
│   └── ParserNotStarted     it died or hung before it was asked anything: no page's fault
├── Outage                   a server is away or refuses; wait, and use no attempt; it may say for how long
│   ├── RowsUnavailable      the database
│   ├── QueueUnavailable     Redis
│   ├── IndexUnavailable     the document index
│   ├── EmbeddingUnavailable the embedding endpoint
│   ├── StoreUnavailable     the object store
│   └── StoreFull            the object store has no room
├── DatabaseTooNew           the schema was written by a newer Pagemill
└── LeaseLost                somebody else owns the task now; stop without a trace
"""

from __future__ import annotations

from enum import Enum


class Verdict(Enum):
    """What a task that met the error does next."""

    PERMANENT = "permanent"
    RETRY = "retry"
    OUTAGE = "outage"
    LOSS = "loss"
    BAIL = "bail"


class PagemillError(Exception):
    """An error with a stable code, a verdict, and a message for people."""

    code = "internal"
    verdict = Verdict.RETRY

    def __init__(self, public_message: str) -> None:
        # Names of files come from anywhere: what can't be stored or sent as UTF-8 is not worth another error.
        self.public_message = public_message.encode("utf-8", "replace").decode().replace("\0", "")
        super().__init__(self.public_message)

    @property
    def retryable(self) -> bool:
        return self.verdict is not Verdict.PERMANENT


class SettingsError(PagemillError):
    code = "settings"
    verdict = Verdict.PERMANENT


class InvalidInput(PagemillError):
    code = "invalid_input"
    verdict = Verdict.PERMANENT


class NotFound(InvalidInput):
    code = "not_found"


class Conflict(InvalidInput):
    code = "conflict"


class KeyReused(InvalidInput):
    code = "key_reused"


class Backlogged(InvalidInput):
    code = "backlogged"


class Unauthorized(InvalidInput):
    code = "unauthorized"


class DocumentError(PagemillError):
    code = "document"
    verdict = Verdict.PERMANENT


class WrongKind(DocumentError):
    code = "wrong_kind"


class EmptyFile(DocumentError):
    code = "empty_file"


class EncryptedFile(DocumentError):
    code = "encrypted_file"


class NoPages(DocumentError):
    code = "no_pages"


class UnreadableFile(DocumentError):
    code = "unreadable_file"


class PagesOutside(DocumentError):
    code = "pages_outside"


class BadPage(DocumentError):
    code = "bad_page"


class EmbeddingRefused(PagemillError):
    code = "embedding_refused"
    verdict = Verdict.PERMANENT


class AttemptFailed(PagemillError):
    code = "attempt_failed"


class EmbeddingFailed(AttemptFailed):
    code = "embedding_failed"


class ParserLost(PagemillError):
    code = "parser_lost"
    verdict = Verdict.LOSS


class ParserTimeout(ParserLost):
    code = "parser_timeout"


class ParserKilled(ParserLost):
    code = "parser_killed"


class ParserNotStarted(ParserLost):
    code = "parser_not_started"


class Outage(PagemillError):
    """`retry_after_s` is how long the server asked to be left alone; None where it said nothing."""

    code = "outage"
    verdict = Verdict.OUTAGE

    def __init__(self, public_message: str, retry_after_s: float | None = None) -> None:
        super().__init__(public_message)
        self.retry_after_s = retry_after_s


class RowsUnavailable(Outage):
    code = "rows_unavailable"


class QueueUnavailable(Outage):
    code = "queue_unavailable"


class IndexUnavailable(Outage):
    code = "index_unavailable"


class EmbeddingUnavailable(Outage):
    code = "embedding_unavailable"


class StoreUnavailable(Outage):
    code = "store_unavailable"


class StoreFull(StoreUnavailable):
    code = "store_full"


class DatabaseTooNew(PagemillError):
    code = "database_too_new"
    verdict = Verdict.PERMANENT


class LeaseLost(PagemillError):
    code = "lease_lost"
    verdict = Verdict.BAIL


def _tree(root: type[PagemillError]) -> dict[str, type[PagemillError]]:
    found = {root.code: root}
    for child in root.__subclasses__():
        found |= _tree(child)
    return found


BY_CODE = _tree(PagemillError)


def from_code(code: str, public_message: str) -> PagemillError:
    """The error that a parser process reported by its code, as an exception of this process."""
    return BY_CODE.get(code, AttemptFailed)(public_message)
