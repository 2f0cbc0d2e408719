"""Reading a range so that a page which kills its parser is found, named and left out, and the rest is delivered.

A piece that fails is halved, down to one unit; a unit that fails alone twice is bad. A blow from outside (an OOM kill,
an operator) costs no page: one whose process was killed is tried oftener, and a process that did not even start is
nobody's fault. A unit beside the piece, which is read for the end of a paragraph, is not the piece's fault: where that
fails twice, the piece is read without it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from api.db.services.task_requests import BadRange
from common.errors import (
    AttemptFailed,
    BadPage,
    PagemillError,
    ParserKilled,
    ParserLost,
    ParserNotStarted,
    ParserTimeout,
    UnreadableFile,
)
from rag.flow.split import ROW_GROUP, range_text
from rag.parser.across_pages import goes_over_pages, neighbourhood
from rag.parser.blocks import ReadOptions, Unit
from rag.svr.parser_pool import ParseJob, ParserPool
from rag.svr.parser_protocol import ParsedChunk

_HALVABLE = (ParserLost, AttemptFailed, UnreadableFile)
_TRIES_ALONE = 2
_TRIES_KILLED = 4
_LEAST_TIMEOUT_S = 30.0
# A dense scan takes 20 s of a core that is alone, and several times that on a busy machine.
_LEAST_SCANNED_S = 150.0


@dataclass
class RangeRead:
    """`is_cut_short` tells that a unit beside the range could not be read: a paragraph that goes on there ends at the
    edge."""

    chunks: list[ParsedChunk] = field(default_factory=list)
    failed: list[BadRange] = field(default_factory=list)
    is_cut_short: bool = False


@dataclass(frozen=True)
class _Piece:
    first: int
    last: int
    tries: int = 0


async def read_range(
    parsers: ParserPool,
    path: Path,
    job: ParseJob,
    on_progress: Callable[[int], None],
    *,
    carefully: bool,
    skip_bad: bool,
) -> RangeRead:
    """The chunks of the range, in order. `carefully` starts unit by unit: the range took an executor with it before.

    Raises BadPage for the first bad unit unless `skip_bad`, and the parser's own error where nothing could be read.
    When cancelled, the parser is killed."""
    whole = _Piece(job.from_unit, job.to_unit)
    pieces = _units(whole, job.profile.unit) if carefully else [whole]
    pieces.reverse()
    read = RangeRead()
    beside = _Neighbours(job)
    while pieces:
        piece = pieces.pop()
        try:
            read.chunks += await _read_piece(parsers, path, job, piece, beside, on_progress)
        except ParserNotStarted:
            raise
        except _HALVABLE as exc:
            smaller = beside.after_failure(piece, exc) or _after_failure(piece, job.profile.unit, exc)
            if smaller:
                pieces += reversed(smaller)
            else:
                beside.bad.update(range(piece.first, piece.last))
                _give_up(job, piece, exc, read, skip_bad)
    read.is_cut_short = any(not job.from_unit <= unit < job.to_unit for unit in beside.bad)
    return read


class _Neighbours:
    """The units beside a piece: which of them may be read for it, and which one is being read."""

    def __init__(self, job: ParseJob) -> None:
        self._job = job
        self._failures: Counter[int] = Counter()
        self.bad: set[int] = set()
        self._at: int | None = None

    def options(self, piece: _Piece) -> ReadOptions:
        """Those of the job, without the units that are bad."""
        self._at = None
        if not goes_over_pages(self._job.profile):
            return self._job.options
        first, end = neighbourhood(self._job.profile, self._job.options.pages, piece.first, piece.last)
        first = first if first not in self.bad else piece.first
        end = next((unit for unit in range(piece.last, end) if unit in self.bad), end)
        return replace(self._job.options, pages=((first + 1, end),))

    def is_read(self, piece: _Piece, done: int) -> bool:
        """Whether a report of progress says that the parser is beside the piece."""
        units = piece.last - piece.first
        self._at = None if 0 <= done <= units else piece.first - 1 if done < 0 else piece.first + done - 1
        return self._at is not None

    def after_failure(self, piece: _Piece, error: PagemillError) -> list[_Piece]:
        """What to try next; nothing where the parser failed within the piece. The unit next to the one that failed is
        read apart, so that the others are not read again and again, and that one has all of the time."""
        at = self._at
        if at is None:
            return []
        if piece.last - piece.first > 1:
            edge = piece.first + 1 if at < piece.first else piece.last - 1
            return [_Piece(piece.first, edge), _Piece(edge, piece.last)]
        self._failures[at] += 1
        if self._failures[at] >= _most_tries(error):
            self.bad.add(at)
        return [piece]


async def _read_piece(
    parsers: ParserPool,
    path: Path,
    job: ParseJob,
    piece: _Piece,
    beside: _Neighbours,
    on_progress: Callable[[int], None],
) -> list[ParsedChunk]:
    part = ParseJob(job.profile, piece.first, piece.last, job.settings, beside.options(piece), job.named)
    share = (piece.last - piece.first) / max(1, job.to_unit - job.from_unit)
    least_s = _LEAST_SCANNED_S if job.profile.scanned else _LEAST_TIMEOUT_S
    timeout_s = max(min(least_s, parsers.timeout_s), parsers.timeout_s * share)
    before = piece.first - job.from_unit

    def progressed(done: int) -> None:
        if not beside.is_read(piece, done):
            on_progress(before + done)

    return await parsers.parse(path, part, progressed, timeout_s=timeout_s)


def _after_failure(piece: _Piece, unit: Unit, error: PagemillError) -> list[_Piece]:
    """What to try next; nothing where the piece can't be halved and has had its tries."""
    step = ROW_GROUP if unit is Unit.ROW else 1
    units = -(-(piece.last - piece.first) // step)
    if units > 1:
        middle = min(piece.last, piece.first + units // 2 * step)
        return [_Piece(piece.first, middle), _Piece(middle, piece.last)]
    if piece.tries + 1 < _most_tries(error):
        return [_Piece(piece.first, piece.last, piece.tries + 1)]
    return []


def _most_tries(error: PagemillError) -> int:
    """Of one unit alone. Time that ran out is no blow from outside: it is not tried again."""
    if isinstance(error, ParserTimeout):
        return 1
    return _TRIES_KILLED if isinstance(error, ParserKilled) else _TRIES_ALONE


def _give_up(job: ParseJob, piece: _Piece, error: PagemillError, read: RangeRead, skip_bad: bool) -> None:
    where = range_text(job.profile.unit, piece.first, piece.last)
    read.failed.append(BadRange(piece.first, piece.last, error.code, error.public_message))
    nothing_read = sum(f.last - f.first for f in read.failed) >= job.to_unit - job.from_unit
    if not skip_bad or (nothing_read and isinstance(error, ParserTimeout)):
        raise BadPage(f"{where} can't be read: {error.public_message}") from error
    if nothing_read:
        raise error  # that is no bad page but a bad range, or a bad moment


def _units(whole: _Piece, unit: Unit) -> list[_Piece]:
    step = ROW_GROUP if unit is Unit.ROW else 1
    return [_Piece(first, min(first + step, whole.last)) for first in range(whole.first, whole.last, step)]
