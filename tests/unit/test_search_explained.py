"""The lines of `pagemill search --explain`: thresholds, rerankers, and words that stand nowhere to be seen."""

from __future__ import annotations

from dataclasses import replace

from api.commands.search_explained import hit_lines, question_lines
from api.db.services.explanation import Explanation, LeftOut, Ranks, Why, WordFound
from api.db.services.reranking import Reranking
from api.db.services.retrieval_service import Answer, Found
from rag.utils.doc_index import ChunkRecord, WordScore

CHUNK = ChunkRecord("c", "t", "d", "doc", 1, 0, 1, 0, 7, "text", "text", 1)
WHALE, SONG = WordScore("whale", "whale", 3, 0.6, 0.0), WordScore("sogn", "song", 1, 0.4, 0.0)
TOLD = Explanation((WHALE, SONG), (), 0.3, 0.2, 0, ())
WHY = Why(
    (WordFound(replace(WHALE, part=0.5), 1.0, ()), WordFound(SONG, 0.0, ("file name",))), Ranks(2, None), 0.25, None
)
FOUND = Found(CHUNK, "a.txt", 0.425, 0.5, 0.25, None, WHY)


def test_nothing_is_said_unasked() -> None:
    answer = Answer(1, [replace(FOUND, why=None)], [])
    assert list(question_lines(answer)) == list(hit_lines(answer, answer.chunks[0])) == []


def test_words_and_the_sum() -> None:
    answer = Answer(1, [FOUND], [], None, TOLD)
    assert list(question_lines(answer))[1:] == [
        "  whale: in 3 chunks, 0.60",
        "  sogn, taken for song: in 1 chunk, 0.40",
        "similarity = 0.70 * words + 0.30 * vectors",
        "The threshold of 0.20 left nothing out.",
        "",
    ]
    assert list(hit_lines(answer, FOUND)) == [
        "0.425 = 0.70 * 0.500 words + 0.30 * 0.250 vectors",
        "number 2 by words alone, number - by vectors alone",
        "whale: 0.500 of it (100%), in the words it was indexed with",
        "without sogn (only in the file name)",
    ]


def test_what_was_left_out_is_named_and_counted() -> None:
    told = replace(TOLD, left_out_count=3, left_out=(LeftOut("x", "b\x1b.txt", 0.19), LeftOut("y", "c.txt", 0.1)))
    lines = list(question_lines(Answer(0, [], [], None, told)))
    assert "The threshold of 0.20 left 3 out: 0.19 b\ufffd.txt, 0.10 c.txt and 1 more" in lines


def test_a_reranker_that_took_part_and_one_that_did_not() -> None:
    judged = replace(FOUND, vector_similarity=0.9, similarity=0.62, why=replace(WHY, rerank_score=0.9))
    answer = Answer(1, [judged], [], Reranking("judge", 7), TOLD)
    assert "similarity = 0.70 * words + 0.30 * reranker" in list(question_lines(answer))
    assert "The reranker judge scored 7 hits." in list(question_lines(answer))
    assert list(hit_lines(answer, judged))[:2] == [
        "0.620 = 0.70 * 0.500 words + 0.30 * 0.900 reranker",
        "number 2 by words alone, number - by vectors alone; cosine 0.250",
    ]
    away = Answer(1, [FOUND], [], Reranking("judge", failure="the rerank endpoint answered 500"), TOLD)
    lines = list(question_lines(away))
    assert "similarity = 0.70 * words + 0.30 * vectors" in lines
    assert "The reranker judge took no part: the rerank endpoint answered 500" in lines
