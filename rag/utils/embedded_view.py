"""One look at the text half of the embedded index: words and phrases searched in tantivy, and what each word brings.

Owns queries and scores. Which folder is looked into, and when, is decided by embedded_text.py."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import tantivy
from tantivy import Occur, Query

from common.errors import IndexUnavailable
from rag.utils.doc_index import WordScore
from rag.utils.embedded_folder import Mark
from rag.utils.near_terms import PREFIX, can_be_mistyped, nearest
from rag.utils.phrases import Phrase, all_words
from rag.utils.weighed_words import WeighedWords

# Text halves of this version and later know where in a chunk a word stands.
_POSITIONS_SINCE = 2


@contextlib.contextmanager
def translated(action: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as exc:  # tantivy reports every failure as a ValueError
        raise IndexUnavailable(f"the text index can't {action}: {exc}") from exc


class TextView:
    """The text index as it was with this mark, or a little later.

    Its scores are parts of the highest BM25 that the words could get."""

    def __init__(self, index: tantivy.Index, mark: Mark, documents: int) -> None:
        self.mark = mark
        self._schema = index.schema
        self._searcher = index.searcher()
        self._documents = documents

    @property
    def chunks(self) -> int:
        """How many it holds."""
        return int(self._searcher.num_docs)

    @property
    def has_positions(self) -> bool:
        return self.mark.version >= _POSITIONS_SINCE

    def search(
        self,
        terms: Sequence[str],
        datasets: Sequence[int],
        documents: Sequence[str] | None,
        limit: int,
        phrases: Sequence[Phrase] = (),
    ) -> Mapping[int, float]:
        """The best rows for any of the words, with scores in 0..1. Fewer than `limit`: these are all.

        Without positions those come that hold all words of the phrases, wherever in the chunk."""
        filters: list[Query] = []
        if not self._are_all(datasets):
            filters.append(Query.term_set_query(self._schema, "dataset", list(datasets)))
        if documents is not None:
            filters.append(Query.term_set_query(self._schema, "document", list(documents)))
        with translated("be searched"):
            words = self._weigh(terms)
            scores = self._run(words.known, [*filters, *self._phrase_filters(phrases)], limit)
        return {row: min(1.0, score / words.highest) for row, score in scores.items()}

    def scores(self, terms: Sequence[str], rows: Sequence[int], phrases: Sequence[Phrase] = ()) -> Mapping[int, float]:
        """The scores of those of these rows that hold any of the words, and the phrases as in `search`."""
        with translated("be searched"):
            words = self._weigh(terms)
            scores = self._run(words.known, [self._among(rows), *self._phrase_filters(phrases)], len(rows))
        return {row: min(1.0, score / words.highest) for row, score in scores.items()}

    def parts(self, terms: Sequence[str], rows: Sequence[int]) -> dict[int, tuple[WordScore, ...]]:
        """What each of the words brings each of these rows."""
        with translated("be searched"):
            words = self._weigh(terms)
            each = {term: self._run([term], [self._among(rows)], len(rows)) for term in words.known}
        return {row: words.parts({term: scores.get(row, 0.0) for term, scores in each.items()}) for row in rows}

    def _are_all(self, datasets: Sequence[int]) -> bool:
        """Whether no chunk is of another dataset. Said of none while chunks are deleted and not merged away yet."""
        held = sum(self._searcher.doc_freq("dataset", number) for number in datasets)
        return held == self._documents == self._searcher.num_docs

    def _weigh(self, terms: Sequence[str]) -> WeighedWords:
        meant = {term: self._known_as(term) for term in terms}
        frequencies = {term: self._searcher.doc_freq("terms", term) for term in meant.values()}
        return WeighedWords(meant, frequencies, self._documents)

    def _run(self, asked: Sequence[str], filters: Sequence[Query], limit: int) -> Mapping[int, float]:
        """BM25 of the best rows that hold any of the words and pass the filters."""
        if not asked or limit < 1 or self._documents < 1:
            return {}
        query = Query.boolean_query([(Occur.Should, self._word(term)) for term in asked])
        if filters:  # words alone are found without looking at every chunk that holds one
            must = [query, *(Query.const_score_query(part, 0.0) for part in filters)]
            query = Query.boolean_query([(Occur.Must, part) for part in must])
        # As many as there are, at most: tantivy makes room for all that are asked for.
        hits = self._searcher.search(query, min(limit, self._documents), count=False).hits
        rows = self._searcher.fast_field_values("row", [address for _, address in hits])
        return {int(row or 0): score for row, (score, _) in zip(rows, hits, strict=True)}

    def _phrase_filters(self, phrases: Sequence[Phrase]) -> list[Query]:
        if not self.has_positions:
            return [self._word(word) for word in all_words(phrases)]
        return [self._phrase(phrase) for phrase in phrases]

    def _phrase(self, phrase: Phrase) -> Query:
        if len(phrase) == 1:  # tantivy takes two words or more for a phrase
            return self._word(phrase[0])
        return Query.phrase_query(self._schema, "terms", list(phrase))

    def _word(self, term: str) -> Query:
        return Query.term_query(self._schema, "terms", term, "freq")

    def _among(self, rows: Sequence[int]) -> Query:
        return Query.term_set_query(self._schema, "row", list(rows))

    def _known_as(self, term: str) -> str:
        """The term itself, or the nearest one where no chunk holds it."""
        if not can_be_mistyped(term) or self._searcher.doc_freq("terms", term):
            return term
        return nearest(term, self._searcher.terms_with_prefix("terms", term[:PREFIX])) or term
