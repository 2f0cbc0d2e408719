"""The quality bench: how often the passage that answers a question is found, by words, by vectors and by both.

    make bench-quality ARGS="--missed"

The questions and passages are the project's own (bench/quality_set). Everything that ranks is the product's: terms,
model, index and default weight."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from api.db.services import retrieval_service
from bench import plots
from bench.quality_scores import KINDS, Passage, Question, Score, by_kind, difference, mean, passages, questions, score
from common.settings import ROOT, EmbeddingSettings, IndexSettings
from rag.flow.searched import searched_text
from rag.svr.indexer import Config, Indexer
from rag.utils.doc_index import ChunkRecord, DocIndex, Hit, Query
from rag.utils.embedded_index import EmbeddedIndex
from rag.utils.embedder import Embedder, PackagedEmbedder
from rag.utils.terms import analyse

RESULTS = plots.RESULTS / "quality.json"
WORDS, VECTORS = 0.0, 1.0
# What a client gets that says nothing about them.
_SILENT = retrieval_service.Question("", ())
DEFAULT, THRESHOLD = _SILENT.vector_similarity_weight, _SILENT.similarity_threshold
_SWEEP = tuple(step / 10 for step in range(11))
_TENANT, _DATASET = "tenant", "quality"
# As many candidates as the retrieval service cuts a page out of.
_LIMIT = 64
_BATCH = 1024
_FINDABLE_S = 120.0
_HEADINGS = ("R@1", "R@5", "R@10", "MRR", "nDCG@10")
console = Console(width=max(Console().width, 100))

Scores = Mapping[float, Sequence[Score]]


@contextmanager
def indexed(found: Sequence[Passage], embedder: Embedder) -> Iterator[DocIndex]:
    """An index that holds the passages as chunks, beside the indexer that keeps it up to date."""
    with tempfile.TemporaryDirectory() as temporary:
        index = EmbeddedIndex(Path(temporary), IndexSettings())
        stop = threading.Event()
        indexer = threading.Thread(target=Indexer(Config(Path(temporary))).run, args=(stop,))
        indexer.start()
        try:
            newest = 0
            for first in range(0, len(found), _BATCH):
                part = found[first : first + _BATCH]
                records = [_record(passage, first + place) for place, passage in enumerate(part)]
                newest = index.upsert(records, embedder.embed([searched_text(p.text, p.headings) for p in part]))
            if not index.wait_findable(_TENANT, newest, _FINDABLE_S):
                raise SystemExit("the passages were not indexed in time")
            yield index
        finally:
            stop.set()
            indexer.join()
            index.close()


def _record(passage: Passage, ordinal: int) -> ChunkRecord:
    """As an executor writes it."""
    return ChunkRecord(
        id=passage.id,
        tenant_id=_TENANT,
        dataset_id=_DATASET,
        document_id=passage.id.rsplit(":", 1)[0],
        generation=1,
        task_no=0,
        claim_no=1,
        ordinal=ordinal,
        page=1,
        text=passage.text,
        terms=" ".join(analyse(searched_text(passage.text, passage.headings))),
        token_count=len(passage.text.split()),
        headings=passage.headings,
    )


def ask(index: DocIndex, embedder: Embedder, asked: Sequence[Question], weight: float) -> list[list[Hit]]:
    """The hits of every question, as the retrieval service asks for them."""
    vectors = embedder.embed([question.question for question in asked])
    return [
        index.search(
            Query(
                tenant_id=_TENANT,
                dataset_ids=(_DATASET,),
                terms=tuple(dict.fromkeys(analyse(question.question))),
                vector=vector,
                vector_weight=weight,
                limit=_LIMIT,
            )
        )
        for question, vector in zip(asked, vectors, strict=True)
    ]


def scores(asked: Sequence[Question], answered: Sequence[Sequence[Hit]], threshold: float = 0.0) -> list[Score]:
    return [
        score([hit.chunk.id for hit in hits if hit.similarity >= threshold], question.answers)
        for question, hits in zip(asked, answered, strict=True)
    ]


def _named(weight: float) -> str:
    names = {WORDS: "words only", VECTORS: "vectors only", DEFAULT: f"both, {DEFAULT} (default)"}
    return names.get(weight, f"both, {weight}")


def show(asked: Sequence[Question], found: Scores, cut: Sequence[Score], size: int) -> None:
    table = Table(title=f"{len(asked)} questions over {size:,} passages, by the weight of vectors")
    table.add_column("")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for weight, of in found.items():
        table.add_row(_named(weight), *_row(mean(of)))
    table.add_section()
    table.add_row(f"default, with the API's threshold {THRESHOLD}", *_row(mean(cut)))
    console.print(table)
    table = Table(title="By kind of question")
    for heading in ("kind", "", *_HEADINGS):
        table.add_column(heading, justify="right" if heading in _HEADINGS else "left")
    for kind in KINDS:
        label = f"{kind}, {sum(question.kind == kind for question in asked)}"
        for weight in (WORDS, VECTORS, DEFAULT):
            table.add_row(label, _named(weight), *_row(by_kind(asked, found[weight])[kind]))
            label = ""
        table.add_section()
    console.print(table)
    for other in (WORDS, VECTORS):
        for name in ("recall_10", "mrr", "ndcg_10"):
            gap, low, high = difference(found[DEFAULT], found[other], name)
            console.print(f"default - {_named(other)}: {name} {gap:+.3f} (95 %: {low:+.3f} to {high:+.3f})")


def _row(of: Score) -> list[str]:
    return [f"{value:.3f}" for value in asdict(of).values()]


def picture(asked: Sequence[Question], found: Scores) -> Path:
    means = [mean(of) for of in found.values()]
    sweep = plots.Lines(
        title="From words to vectors",
        x_label="vector_similarity_weight",
        y_label="mean over all questions",
        x=list(found),
        y={
            "R@10": [each.recall_10 for each in means],
            "MRR": [each.mrr for each in means],
            "nDCG@10": [each.ndcg_10 for each in means],
        },
        marked=(DEFAULT, "default"),
    )
    kinds = plots.Bars(
        title="By kind of question",
        y_label="nDCG@10",
        groups=KINDS,
        y={
            _named(weight): [each.ndcg_10 for each in by_kind(asked, found[weight]).values()]
            for weight in (WORDS, VECTORS, DEFAULT)
        },
    )
    return plots.draw("quality", (sweep, kinds))


def result(asked: Sequence[Question], found: Scores, cut: Sequence[Score], size: int) -> dict[str, object]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": "make bench-quality",
        "questions": len(asked),
        "passages": size,
        "default_weight": DEFAULT,
        "weights": [{"vector_weight": weight, **asdict(mean(of))} for weight, of in found.items()],
        "with_the_threshold": {"similarity_threshold": THRESHOLD, **asdict(mean(cut))},
        "kinds": {
            kind: {_named(weight): asdict(by_kind(asked, found[weight])[kind]) for weight in (WORDS, VECTORS, DEFAULT)}
            for kind in KINDS
        },
    }


def list_missed(asked: Sequence[Question], of: Sequence[Score]) -> None:
    for question, each in zip(asked, of, strict=True):
        if not each.recall_10:
            console.print(f"[yellow]{question.kind}[/]: {question.question} [dim]({', '.join(question.answers)})")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--missed", action="store_true", help="list what the default does not find among the first ten")
    options = parser.parse_args()
    asked, held, embedder = questions(), passages(), PackagedEmbedder(EmbeddingSettings())
    with indexed(held, embedder) as index:
        answered = {weight: ask(index, embedder, asked, weight) for weight in sorted({*_SWEEP, DEFAULT})}
    found = {weight: scores(asked, answers) for weight, answers in answered.items()}
    cut = scores(asked, answered[DEFAULT], THRESHOLD)
    show(asked, found, cut, len(held))
    if options.missed:
        list_missed(asked, found[DEFAULT])
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result(asked, found, cut, len(held)), indent=2) + "\n", encoding="utf-8")
    drawn = picture(asked, found)
    console.print(f"written to {RESULTS.relative_to(ROOT)} and {drawn.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
