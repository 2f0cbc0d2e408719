"""The indexer: follows the embedded index's log into the text index, one process per machine.

It commits, then stores how far it came, in this order: a kill repeats work and loses none. Whenever its
mark and the log do not fit together, it makes the text index anew from the chunks."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from common.errors import IndexUnavailable, SettingsError
from common.process import has_free_core
from common.settings import Settings
from rag.utils import embedded_log as log
from rag.utils import embedded_reads as reads
from rag.utils.embedded_bell import Bell
from rag.utils.embedded_copies import newest_note, settle
from rag.utils.embedded_folder import NO_MARK, Folder, Mark, read_mark, store_mark, try_lock
from rag.utils.embedded_text import VERSION, TextWriter, remove_others

logger = logging.getLogger(__name__)

# How often it looks without having heard the bell.
_LOOK_S = 0.5
# After a commit that was made early, since somebody waited for it, the next early one comes so many times its CPU time
# later, unless a core has nothing to do: documents that end one by one must not make it commit all the time while
# others are being read.
_PAUSE_PER_CPU = 12.0
_FREE_CORE_LOOK_S = 0.02
_PAUSE_AFTER_ERROR_S = 1.0
# Copies that are noted one after another are made when none has come for a while, or the first has waited so long.
_NOTES_REST_S = 0.4
_NOTES_WAIT_S = 5.0
_COMPACT_SLICE = 5000


@dataclass(frozen=True)
class Config:
    """`slice_rows` bounds one commit, `keep_log_s` is how long the log keeps what the indexer has passed."""

    folder: Path
    commit_s: float = 0.2
    slice_rows: int = 20_000
    heap_bytes: int = 64_000_000
    keep_log_s: float = 300.0

    def __post_init__(self) -> None:
        if self.commit_s <= 0:
            raise SettingsError(f"index.commit_s = {self.commit_s}: allowed: more than 0")
        if self.slice_rows < 1:
            raise SettingsError(f"slice_rows = {self.slice_rows}: allowed: at least 1")
        if self.heap_bytes < 15_000_000:
            raise SettingsError(f"heap_bytes = {self.heap_bytes}: allowed: at least 15,000,000")
        if self.keep_log_s < 0:
            raise SettingsError(f"keep_log_s = {self.keep_log_s}: allowed: 0 or more")


class Indexer:
    """Not thread-safe: one thread runs it, and only one indexer may run on a folder (see run_indexer)."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._folder = Folder(config.folder)
        self._database = log.Database(self._folder)
        self._writer: TextWriter | None = None
        self._mark = NO_MARK
        # Entries up to here may be in the text index already, though the mark does not say so.
        self._repeat_to = 0
        # The next row a rebuild comes to; None while the log is followed.
        self._rebuild_row: int | None = None
        self._compact_at = 0.0
        self._notes = Notes()

    def run(self, stop: threading.Event) -> None:
        """Index until `stop` is set; the commit under way is finished first. Outages are waited out."""
        self._folder.create()
        bell = Bell(self._folder)
        is_early = False
        try:
            while not stop.is_set():
                began, began_cpu = time.monotonic(), time.process_time()
                try:
                    done = self.run_once(settles=self._have_notes_rested())
                except IndexUnavailable as exc:
                    logger.warning("indexing failed, trying again: %s", exc)
                    stop.wait(_PAUSE_AFTER_ERROR_S)
                    continue
                if done == 0 and self._rebuild_row is None:
                    bell.wait_rung(_LOOK_S)
                elif done < self._config.slice_rows:
                    left_s = began + self._config.commit_s - time.monotonic()
                    least_s = _PAUSE_PER_CPU * (time.process_time() - began_cpu) if is_early else 0.0
                    is_early = _pause(bell, left_s, least_s)
        finally:
            bell.close()
            self.close()

    def _have_notes_rested(self) -> bool:
        with _translated():
            return self._notes.have_rested(newest_note(self._database))

    def run_once(self, *, settles: bool = True) -> int:
        """Take in one slice of the log, or of a rebuild; how many chunks it added or deleted. Copies that are noted
        are made first, unless that is not wanted yet.

        Raises IndexUnavailable; the next call opens everything anew and repeats what was not marked."""
        sound = False
        with _translated():
            try:
                if self._writer is None or not self._in_place():
                    self._open()
                if settles and settle(self._database):
                    self._database.sync()  # or who notes the next would wait for the disk to take all of it
                done = self._follow() if self._rebuild_row is None else self._rebuild(self._rebuild_row)
                self._compact()
                sound = True
            finally:
                if not sound:
                    self._close_writer()
        return done

    def close(self) -> None:
        self._close_writer()
        self._database.close()

    def _in_place(self) -> bool:
        """Whether the files are still those that were opened, and nobody removed them."""
        if not (self._folder.text / self._mark.folder / "meta.json").exists():
            return False
        return self._rebuild_row is not None or read_mark(self._folder) == self._mark

    def _open(self) -> None:
        self._close_writer()
        mark = read_mark(self._folder)
        path = self._folder.text / mark.folder
        with self._database.reading() as link:
            fits = mark.version == VERSION and log.fits(link, mark)
            newest = log.newest(link)
        if fits and (path / "meta.json").exists():
            try:
                self._writer = TextWriter(path, self._config.heap_bytes)
            except IndexUnavailable as exc:
                logger.warning("the text index is damaged: %s", exc)
            else:
                self._mark, self._repeat_to, self._rebuild_row = mark, newest.sequence, None
                return
        self._start_rebuild(newest)

    def _start_rebuild(self, newest: log.Entry) -> None:
        """Begin a text index in a folder of its own. What the log gets from now on is taken in afterwards."""
        self._close_writer()
        name = os.urandom(8).hex()
        self._folder.text.mkdir(exist_ok=True)
        remove_others(self._folder, keep=read_mark(self._folder).folder)
        self._writer = TextWriter(self._folder.text / name, self._config.heap_bytes)
        self._mark = Mark(VERSION, name, newest.sequence, newest.nonce, newest.changes)
        self._rebuild_row = 1
        logger.info("making the text index anew, up to entry %d of the log", newest.sequence)

    def _rebuild(self, first: int) -> int:
        limit = self._config.slice_rows
        with self._database.reading() as link:
            rows = reads.texts(link, first, log.last_row(link), limit)
            newest = log.newest(link)
        writer = self._opened()
        writer.add(rows)
        writer.commit()
        if len(rows) == limit:
            self._rebuild_row = rows[-1].row + 1
            return len(rows)
        store_mark(self._folder, self._mark)
        remove_others(self._folder, keep=self._mark.folder)
        self._repeat_to, self._rebuild_row = newest.sequence, None
        logger.info("the text index is made anew")
        return len(rows)

    def _follow(self) -> int:
        before = self._mark
        with self._database.reading() as link:
            if not log.fits(link, before):
                logger.warning("the log does not hold entry %d as it was indexed", before.sequence)
                self._start_rebuild(log.newest(link))
                return 0
            last = self._apply(link)
        if last is None:
            return 0
        self._opened().commit()
        mark = Mark(VERSION, before.folder, last.sequence, last.nonce, last.changes)
        store_mark(self._folder, mark)
        self._mark = mark
        return last.changes - before.changes

    def _apply(self, link: sqlite3.Connection) -> log.Entry | None:
        """Hand the writer the entries after the mark, as many as a slice takes; the last of them."""
        writer, last = self._opened(), None
        for last in log.entries_from(link, self._mark.sequence + 1):
            if last.operation == "drop":
                writer.delete(last.rows.tolist())
            else:
                first_row, last_row = last.span
                if last.sequence <= self._repeat_to:
                    writer.delete(range(first_row, last_row + 1))
                writer.add(reads.texts(link, first_row, last_row, last_row - first_row + 1))
            if last.changes - self._mark.changes >= self._config.slice_rows:
                break
        return last

    def _compact(self) -> None:
        """Cut the log below the mark. The marked entry itself stays: the next look compares with it."""
        now = time.monotonic()
        if now < self._compact_at or self._rebuild_row is not None:
            return
        self._compact_at = now + self._config.keep_log_s / 10
        older_than_ms = time.time_ns() // 1_000_000 - int(self._config.keep_log_s * 1000)
        with self._database.reading() as link:
            if not log.compactable(link, self._mark.sequence, older_than_ms):
                return
        with self._database.writing() as link:
            removed = log.compact(link, self._mark.sequence, older_than_ms, _COMPACT_SLICE)
        if removed == _COMPACT_SLICE:
            self._compact_at = now

    def _opened(self) -> TextWriter:
        if self._writer is None:
            raise IndexUnavailable("the text index is not open")
        return self._writer

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


