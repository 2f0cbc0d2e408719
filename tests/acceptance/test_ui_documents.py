"""Documents in a browser: dropped files and folders parsed to the end without a reload, filters and pages, stopping,
parsing again with reuse, and nothing of another tenant's."""

from __future__ import annotations

import base64
import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from common.settings import ROOT
from tests import pdfs
from tests.acceptance.browser import (
    NARROW,
    Console,
    OpenPage,
    assert_accessible,
    assert_no_sideways_scroll,
)
from tests.acceptance.instance import Instance

EXAMPLE = ROOT / "docs" / "examples" / "paper-mill.pdf"
# A browser lets nobody drop files from a test: the drop event is made with real files in it.
_DROP = """([files]) => {
  const transfer = new DataTransfer();
  for (const [name, data] of files) {
    const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
    transfer.items.add(new File([bytes], name));
  }
  const target = document.getElementById("drop");
  for (const type of ["dragenter", "dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: transfer}));
  }
}"""


def drop(page: Page, *files: tuple[str, bytes]) -> None:
    page.evaluate(_DROP, [[[name, base64.b64encode(data).decode()] for name, data in files]])


def row(page: Page, name: str) -> Locator:
    return page.locator("#rows tr", has_text=name)


def state(page: Page, name: str) -> Locator:
    return row(page, name).locator(".state")


def test_dropped_files_are_parsed_to_the_end_without_a_reload(site: Instance, open_page: OpenPage) -> None:
    page = open_page(f"/datasets/{site.dataset('dropped')}")
    expect(page.get_by_text("No documents yet").first).to_be_visible()
    assert_accessible(page)
    page.evaluate("window.neverReloaded = true")
    drop(page, ("mill.pdf", EXAMPLE.read_bytes()), ("notes.txt", b"The wheel turns at dawn. " * 40), ("bad.xyz", b"?"))
    expect(state(page, "mill.pdf")).to_have_text("Ready")
    expect(state(page, "notes.txt")).to_have_text("Ready")
    expect(row(page, "mill.pdf")).to_contain_text("3 chunks from 3 pages")
    refused = page.locator(".upload-failed")
    expect(refused).to_contain_text("bad.xyz")
    expect(refused).to_contain_text("This type of file has not been supported yet!")
    expect(refused.get_by_role("button", name="Retry")).to_be_visible()
    expect(page.locator("#summary")).to_contain_text("2 documents")
    page.get_by_role("button", name="Parse again: mill.pdf").click()
    page.get_by_role("dialog").get_by_role("button", name="Parse").click()
    expect(row(page, "mill.pdf")).to_contain_text("100 % reused")
    assert page.evaluate("window.neverReloaded") is True
    assert_accessible(page)


def test_a_folder_is_taken_with_the_folders_in_it(site: Instance, open_page: OpenPage, tmp_path: Path) -> None:
    for name in ("a.txt", "deep/b.txt", "deep/deeper/c.txt", ".hidden.txt"):
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"This is {name}.")
    dataset = site.dataset("folder")
    page = open_page(f"/datasets/{dataset}")
    page.get_by_label("Parse at once").uncheck()
    page.locator("#folder").set_input_files(tmp_path / "folder")
    for name in ("a.txt", "b.txt", "c.txt"):
        expect(state(page, name)).to_have_text("Not parsed")
    expect(page.locator("#summary")).to_contain_text("3 documents")
    expect(page.locator("#uploads")).to_be_hidden()  # all went well: it goes by itself
    assert site.query("SELECT COUNT(*) FROM task WHERE kb_id = ?", dataset) == [(0,)]


def test_a_long_parse_is_paused_stopped_and_goes_on_with_what_it_had(
    site: Instance, open_page: OpenPage, tmp_path: Path
) -> None:
    dataset = site.dataset("long")
    site.upload(dataset, pdfs.write_long(tmp_path / "long.pdf", 50))
    page = open_page(f"/datasets/{dataset}")
    page.get_by_role("button", name="Parse: long.pdf").click()
    figures = row(page, "long.pdf").locator(".figures")
    expect(figures).to_have_text(re.compile(r"^[1-9][\d,]* of 2,500 pages · \d+ %"))
    height = row(page, "long.pdf").evaluate("(node) => node.offsetHeight")
    page.get_by_label("Select long.pdf").check()
    page.get_by_role("group", name="What to do").get_by_role("button", name="Pause").click()
    expect(state(page, "long.pdf")).to_have_text("Paused")
    page.get_by_role("button", name="Resume: long.pdf").click()
    expect(state(page, "long.pdf")).to_have_text("Parsing")
    page.get_by_role("button", name="Stop: long.pdf").click()
    expect(state(page, "long.pdf")).to_have_text("Stopped")
    expect(row(page, "long.pdf")).to_contain_text("Stopped by the user")
    page.get_by_role("button", name="Parse: long.pdf").click()
    expect(figures).to_contain_text("reused")
    assert row(page, "long.pdf").evaluate("(node) => node.offsetHeight") == height
    page.get_by_role("button", name="Stop: long.pdf").click()
    expect(state(page, "long.pdf")).to_have_text("Stopped")


def test_many_are_filtered_sorted_paged_and_acted_on(site: Instance, open_page: OpenPage) -> None:
    dataset = site.dataset("many")
    page = open_page(f"/datasets/{dataset}")
    page.get_by_label("Parse at once").uncheck()
    page.locator("#files").set_input_files(
        [
            {"name": f"note {number:03}.txt", "mimeType": "text/plain", "buffer": f"Note {number}.".encode()}
            for number in range(120)
        ]
    )
    expect(page.locator("#summary")).to_contain_text("120 documents")
    expect(page.locator("#shown")).to_contain_text("50 of 120")
    page.get_by_role("button", name="Name").click()
    expect(page.locator("#rows tr").first).to_contain_text("note 000.txt")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#rows tr").first).to_contain_text("note 050.txt")
    page.get_by_label("Find by name").fill("NOTE 11")
    expect(page.locator("#shown")).to_contain_text("10 of 10")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("group", name="What to do").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete 10 documents").click()
    expect(page.get_by_text("Nothing fits this filter")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(page.locator("#summary")).to_contain_text("110 documents")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name="Select all 110").click()
    expect(page.locator("#picked-count")).to_have_text("110 selected")
    page.get_by_role("button", name="Leave out").click()
    expect(page.get_by_text("110 documents: left out of searches.")).to_be_visible()
    left_out = site.query("SELECT COUNT(*) FROM document WHERE kb_id = ? AND status = 0 AND deleted_ms = 0", dataset)
    assert left_out == [(110,)]
    page.get_by_role("button", name="Not parsed 110").click()
    expect(page.locator("#shown")).to_contain_text("50 of 110")
    assert_accessible(page)
    page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
    assert_no_sideways_scroll(page)
    assert_accessible(page)


def test_pages_of_another_tenant_are_not_there(site: Instance, open_page: OpenPage, console: Console) -> None:
    console.expected = ("404",)
    dataset = site.dataset("mine")
    made = site.call("POST", "/users", {"nickname": "eve", "email": "eve@example.com", "password": "s3same-s3same"})
    assert made["code"] == 0, made
    page = open_page("/sign-in", as_admin=False)
    page.get_by_label("E-mail").fill("eve@example.com")
    page.get_by_label("Password", exact=True).fill("s3same-s3same")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="Welcome")).to_be_visible()
    for path in (f"/datasets/{dataset}", f"/datasets/{dataset}/settings", f"/ui/datasets/{dataset}/documents"):
        answer = page.goto(path)
        assert answer is not None and answer.status == 404, path
