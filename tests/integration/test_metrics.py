"""/metrics: what it tells, to whom, and that docs/metrics.md has all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from api.apps.metrics_families import MOST_TENANTS
from api.db.services.executor_registry import ExecutorRegistry
from common.errors import RowsUnavailable
from common.settings import ROOT, ServerSettings
from rag.utils.redis_conn import Queue
from tests.rest_world import RestWorld, new_caller, rest_world

ELSEWHERE = {"REMOTE_ADDR": "192.0.2.7"}


@pytest.fixture
def world(tmp_path: Path, queue: Queue) -> Iterator[RestWorld]:
    with rest_world(tmp_path, queue=queue) as opened:
        yield opened


def scrape(world: RestWorld) -> dict[str, Metric]:
    answer = world.client.get("/metrics")
    assert answer.status_code == 200
    return {family.name: family for family in text_string_to_metric_families(answer.get_data(as_text=True))}


def value(found: dict[str, Metric], name: str, **labels: str) -> float:
    family = found[name.removesuffix("_total")]
    (sample,) = [one for one in family.samples if one.name == name and labels.items() <= one.labels.items()]
    return sample.value


def test_the_docs_name_every_metric_and_no_other(world: RestWorld) -> None:
    documented = set(re.findall(r"^\| `(pagemill_\w+)`", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE))
    told = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in scrape(world).values()
        if family.name.startswith("pagemill_")
    }
    assert documented == told


def test_the_docs_have_each_metrics_words(world: RestWorld) -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    for family in scrape(world).values():
        if family.name.startswith("pagemill_"):
            assert family.documentation.rstrip(".") in page, family.name


def test_what_waits_ends_and_is_answered_is_told(world: RestWorld, queue: Queue) -> None:
    dataset_id = world.dataset()
    done, waits = world.document(dataset_id, "done.txt"), world.document(dataset_id, "waits.txt")
    world.ingest(dataset_id, done, ["a heron"])
    world.ok("POST", f"/datasets/{dataset_id}/chunks", json={"document_ids": [waits]})
    ExecutorRegistry(world.rows).register("e1:a", "e1", {})
    queue.beat("e1", {"owner": "e1:a", "now": queue.now_s(), "slots": 6, "slots_used": 2, "draining": True})
    queue.publish([(1, "t1")])
    found = scrape(world)
    assert value(found, "pagemill_tasks", state="waiting", priority="normal") == 1
    assert value(found, "pagemill_tenant_tasks", state="waiting", tenant=world.caller.tenant_id) == 1
    assert value(found, "pagemill_tasks_ended_total", outcome="done") >= 2
    assert value(found, "pagemill_chunks_total") == 1
    assert value(found, "pagemill_executors", state="draining") == 1
    assert (value(found, "pagemill_slots", executor="e1"), value(found, "pagemill_slots_used", executor="e1")) == (6, 2)
    assert value(found, "pagemill_stream_lag", stream="normal") == 1
    assert value(found, "pagemill_up", part="database") == 1
    posted = {"method": "POST", "route": "/api/v1/datasets", "status": "200"}
    assert value(found, "pagemill_http_requests_total", **posted) == 1
    assert found["process_resident_memory_bytes"].samples


def test_tenants_beyond_some_are_one_series(world: RestWorld) -> None:
    for number in range(MOST_TENANTS + 3):
        caller = new_caller(world.rows, f"t{number}")
        key = world.services.accounts.create_token(caller, "k")
        dataset_id = world.ok("POST", "/datasets", key=key, json={"name": "d"})["id"]
        world.rows.execute(
            "INSERT INTO task (id, tenant_id, kb_id, doc_id, generation, task_type, from_page, to_page, priority,"
            " parser_version, state, attempt, losses, retry_count, claim_no, claim_token, owner, lease_until,"
            " run_after, waiting_since, published_at, begin_at, end_at, process_duration, progress, progress_msg,"
            " digest, chunk_count, token_count, error_code, error_message, create_ms) VALUES (?, ?, ?, 'd', 1,"
            " 'range', 0, 1, 1, 1, 0, 0, 0, 0, 0, '', '', 0, 1, 0, 0, 0, 0, 0, 0, '', '', 0, 0, '', '', 1)",
            (f"{number:032}", caller.tenant_id, dataset_id),
        )
    found = scrape(world)
    tenants = {sample.labels["tenant"] for sample in found["pagemill_tenant_tasks"].samples}
    assert len(tenants) == MOST_TENANTS + 1
    assert value(found, "pagemill_tenant_tasks", state="waiting", tenant="other") == 3
    assert value(found, "pagemill_oldest_task_seconds", priority="normal") > 1e6


def test_only_this_machine_may_read_it(world: RestWorld) -> None:
    assert world.client.get("/metrics").status_code == 200
    assert world.client.get("/metrics", environ_base=ELSEWHERE).status_code == 403
    assert world.client.get("/metrics", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 403
    assert world.client.get("/metrics", environ_base={"REMOTE_ADDR": ""}).status_code == 403


def test_with_a_token_others_may_and_nobody_without_it(tmp_path: Path) -> None:
    with rest_world(tmp_path, ServerSettings(metrics_token="s3cret")) as world:
        assert world.client.get("/metrics").status_code == 401
        wrong = world.client.get("/metrics", headers={"Authorization": "Bearer wrong"})
        assert (wrong.status_code, wrong.headers["WWW-Authenticate"]) == (401, "Bearer")
        right = {"Authorization": "Bearer s3cret"}
        assert world.client.get("/metrics", headers=right, environ_base=ELSEWHERE).status_code == 200


def test_what_is_unknown_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with rest_world(tmp_path) as world:  # without a queue
        assert not scrape(world).keys() & {"pagemill_stream_lag"}

        def refuse() -> None:
            raise RowsUnavailable("the database can't be used now")

        monkeypatch.setattr(world.services.queue_kept, "get", refuse)
        found = scrape(world)
        assert "pagemill_up" in found and "pagemill_tasks" not in found