class Notes:
    """How long copies that are noted have waited."""

    def __init__(self) -> None:
        self._newest = 0
        self._came_s = self._first_s = 0.0

    def have_rested(self, newest: int) -> bool:
        """Told at every look the number of the newest, 0 for none."""
        now_s = time.monotonic()
        if newest != self._newest:
            self._first_s = self._first_s if self._newest else now_s
            self._newest, self._came_s = newest, now_s
        rested = now_s - self._came_s >= _NOTES_REST_S or now_s - self._first_s >= _NOTES_WAIT_S
        if newest and rested:
            self._newest = 0
        return bool(newest) and rested


def run_indexer(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. While another indexer runs on the same folder, wait for its end."""
    config = Config(settings.index_dir, commit_s=settings.index.commit_s)
    stop = threading.Event()
    _stop_on_signals(stop)
    folder = Folder(config.folder)
    with _translated():
        folder.create()
        descriptor = os.open(folder.indexer_lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while not try_lock(descriptor):
            if stop.wait(_LOOK_S):
                return
        logger.info("indexing %s", config.folder)
        Indexer(config).run(stop)
    finally:
        os.close(descriptor)


def is_indexer_there(folder: Path) -> bool:
    """Whether an indexer runs on this folder, on this machine."""
    lock = Folder(folder).indexer_lock
    if not lock.exists():
        return False
    with _translated():
        descriptor = os.open(lock, os.O_RDWR)
    try:
        return not try_lock(descriptor)
    finally:
        os.close(descriptor)


def _stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` from a thread of its own: set in a handler, it could wait for a lock that its thread holds."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _note)

    def wait() -> None:
        os.read(heard, 1)
        stop.set()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def _note(number: int, frame: FrameType | None) -> None:
    logger.info("told to stop by %s", signal.Signals(number).name)


def _pause(bell: Bell, longest_s: float, least_s: float) -> bool:
    """Let entries gather for the next commit, but not for long when somebody waits for it. Whether somebody does."""
    began = time.monotonic()
    is_awaited = bell.wait_awaited(longest_s)
    until = began + min(least_s, longest_s)
    while is_awaited and (left_s := until - time.monotonic()) > 0 and not has_free_core():
        time.sleep(min(left_s, _FREE_CORE_LOOK_S))
    return is_awaited


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as exc:
        raise IndexUnavailable(f"the index can't be used: {exc}") from exc
