"""What `pagemill search --explain` says: lines on the question as it was understood, and on each hit."""

from __future__ import annotations

from collections.abc import Iterator

from api.commands.options import printable
from api.db.services.explanation import Explanation, Why, WordFound
from api.db.services.reranking import Reranking
from api.db.services.retrieval_service import Answer, Found
from rag.utils.doc_index import WordScore


def question_lines(answer: Answer) -> Iterator[str]:
    """None where no explanation was asked for."""
    told = answer.explanation
    if told is None:
        return
    yield "The question's words, how many chunks hold each, and the most it can add to the words' score:"
    for word in told.words:
        yield f"  {_as_searched(word)}: {_chunks(word)}, {word.highest:.2f}"
    for phrase in told.phrases:
        yield f'Only chunks with the phrase "{printable(" ".join(phrase))}" are answered.'
    yield f"similarity = {_sum_of(told, answer.reranking)}"
    yield from _threshold_lines(told)
    if answer.reranking is not None:
        yield _reranking_line(answer.reranking)
    yield ""


def hit_lines(answer: Answer, found: Found) -> Iterator[str]:
    """None where no explanation was asked for."""
    told, why = answer.explanation, found.why
    if told is None or why is None:
        return
    weight = told.vector_weight
    by = "vectors" if why.rerank_score is None else "reranker"
    yield (
        f"{found.similarity:.3f} = {1 - weight:.2f} * {found.term_similarity:.3f} words"
        f" + {weight:.2f} * {found.vector_similarity:.3f} {by}"
    )
    yield _ranks(why)
    for word in sorted(why.words, key=lambda word: -word.share):
        if word.score.part:
            yield f"{_as_searched(word.score)}: {word.score.part:.3f} of it ({word.share:.0%}), in the {_where(word)}"
    if missing := [word for word in why.words if not word.score.part]:
        yield "without " + ", ".join(_missing(word) for word in missing)


def _as_searched(word: WordScore) -> str:
    if word.meant == word.word:
        return printable(word.word)
    return f"{printable(word.word)}, taken for {printable(word.meant)}"


def _chunks(word: WordScore) -> str:
    return "in no chunk" if not word.chunks else f"in {word.chunks} chunk{'s' if word.chunks > 1 else ''}"


def _sum_of(told: Explanation, reranking: Reranking | None) -> str:
    near = "reranker" if reranking is not None and not reranking.failure else "vectors"
    return f"{1 - told.vector_weight:.2f} * words + {told.vector_weight:.2f} * {near}"


def _threshold_lines(told: Explanation) -> Iterator[str]:
    if not told.left_out_count:
        yield f"The threshold of {told.threshold:.2f} left nothing out."
        return
    named = ", ".join(f"{one.similarity:.2f} {printable(one.document_name)}" for one in told.left_out)
    more = told.left_out_count - len(told.left_out)
    yield f"The threshold of {told.threshold:.2f} left {told.left_out_count} out: {named}" + (
        f" and {more} more" if more else ""
    )


def _reranking_line(outcome: Reranking) -> str:
    if outcome.failure:
        return f"The reranker {printable(outcome.model)} took no part: {printable(outcome.failure)}"
    return f"The reranker {printable(outcome.model)} scored {outcome.count} hits."


def _ranks(why: Why) -> str:
    by_words, by_vectors = why.ranks.by_words, why.ranks.by_vectors
    text = f"number {by_words or '-'} by words alone, number {by_vectors or '-'} by vectors alone"
    return text if why.rerank_score is None else f"{text}; cosine {why.cosine:.3f}"


def _where(word: WordFound) -> str:
    return " and the ".join(word.places) or "words it was indexed with"


def _missing(word: WordFound) -> str:
    places = f" (only in the {_where(word)})" if word.places else ""
    return f"{printable(word.score.word)}{places}"
