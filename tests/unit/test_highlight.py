"""Words that a question asks for are marked where they stand."""

from __future__ import annotations

import pytest

from api.db.services.highlight import as_found, highlight, telling
from rag.utils.terms import analyse


@pytest.mark.parametrize(
    ("text", "question", "expected"),
    [
        ("Rivers flow, a river flows", "flowing", "Rivers <em>flow</em>, a river <em>flows</em>"),
        ("nothing here", "river", "nothing here"),
        ("ISO-9001 is a norm", "iso 9001", "<em>ISO-9001</em> is a norm"),
        ("我们住在北京市中心", "北京", "我们住在<em>北京</em>市中心"),
        ("我们住在北京市中心", "北京市", "我们住在<em>北京市</em>中心"),
        ("Der Ärger wächst", "ÄRGER", "Der <em>Ärger</em> wächst"),
        ("", "river", ""),
    ],
)  # fmt: skip
def test_highlight(text: str, question: str, expected: str) -> None:
    assert highlight(text, frozenset(analyse(question))) == expected


def test_markup_of_tables_is_no_text() -> None:
    text = '<table><tr><th colspan="2">A table &amp; an amp</th></tr></table>'
    marked = highlight(text, frozenset(analyse("table amp th tr colspan 2")))
    assert marked == '<table><tr><th colspan="2">A <em>table</em> &amp; an <em>amp</em></th></tr></table>'


def test_words_that_stand_everywhere_are_marked_only_where_they_matter() -> None:
    assert telling(analyse("How fast does the wheel turn?")) == frozenset(analyse("fast wheel turn"))
    assert telling(analyse("to be or not to be")) == frozenset(analyse("to be or not"))
    assert telling(analyse('the "state of the art" lamp'), [tuple(analyse("state of the art"))]) >= {"of", "the"}


def test_a_mistyped_word_marks_the_one_that_it_was_taken_for() -> None:
    text = "Zebras graze where Zebulon lived."
    found = [" ".join(analyse(text)), "lions"]
    assert highlight(text, telling(as_found(analyse("where are the zebars"), found))) == (
        "<em>Zebras</em> graze where Zebulon lived."
    )
    # One that a hit holds is meant as it is, and so are short words and numbers.
    assert as_found(["lion", "liona", "gra", "12345"], ["lion liona grab 12346"]) == ["lion", "liona", "gra", "12345"]
