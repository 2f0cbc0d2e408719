"""The text half of the embedded index: tantivy, which ranks by BM25.

Owns the schema, the indexer's writer and how readers follow it; what they ask is in embedded_view.py. It knows
rows, datasets and documents by value; what they are is in SQLite (embedded_log.py), from which all of this can be
made again."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import tantivy
from tantivy import Query

from common.errors import IndexUnavailable
from rag.utils.embedded_folder import Folder, Mark, read_mark
from rag.utils.embedded_log import TextRow
from rag.utils.embedded_view import TextView, translated

# Raised when the schema changes: the indexer then makes the text half anew, beside the old one. 2: positions.
VERSION = 2


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("row", indexed=True, fast=True)
    builder.add_unsigned_field("dataset", indexed=True)
    builder.add_text_field("document", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("terms", tokenizer_name="whitespace", index_option="position")
    return builder.build()


class TextWriter:
    """Adds to and deletes from one folder of the text index. Nothing is seen before commit()."""

    def __init__(self, path: Path, heap_bytes: int) -> None:
        """Open the folder, or make it where it is missing. Raises IndexUnavailable when it is damaged."""
        with translated("be opened"):
            path.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(_schema(), str(path))
            self._index.searcher()  # reads every segment's footer, so damage shows here
            self._writer = self._index.writer(heap_bytes, 1)

    def add(self, rows: Iterable[TextRow]) -> int:
        added = 0
        with translated("take in a chunk"):
            for row in rows:
                document = tantivy.Document()
                document.add_unsigned("row", row.row)
                document.add_unsigned("dataset", row.dataset)
                document.add_text("document", row.document)
                document.add_text("terms", row.terms)
                self._writer.add_document(document)
                added += 1
        return added

    def delete(self, rows: Sequence[int]) -> None:
        # By query: the binding's delete by term takes no unsigned numbers, and says nothing about it.
        with translated("delete chunks"):
            self._writer.delete_documents_by_query(Query.term_set_query(self._index.schema, "row", rows))

    def commit(self) -> None:
        """Durable when it returns."""
        with translated("commit"):
            self._writer.commit()

    def close(self) -> None:
        """Give the folder free without waiting for merges. What was not committed is gone."""
        del self._writer


class TextReader:
    """The searcher of a process: follows the indexer's mark, also into a rebuilt index. Thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._name = ""
        self._index: tantivy.Index | None = None
        self._view: TextView | None = None
        # Why what the mark names can't be opened, while an older view serves on.
        self.failure = ""

    def view(self) -> TextView | None:
        """What the indexer last committed, or what was last seen of it while it is being rebuilt."""
        with self._lock:
            stamp = self._read_stamp()
            if stamp is not None and stamp != self._stamp and self._follow():
                self._stamp = stamp
            return self._view

    def _read_stamp(self) -> tuple[int, int] | None:
        try:
            found = self._folder.mark.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found.st_ino, found.st_mtime_ns

    def _follow(self) -> bool:
        """Open what the mark names. False where that is gone: the view that is open, if any, serves on."""
        mark = read_mark(self._folder)
        while mark.folder:
            try:
                self._open(mark)
                self.failure = ""
                return True
            except IndexUnavailable as exc:
                latest = read_mark(self._folder)
                if latest.folder == mark.folder and self._view is None and self._holds(mark):
                    raise
                if latest.folder == mark.folder:
                    self.failure = str(exc) if self._holds(mark) else ""
                    return False
                mark = latest  # rebuilt, and the old one removed, while it was being opened
        return False

    def _open(self, mark: Mark) -> None:
        path = self._folder.text / mark.folder
        with translated("be read"):
            if self._index is None or mark.folder != self._name:
                index = tantivy.Index.open(str(path))
                index.config_reader("manual")
                self._index, self._name = index, mark.folder
            self._index.reload()
            self._view = TextView(self._index, mark, _documents(path))

    def _holds(self, mark: Mark) -> bool:
        return (self._folder.text / mark.folder / "meta.json").exists()


def _documents(path: Path) -> int:
    """Documents as BM25 counts them: with those that are deleted and not merged away yet."""
    meta = json.loads((path / "meta.json").read_text(encoding="utf-8"))
    return sum(int(segment["max_doc"]) for segment in meta["segments"])


def remove_others(folder: Folder, keep: str) -> None:
    """Remove folders of the text index that no mark names: old ones, and rebuilds that never ended."""
    for path in folder.text.iterdir():
        if path.is_dir() and path.name != keep:
            shutil.rmtree(path, ignore_errors=True)
