"""The pages of a document and of search, as the server makes them: for their owner, and for nobody else."""

from __future__ import annotations

import json
import re
from typing import Any

from flask.testing import FlaskClient

from api.apps.browser_sessions import COOKIE
from api.db.services.account_service import Caller
from api.db.services.task_requests import Fail
from tests.rest_world import RestWorld, new_caller

NAME = "<b>sly & odd'<script>.pdf"


def browser_of(world: RestWorld, caller: Caller) -> FlaskClient:
    client = world.client.application.test_client()
    client.set_cookie(COOKIE, world.services.sessions.begin(caller))
    return client


def values_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_document_has_a_page_and_its_name_is_never_markup(world: RestWorld) -> None:
    dataset_id = world.dataset("<i>set</i>")
    document_id = world.document(dataset_id, NAME)
    world.ingest(dataset_id, document_id, ["one"], ["two"])
    page = browser_of(world, world.caller).get(f"/datasets/{dataset_id}/documents/{document_id}")
    text = page.get_data(as_text=True)
    assert (page.status_code, "<b>sly" in text, "<i>set" in text) == (200, False, False)
    values = values_of(text)
    assert (values["document"]["name"], values["document"]["page_count"], values["edits"]) == (NAME, 2, 0)
    assert values["opensWith"] == "chunks"
    world.ok("POST", f"/datasets/{dataset_id}/documents/{document_id}/chunks", json={"content": "By hand."})
    text = browser_of(world, world.caller).get(f"/datasets/{dataset_id}/documents/{document_id}").text
    assert values_of(text)["edits"] == 1


def test_what_failed_opens_with_its_timeline_and_says_why_once(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf")
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [document_id]})
    (task,) = world.claim(document_id)
    world.tasks.apply([Fail(task.held, "encrypted_file", "a.pdf is encrypted")])
    world.flip(document_id)
    text = browser_of(world, world.caller).get(f"/datasets/{dataset_id}/documents/{document_id}").text
    assert values_of(text)["opensWith"] == "timeline"
    assert "a.pdf is encrypted" in text and "failed: a.pdf" not in text.partition("page-data")[0]


def test_passwords_stay_out_of_the_page(world: RestWorld) -> None:
    dataset_id = world.dataset(parser_config={"password": "sesame-street"})
    document_id = world.document(dataset_id, "a.pdf")
    text = browser_of(world, world.caller).get(f"/datasets/{dataset_id}/documents/{document_id}").text
    assert "sesame-street" not in text


def test_strangers_find_no_page_and_no_name(world: RestWorld) -> None:
    dataset_id = world.dataset("secret set")
    document_id = world.document(dataset_id, "secret.pdf")
    eve = browser_of(world, new_caller(world.rows, "Eve"))
    page = eve.get(f"/datasets/{dataset_id}/documents/{document_id}")
    assert (page.status_code, "secret" in page.text) == (404, False)
    search = eve.get("/search")
    assert (search.status_code, "secret" in search.text) == (200, False)
    assert "There is nothing to search yet" in search.text
    nobody = world.client.application.test_client()
    assert nobody.get(f"/datasets/{dataset_id}/documents/{document_id}").status_code == 302


def test_search_offers_the_knowledge_bases_that_it_can_ask(world: RestWorld) -> None:
    named = {name: world.dataset(name) for name in ("beta", "Alpha")}
    world.rows.write(
        world.rows.execute, "UPDATE knowledgebase SET embedding_model = 'other@x' WHERE id = ?", (named["beta"],)
    )
    found = values_of(browser_of(world, world.caller).get("/search").text)["datasets"]
    assert [(one["name"], one["canBeAsked"]) for one in found] == [("Alpha", True), ("beta", False)]
