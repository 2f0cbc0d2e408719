"""The question set of the quality bench is sound, and its measures are what their names say."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from bench.quality_scores import KINDS, SET, Passage, Question, Score, by_kind, difference, mean, score
from bench.quality_scores import passages as read_passages
from bench.quality_scores import questions as read_questions
from rag.flow.tables import plain_text
from rag.utils.terms import analyse

_MAX_BYTES = 1_500_000


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return read_passages()


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    return read_questions()


def test_there_are_enough_passages_and_they_are_small_to_carry(passages: list[Passage]) -> None:
    assert len(passages) >= 3200
    assert (SET / "passages.jsonl.gz").stat().st_size < _MAX_BYTES


def test_ids_are_unique_and_name_their_source(passages: list[Passage]) -> None:
    assert max(Counter(passage.id for passage in passages).values()) == 1
    assert [passage.id for passage in passages if passage.id.split(":")[0] != passage.source] == []


def test_texts_are_unique_and_as_long_as_chunks_are(passages: list[Passage]) -> None:
    assert max(Counter(passage.text for passage in passages).values()) == 1
    lengths = sorted(len(passage.text.split()) for passage in passages)
    assert lengths[0] >= 60
    assert lengths[-1] <= 270
    assert lengths[len(lengths) // 10] >= 80


def test_texts_are_clean(passages: list[Passage]) -> None:
    marked = [passage.id for passage in passages if plain_text(passage.text) != passage.text]
    assert marked == []
    assert [passage.id for passage in passages if "\u00b6" in passage.text or not passage.title] == []


def test_every_source_has_its_licence(passages: list[Passage]) -> None:
    told = (SET / "LICENSES.md").read_text(encoding="utf-8")
    counts = Counter(passage.source for passage in passages)
    assert len(counts) >= 3
    for source, count in counts.items():
        row = next(line for line in told.splitlines() if line.startswith(f"| `{source}` |"))
        assert f"| {count:,} |" in row
    assert f"{len(passages):,} passages" in told


def test_there_are_enough_questions_of_every_kind(questions: list[Question]) -> None:
    counts = Counter(question.kind for question in questions)
    assert len(questions) >= 160
    assert set(counts) == set(KINDS)
    assert min(counts.values()) >= 20
    for kind in ("own words", "paraphrase"):
        assert counts[kind] >= len(questions) // 4


def test_no_question_is_asked_twice(questions: list[Question]) -> None:
    asked = Counter(" ".join(analyse(question.question)) for question in questions)
    assert [terms for terms, count in asked.items() if count > 1] == []


def test_every_question_is_answered_by_passages_that_are_there(
    questions: list[Question], passages: list[Passage]
) -> None:
    known = {passage.id for passage in passages}
    assert [question.question for question in questions if not question.answers] == []
    assert [id_ for question in questions for id_ in question.answers if id_ not in known] == []
    assert [question.question for question in questions if len(set(question.answers)) != len(question.answers)] == []


def test_questions_are_spread_over_the_sources(questions: list[Question], passages: list[Passage]) -> None:
    counts = Counter(question.answers[0].split(":")[0] for question in questions)
    assert set(counts) == {passage.source for passage in passages}
    assert min(counts.values()) >= 15


def test_a_score_tells_where_the_first_answer_stands() -> None:
    assert score(["a", "b"], ["a"]) == Score(1.0, 1.0, 1.0, 1.0, 1.0)
    assert score(["x", "y", "a"], ["a"]) == Score(0.0, 1.0, 1.0, 1 / 3, 0.5)
    assert score(["x"] * 5 + ["a"], ["a"]).recall_5 == 0.0
    assert score(["x"] * 10 + ["a"], ["a"]) == Score(0.0, 0.0, 0.0, 1 / 11, 0.0)
    assert score(["x"], ["a"]) == Score(0.0, 0.0, 0.0, 0.0, 0.0)


def test_ndcg_wants_all_answers_and_no_more_than_ten() -> None:
    both = 1 + 1 / math.log2(3)
    assert score(["a", "x", "b"], ["a", "b"]).ndcg_10 == pytest.approx((1 + 0.5) / both)
    many = [str(number) for number in range(12)]
    assert score(many[:10], many).ndcg_10 == pytest.approx(1.0)


def test_means_are_over_all_questions_or_those_of_a_kind() -> None:
    good, bad = score(["a"], ["a"]), score(["x"], ["a"])
    assert mean([good, bad]) == Score(0.5, 0.5, 0.5, 0.5, 0.5)
    asked = [Question(kind, kind, ("a",)) for kind in KINDS]
    assert by_kind(asked, [good, *[bad] * 4])["own words"] == good


def test_a_difference_comes_with_its_bounds() -> None:
    good, bad = score(["a"], ["a"]), score(["x"], ["a"])
    assert difference([good] * 9, [bad] * 9, "mrr") == (1.0, 1.0, 1.0)
    gap, low, high = difference([good, bad] * 20, [bad, good] * 20, "mrr")
    assert gap == 0.0
    assert low < 0 < high
