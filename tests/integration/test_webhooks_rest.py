"""Webhooks over REST: made, shown, deleted, their deliveries, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from api.db.services.webhook_service import MOST_WEBHOOKS
from tests.rest_jobs import begun, problem
from tests.rest_world import RestWorld, new_caller

URL = "https://hooks.example/pagemill?x=1"


def made(world: RestWorld, **fields: Any) -> Any:
    answer = world.call("POST", "/webhooks", json={"url": URL} | fields)
    assert answer.status_code == 201, answer.get_json()
    assert answer.headers["Location"] == answer.get_json()["links"]["self"]
    return answer.get_json()


def test_a_webhook_shows_its_secret_once(world: RestWorld) -> None:
    first = made(world)
    assert first["secret"].startswith("whsec_") and len(first["secret"]) > 40
    assert (first["url"], first["dataset_id"]) == (URL, None)
    assert first["events"] == ["done", "failed", "cancelled"]
    dataset_id = world.dataset()
    second = made(world, secret="s" * 16, events=["failed"], dataset_id=dataset_id)
    assert (second["secret"], second["events"], second["dataset_id"]) == ("s" * 16, ["failed"], dataset_id)
    listed = world.call("GET", "/webhooks")
    assert [one["webhook_id"] for one in listed.get_json()["webhooks"]] == [first["webhook_id"], second["webhook_id"]]
    one = world.call("GET", f"/webhooks/{first['webhook_id']}")
    assert one.get_json() == {name: value for name, value in first.items() if name != "secret"}
    assert first["secret"] not in listed.get_data(as_text=True)


def test_a_deleted_webhook_is_gone_with_its_deliveries(world: RestWorld) -> None:
    webhook_id = made(world)["webhook_id"]
    world.call("DELETE", f"/jobs/{begun(world)}")
    assert world.rows.rows("SELECT COUNT(*) FROM webhook_delivery") == [(1,)]
    answer = world.call("DELETE", f"/webhooks/{webhook_id}")
    assert (answer.status_code, answer.get_data()) == (204, b"")
    assert world.rows.rows("SELECT COUNT(*) FROM webhook_delivery") == [(0,)]
    problem(world.call("GET", f"/webhooks/{webhook_id}"), 404, "not_found")
    problem(world.call("DELETE", f"/webhooks/{webhook_id}"), 404, "not_found")


def test_deliveries_are_logged_and_sent_again_on_demand(world: RestWorld) -> None:
    webhook_id = made(world)["webhook_id"]
    jobs = [begun(world, name=f"{n}.txt") for n in range(3)]
    for job_id in jobs:
        world.call("DELETE", f"/jobs/{job_id}")
    path = f"/webhooks/{webhook_id}/deliveries"
    page = world.call("GET", f"{path}?page=2&page_size=2").get_json()
    assert (page["total"], page["page"], page["page_size"], len(page["deliveries"])) == (3, 2, 2, 1)
    for wrong in ("page=0", "page=-1", "page=x", f"page={10**30}", "page_size=101", "page_size=1.0"):
        assert wrong.partition("=")[0] in problem(world.call("GET", f"{path}?{wrong}"), 400, "invalid_field")["detail"]
    shown = world.call("GET", path).get_json()["deliveries"]
    assert {one["job_id"] for one in shown} == set(jobs)
    first = shown[0]
    assert (first["event"], first["state"], first["attempts"]) == ("cancelled", "waiting", 0)
    assert (first["status"], first["error"], first["last_try_at"]) == (None, None, None)
    assert first["next_try_at"] == first["created_at"]
    world.rows.execute("UPDATE webhook_delivery SET state = 2, attempts = 6, next_ms = 0, status = 500, problem = 'no'")
    given_up = world.call("GET", path).get_json()["deliveries"][0]
    assert (given_up["state"], given_up["status"], given_up["next_try_at"]) == ("given_up", 500, None)
    again = world.call("POST", f"{path}/{first['delivery_id']}/redeliver")
    assert (again.status_code, again.get_json()["state"], again.get_json()["attempts"]) == (202, "waiting", 0)
    problem(world.call("POST", f"{path}/{'0' * 32}/redeliver"), 404, "not_found")
    other = made(world)["webhook_id"]
    problem(world.call("POST", f"/webhooks/{other}/deliveries/{first['delivery_id']}/redeliver"), 404, "not_found")


def test_another_tenants_webhooks_are_not_there(world: RestWorld) -> None:
    webhook_id = made(world)["webhook_id"]
    world.call("DELETE", f"/jobs/{begun(world)}")
    path = f"/webhooks/{webhook_id}"
    delivery_id = world.call("GET", f"{path}/deliveries").get_json()["deliveries"][0]["delivery_id"]
    world.rows.execute("UPDATE webhook_delivery SET state = 1")
    key = world.services.accounts.create_token(new_caller(world.rows, "Eve"), "eve")
    for method, where in (
        ("GET", path),
        ("DELETE", path),
        ("GET", f"{path}/deliveries"),
        ("POST", f"{path}/deliveries/{delivery_id}/redeliver"),
    ):
        problem(world.call(method, where, key=key), 404, "not_found")
    assert world.call("GET", "/webhooks", key=key).get_json() == {"webhooks": []}
    dataset_id = world.dataset()
    problem(world.call("POST", "/webhooks", key=key, json={"url": URL, "dataset_id": dataset_id}), 404, "not_found")
    assert [one["state"] for one in world.call("GET", f"{path}/deliveries").get_json()["deliveries"]] == ["delivered"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "url"),
        ({"url": 5}, "url"),
        ({"url": "ftp://hooks.example/"}, "url"),
        ({"url": "https:///x"}, "url"),
        ({"url": "https://me:pass@hooks.example/"}, "url"),
        ({"url": "https://hooks.example:99999/"}, "url"),
        ({"url": "https://hooks.example/a b"}, "url"),
        ({"url": "https://hooks.example/\r\nX: y"}, "url"),
        ({"url": "https://hooks.example/" + "x" * 2048}, "url"),
        ({"url": "http://127.0.0.1/"}, "url"),
        ({"url": "http://[::1]/"}, "url"),
        ({"url": "http://169.254.169.254/latest"}, "url"),
        ({"url": URL, "events": []}, "events"),
        ({"url": URL, "events": ["started"]}, "events.0"),
        ({"url": URL, "secret": "short"}, "secret"),
        ({"url": URL, "colour": "red"}, "colour"),
    ],
)
def test_what_is_wrong_is_named(world: RestWorld, fields: dict[str, Any], field: str) -> None:
    body = problem(world.call("POST", "/webhooks", json=fields), 422, "invalid_field")
    assert [error["field"] for error in body["errors"]] == [field]
    assert world.call("GET", "/webhooks").get_json() == {"webhooks": []}


def test_what_is_no_request_is_refused(world: RestWorld) -> None:
    problem(world.call("POST", "/webhooks", data="url=x"), 415, "unsupported_media_type")
    for text in ("{", "[" * 50_000, '"\\ud800'):
        problem(world.call("POST", "/webhooks", data=text, content_type="application/json"), 400, "bad_request")
    problem(world.call("POST", "/webhooks", json=[]), 422, "invalid_field")
    large = world.call("POST", "/webhooks", json={"url": URL, "secret": "s" * 100_000})
    assert large.status_code in (413, 422)
    problem(world.call("PUT", "/webhooks"), 405, "method_not_allowed")
    problem(world.call("PATCH", "/webhooks/x"), 405, "method_not_allowed")
    problem(world.call("GET", "/webhooks", key="ragflow-unknown"), 401, "unauthorized")


def test_a_tenant_has_so_many_webhooks(world: RestWorld) -> None:
    for _ in range(MOST_WEBHOOKS):
        made(world)
    problem(world.call("POST", "/webhooks", json={"url": URL}), 409, "conflict")
    assert len(world.call("GET", "/webhooks").get_json()["webhooks"]) == MOST_WEBHOOKS
