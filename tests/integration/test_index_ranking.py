"""The same chunks rank alike on every index: measured on Python's own documentation, embedded as the product does."""

from __future__ import annotations

import inspect
import io
import pathlib
import re
import sqlite3
import string
import subprocess
import tarfile
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pydoc_data.topics import topics

import numpy as np
import pytest

from common.settings import ROOT, EmbeddingSettings
from rag.utils import es_search
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query, Vectors
from rag.utils.embedder import PackagedEmbedder
from rag.utils.terms import analyse
from tests.elastic_indexes import elastic_index, elastic_settings
from tests.indexes import chunk, embedded_index, ids

pytestmark = pytest.mark.timeout(900)
_WORDS = 90
_QUESTIONS = 60
# What is asked about: their docstrings ask for what the pages of documentation explain.
_ASKED = (
    str,
    dict,
    list,
    set,
    bytes,
    pathlib.Path,
    io.TextIOBase,
    tarfile.TarFile,
    subprocess.Popen,
    sqlite3.Connection,
)


@dataclass(frozen=True)
class Both:
    """The same chunks in each, everything findable."""

    embedded: DocIndex
    elastic: DocIndex


def passages() -> list[str]:
    """The topics of Python's help and the pages of docs/, cut into pieces of some lines."""
    pages = [str(text) for _, text in sorted(topics.items())]
    pages += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    return [" ".join(piece) for page in pages for piece in _pieces(page.split()) if len(piece) > 20]


def _pieces(words: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(words), _WORDS):
        yield words[start : start + _WORDS]


def questions() -> list[str]:
    """First sentences of docstrings."""
    found: dict[str, None] = {}
    for thing in _ASKED:
        for name in sorted(vars(thing)):
            told = inspect.getdoc(getattr(thing, name)) or ""
            sentence = re.split(r"(?<=[.])\s|\n\n", textwrap.dedent(told))[0].strip()
            if 4 <= len(sentence.split()) <= 30 and not name.startswith("_"):
                found[sentence.strip(string.punctuation)] = None
    return list(found)[:_QUESTIONS]


@pytest.fixture(scope="module")
def embedder() -> PackagedEmbedder:
    return PackagedEmbedder(EmbeddingSettings())


@pytest.fixture(scope="module")
def both(
    elasticsearch_url: str, tmp_path_factory: pytest.TempPathFactory, embedder: PackagedEmbedder
) -> Iterator[Both]:
    texts = passages()
    assert len(texts) > 800
    made = [chunk(f"c{n:05}", text, document_id=f"doc{n % 50}", ordinal=n) for n, text in enumerate(texts)]
    vectors = embedder.embed(texts)
    with ExitStack() as stack:
        embedded = stack.enter_context(embedded_index(tmp_path_factory.mktemp("ranking") / "index"))
        elastic = stack.enter_context(elastic_index(elastic_settings(elasticsearch_url)))
        for index in (embedded, elastic):
            assert index.wait_findable("tenant", _fill(index, made, vectors), 60.0)
        yield Both(embedded, elastic)


def _fill(index: DocIndex, made: list[ChunkRecord], vectors: Vectors) -> int:
    newest = 0
    for start in range(0, len(made), 512):
        newest = index.upsert(made[start : start + 512], vectors[start : start + 512])
    return newest


def mistyped(text: str) -> str:
    """Two letters of its longest word swapped."""
    longest = max(re.findall(r"[a-z]+", text), key=len)
    middle = len(longest) // 2
    wrong = longest[:middle] + longest[middle + 1] + longest[middle] + longest[middle + 2 :]
    return text.replace(longest, wrong)


def asked(embedder: PackagedEmbedder, texts: Sequence[str] = ()) -> list[Query]:
    texts = texts or questions()
    vectors = embedder.embed(texts)
    return [
        Query("tenant", ("set",), tuple(dict.fromkeys(analyse(text))), vector, vector_weight=0.3, limit=64)
        for text, vector in zip(texts, vectors, strict=True)
    ]


def overlap(first: list[Hit], second: list[Hit], top: int = 10) -> float:
    return len(set(ids(first[:top])) & set(ids(second[:top]))) / top


@pytest.mark.parametrize("few", [1_000_000, 0], ids=["all are scored", "candidates are"])
def test_the_best_ten_are_the_same(
    both: Both, embedder: PackagedEmbedder, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(es_search, "_FEW", few)
    assert len(questions()) == _QUESTIONS
    shared, firsts = [], 0
    for query in asked(embedder):
        ours, theirs = both.embedded.search(query), both.elastic.search(query)
        assert len(ours) == len(theirs) == 64
        shared.append(overlap(ours, theirs))
        firsts += ours[0].chunk.id == theirs[0].chunk.id
    print(f"top 10 shared: {np.mean(shared):.3f}, worst {min(shared)}; first the same: {firsts} of {len(shared)}")
    assert np.mean(shared) >= 0.97
    assert min(shared) >= 0.7
    assert firsts >= 0.95 * len(shared)


def test_mistyped_questions_are_understood_alike(both: Both, embedder: PackagedEmbedder) -> None:
    wrong = [mistyped(text) for text in questions()]
    assert len(set(wrong) - set(questions())) > 50
    shared = [overlap(both.embedded.search(one), both.elastic.search(one)) for one in asked(embedder, wrong)]
    print(f"mistyped, top 10 shared: {np.mean(shared):.3f}, worst {min(shared)}")
    assert np.mean(shared) >= 0.97


def test_both_scores_are_by_the_same_measure(both: Both, embedder: PackagedEmbedder) -> None:
    for query in asked(embedder)[:10]:
        theirs = {hit.chunk.id: hit for hit in both.elastic.search(query)}
        for hit in both.embedded.search(query)[:10]:
            if hit.chunk.id in theirs:
                same = theirs[hit.chunk.id]
                assert same.term_similarity == pytest.approx(hit.term_similarity, abs=0.02)
                assert same.vector_similarity == pytest.approx(hit.vector_similarity, abs=0.002)


def test_a_question_to_some_documents_ranks_them_alike(both: Both, embedder: PackagedEmbedder) -> None:
    some = tuple(f"doc{n}" for n in range(5))
    for query in asked(embedder)[:10]:
        narrow = replace(query, document_ids=some)
        ours, theirs = both.embedded.search(narrow), both.elastic.search(narrow)
        assert {hit.chunk.document_id for hit in theirs} <= set(some)
        assert overlap(ours, theirs) >= 0.8
