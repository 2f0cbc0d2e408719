"""The embedded index under fire: killed writers and indexers, removed, damaged and restored files, a full disk.

Real processes where a process dies; where only files change, the indexer is stepped by hand."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import resource
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tantivy

from common.errors import IndexUnavailable
from common.settings import IndexSettings, Settings
from rag.svr.indexer import Config, Indexer, run_indexer
from rag.utils.doc_index import ChunkRecord, Query, Scope, Vectors
from rag.utils.embedded_folder import Folder, read_mark, store_mark
from rag.utils.embedded_index import EmbeddedIndex
from tests.processes import open_files
from tests.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.timeout(400)
SPAWN = multiprocessing.get_context("spawn")
BATCH = 6
DIMENSION = 24
SET = Scope("tenant", "set")


def vector_of(id_: str) -> Vectors:
    """Every chunk has a direction of its own, known from its id."""
    vector = np.random.default_rng(list(id_.encode())).normal(size=DIMENSION)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def chunk(id_: str, terms: str, document: str = "doc") -> ChunkRecord:
    return ChunkRecord(id_, "tenant", "set", document, 1, 0, 1, 0, 1, terms, terms, 2)


def put(index: EmbeddedIndex, name: str, count: int = BATCH) -> int:
    made = [chunk(f"{name}-{n}", f"common {name}", name) for n in range(count)]
    return index.upsert(made, np.stack([vector_of(one.id) for one in made]))


def by_words(index: EmbeddedIndex, name: str, at_least: int = 0) -> list[str]:
    query = Query("tenant", ("set",), (name,), np.zeros(0, np.float32), 0.0)
    return sorted(hit.chunk.id for hit in index.search(query, at_least))


def nearest(index: EmbeddedIndex, id_: str) -> str:
    query = Query("tenant", ("set",), (), vector_of(id_), 1.0, limit=1)
    return index.search(query)[0].chunk.id


def ids_of(name: str, count: int = BATCH) -> list[str]:
    return sorted(f"{name}-{n}" for n in range(count))


# Processes


def write_until_told(data_dir: Path, number: int) -> None:
    """A writer: a line in its file for every batch that was acknowledged; it goes on after its last line."""
    index = EmbeddedIndex(Settings(data_dir=data_dir).index_dir, IndexSettings())
    acknowledged = data_dir / f"writer{number}"
    acknowledged.touch()
    written = len(acknowledged.read_text().splitlines())
    with acknowledged.open("a", buffering=1) as file:
        while not (data_dir / "stop").exists():
            sequence = put(index, f"w{number}b{written}")
            file.write(f"{sequence}\n")
            written += 1
            index.wait_findable("tenant", sequence, 0.05)
    index.close()


def index_until_told(data_dir: Path) -> None:
    run_indexer(Settings(data_dir=data_dir))


def end_politely(process: BaseProcess) -> None:
    process.terminate()
    process.join(PATIENCE_S)
    assert process.exitcode == 0


class Crew:
    """Three writers and an indexer, each of which can be killed and is then started again."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._members: dict[str, BaseProcess] = {}
        for number in range(3):
            self.start(f"writer{number}", write_until_told, number)
        self.start("indexer", index_until_told)

    def start(self, name: str, target: Callable[..., None], *args: object) -> None:
        self._members[name] = SPAWN.Process(target=target, args=(self._data_dir, *args), name=name)
        self._members[name].start()

    def kill(self, name: str) -> None:
        member = self._members[name]
        assert member.is_alive(), f"{name} ended by itself"
        member.kill()
        member.join()
        if name == "indexer":
            self.start(name, index_until_told)
        else:
            self.start(name, write_until_told, int(name[-1]))

    def acknowledged(self) -> dict[str, int]:
        """Batches by name, with their sequence numbers. A line that a kill cut short was not acknowledged."""
        found = {}
        for number in range(3):
            path = self._data_dir / f"writer{number}"
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            found |= {f"w{number}b{n}": int(line) for n, line in enumerate(lines) if line.endswith("\n")}
        return found

    def end_writers(self) -> None:
        (self._data_dir / "stop").touch()
        for name, member in self._members.items():
            if name != "indexer":
                member.join(PATIENCE_S)
                assert member.exitcode == 0, name

    def end_indexer(self) -> None:
        end_politely(self._members["indexer"])

    def clear_away(self) -> None:
        for member in self._members.values():
            if member.is_alive():
                member.kill()
                member.join()


