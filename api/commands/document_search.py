"""What `pagemill search` does. Apart from its options (documents.py), since this needs the whole of the services."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from api.commands.options import err, out, print_json, printable, say
from api.commands.search_explained import hit_lines, question_lines
from api.db.services.dataset_service import DatasetFilter, DatasetView
from api.db.services.explanation import explanation_json, why_json
from api.db.services.naming import extension
from api.db.services.reranking import reranking_json
from api.db.services.retrieval_service import Answer, Found, Question
from api.wiring import connect
from common.errors import InvalidInput, NotFound
from common.settings import Settings

_SNIPPET_WORDS = 80
_WORDS_AROUND = 12
_MARKED = re.compile(r"<em>(.*?)</em>")


def run_search(
    settings: Settings,
    question: str,
    dataset: str | None,
    *,
    limit: int,
    explain: bool,
    rerank: bool,
    as_json: bool,
) -> None:
    services = connect(settings)
    if rerank and services.retrieval.rerank_model is None:
        raise InvalidInput("there is no reranker to ask: set rerank.url and rerank.model")
    tenant_id = services.accounts.admin().tenant_id
    wanted = DatasetFilter(page_size=1000, name=None if dataset is None else dataset.strip())
    known = services.datasets.page(tenant_id, wanted).datasets
    ids = tuple(found.id for found in known)
    if dataset is None and (others := _of_other_models(known, services.datasets.embedding_model)):
        ids = tuple(id_ for id_ in ids if id_ not in others)
        say(f"left out, since they are embedded with another model: {', '.join(others.values())}", err)
        if not ids:
            raise NotFound(f"no dataset is embedded with {services.datasets.embedding_model}")
    if not ids and dataset is not None:
        raise NotFound(f"there is no dataset with the name {dataset!r}")
    if not ids:
        raise NotFound("there is no dataset yet: `pagemill ingest FILE --dataset NAME` makes one")
    answer = services.retrieval.ask(
        tenant_id, Question(question, ids, page_size=limit, highlight=True, explain=explain, rerank=rerank)
    )
    if as_json:
        print_json(_explained_facts(answer) if explain else [_facts(found) for found in answer.chunks])
        return
    if answer.reranking is not None and answer.reranking.failure:
        say(f"in the index's order: {printable(answer.reranking.failure)}", err)
    for line in question_lines(answer):
        say(line)
    if not answer.chunks:
        out.print("nothing found")
    for found in answer.chunks:
        head = Text.assemble((f"{found.similarity:.2f}", "bold"), f"  {printable(found.document_name)}{place(found)}")
        out.print(head, soft_wrap=True)
        for line in hit_lines(answer, found):
            out.print(Padding(line, (0, 0, 0, 6)))
        out.print(Padding(snippet(found.highlight or found.chunk.text), (0, 0, 1, 6)))


def _of_other_models(datasets: Sequence[DatasetView], served: str) -> dict[str, str]:
    """Names by id."""
    return {each.id: printable(each.name) for each in datasets if each.embedding_model != served}


def place(found: Found) -> str:
    """Where in its document a chunk begins. Text files have no pages."""
    suffix = extension(found.document_name)
    if found.chunk.positions or suffix == "pdf":
        return f", page {found.chunk.page}"
    return f", row {found.chunk.page}" if suffix in ("csv", "tsv") else ""


def snippet(marked: str) -> Text:
    """The stretch of a chunk in which most of the question's words stand, these in bold, with some words on both
    sides: an answer often follows right after."""
    words = marked.split()
    marks = [(index, match[1].casefold()) for index, word in enumerate(words) for match in _MARKED.finditer(word)]
    reach = _SNIPPET_WORDS - 2 * _WORDS_AROUND

    def merit(first: int) -> tuple[int, int]:
        within = [word for index, word in marks if first <= index < first + reach]
        return len(set(within)), len(within)

    best = max((index for index, _ in marks), key=merit, default=0)
    first = max(0, best - _WORDS_AROUND)
    text = Text("… " if first else "")
    for number, piece in enumerate(_MARKED.split(" ".join(words[first : first + _SNIPPET_WORDS]))):
        text.append(piece, "bold" if number % 2 else "")
    return text if first + _SNIPPET_WORDS >= len(words) else text.append(" …")


def _explained_facts(answer: Answer) -> dict[str, object]:
    return {
        "question": explanation_json(answer.explanation) if answer.explanation else None,
        "rerank": reranking_json(answer.reranking) if answer.reranking else None,
        "hits": [_facts(found) | {"explain": why_json(found.why) if found.why else None} for found in answer.chunks],
    }


def _facts(found: Found) -> dict[str, object]:
    return {
        "document": found.document_name,
        "page": found.chunk.page,
        "positions": found.chunk.positions,
        "similarity": round(found.similarity, 4),
        "term_similarity": round(found.term_similarity, 4),
        "vector_similarity": round(found.vector_similarity, 4),
        "text": found.chunk.text,
    }
