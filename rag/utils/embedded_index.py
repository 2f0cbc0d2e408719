"""The embedded document index: SQLite holds the chunks, tantivy ranks words behind it, vectors are scanned.

This module ties the parts together and turns their failures into IndexUnavailable. Any number of processes
and threads may use one folder; the text half is made by the machine's one indexer (rag/svr/indexer.py)."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from common.errors import IndexUnavailable
from common.settings import IndexSettings
from rag.utils import embedded_copies as copies
from rag.utils import embedded_log as log
from rag.utils import embedded_reads as reads
from rag.utils import embedded_writes as writes
from rag.utils.doc_index import Adopted, Adoption, ChunkPage, ChunkPlace, ChunkRecord, Hit, Query, Scope, Tally, Vectors
from rag.utils.embedded_bell import ring
from rag.utils.embedded_folder import NO_MARK, Folder, Mark, mark_stamp, read_mark
from rag.utils.embedded_search import Searches
from rag.utils.embedded_text import TextReader
from rag.utils.embedded_twins import with_twins
from rag.utils.embedded_view import TextView

# How long a writer waits for an indexer that is too far behind, and a search for one that is a little behind.
_WRITER_PATIENCE_S = 30.0
_SEARCH_PATIENCE_S = 5.0
# How long a rebuild of the text half is watched: it makes about ten thousand chunks a second.
_REBUILD_PATIENCE_S = 600.0
_POLL_S = 0.005
_LONGEST_POLL_S = 0.03
Hits = list[Hit]
Names = list[str]
Records = list[ChunkRecord]


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise IndexUnavailable(f"the index can't be used: {exc}") from exc


class EmbeddedIndex:
    """A DocIndex in a folder. Opens nothing before it is used."""

    adopts = True

    def __init__(self, folder: Path, settings: IndexSettings) -> None:
        self._folder = Folder(folder)
        self._max_behind = settings.max_behind
        self._database = log.Database(self._folder)
        self._text = TextReader(self._folder)
        self._searches = Searches(self._database)
        self._durable = 0
        self._syncing = threading.Lock()

    def upsert(self, chunks: Sequence[ChunkRecord], vectors: Vectors) -> int:
        """Waits while the indexer is too far behind, and raises IndexUnavailable if it stays so."""
        if not chunks:
            return 0
        batches = writes.prepare(chunks, vectors)
        with _translated():
            self._wait_for_room()
            sequence = writes.insert(self._database, batches)
            ring(self._folder)
        return sequence

    def delete(self, scope: Scope) -> int:
        with _translated():
            sequence = writes.delete(self._database, scope)
            if sequence:
                ring(self._folder)
        return sequence

    def get(self, tenant_id: str, ids: Sequence[str]) -> list[ChunkRecord]:
        with self._reading() as link:
            return reads.get(link, tenant_id, ids)

    def read_all(self, scope: Scope) -> tuple[Records, Vectors]:
        with self._reading() as link:
            return reads.everything(link, scope)

    def adopt(self, asked: Adoption) -> bool:
        """The indexer is not rung: it looks by itself, and makes the copy when no other has come for a while."""
        with _translated():
            mark = read_mark(self._folder)
            with self._database.writing() as link:
                return log.passed(link, mark, asked.findable) and copies.note(link, asked)

    def make_adopted_durable(self) -> None:
        with _translated():
            self._database.sync()

    def adopted(self, rest_ms: int) -> Sequence[Adopted]:
        with _translated(), self._database.reading() as link:
            return copies.adopted(link, rest_ms)

    def confirm_adopted(self, adopted: Sequence[Adopted]) -> None:
        with _translated(), self._database.writing() as link:
            copies.confirm(link, [each.number for each in adopted])

    def count(self, scope: Scope) -> int:
        with self._reading() as link:
            return reads.count(link, scope)

    def search(self, query: Query, at_least: int = 0) -> Hits:
        """A chunk that is written but not yet in the text index is found by its vector alone, and not by a phrase."""
        with _translated():
            copies.settle(self._database)
            numbers = self._dataset_numbers(query)
            if not numbers or query.limit < 1 or query.document_ids == ():
                return []
            # The text half first: what it finds is then in the vector half too, or was deleted since.
            view = self._text_view(at_least) if query.terms else None
            return self._searches.best(query, numbers, with_twins(view, self._copies_behind(view, numbers), numbers))

    def list(self, scope: Scope, offset: int, limit: int) -> ChunkPage:
        with self._reading() as link:
            return reads.page(link, scope, offset, limit)

    def places(self, scope: Scope) -> Sequence[ChunkPlace]:
        with self._reading() as link:
            return reads.chunk_places(link, scope)

    def make_durable(self, sequence: int) -> None:
        if sequence <= self._durable:
            return
        # One at a time: whatever is written while one waits for the disk is made durable by the next, all at once.
        with _translated(), self._syncing:
            if sequence <= self._durable:
                return
            with self._database.reading() as link:
                newest = log.ends(link)[1]
            self._database.sync()
            self._durable = max(self._durable, newest)

    def wait_findable(self, tenant_id: str, sequence: int, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        with _translated():
            if not self._passed(read_mark(self._folder), sequence):
                with self._database.reading():  # waiting for a folder that can't be used would be for nothing
                    ring(self._folder, awaited=True)
            pause_s, stamp = _POLL_S, mark_stamp(self._folder)
            while not self._passed(read_mark(self._folder), sequence):
                while (newer := mark_stamp(self._folder)) == stamp:
                    if time.monotonic() >= deadline:
                        return False
                    time.sleep(pause_s)
                    pause_s = min(pause_s * 1.5, _LONGEST_POLL_S)
                stamp = newer
        self.make_durable(sequence)
        return True

    def tally(self, scope: Scope | None = None) -> Iterator[Tally]:
        with self._reading() as link:
            return iter(reads.tally(link, scope))

    def damage(self) -> str:
        """Of the text half: one that can't be opened, or has other chunks than SQLite though it is not behind."""
        with self._reading() as link:
            mark, held = read_mark(self._folder), reads.total(link)
            if not mark.folder or log.newest(link).sequence != mark.sequence or not log.fits(link, mark):
                return ""  # it is being made
            try:
                view = TextReader(self._folder).view()
            except IndexUnavailable as exc:
                return str(exc)
            if view is None or view.mark != mark or view.chunks == held or read_mark(self._folder) != mark:
                return ""
            return f"the text index has {view.chunks} chunks of {held}"

    def outdated(self) -> Names:
        """Never any: chunks need no other form here."""
        self.check()
        return []

    def migrate(self, say: Callable[[str], None], force: bool = False) -> int:
        """With `force` the text half is made anew, by the indexer that runs."""
        self.check()
        with _translated():
            return self._rebuild_text(say) if force else 0

    def check(self) -> None:
        with _translated(), self._database.writing() as link:
            link.execute("UPDATE state SET changes = changes")

    def close(self) -> None:
        with _translated():
            self._database.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One view of the file, in which every copy has its rows."""
        with _translated():
            copies.settle(self._database)
            with self._database.reading() as link:
                yield link

    def _copies_behind(self, view: TextView | None, numbers: Sequence[int]) -> Sequence[log.Entry]:
        """Those that the text half may not have yet. One into these datasets may be of one into another."""
        if view is None:
            return []
        with self._database.reading() as link:
            behind = view.mark.sequence
            return log.copies_after(link, behind) if log.has_copies(link, numbers, behind) else []

    def _rebuild_text(self, say: Callable[[str], None]) -> int:
        """Take away the mark: an indexer that finds none begins anew. Searches keep the old half until then."""
        before = read_mark(self._folder)
        if not before.folder:
            return 0
        say(f"making the text index of {self._folder.root} anew")
        self._folder.mark.unlink(missing_ok=True)
        ring(self._folder, awaited=True)
        deadline = time.monotonic() + _REBUILD_PATIENCE_S
        while read_mark(self._folder).folder in ("", before.folder):
            if time.monotonic() >= deadline:
                raise IndexUnavailable("the text index is being made anew, or will be once an indexer runs")
            time.sleep(_POLL_S)
        return 1

    def _wait_for_room(self) -> None:
        deadline = time.monotonic() + _WRITER_PATIENCE_S
        while (behind := self._behind()) > self._max_behind:
            if time.monotonic() >= deadline:
                raise IndexUnavailable(f"the indexer is behind by {behind} chunks, or does not run")
            time.sleep(_POLL_S)

    def _behind(self) -> int:
        """Chunks written or deleted that the indexer has not come to yet."""
        with self._database.reading() as link:
            written = log.newest(link).changes
        return written - read_mark(self._folder).changes

    def _passed(self, mark: Mark, sequence: int) -> bool:
        """Whether the indexer has taken in this entry of the log that is there now."""
        if sequence <= 0 or mark.sequence < sequence:
            return sequence <= 0
        with self._database.reading() as link:
            return log.passed(link, mark, sequence)

    def _text_view(self, at_least: int) -> TextView | None:
        with self._database.reading() as link:
            # A restored backup may be older than what the caller remembers: no later entry will ever come.
            wanted = min(at_least, log.ends(link)[1])
        deadline = time.monotonic() + _SEARCH_PATIENCE_S
        while True:
            view = self._text.view()
            if self._passed(view.mark if view else NO_MARK, wanted):
                return view
            if time.monotonic() >= deadline:
                why = self._text.failure or "the indexer is behind what this search has to see, or does not run"
                raise IndexUnavailable(why)
            time.sleep(_POLL_S)

    def _dataset_numbers(self, query: Query) -> Sequence[int]:
        with self._database.reading() as link:
            found = (
                reads.dataset_number(link, query.tenant_id, dataset) for dataset in dict.fromkeys(query.dataset_ids)
            )
            return [number for number in found if number is not None]