class Reader:
    """Searches without a pause in a thread and keeps what went wrong."""

    def __init__(self, index: EmbeddedIndex) -> None:
        self._index = index
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._search)
        self.searches = 0
        self.errors: list[Exception] = []
        self._thread.start()

    def _search(self) -> None:
        query = Query("tenant", ("set",), ("common",), vector_of("w0b0-0"), 0.3, limit=50)
        while not self._stop.wait(0.002):
            try:
                found = [hit.chunk.id for hit in self._index.search(query)]
                assert len(found) == len(set(found))
                self.searches += 1
            except Exception as exc:  # noqa: BLE001  handed to the test's own thread
                self.errors.append(exc)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def test_no_acknowledged_batch_is_lost_or_doubled_by_kills(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    index = EmbeddedIndex(Settings(data_dir=tmp_path).index_dir, IndexSettings())
    reader, crew = Reader(index), Crew(tmp_path)
    try:
        victims = ["writer0", "writer1", "writer2", "indexer", "indexer", "indexer", "writer0", "writer1"]
        chance.shuffle(victims)
        for victim in victims:
            enough = len(crew.acknowledged()) + chance.randint(2, 8)
            wait_until(lambda enough=enough: len(crew.acknowledged()) >= enough, what="progress")
            crew.kill(victim)
        last = len(crew.acknowledged())
        wait_until(lambda: len(crew.acknowledged()) > last + 3, what="progress after the last kill")
        crew.end_writers()
        acknowledged = crew.acknowledged()
        assert index.wait_findable("tenant", max(acknowledged.values()), PATIENCE_S)
        crew.end_indexer()
    finally:
        reader.end()
        crew.clear_away()
    assert reader.errors == []
    assert reader.searches > 0
    for name in acknowledged:
        assert [found.id for found in index.get("tenant", ids_of(name))] == ids_of(name)
        assert by_words(index, name) == ids_of(name)
        assert nearest(index, f"{name}-0") == f"{name}-0"
    # A batch that was written and not acknowledged may be there: one for each time a writer was killed.
    extra = index.count(SET) - BATCH * len(acknowledged)
    assert extra in range(0, BATCH * 5 + 1, BATCH)
    listed = [found.id for found in index.list(SET, 0, 1_000_000).chunks]
    assert len(listed) == len(set(listed)) == index.count(SET)
    index.close()


def fill_until_full(folder: Path, limit_bytes: int, told: Path) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    index = EmbeddedIndex(folder, IndexSettings())
    for written in range(10_000):
        try:
            put(index, f"batch{written}", 50)
        except IndexUnavailable:
            told.write_text(str(written))
            index.close()
            return


def test_a_full_disk_refuses_writes_and_harms_nothing(tmp_path: Path) -> None:
    folder, told = tmp_path / "index", tmp_path / "told"
    process = SPAWN.Process(target=fill_until_full, args=(folder, 600_000, told))
    process.start()
    process.join(PATIENCE_S)
    assert process.exitcode == 0
    written = int(told.read_text())
    assert written > 0
    with opened(folder) as (index, indexer):
        assert index.count(SET) == 50 * written
        sequence = put(index, "afterwards")
        step_through(indexer)
        assert by_words(index, "afterwards", sequence) == ids_of("afterwards")
        assert by_words(index, f"batch{written - 1}") == ids_of(f"batch{written - 1}", 50)
    with contextlib.closing(sqlite3.connect(Folder(folder).database)) as link:
        assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def has_open(process: BaseProcess, path: Path) -> bool:
    assert process.pid is not None
    return path in open_files(process.pid)


def test_a_second_indexer_waits_for_the_first(tmp_path: Path) -> None:
    folder = Folder(Settings(data_dir=tmp_path).index_dir)
    index = EmbeddedIndex(folder.root, IndexSettings())
    first, second, third = (SPAWN.Process(target=index_until_told, args=(tmp_path,)) for _ in range(3))
    try:
        first.start()
        assert index.wait_findable("tenant", put(index, "one"), PATIENCE_S)
        for process in (second, third):
            process.start()
            wait_until(lambda process=process: has_open(process, folder.indexer_lock), what="waiting for the lock")
        assert not has_open(second, folder.bell)
        end_politely(third)
        end_politely(first)
        assert index.wait_findable("tenant", put(index, "two"), PATIENCE_S)
        end_politely(second)
    finally:
        for process in (first, second, third):
            if process.pid is not None:
                process.kill()
                process.join()
    assert by_words(index, "two") == ids_of("two")
    index.close()


# Files, with the indexer stepped by hand


@contextlib.contextmanager
def opened(folder: Path, **fields: Any) -> Iterator[tuple[EmbeddedIndex, Indexer]]:
    index = EmbeddedIndex(folder, IndexSettings())
    indexer = Indexer(Config(folder, heap_bytes=15_000_000, **fields))
    yield index, indexer
    indexer.close()
    index.close()


def step_through(indexer: Indexer) -> int:
    """Step until there is nothing left to do."""
    total = 0
    while done := indexer.run_once():
        total += done
    return total


def remove_all(folder: Folder) -> None:
    shutil.rmtree(folder.text)


def remove_tantivy_only(folder: Folder) -> None:
    shutil.rmtree(folder.text / read_mark(folder).folder)


def damage_a_segment(folder: Folder) -> None:
    for path in (folder.text / read_mark(folder).folder).glob("*.idx"):
        path.write_bytes(path.read_bytes()[:10])


def damage_the_mark(folder: Folder) -> None:
    folder.mark.write_bytes(b"{not json")


def age_the_schema(folder: Folder) -> None:
    mark = read_mark(folder)
    store_mark(folder, type(mark)(mark.version + 1, mark.folder, mark.sequence, mark.nonce, mark.changes))


@pytest.mark.parametrize("harm", [remove_all, remove_tantivy_only, damage_a_segment, damage_the_mark, age_the_schema])
def test_the_text_index_is_made_anew_from_the_chunks(tmp_path: Path, harm: Callable[[Folder], None]) -> None:
    with opened(tmp_path) as (index, indexer):
        for n in range(5):
            put(index, f"batch{n}")
        index.delete(Scope("tenant", "set", "batch3"))
        step_through(indexer)
    harm(Folder(tmp_path))
    with opened(tmp_path, slice_rows=7) as (index, indexer):
        sequence = put(index, "batch5")
        assert step_through(indexer) > 0
        assert index.wait_findable("tenant", sequence, 0)
        for n in (0, 1, 2, 4, 5):
            assert by_words(index, f"batch{n}", sequence) == ids_of(f"batch{n}")
        assert by_words(index, "batch3", sequence) == []
        assert [path.name for path in Folder(tmp_path).text.iterdir() if path.is_dir()] == [
            read_mark(Folder(tmp_path)).folder
        ]


@pytest.mark.parametrize("harm", [remove_all, remove_tantivy_only])
def test_files_removed_under_a_running_indexer_and_reader(tmp_path: Path, harm: Callable[[Folder], None]) -> None:
    with opened(tmp_path) as (index, indexer):
        put(index, "before")
        step_through(indexer)
        assert by_words(index, "before") == ids_of("before")
        reader = Reader(index)
        harm(Folder(tmp_path))
        assert by_words(index, "before") == ids_of("before")  # what it had open serves on
        sequence = put(index, "after")
        step_through(indexer)
        assert by_words(index, "after", sequence) == ids_of("after")
        assert by_words(index, "before", sequence) == ids_of("before")
        reader.end()
        assert reader.errors == []


def test_a_restored_backup_is_noticed_by_the_entry_not_by_its_number(tmp_path: Path) -> None:
    folder, backup = Folder(tmp_path / "index"), tmp_path / "backup.db"
    with opened(folder.root) as (index, indexer):
        put(index, "kept")
        step_through(indexer)
    shutil.copy(folder.database, backup)
    with opened(folder.root) as (index, indexer):
        put(index, "lost")
        step_through(indexer)
    shutil.copy(backup, folder.database)
    with opened(folder.root) as (index, indexer):
        sequence = put(index, "written anew")
        assert not index.wait_findable("tenant", sequence, 0)  # though the mark names this very number
        step_through(indexer)
        assert index.wait_findable("tenant", sequence, 0)
        assert by_words(index, "lost", sequence) == []
        assert by_words(index, "kept", sequence) == ids_of("kept")
        assert by_words(index, "anew", sequence) == ids_of("written anew")


def test_a_repeat_after_a_kill_between_commit_and_mark_doubles_nothing(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with opened(tmp_path) as (index, indexer):
        put(index, "one")
        step_through(indexer)
        early = read_mark(folder)
        put(index, "two")
        index.delete(Scope("tenant", "set", "one"))
        put(index, "three")
        step_through(indexer)
    store_mark(folder, early)
    with opened(tmp_path) as (index, indexer):
        assert step_through(indexer) == 3 * BATCH
        assert by_words(index, "common") == sorted(ids_of("two") + ids_of("three"))
        assert by_words(index, "one") == []
    held = tantivy.Index.open(str(folder.text / read_mark(folder).folder)).searcher().num_docs
    assert held == 2 * BATCH


def test_a_reader_slower_than_compaction_loads_anew(tmp_path: Path) -> None:
    with opened(tmp_path, keep_log_s=0) as (index, indexer):
        slow = EmbeddedIndex(tmp_path, IndexSettings())
        put(index, "first")
        put(index, "gone")
        assert nearest(slow, "gone-1") == "gone-1"  # it has the matrix now, and falls asleep
        index.delete(Scope("tenant", "set", "gone"))
        for n in range(20):
            put(index, f"batch{n}")
        step_through(indexer)
        with contextlib.closing(sqlite3.connect(Folder(tmp_path).database)) as link:
            assert link.execute("SELECT count(*) FROM log").fetchone() == (1,)
        assert nearest(slow, "batch19-3") == "batch19-3"
        assert nearest(slow, "gone-1") != "gone-1"
        assert nearest(slow, "first-2") == "first-2"
        sequence = put(index, "later")
        step_through(indexer)
        assert by_words(slow, "later", sequence) == ids_of("later")
        slow.close()


def test_the_log_is_kept_for_a_while(tmp_path: Path) -> None:
    with opened(tmp_path, keep_log_s=3600) as (index, indexer):
        for n in range(5):
            put(index, f"batch{n}")
        step_through(indexer)
        with contextlib.closing(sqlite3.connect(Folder(tmp_path).database)) as link:
            assert link.execute("SELECT count(*) FROM log").fetchone() == (5,)


def test_entries_are_noticed_without_the_bell(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.bell.mkdir(parents=True)  # no pipe can be made in its place
    index, stop = EmbeddedIndex(tmp_path, IndexSettings()), threading.Event()
    thread = threading.Thread(target=Indexer(Config(tmp_path, heap_bytes=15_000_000)).run, args=(stop,))
    thread.start()
    try:
        for n in range(3):
            assert index.wait_findable("tenant", put(index, f"batch{n}"), PATIENCE_S)
    finally:
        stop.set()
        thread.join()
    assert by_words(index, "batch2") == ids_of("batch2")
    index.close()
