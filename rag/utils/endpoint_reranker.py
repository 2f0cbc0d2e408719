"""Reranking by an endpoint as Jina, Cohere and vLLM have it: POST {url}/rerank with a question and texts.

What can go wrong with a call is in endpoint_http.py. All of it is an Outage here: a search goes on without it."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from common.errors import Outage, SettingsError
from common.settings import RerankSettings
from rag.utils.endpoint_http import Endpoint, EndpointClient, TooMuch
from rag.utils.reranker import squashed

_RERANK = Endpoint("rerank", "/rerank", "the rerank endpoint", Outage, Outage)
# A model reads some hundred words of each text; what is behind would only make the call slow.
_MOST_CHARS = 8000


class _Result(msgspec.Struct):
    index: int
    relevance_score: float


class _Answer(msgspec.Struct):
    results: list[_Result]


class EndpointReranker:
    """Connects to nothing before it reranks."""

    def __init__(self, settings: RerankSettings) -> None:
        """Raises SettingsError for settings that no endpoint can be asked with."""
        if not settings.model:
            raise SettingsError("rerank.model: allowed with rerank.url: the name of the endpoint's model")
        self.name = settings.model
        self.top_n = settings.top_n
        self.always = settings.always
        self._timeout_s = settings.timeout_s
        self._client = EndpointClient(settings, _RERANK)

    def scores(self, question: str, texts: Sequence[str]) -> list[float]:
        """Waits as the endpoint asks for, where that is over in time."""
        deadline_s = time.monotonic() + self._timeout_s
        sendable = [_sendable(text) for text in texts]
        return squashed(self._some(_sendable(question), sendable, deadline_s))

    def _some(self, question: str, texts: Sequence[str], deadline_s: float) -> list[float]:
        """In one call, or in as many smaller ones as the endpoint wants."""
        body = {"model": self.name, "query": question, "documents": texts, "top_n": len(texts)}
        try:
            return _scores(self._post(msgspec.json.encode(body), deadline_s), len(texts))
        except TooMuch as exc:
            if len(texts) == 1:
                raise exc.refusal from exc
        half = len(texts) // 2
        return self._some(question, texts[:half], deadline_s) + self._some(question, texts[half:], deadline_s)

    def _post(self, body: bytes, deadline_s: float) -> bytes:
        while True:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise Outage(f"{_RERANK.called} did not answer within {self._timeout_s:g} s")
            try:
                return self._client.post(body, left_s)
            except Outage as exc:
                pause_s = exc.retry_after_s
                if pause_s is None or time.monotonic() + pause_s >= deadline_s:
                    raise
            time.sleep(pause_s)


def _sendable(text: str) -> str:
    """Half a surrogate pair can't be sent."""
    return text[:_MOST_CHARS].encode("utf-8", "replace").decode()


def _scores(answer: bytes, wanted: int) -> list[float]:
    """In the order of the texts. Raises Outage where one is missing, or is no number."""
    try:
        results = msgspec.json.decode(answer, type=_Answer).results
    except msgspec.MsgspecError as exc:
        raise Outage(f"{_RERANK.called} gave an answer that is none: {exc}") from exc
    scores = {result.index: result.relevance_score for result in results}
    if sorted(scores) != list(range(wanted)) or len(results) != wanted:
        raise Outage(f"{_RERANK.called} gave {len(results)} scores for {wanted} texts, or for others")
    if not all(math.isfinite(score) for score in scores.values()):
        raise Outage(f"{_RERANK.called} gave a score that is no number")
    return [scores[index] for index in range(wanted)]
