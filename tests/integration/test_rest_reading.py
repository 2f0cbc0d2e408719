"""Reading a document over REST: its chunks by number, page, neighbour and text, and the pages they stand on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag.utils.doc_index import Scope
from tests import pdfs
from tests.rest_world import RestWorld, new_caller, rest_world

PAGES = [[f"Page {page} tells of number {n}." for n in range(5)] for page in (1, 2, 3)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    (tmp_path / "data").mkdir()
    with rest_world(tmp_path / "data") as made:
        yield made


@pytest.fixture
def place(world: RestWorld) -> tuple[str, str]:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf")
    world.ingest(dataset_id, document_id, *PAGES)
    return dataset_id, document_id


def read(world: RestWorld, place: tuple[str, str], query: str = "") -> Any:
    return world.ok("GET", f"/datasets/{place[0]}/documents/{place[1]}/reading?{query}")


def numbers(answer: Any) -> list[int]:
    return [chunk["number"] for chunk in answer["chunks"]]


def test_chunks_are_numbered_and_come_in_pages(world: RestWorld, place: tuple[str, str]) -> None:
    first = read(world, place, "page_size=4")
    assert (first["total"], first["page"], first["page_count"], numbers(first)) == (15, 1, 3, [1, 2, 3, 4])
    assert first["chunks"][0]["content"] == PAGES[0][0]
    assert first["chunks"][0]["token_count"] == 6
    last = read(world, place, "page_size=4&page=4")
    assert (numbers(last), last["page"]) == ([13, 14, 15], 4)
    wanted = last["chunks"][1]["id"]
    near = read(world, place, f"page_size=4&near={wanted}")
    assert (near["page"], numbers(near)) == (4, [13, 14, 15])
    assert world.refused("GET", f"/datasets/{place[0]}/documents/{place[1]}/reading?near=none")[0] == 102


def test_chunks_of_a_page_are_those_with_a_place_on_it(world: RestWorld, place: tuple[str, str]) -> None:
    assert numbers(read(world, place, "on_page=2")) == [6, 7, 8, 9, 10]
    fifth = read(world, place)["chunks"][4]["id"]
    path = f"/datasets/{place[0]}/documents/{place[1]}/chunks/{fifth}"
    world.ok("PUT", path, json={"positions": [[1, 0, 9, 700, 720], [2, 0, 9, 10, 30]]})
    assert numbers(read(world, place, "on_page=2")) == [5, 6, 7, 8, 9, 10]
    assert numbers(read(world, place, "on_page=1")) == [1, 2, 3, 4, 5]
    assert numbers(read(world, place, "on_page=9")) == []


def test_chunks_are_found_by_a_piece_of_text_or_by_words(world: RestWorld, place: tuple[str, str]) -> None:
    assert numbers(read(world, place, "text=AGE 2 TEL")) == [6, 7, 8, 9, 10]
    assert numbers(read(world, place, "text=numbers telling 3")) == [4, 9, 11, 12, 13, 14, 15]
    assert numbers(read(world, place, "text=number 4&on_page=3")) == [15]
    assert numbers(read(world, place, "text=nowhere")) == []


def test_an_edit_is_seen_at_once(world: RestWorld, place: tuple[str, str]) -> None:
    path = f"/datasets/{place[0]}/documents/{place[1]}/chunks"
    second, third = (chunk["id"] for chunk in read(world, place)["chunks"][1:3])
    world.ok("PUT", f"{path}/{second}", json={"content": "Quite another text.", "available": False})
    assert read(world, place)["chunks"][1]["content"] == "Quite another text."
    assert numbers(read(world, place, "available=false")) == [2]
    world.ok("DELETE", path, json={"chunk_ids": [third]})
    after = read(world, place)
    assert (after["total"], third in [chunk["id"] for chunk in after["chunks"]]) == (14, False)
    world.ok("POST", path, json={"content": "Added by hand.", "important_keywords": ["hand"], "questions": ["Who?"]})
    first = read(world, place)["chunks"][0]
    assert (first["content"], first["is_added"], first["number"]) == ("Added by hand.", True, 1)
    assert (first["important_keywords"], first["questions"]) == (["hand"], ["Who?"])


def test_where_chunks_stand_is_looked_up_once(
    world: RestWorld, place: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Scope] = []
    places = world.index.places
    monkeypatch.setattr(world.index, "places", lambda scope: asked.append(scope) or places(scope))
    for page in (1, 2, 3):
        read(world, place, f"page={page}&page_size=5")
    assert len(asked) == 1


def test_a_document_without_chunks_is_empty(world: RestWorld) -> None:
    dataset_id = world.dataset()
    answer = read(world, (dataset_id, world.document(dataset_id)))
    assert (answer["total"], answer["chunks"], answer["page_count"]) == (0, [], 0)


def test_a_page_tells_its_size_in_the_points_of_places(world: RestWorld, tmp_path: Path) -> None:
    pdf = pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3).read_bytes()
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    path = f"/datasets/{dataset_id}/documents/{document_id}/pages"
    facts = world.ok("GET", f"{path}/2?width=300")
    assert (facts["page"], facts["width"]) == (2, pytest.approx(595, abs=20))
    assert facts["height"] == pytest.approx(facts["width"] * 2**0.5, rel=0.12)
    picture = world.client.get(facts["picture"], headers={"Authorization": world.key})
    assert picture.mimetype == "image/png"
    assert world.refused("GET", f"{path}/3") == (102, "page 3 is outside this document, which has 2 pages")
    stranger = world.services.accounts.create_token(new_caller(world.rows, "Eve"), "eve")
    assert "don't own" in world.refused("GET", f"{path}/1", key=stranger)[1]
    assert "don't own" in world.refused("GET", path.replace("/pages", "/reading"), key=stranger)[1]


def test_what_cannot_be_asked_for_is_refused(world: RestWorld, place: tuple[str, str]) -> None:
    path = f"/datasets/{place[0]}/documents/{place[1]}/reading"
    for query in ("on_page=x", "on_page=0", "on_page=-1", "available=perhaps", f"on_page={'9' * 30}"):
        assert world.refused("GET", f"{path}?{query}")[0] == 102
