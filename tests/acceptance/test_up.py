"""`pagemill up` as a user runs it: start, use, kill what can be killed, stop, start again."""

from __future__ import annotations

import signal
import socket
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.instance import EXECUTOR, Instance, made_instance
from tests.pdfs import sentence, write_pages
from tests.processes import alive
from tests.servers.valkey import ValkeyServer
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def instance(short_dir: Path, request: pytest.FixtureRequest) -> Iterator[Instance]:
    folder = short_dir / request.node.name[:40]
    folder.mkdir()
    with made_instance(folder / "data") as made:
        yield made


def test_from_a_first_start_to_a_found_sentence_and_a_second_start(instance: Instance, tmp_path: Path) -> None:
    instance.start()
    assert instance.password() is not None
    assert instance.run("doctor").returncode == 0
    dataset_id = instance.dataset()
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "forty.pdf", 40))
    assert instance.parse(dataset_id, document_id) == {"code": 0}
    document = instance.wait_ended(dataset_id, document_id)
    assert (document["run"], document["progress"]) == ("DONE", 1.0), document["progress_msg"]
    hit = instance.search(dataset_id, sentence(33, 1))[0]
    page, left, right, top, bottom = hit["positions"][0]
    assert page == 33
    assert 0 < left < right < 700
    assert 0 < top < bottom < 900
    processes = instance.descendants()
    assert instance.stop() == 0
    wait_until(lambda: not alive(processes), what="all children to be gone")
    assert "Traceback" not in instance.output()

    instance.start()
    assert instance.output().count("First start") == 1
    assert instance.document(dataset_id, document_id)["chunk_count"] == document["chunk_count"]
    assert instance.search(dataset_id, sentence(7, 1))[0]["positions"][0][0] == 7
    assert instance.stop(signal.SIGINT) == 0


def test_dead_children_are_started_again_with_a_reason(instance: Instance, tmp_path: Path) -> None:
    instance.start()
    for name in (EXECUTOR, "api.cli indexer", "valkey-server", "api.cli server"):
        victim = instance.children(name)[0]
        victim.kill()
        wait_until(lambda victim=victim: not alive([victim]))
    wait_until(lambda: instance.output().count("was killed by SIGKILL; starting again") == 4)
    dataset_id = instance.dataset()
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "after.pdf", 3))
    instance.parse(dataset_id, document_id)
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    assert instance.stop() == 0


def test_nothing_is_left_when_the_supervisor_is_killed(instance: Instance) -> None:
    instance.environ["PAGEMILL_EXECUTOR_PROCESSES"] = "2"
    instance.start()
    processes = instance.descendants()
    assert len(processes) >= 5
    instance.stop(signal.SIGKILL)
    wait_until(lambda: not alive(processes), what="all children to be gone")
    instance.start()  # and the folder is free again
    assert instance.stop() == 0


def test_a_taken_port_gives_the_next_free_one_and_says_so(instance: Instance) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", instance.port))
        taken.listen()
        instance.start()
    assert instance.address != f"http://127.0.0.1:{instance.port}"
    assert f"Port {instance.port} is taken" in instance.output()
    assert instance.stop() == 0


def test_two_instances_run_side_by_side_and_one_folder_has_one(instance: Instance) -> None:
    instance.start()
    with made_instance(instance.data.with_name("other"), port=instance.port) as other:
        other.start()
        assert instance.dataset("only here")
        assert other.call("GET", "/datasets")["total_datasets"] == 0
        refused = instance.run("up", check=False)
        assert refused.returncode == 1
        assert "another Pagemill" in refused.stderr
        assert other.stop() == 0
    assert instance.stop() == 0


def test_servers_and_folders_elsewhere_are_used_and_none_is_started(
    instance: Instance, valkey: ValkeyServer, mariadb_database: str, tmp_path: Path
) -> None:
    instance.environ |= {
        "REDIS_URL": valkey.url,
        "PAGEMILL_DATABASE_URL": mariadb_database,
        "PAGEMILL_STORE_URL": f"file://{tmp_path}/store",
        "PAGEMILL_INDEX_URL": f"file://{tmp_path}/index",
    }
    instance.start()
    assert instance.children("valkey-server") == []
    dataset_id = instance.dataset()
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "thirty.pdf", 30))
    instance.parse(dataset_id, document_id)
    instance.children(EXECUTOR)[0].kill()
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    assert instance.search(dataset_id, sentence(20, 1))[0]["positions"][0][0] == 20
    assert instance.stop() == 0
    assert sorted(p.name for p in instance.data.iterdir()) == ["queue", "run"]
    assert list(instance.data.glob("queue/*")) == []


def test_a_folder_that_cannot_be_used_is_refused_with_advice(instance: Instance) -> None:
    instance.data.write_text("a file is in the way")
    refused = instance.run("up", check=False)
    assert refused.returncode == 2
    assert "can't be used" in refused.stderr
    assert "--data" in refused.stderr


def test_a_database_of_a_newer_version_is_refused(instance: Instance) -> None:
    instance.start()
    assert instance.stop() == 0
    with sqlite3.connect(instance.data / "pagemill.db") as db:
        db.execute("INSERT INTO schema_version VALUES (999, 1)")
    db.close()
    refused = instance.run("up", check=False)
    assert refused.returncode == 1
    assert "written by a newer version" in refused.stderr
