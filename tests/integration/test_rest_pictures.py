"""Pictures over REST: pages and figures, drawn by another process and kept; none for strangers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from werkzeug.test import TestResponse

from api.apps import pictures
from api.db.models import Document
from tests import pdfs
from tests.rest_world import RestWorld, new_caller, rest_world
from tests.zips import zip_of


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RestWorld]:
    (tmp_path / "data").mkdir()
    with rest_world(tmp_path / "data") as opened:
        yield opened


@pytest.fixture
def pdf(tmp_path: Path) -> bytes:
    return pdfs.write_pages(tmp_path / "a.pdf", 2, sentences=3).read_bytes()


def picture(answer: TestResponse) -> Image.Image:
    assert answer.status_code == 200
    assert answer.mimetype == "image/png", answer.get_data()[:300]
    return Image.open(io.BytesIO(answer.data), formats=("PNG",))


def kept(world: RestWorld) -> list[str]:
    folder = world.services.settings.data_dir / "cache" / "pages"
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_page_is_drawn_once_and_known_by_its_tag(
    world: RestWorld, pdf: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    address = f"/datasets/{dataset_id}/documents/{document_id}/pages/2.png?width=200"
    first = world.call("GET", address)
    assert picture(first).width == 200
    assert first.headers["Content-Security-Policy"] == "default-src 'none'"
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["Cache-Control"].startswith("private")
    assert kept(world) == ["v2-2-200.png"]

    def fails(*_: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(pictures, "draw_one", fails)
    assert world.call("GET", address).data == first.data
    unchanged = world.call("GET", address, headers={"If-None-Match": first.headers["ETag"]})
    assert (unchanged.status_code, unchanged.data) == (304, b"")


def test_the_width_is_bounded(world: RestWorld, pdf: bytes) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    address = f"/datasets/{dataset_id}/documents/{document_id}/pages/1.png"
    assert picture(world.call("GET", f"{address}?width=1")).width in (64, 65)
    assert picture(world.call("GET", f"{address}?width=900000")).width in (2000, 2001)
    for bad in ("x", "-1", "1e3", "9" * 30):
        assert world.refused("GET", f"{address}?width={bad}") == (101, "`width` should be a number from 0 to 1000000")


def test_a_figure_is_cut_out_of_its_page(world: RestWorld, pdf: bytes) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    address = f"/datasets/{dataset_id}/documents/{document_id}/pictures"
    found = picture(world.call("GET", f"{address}?page=1&left=0&right=144&top=0&bottom=72"))
    assert found.size in ((300, 150), (301, 150))
    assert world.refused("GET", f"{address}?page=1&left=0&right=144&top=0")[0] == 101
    code, message = world.refused("GET", f"{address}?page=1&left=5000&right=5100&top=0&bottom=9")
    assert (code, message) == (102, "the place asked for is not on page 1")
    assert len(kept(world)) == 1


def test_a_picture_inside_a_document_is_sent_as_a_png(world: RestWorld) -> None:
    image = io.BytesIO()
    Image.new("RGB", (30, 10), "blue").save(image, "JPEG")
    parts = {
        "word/document.xml": b"<x/>",
        "word/media/image1.jpg": image.getvalue(),
        "word/media/evil.png": b"<svg><script>alert(1)</script></svg>",
    }
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.docx", zip_of(parts))
    address = f"/datasets/{dataset_id}/documents/{document_id}/pictures?part="
    assert picture(world.call("GET", f"{address}word/media/image1.jpg")).size == (30, 10)
    code, message = world.refused("GET", f"{address}word/media/evil.png")
    assert (code, message) == (102, "word/media/evil.png is no picture that can be shown")
    assert world.refused("GET", f"{address}word/none.png") == (102, "a.docx has no part word/none.png")
    assert world.refused("GET", f"{address}{'x' * 1001}")[0] == 101


def test_what_cannot_be_drawn_is_refused_in_words(world: RestWorld, pdf: bytes) -> None:
    dataset_id = world.dataset()
    for name, content, page, says in (
        ("a.pdf", pdf, "3", "page 3 is outside this document, which has 2 pages"),
        ("a.pdf", pdf, "0", "page 0 is outside this document, which has 2 pages"),
        ("b.txt", b"text", "1", "b.txt has no pages to show: only PDFs and pictures have"),
        ("c.pdf", b"%PDF-1.4 broken", "1", "c.pdf is damaged and can't be opened as a PDF"),
        ("d.pdf", b"", "1", "d.pdf is empty"),
    ):
        document_id = world.document(dataset_id, name, content)
        shown = world.shown(dataset_id, document_id)["name"]
        code, message = world.refused("GET", f"/datasets/{dataset_id}/documents/{document_id}/pages/{page}.png")
        assert (code, message) == (102, says.replace(name, shown))
    assert kept(world) == []
    document_id = world.document(dataset_id, "a.pdf", pdf)
    address = f"/datasets/{dataset_id}/documents/{document_id}/pages"
    assert world.refused("GET", f"{address}/{'9' * 30}.png")[0] == 101
    assert world.call("GET", f"{address}/x.png").status_code == 404


def test_a_stranger_sees_nothing(world: RestWorld, pdf: bytes) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    other = world.dataset("other")
    stranger = world.services.accounts.create_token(new_caller(world.rows, "Mallory"), "theirs")
    for address in ("pages/1.png", "pictures?page=1&left=0&right=9&top=0&bottom=9"):
        path = f"/datasets/{dataset_id}/documents/{document_id}/{address}"
        assert world.call("GET", path, key="ragflow-wrong").status_code == 401
        assert world.refused("GET", path, key=stranger)[0] == 102
        assert world.refused("GET", f"/datasets/{other}/documents/{document_id}/{address}")[0] == 102
    assert kept(world) == []


def test_what_a_password_opened_is_not_shown_without_it(world: RestWorld, tmp_path: Path) -> None:
    locked = pdfs.write_encrypted(tmp_path / "locked.pdf").read_bytes()
    dataset_id = world.dataset()
    with_it, without = (world.document(dataset_id, name, locked) for name in ("a.pdf", "b.pdf"))
    config = world.row(with_it).parser_config | {"password": "sesame"}
    world.rows.write(Document.update(parser_config=config).where(Document.id == with_it).execute)
    picture(world.call("GET", f"/datasets/{dataset_id}/documents/{with_it}/pages/1.png"))
    path = f"/datasets/{dataset_id}/documents/{without}/pages/1.png"
    assert world.refused("GET", path) == (102, "b.pdf is encrypted and needs a password")


def test_too_many_at_once_are_told_to_come_back(world: RestWorld, pdf: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = world.dataset()
    document_id = world.document(dataset_id, "a.pdf", pdf)
    monkeypatch.setattr(pictures, "_WAIT_S", 0.01)
    for _ in range(2):
        pictures._DRAWING.acquire()
    try:
        answer = world.call("GET", f"/datasets/{dataset_id}/documents/{document_id}/pages/1.png")
    finally:
        for _ in range(2):
            pictures._DRAWING.release()
    assert answer.status_code == 429
    assert "Retry-After" in answer.headers
