"""The document index: the contract. Implementations stand beside this file (embedded_index.py, es_index.py), and
doc_indexes.py opens the one that the settings name.

An index holds chunks and finds them. It knows generations and claims as plain numbers and answers every chunk
it holds: which of them a search may see is decided by the caller from the rows (section "What a search may
see" of docs/architecture.md). An outage raises IndexUnavailable; it is never an empty answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class ChunkRecord(msgspec.Struct, frozen=True):
    """A chunk as the index keeps it.

    `terms` is the text as analysed by rag.utils.terms, words parted by blanks. `positions` are
    (page from 1, left, right, top, bottom). (document_id, generation, task_no, claim_no) name the claim that
    wrote it. `picture` is what the route of pictures is asked for, to show the figure that it is. A child is found for
    its parent: the chunk with the ordinal `parent_ordinal` (-1: it is no child), whose text is `parent`.
    `contents` are the headings that stand in it: (level, title, page)."""

    id: str
    tenant_id: str
    dataset_id: str
    document_id: str
    generation: int
    task_no: int
    claim_no: int
    ordinal: int
    page: int
    text: str
    terms: str
    token_count: int
    kind: str = "text"
    headings: tuple[str, ...] = ()
    positions: tuple[tuple[int, int, int, int, int], ...] = ()
    available: bool = True
    created_ms: int = 0
    tags: tuple[str, ...] = ()
    picture: str = ""
    parent_ordinal: int = -1
    parent: str = ""
    contents: tuple[tuple[int, str, int], ...] = ()


@dataclass(frozen=True)
class Scope:
    """Chunks that a count, a list or a delete is about: all that match every field given.

    `dataset_id` is always needed: it names the part of the index that is touched."""

    tenant_id: str
    dataset_id: str
    document_id: str | None = None
    generation: int | None = None
    claim: tuple[int, int] | None = None  # (task_no, claim_no)


@dataclass(frozen=True)
class Adoption:
    """The chunks of a document's generation are to be another document's of the same tenant as well, as if the claim
    `claim_no` had written them: with ids of their own, available, born at `created_ms`. `claims` are what the source
    must hold, by (task_no, claim_no), and `findable` is how far the index is where all of that is found."""

    source: Scope
    claims: Mapping[tuple[int, int], int]
    findable: int
    dataset_id: str
    document_id: str
    generation: int
    claim_no: int
    created_ms: int


@dataclass(frozen=True)
class Query:
    """A question to the index. `terms` are analysed words, `vector` is of unit length.

    Asked for are the best `limit` chunks by (1 - vector_weight) * term score + vector_weight * cosine. Only chunks with
    every phrase in their words are answered; the words of phrases are among `terms`. With `explain` each hit tells what
    every word brought it."""

    tenant_id: str
    dataset_ids: tuple[str, ...]
    terms: tuple[str, ...]
    vector: Vectors
    vector_weight: float = 0.3
    limit: int = 1024
    document_ids: tuple[str, ...] | None = None
    phrases: tuple[tuple[str, ...], ...] = ()
    explain: bool = False


@dataclass(frozen=True)
class WordScore:
    """What a word of the question brought a chunk: `part` of its term_similarity, 0 where the chunk lacks the word.

    `meant` is what was searched for: the word, or the nearest one where no chunk holds it. `highest` is the part that
    BM25 could give it at most, and `chunks` is how many of the index hold it."""

    word: str
    meant: str
    chunks: int
    highest: float
    part: float


@dataclass(frozen=True)
class Hit:
    """Scores are in 0..1. `term_similarity` is BM25 over the highest BM25 the question could get; `words` says how it
    came about, where that was asked for."""

    chunk: ChunkRecord
    similarity: float
    term_similarity: float
    vector_similarity: float
    words: tuple[WordScore, ...] = ()


@dataclass(frozen=True)
class ChunkPage:
    total: int
    chunks: list[ChunkRecord] = field(default_factory=list)


@dataclass(frozen=True)
class ChunkPlace:
    """Where a chunk stands, without its text; fields as of ChunkRecord."""

    id: str
    task_no: int
    claim_no: int
    page: int
    positions: tuple[tuple[int, int, int, int, int], ...] = ()


@dataclass(frozen=True)
class Tally:
    """How many chunks the index holds of one claim."""

    tenant_id: str
    dataset_id: str
    document_id: str
    generation: int
    task_no: int
    claim_no: int
    count: int


@dataclass(frozen=True)
class Adopted:
    """A generation that was adopted, and its number among all of them."""

    number: int
    scope: Scope


class DocIndex(Protocol):
    """`adopts` tells whether `adopt` may ever be true.

    Thread-safe. Every method raises IndexUnavailable when the index can't answer. All but `search` see every write
    that was acknowledged before."""

    adopts: bool

    def upsert(self, chunks: Sequence[ChunkRecord], vectors: Vectors) -> int:
        """Write all chunks or none, replacing those of the same tenant with the same id. They are all one tenant's.
        Returns the write's sequence number.

        Raises InvalidInput, which names them, for chunks that can never be written; then none is there. After
        IndexUnavailable some may be: nobody knows what a server that went away still did."""

    def delete(self, scope: Scope) -> int:
        """Delete every chunk in the scope. Returns the write's sequence number (0 where there was none)."""

    def get(self, tenant_id: str, ids: Sequence[str]) -> list[ChunkRecord]:
        """The chunks with these ids, in this order; unknown ids are left out."""

    def read_all(self, scope: Scope) -> tuple[list[ChunkRecord], Vectors]:
        """Every chunk in the scope with its vector, ordered by task and ordinal: to be written again elsewhere."""

    def adopt(self, asked: Adoption) -> bool:
        """Give a document the chunks of another at once, findable from `findable` on: what is in the source now,
        whatever becomes of it. False where this can't be done at once, or something of that generation is there: then
        nothing was done. Before `make_adopted_durable` a power cut may take it, all or nothing of it."""

    def make_adopted_durable(self) -> None:
        """Return once everything that was adopted so far survives a power cut."""

    def adopted(self, rest_ms: int) -> Sequence[Adopted]:
        """Some of what was adopted so long ago and is not confirmed yet, the oldest first."""

    def confirm_adopted(self, adopted: Sequence[Adopted]) -> None:
        """The rows know of these, or they have been deleted."""

    def count(self, scope: Scope) -> int: ...

    def search(self, query: Query, at_least: int = 0) -> list[Hit]:
        """Best first; ties by id. Sees every write up to the sequence number `at_least`, catching up first."""

    def list(self, scope: Scope, offset: int, limit: int) -> ChunkPage:
        """In order of (page, task_no, ordinal, id)."""

    def places(self, scope: Scope) -> Sequence[ChunkPlace]:
        """Where every chunk in the scope stands, in the same order."""

    def make_durable(self, sequence: int) -> None:
        """Return once the write with this number survives a power cut."""

    def wait_findable(self, tenant_id: str, sequence: int, timeout_s: float) -> bool:
        """True once every search sees the tenant's write with this number, also after a power cut; False on timeout."""

    def tally(self, scope: Scope | None = None) -> Iterator[Tally]:
        """What is there in the scope, or of all tenants. Claims of one document follow each other."""

    def damage(self) -> str:
        """What is wrong with parts that are made of the chunks, and made anew by `migrate` with `force`; "" where
        nothing is, or that can't be told while they are written."""

    def outdated(self) -> Sequence[str]:
        """Names of the parts that are not in the form that this version writes."""

    def migrate(self, say: Callable[[str], None], force: bool = False) -> int:
        """Bring outdated parts into the form that this version writes, and tell how it goes; how many were made anew.
        With `force` all of them are. Writes and searches go on meanwhile."""

    def check(self) -> None:
        """Raise IndexUnavailable unless reads and writes work now."""

    def close(self) -> None: ...
