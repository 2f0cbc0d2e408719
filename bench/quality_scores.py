"""The question set of the quality bench, and the measures: how well a ranking serves a question, means of many, and
whether a difference between two means may be chance. Knows nothing of the index."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, fields

import msgspec
import numpy as np

from common.settings import ROOT

SET = ROOT / "bench" / "quality_set"
KINDS = ("own words", "paraphrase", "keywords", "identifier", "typo")
_DEPTH = 10
_DRAWS = 10_000


class Passage(msgspec.Struct, frozen=True):
    id: str
    source: str
    title: str
    headings: tuple[str, ...]
    text: str


class Question(msgspec.Struct, frozen=True):
    """`answers` are the ids of all passages that answer it."""

    kind: str
    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """Of one question, or the means of many. `recall_k`: whether a marked passage is among the first k."""

    recall_1: float
    recall_5: float
    recall_10: float
    mrr: float
    ndcg_10: float


def passages() -> list[Passage]:
    with gzip.open(SET / "passages.jsonl.gz", "rb") as file:
        return [msgspec.json.decode(line, type=Passage) for line in file]


def questions() -> list[Question]:
    lines = (SET / "questions.jsonl").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=Question) for line in lines]


def score(ids: Sequence[str], answers: Sequence[str]) -> Score:
    """Of ids, best first, where all answers are equally good."""
    places = [place for place, id_ in enumerate(ids) if id_ in answers]
    if not places:
        return Score(0.0, 0.0, 0.0, 0.0, 0.0)
    first = places[0]
    gain = _gain([place for place in places if place < _DEPTH])
    return Score(
        recall_1=float(first < 1),
        recall_5=float(first < 5),
        recall_10=float(first < _DEPTH),
        mrr=1 / (first + 1),
        ndcg_10=gain / _gain(range(min(_DEPTH, len(answers)))),
    )


def mean(of: Sequence[Score]) -> Score:
    return Score(*(float(np.mean([getattr(each, field.name) for each in of])) for field in fields(Score)))


def by_kind(asked: Sequence[Question], of: Sequence[Score]) -> dict[str, Score]:
    return {kind: mean([each for q, each in zip(asked, of, strict=True) if q.kind == kind]) for kind in KINDS}


def difference(these: Sequence[Score], those: Sequence[Score], name: str) -> tuple[float, float, float]:
    """The mean difference over the same questions, and the bounds it keeps to in 95 of 100 draws of them."""
    gaps = np.array([getattr(a, name) - getattr(b, name) for a, b in zip(these, those, strict=True)])
    drawn = gaps[np.random.default_rng(0).integers(0, len(gaps), (_DRAWS, len(gaps)))].mean(axis=1)
    return float(gaps.mean()), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def _gain(places: Sequence[int]) -> float:
    return float(sum(1 / np.log2(place + 2) for place in places))
