"""Bad files and bad requests on the running product: a clear error, and nothing lost or stuck."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.acceptance.instance import Instance, running_instance
from tests.conftest import missing
from tests.pdfs import NO_PAGES, sentence, write_encrypted, write_pages, write_truncated
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def instance(short_dir: Path) -> Iterator[Instance]:
    environ = {"PAGEMILL_SERVER_RECEIVE_TIMEOUT_S": "1", "PAGEMILL_SERVER_THREADS": "8"}
    with running_instance(short_dir / "bad", **environ) as made:
        yield made
        assert made.stop() == 0


def failure_of(instance: Instance, path: Path, **parser_config: object) -> str:
    """Upload and parse a file that can't be parsed; what its document says at the end."""
    body = {"name": path.stem, **({"parser_config": parser_config} if parser_config else {})}
    dataset_id = instance.call("POST", "/datasets", body)["data"]["id"]
    document_id = instance.upload(dataset_id, path)
    instance.parse(dataset_id, document_id)
    document = instance.wait_ended(dataset_id, document_id)
    assert (document["run"], document["progress"]) == ("FAIL", -1.0), document
    assert instance.parse(dataset_id, document_id) == {"code": 0}  # and it can be tried again
    assert instance.wait_ended(dataset_id, document_id)["run"] == "FAIL"
    return str(document["progress_msg"])


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_that_cannot_be_parsed_say_why(instance: Instance, tmp_path: Path) -> None:
    html = written(tmp_path / "page.pdf", b"<!doctype html><html><body>no PDF</body></html>")
    assert "page.pdf is not a PDF" in failure_of(instance, html)
    assert "empty" in failure_of(instance, written(tmp_path / "nothing.pdf", b""))
    assert "no page" in failure_of(instance, written(tmp_path / "pageless.pdf", NO_PAGES))
    assert "password" in failure_of(instance, write_encrypted(tmp_path / "locked.pdf"))
    assert "damaged" in failure_of(instance, write_truncated(tmp_path / "cut.pdf", 0.3))
    outside = failure_of(instance, write_pages(tmp_path / "three.pdf", 3), pages=[[10, 20]])
    assert "pages 10-20 are outside this document, which has 3 pages" in outside


def test_pages_that_are_asked_for_are_the_ones_that_are_read(instance: Instance, tmp_path: Path) -> None:
    config = {"pages": [[2, 3], [5, 99]], "task_page_size": 1, "filename_embd_weight": 0}
    dataset_id = instance.call("POST", "/datasets", {"name": "some pages", "parser_config": config})["data"]["id"]
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "six.pdf", 6))
    instance.parse(dataset_id, document_id)
    assert instance.wait_ended(dataset_id, document_id)["run"] == "DONE"
    chunks = instance.call("GET", f"/datasets/{dataset_id}/documents/{document_id}/chunks?page_size=100")["data"]
    assert sorted({c["positions"][0][0] for c in chunks["chunks"]}) == [2, 3, 5, 6]
    assert instance.search(dataset_id, sentence(5, 2))[0]["positions"][0][0] == 5


def test_requests_that_cannot_be_done_change_nothing(instance: Instance, tmp_path: Path) -> None:
    dataset_id = instance.dataset("requests")
    document_id = instance.upload(dataset_id, write_pages(tmp_path / "long.pdf", 400, sentences=30))
    assert instance.parse(dataset_id, document_id) == {"code": 0}
    second = instance.parse(dataset_id, document_id)
    assert second["code"] == 102
    assert "currently being processed" in second["message"]
    path = f"/datasets/{dataset_id}/chunks"
    assert instance.call("DELETE", path, {"document_ids": [document_id]}) == {"code": 0}
    assert instance.document(dataset_id, document_id)["run"] == "CANCEL"
    assert instance.search(dataset_id, sentence(1, 1)) == []
    refused = instance.call("DELETE", path, {"document_ids": [document_id]})
    assert refused["code"] == 102
    assert "has not started or already completed" in refused["message"]
    assert instance.parse("0" * 32, document_id)["code"] == 102
    assert instance.call("GET", "/datasets/" + "0" * 32)["code"] == 102
    assert instance.call("GET", "/nothing/here")["code"] == 404


def test_a_body_that_is_too_large_for_json_is_read_to_its_end(instance: Instance) -> None:
    """A client that sends all of it before it reads anything gets the answer, not a broken connection."""
    place = urlsplit(instance.address)
    link = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)
    headers = {"Authorization": f"Bearer {instance.key()}", "Content-Type": "application/json"}
    for path in ("/datasets", "/retrieval"):
        link.request("POST", f"/api/v1{path}", b" " * (40 * 2**20), headers)
        answer = link.getresponse()
        assert (answer.status, "413" in json.loads(answer.read())["message"]) == (200, True)
    link.close()


def test_half_sent_requests_do_not_block_the_others(instance: Instance) -> None:
    host, port = instance.address.removeprefix("http://").split(":")
    stalled = [socket.create_connection((host, int(port))) for _ in range(24)]
    for connection in stalled:
        connection.sendall(b"GET /heal")
    with urllib.request.urlopen(f"{instance.address}/healthz", timeout=PATIENCE_S) as answer:
        assert answer.status == 200
    for connection in stalled:
        connection.close()


@pytest.fixture
def small_disk(short_dir: Path) -> Iterator[Path]:
    if os.getuid() != 0:
        missing("root, which it takes to mount a small disk,")
    disk = short_dir / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True)
    assert mounted.returncode == 0, mounted.stderr
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_full_leaves_no_half_file_and_no_row(short_dir: Path, small_disk: Path, tmp_path: Path) -> None:
    with running_instance(short_dir / "full", PAGEMILL_STORE_URL=f"file://{small_disk}") as instance:
        dataset_id = instance.dataset()
        big = written(tmp_path / "big.txt", os.urandom(4_000_000))
        with pytest.raises(AssertionError, match="disk is full"):
            instance.upload(dataset_id, big)
        assert instance.call("GET", f"/datasets/{dataset_id}/documents")["data"]["total"] == 0
        assert [p.name for p in small_disk.rglob("*") if p.is_file()] == [".pagemill-store"]
        small = instance.upload(dataset_id, written(tmp_path / "small.txt", b"There is room for a small one."))
        instance.parse(dataset_id, small)
        assert instance.wait_ended(dataset_id, small)["run"] == "DONE"
        assert instance.stop() == 0
