"""Documents over REST: upload, list, download, and what happens when the store fails or the client goes away."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from werkzeug.exceptions import RequestTimeout

from api.db.models import Document, Knowledgebase
from common.errors import RowsUnavailable, StoreFull
from common.ids import is_id
from common.settings import ServerSettings
from rag.utils.object_store import StoredFile
from tests.at_once import at_once
from tests.rest_world import RestWorld, rest_world

DOCUMENT_KEYS = {
    "id", "name", "dataset_id", "chunk_method", "parser_config", "pipeline_id", "source_type", "type", "suffix",
    "created_by", "location", "size", "thumbnail", "token_count", "chunk_count", "progress", "progress_msg",
    "process_begin_at", "process_duration", "run", "status", "create_time", "create_date", "update_time",
    "update_date",
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    with rest_world(tmp_path, ServerSettings(max_body_mb=1, max_files_per_upload=5)) as opened:
        yield opened


def leftovers(world: RestWorld) -> list[Path]:
    """Uploads that were begun and neither kept nor discarded."""
    return list((world.services.settings.store_dir / "incoming").glob("*"))


def stored(world: RestWorld) -> list[Path]:
    folder = world.services.settings.store_dir
    return [path for path in folder.glob("*/*/*") if path.is_file()]


def test_an_uploaded_document_has_every_field(world: RestWorld) -> None:
    dataset_id = world.dataset()
    answer = world.upload(dataset_id, ("Report.PDF", b"%PDF-1.4"), ("notes.md", b"# hi")).get_json()
    assert set(answer) == {"code", "data"}
    pdf, notes = answer["data"]
    assert set(pdf) == DOCUMENT_KEYS
    assert is_id(pdf["id"])
    assert (pdf["name"], pdf["suffix"], pdf["type"], pdf["size"]) == ("Report.PDF", "pdf", "pdf", 8)
    assert (notes["name"], notes["suffix"], notes["type"]) == ("notes.md", "md", "doc")
    assert (pdf["run"], pdf["progress"], pdf["progress_msg"], pdf["status"]) == ("UNSTART", 0.0, "", "1")
    assert (pdf["process_begin_at"], pdf["process_duration"], pdf["source_type"]) == (None, 0.0, "local")
    assert (pdf["chunk_count"], pdf["token_count"], pdf["chunk_method"]) == (0, 0, "naive")
    assert pdf["parser_config"]["chunk_token_num"] == 512
    assert world.ok("GET", f"/datasets/{dataset_id}")["document_count"] == 2
    assert leftovers(world) == []


def test_kinds_with_a_chunk_method_of_their_own(world: RestWorld) -> None:
    files = [(name, b"x") for name in ("a.png", "b.mp3", "c.pptx", "d.eml", "e.txt")]
    made = world.upload(world.dataset(chunk_method="book"), *files).get_json()["data"]
    shown = [(d["type"], d["chunk_method"]) for d in made]
    assert shown == [
        ("visual", "picture"),
        ("aural", "audio"),
        ("doc", "presentation"),
        ("doc", "email"),
        ("doc", "book"),
    ]


def test_taken_names_get_a_number_also_within_one_call(world: RestWorld) -> None:
    dataset_id = world.dataset()
    made = world.upload(dataset_id, ("a.txt", b"1"), ("a.txt", b"2"), ("a(1).txt", b"3")).get_json()["data"]
    assert [d["name"] for d in made] == ["a.txt", "a(1).txt", "a(2).txt"]
    long = "n" * 251 + ".txt"
    made = world.upload(dataset_id, (long, b"1"), (long, b"2")).get_json()["data"]
    assert made[1]["name"] == "n" * 248 + "(1).txt"


def test_many_uploads_of_one_name_all_succeed(world: RestWorld) -> None:
    dataset_id = world.dataset()
    names: list[str] = []

    def upload() -> None:
        client = world.client.application.test_client()
        answer = client.post(
            f"/api/v1/datasets/{dataset_id}/documents",
            headers={"Authorization": f"bearer {world.key}"},
            data={"file": (io.BytesIO(b"same"), "same.txt")},
        ).get_json()
        names.append(answer["data"][0]["name"])

    at_once(*[upload] * 8, rows=world.rows)
    assert sorted(names) == sorted(["same.txt", *[f"same({n}).txt" for n in range(1, 8)]])
    assert Knowledgebase.get_by_id(dataset_id).document_count == 8
    assert len(stored(world)) == 1  # the same bytes are kept once


@pytest.mark.parametrize(
    "name", ["../a.txt", "/etc/a.txt", "dir/a.txt", "c:\\a.txt", "..", "a\0.txt", "a\nb.txt", "ü" * 126 + ".txt"]
)
def test_a_name_that_is_no_plain_name_is_refused(world: RestWorld, name: str) -> None:
    dataset_id = world.dataset()
    head = f"--b\r\nContent-Disposition: form-data; name=\"file\"; filename*=UTF-8''{percent(name)}\r\n\r\n"
    response = world.call(
        "POST",
        f"/datasets/{dataset_id}/documents",
        data=head.encode() + b"x\r\n--b--\r\n",
        content_type="multipart/form-data; boundary=b",
    )
    answer = response.get_json()
    assert (response.status_code, answer["code"]) == (200, 101), answer
    assert Document.select().count() == 0
    assert leftovers(world) == stored(world) == []


def percent(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_calls_without_a_file(world: RestWorld) -> None:
    path = f"/datasets/{world.dataset()}/documents"
    assert world.refused("POST", path) == (101, "No file part!")
    assert world.refused("POST", path, json={}) == (101, "No file part!")
    assert world.refused("POST", path, data={"other": "x"}) == (101, "No file part!")
    assert world.refused("POST", path, data={"file": (io.BytesIO(b""), "")}) == (101, "No file selected!")
    assert world.refused("POST", f"{path}?type=web")[0] == 101


def test_an_empty_file_is_accepted_and_can_not_be_downloaded(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "empty.txt", b"")
    assert world.refused("GET", f"/datasets/{dataset_id}/documents/{document_id}") == (102, "This file is empty.")


def test_an_unknown_dataset_is_refused_and_nothing_stored(world: RestWorld) -> None:
    body = io.BytesIO(b"x" * 300_000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": "300000", "CONTENT_TYPE": "multipart/form-data; boundary=b"}
    response = world.call("POST", f"/datasets/{'0' * 32}/documents", environ_overrides=environ)
    answer = response.get_json()
    assert answer["code"] == 102 and "Can't find the dataset with ID" in answer["message"]
    assert leftovers(world) == stored(world) == []
    assert body.tell() == 300_000  # or the client, still sending, would not see the answer


def test_a_stranger_is_not_waited_for(world: RestWorld) -> None:
    body = io.BytesIO(b"x" * 300_000)
    environ = {"wsgi.input": body, "CONTENT_LENGTH": "300000", "CONTENT_TYPE": "multipart/form-data; boundary=b"}
    path = f"/datasets/{'0' * 32}/documents"
    assert world.call("POST", path, key="none", environ_overrides=environ).status_code == 401
    assert body.tell() == 0


class SlowBody(io.RawIOBase):
    """One of which no more comes."""

    waits = 0

    def read(self, size: int = -1, /) -> bytes:
        self.waits += 1
        raise RequestTimeout("The body came too slowly.")


def test_who_was_too_slow_is_not_waited_for_again(world: RestWorld) -> None:
    body = SlowBody()
    environ = {"wsgi.input": body, "CONTENT_LENGTH": "300000", "CONTENT_TYPE": "multipart/form-data; boundary=b"}
    response = world.call("POST", f"/datasets/{world.dataset()}/documents", environ_overrides=environ)
    assert (response.status_code, body.waits) == (408, 1)


def test_a_kind_that_is_not_taken_does_not_hold_up_the_others(world: RestWorld) -> None:
    dataset_id = world.dataset()
    answer = world.upload(dataset_id, ("a.xyz", b"1"), ("b.txt", b"2"), ("noext", b"3")).get_json()
    assert answer["code"] == 500
    assert answer["message"].split("\n") == [
        "a.xyz: This type of file has not been supported yet!",
        "noext: This type of file has not been supported yet!",
    ]
    assert [d["name"] for d in answer["data"]] == ["b.txt"]
    assert leftovers(world) == []
    assert len(stored(world)) == 1


class FullUpload:
    """A real upload, on a disk that is full after so many bytes."""

    def __init__(self, real: Any, room: int) -> None:
        self._real, self._room = real, room

    def write(self, data: bytes, /) -> int:
        self._room -= len(data)
        if self._room < 0:
            raise StoreFull("the disk is full: the file was not stored")
        return int(self._real.write(data))

    def keep(self, tenant_id: str) -> StoredFile:
        kept: StoredFile = self._real.keep(tenant_id)
        return kept

    def discard(self) -> None:
        self._real.discard()


def test_a_full_disk_fails_the_file_that_met_it(world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = world.dataset()
    begin = world.store.begin_upload
    monkeypatch.setattr(world.store, "begin_upload", lambda: FullUpload(begin(), 100_000))
    answer = world.upload(dataset_id, ("big.txt", b"x" * 300_000), ("small.txt", b"y")).get_json()
    assert answer["code"] == 500
    assert answer["message"] == "big.txt: the disk is full: the file was not stored"
    assert [d["name"] for d in answer["data"]] == ["small.txt"]
    assert [row.name for row in Document.select()] == ["small.txt"]
    assert leftovers(world) == []
    assert len(stored(world)) == 1


def test_a_disk_that_is_full_from_the_start(world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = world.dataset()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        answer = world.upload(dataset_id, ("a.txt", b"x")).get_json()
    assert answer["code"] == 500 and answer["message"].startswith("a.txt: the disk is full")
    assert Document.select().count() == 0


def test_a_client_that_goes_away_leaves_nothing(world: RestWorld) -> None:
    dataset_id = world.dataset()
    body = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n' + b"x" * 200_000
    environ = {
        "wsgi.input": io.BytesIO(body),
        "CONTENT_LENGTH": "900000",
        "CONTENT_TYPE": "multipart/form-data; boundary=b",
    }
    response = world.call("POST", f"/datasets/{dataset_id}/documents", environ_overrides=environ)
    assert response.get_json()["code"] == 100
    assert Document.select().count() == 0
    assert leftovers(world) == stored(world) == []


def test_rows_that_are_away_are_an_outage(world: RestWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = world.dataset()

    def away(*_: object) -> None:
        raise RowsUnavailable("the database can't be used now")

    monkeypatch.setattr(world.services.documents, "add", away)
    response = world.upload(dataset_id, ("a.txt", b"x"))
    assert (response.status_code, response.get_json()["code"]) == (503, 105)
    assert response.headers["Retry-After"]
    assert leftovers(world) == []


def test_bodies_and_counts_beyond_the_limits_are_refused(world: RestWorld) -> None:
    dataset_id = world.dataset()
    answer = world.upload(dataset_id, ("a.txt", b"x" * 1_200_000)).get_json()
    assert answer == {"code": 100, "message": "<RequestEntityTooLarge '413: Request Entity Too Large'>"}
    many = world.upload(dataset_id, *[(f"{n}.txt", b"x") for n in range(6)]).get_json()
    assert many["code"] == 101 and "At most 5 files" in many["message"]
    assert leftovers(world) == stored(world) == []


def test_list_has_the_full_shape(world: RestWorld) -> None:
    dataset_id = world.dataset()
    world.document(dataset_id)
    answer = world.call("GET", f"/datasets/{dataset_id}/documents").get_json()
    assert (answer["code"], answer["message"], answer["data"]["total"]) == (0, "success", 1)
    (shown,) = answer["data"]["docs"]
    assert set(shown) == DOCUMENT_KEYS | {"meta_fields", "pipeline_name", "nickname"}
    assert shown["nickname"] == "Ursula"


def test_list_filters(world: RestWorld) -> None:
    dataset_id = world.dataset()
    names = ("Alpha.txt", "beta.md", "Ärger.txt", "50%_off.csv")
    ids = {n: world.document(dataset_id, n) for n in names}
    Document.update(run=3).where(Document.id == ids["beta.md"]).execute()

    def names_for(query: str) -> list[str]:
        return [d["name"] for d in world.ok("GET", f"/datasets/{dataset_id}/documents?{query}")["docs"]]

    assert names_for("orderby=name&desc=false") == ["50%_off.csv", "Alpha.txt", "beta.md", "Ärger.txt"]
    assert names_for("keywords=ALPHA") == ["Alpha.txt"]
    assert names_for("keywords=ärger") == ["Ärger.txt"]
    assert names_for("keywords=%25_") == ["50%_off.csv"]
    assert names_for("suffix=md&suffix=csv&orderby=name") == ["beta.md", "50%_off.csv"]
    assert names_for("run=DONE") == names_for("run=3") == ["beta.md"]
    assert names_for("name=beta.md&id=&keywords=") == ["beta.md"]
    assert names_for(f"id={ids['Alpha.txt']}&create_time_from=0&create_time_to=0") == ["Alpha.txt"]
    assert names_for(f"ids={ids['Alpha.txt']}&ids={ids['beta.md']}&orderby=name&desc=false") == ["Alpha.txt", "beta.md"]
    assert names_for("page=2&page_size=3&orderby=name&desc=false") == ["Ärger.txt"]
    assert len(names_for("page=x&page_size=-1")) == 4
    page = world.ok("GET", f"/datasets/{dataset_id}/documents?create_time_from={2**60}")
    assert (page["total"], page["docs"]) == (4, [])


def test_list_refusals(world: RestWorld) -> None:
    path = f"/datasets/{world.dataset()}/documents"
    assert world.refused("GET", f"/datasets/{'0' * 32}/documents")[1].startswith("You don't own the dataset")
    code, message = world.refused("GET", f"{path}?orderby=size")
    assert code == 101 and "invalid orderby field" in message
    code, message = world.refused("GET", f"{path}?run=SLEEPING")
    assert code == 102 and "Invalid filter run status conditions" in message
    for query in ("id=" + "0" * 32, "name=none.txt"):
        code, message = world.refused("GET", f"{path}?{query}")
        assert code == 102 and "don't own the document" in message
    assert world.refused("GET", f"{path}?create_time_from=x")[0] == 100
    assert world.call("GET", f"{path}?run=x").get_json()["data"] is None


def test_download_gives_the_bytes(world: RestWorld) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "Bücher & mehr.txt", b"0123456789")
    for path in (f"/datasets/{dataset_id}/documents/{document_id}", f"/documents/{document_id}"):
        response = world.call("GET", path)
        assert response.data == b"0123456789"
        assert response.headers["Content-Length"] == "10"
        assert response.mimetype == "text/plain"
        assert response.headers["Content-Disposition"].startswith("attachment;")
        assert "B%C3%BCcher%20&%20mehr.txt" in response.headers["Content-Disposition"]
        response.close()
    part = world.call("GET", f"/documents/{document_id}", headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.data) == (206, b"234")
    part.close()


def test_a_part_of_a_file(world: RestWorld) -> None:
    path = f"/documents/{world.document(world.dataset(), 'a.txt', b'0123456789')}"
    with world.call("HEAD", path) as answer:
        etag = answer.headers["ETag"]

    def got(method: str = "GET", **headers: str) -> tuple[int, bytes, str | None]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with world.call(method, path, headers=named) as given:
            return given.status_code, given.data, given.headers.get("Content-Range")

    whole = (200, b"0123456789", None)
    assert got(Range="bytes=8-99") == (206, b"89", "bytes 8-9/10")
    assert got(Range="bytes=-3") == (206, b"789", "bytes 7-9/10")
    assert got(Range="bytes=-99999999999999999999") == (206, b"0123456789", "bytes 0-9/10")
    for ignored in ("bytes=5-2", "bytes=a-b", "bytes=0-1,5-6", "items=0-1", "bytes", ""):
        assert got(Range=ignored) == whole, ignored
    assert got(Range="bytes=0-1", If_Range=etag) == (206, b"01", "bytes 0-1/10")
    assert got(Range="bytes=0-1", If_Range='"other"') == whole
    assert got(Range="bytes=0-1", If_None_Match=etag) == (304, b"", None)
    assert got(If_Match=etag) == whole
    assert got("HEAD", Range="bytes=0-1") == (200, b"", None)


def test_a_part_that_is_not_there(world: RestWorld) -> None:
    path = f"/documents/{world.document(world.dataset(), 'a.txt', b'0123456789')}"
    for beyond in ("bytes=10-", "bytes=10-20", f"bytes={10**30}-"):
        answer = world.call("GET", path, headers={"Range": beyond})
        assert (answer.status_code, answer.get_json()["code"]) == (416, 416)
        assert answer.headers["Content-Range"] == "bytes */10"
    answer = world.call("GET", path, headers={"If-Match": '"other"'})
    assert (answer.status_code, answer.get_json()["code"]) == (412, 412)


def test_download_refusals(world: RestWorld) -> None:
    dataset_id, other = world.dataset(), world.dataset()
    document_id = world.document(dataset_id)
    for path in (
        f"/datasets/{other}/documents/{document_id}",
        f"/datasets/{dataset_id}/documents/{'0' * 32}",
        f"/datasets/{'0' * 32}/documents/{document_id}",
        f"/documents/{'0' * 32}",
    ):
        code, message = world.refused("GET", path)
        assert (code, "document not found" in message.lower()) == (102, True)
    assert "You do not own the dataset" in world.refused("GET", f"/datasets/{'0' * 32}/documents/{document_id}")[1]
    for file in stored(world):
        file.unlink()
    assert world.refused("GET", f"/documents/{document_id}")[0] == 102
