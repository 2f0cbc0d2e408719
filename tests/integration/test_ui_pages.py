"""What pages answer: the table of documents, the account, cards; files of strangers that never run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from flask.testing import FlaskClient

from api.apps.browser_sessions import COOKIE, csrf_token
from api.db.models import Document, User
from common.errors import QueueUnavailable, RowsUnavailable
from common.settings import ServerSettings
from common.task_state import DocumentRun
from tests.rest_world import RestWorld, new_caller, rest_world


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path, ServerSettings(failed_logins_per_minute=3)) as one:
        cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("s3same")
        one.rows.write(User.update(password_hash=cheap).where(User.id == one.caller.user_id).execute)
        yield one


@pytest.fixture
def person(world: RestWorld) -> FlaskClient:
    client = world.client.application.test_client()
    client.set_cookie(COOKIE, world.services.sessions.begin(world.caller))
    return client


def token_of(client: FlaskClient) -> str:
    cookie = client.get_cookie(COOKIE)
    assert cookie is not None
    return cookie.value


def send(client: FlaskClient, path: str, **form: str) -> Any:
    return client.post(path, data={"csrf_token": csrf_token(token_of(client))} | form)


def many(world: RestWorld, *names: str) -> str:
    dataset = str(world.ok("POST", "/datasets", json={"name": "many"})["id"])
    for name in names:
        added(world, dataset, name, f"text of {name}".encode())
    return dataset


def added(world: RestWorld, dataset: str, name: str, data: bytes) -> str:
    return str(world.upload(dataset, (name, data)).get_json()["data"][0]["id"])


def set_state(name: str, run: DocumentRun, paused: int = 0) -> None:
    Document.update(run=int(run), paused=paused).where(Document.name == name).execute()


def names_in(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [row["name"] for row in answer.get_json()["documents"]]


def test_the_table_is_paged_ordered_and_filtered_by_the_server(world: RestWorld, person: FlaskClient) -> None:
    dataset = many(world, "b.txt", "A.md", "c.txt", "d.csv")
    for name, run, paused in (
        ("b.txt", DocumentRun.DONE, 0),
        ("A.md", DocumentRun.RUNNING, 1),
        ("c.txt", DocumentRun.RUNNING, 0),
    ):
        set_state(name, run, paused)
    path = f"/ui/datasets/{dataset}/documents"
    assert names_in(person.get(f"{path}?order=name&desc=false")) == ["A.md", "b.txt", "c.txt", "d.csv"]
    assert names_in(person.get(f"{path}?order=name&desc=false&page=2&page_size=3")) == ["d.csv"]
    assert names_in(person.get(f"{path}?state=paused")) == ["A.md"]
    assert sorted(names_in(person.get(f"{path}?state=running&state=done"))) == ["b.txt", "c.txt"]
    assert names_in(person.get(f"{path}?suffix=csv")) == ["d.csv"]
    assert names_in(person.get(f"{path}?keywords=a.M")) == ["A.md"]
    shown = person.get(f"{path}?state=done").get_json()
    assert (shown["total"], shown["states"]) == (1, {"done": 1, "paused": 1, "running": 1, "unstarted": 1})
    assert shown["suffixes"] == {"csv": 1, "md": 1, "txt": 2}
    ids = person.get(f"/ui/datasets/{dataset}/document-ids?suffix=txt").get_json()["ids"]
    assert len(ids) == 2
    for order in ("created", "size", "chunks", "state"):
        assert len(names_in(person.get(f"{path}?order={order}"))) == 4
    refused = person.get(f"{path}?order=colour&state=odd")
    assert (refused.status_code, refused.mimetype) == (400, "application/problem+json")


def test_what_is_anothers_is_not_there(world: RestWorld, person: FlaskClient) -> None:
    dataset = many(world, "a.txt")
    eve = world.client.application.test_client()
    eve.set_cookie(COOKIE, world.services.sessions.begin(new_caller(world.rows, "eve")))
    for path in (f"/datasets/{dataset}", f"/datasets/{dataset}/settings", f"/ui/datasets/{dataset}/documents",
                 f"/ui/datasets/{dataset}/document-ids"):  # fmt: skip
        assert person.get(path).status_code == 200, path
        assert eve.get(path).status_code == 404, path
    assert "many" not in eve.get("/").text and "many" in person.get("/").text


def test_names_are_text_and_never_markup(world: RestWorld, person: FlaskClient) -> None:
    name = "</script><img src=x onerror=alert(1)>"
    dataset = str(world.ok("POST", "/datasets", json={"name": name, "description": name})["id"])
    added(world, dataset, "x<b>y.txt", b"x")
    for path in ("/", f"/datasets/{dataset}", f"/datasets/{dataset}/settings"):
        page = person.get(path)
        assert page.status_code == 200
        assert "<img src=x" not in page.text and "x<b>y" not in page.text


def test_the_password_is_changed_by_who_knows_it_and_ends_all_other_sessions(
    world: RestWorld, person: FlaskClient
) -> None:
    other = world.client.application.test_client()
    other.set_cookie(COOKIE, world.services.sessions.begin(world.caller))
    short = send(person, "/account/password", old_password="s3same", new_password="short")
    assert short.status_code == 422 and "at least 8 characters" in short.text
    wrong = send(person, "/account/password", old_password="wrong", new_password="long enough")
    assert wrong.status_code == 422 and "This is not your password." in wrong.text
    assert other.get("/").status_code == 200
    assert person.post("/account/password", data={"old_password": "s3same", "new_password": "x" * 9}).status_code == 403
    before = token_of(person)
    assert send(person, "/account/password", old_password="s3same", new_password="long enough").status_code == 303
    assert token_of(person) != before and person.get("/account").status_code == 200
    assert other.get("/").status_code == 302
    for _ in range(3):
        send(person, "/account/password", old_password="wrong", new_password="long enough")
    late = send(person, "/account/password", old_password="long enough", new_password="s3same-s3same")
    assert late.status_code == 429


def test_a_name_is_changed(world: RestWorld, person: FlaskClient) -> None:
    assert send(person, "/account/name", nickname="  ").status_code == 422
    assert send(person, "/account/name", nickname="Ada <b>").status_code == 303
    assert "Ada &lt;b&gt;" in person.get("/account?done=name").text


def test_files_of_strangers_never_run(world: RestWorld, person: FlaskClient) -> None:
    dataset = many(world)
    page = b"<html><script>alert(1)</script></html>"
    for name, data in (("a.html", page), ("b.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")):
        document = added(world, dataset, name, data)
        for path in (f"/datasets/{dataset}/documents/{document}", f"/documents/{document}"):
            with person.get(f"/api/v1{path}") as file:
                assert file.headers["Content-Disposition"].startswith("attachment"), path
                assert "sandbox" in file.headers["Content-Security-Policy"]
                assert file.headers["X-Content-Type-Options"] == "nosniff"
        with person.get(f"/api/v1/documents/{document}/preview") as shown:
            assert shown.mimetype in ("text/plain", "application/octet-stream")
            assert "sandbox" in shown.headers["Content-Security-Policy"]


def test_an_outage_is_told_on_the_page(world: RestWorld, person: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: object) -> int:
        raise QueueUnavailable("the queue does not answer")

    object.__setattr__(world.services, "executors_alive", away)
    assert "the queue does not answer. Uploads are kept" in person.get("/").text
    object.__setattr__(world.services, "executors_alive", lambda: 0)
    assert "No executor is running" in person.get(f"/datasets/{many(world)}").text

    def no_rows(*_: object) -> None:
        raise RowsUnavailable("the database can't be used now")

    monkeypatch.setattr(world.services.datasets, "page", no_rows)
    page = person.get("/")
    assert (page.status_code, page.mimetype) == (503, "text/html")
    assert "The database can" in page.text and page.headers["Retry-After"]
