"""The text half as searches see it while copies of documents are not in it yet: their words are those of the rows they
were made of, which are there; those of a copy of such a copy are the first one's. The log's order makes this sound: an
entry that drops a source stands behind the copy's own, so whoever no longer finds the source's words finds the
copy's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag.utils.doc_index import WordScore
from rag.utils.embedded_log import Entry
from rag.utils.embedded_view import TextView
from rag.utils.phrases import Phrase


class TwinView:
    """A TextView, and the rows of copies beside it."""

    def __init__(self, view: TextView, copies: Sequence[Entry], datasets: Sequence[int]) -> None:
        """`copies` are all that the view may lack, in order; searched are those into these datasets."""
        self._view = view
        self._source_of: dict[int, int] = {}
        self._rows: list[int] = []
        for copy in copies:
            first, last = copy.span
            sources = zip(range(first, last + 1), copy.rows[2:].tolist(), strict=True)
            self._source_of |= {row: self._source_of.get(source, source) for row, source in sources}
            if copy.dataset in datasets:
                self._rows += range(first, last + 1)

    @property
    def has_positions(self) -> bool:
        return self._view.has_positions

    def search(
        self,
        terms: Sequence[str],
        datasets: Sequence[int],
        documents: Sequence[str] | None,
        limit: int,
        phrases: Sequence[Phrase] = (),
    ) -> Mapping[int, float]:
        """Copies of other documents may be among them: the vector half knows whose they are."""
        found = self._view.search(terms, datasets, documents, limit, phrases)
        return {**found, **self._of_copies(terms, self._rows, phrases)}

    def scores(self, terms: Sequence[str], rows: Sequence[int]) -> Mapping[int, float]:
        own = [row for row in rows if row not in self._source_of]
        copied = [row for row in rows if row in self._source_of]
        return {**self._view.scores(terms, own), **self._of_copies(terms, copied)}

    def parts(self, terms: Sequence[str], rows: Sequence[int]) -> dict[int, tuple[WordScore, ...]]:
        found = self._view.parts(terms, [self._source_of.get(row, row) for row in rows])
        return {row: found[self._source_of.get(row, row)] for row in rows}

    def _of_copies(
        self, terms: Sequence[str], rows: Sequence[int], phrases: Sequence[Phrase] = ()
    ) -> Mapping[int, float]:
        if not rows:
            return {}
        sources = {self._source_of[row] for row in rows}
        found = self._view.scores(terms, sorted(sources), phrases)
        return {row: found[of] for row in rows if (of := self._source_of[row]) in found}


def with_twins(view: TextView | None, copies: Sequence[Entry], datasets: Sequence[int]) -> TextView | TwinView | None:
    return TwinView(view, copies, datasets) if view is not None and copies else view
