"""The search page in a browser: hits with scores and marked words, why they rank, and the way to their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests import pdfs
from tests.acceptance.browser import NARROW, PATIENCE_MS, OpenPage, assert_accessible, assert_no_sideways_scroll
from tests.acceptance.instance import Instance

pytestmark = pytest.mark.timeout(600)
expect.set_options(timeout=PATIENCE_MS)
PAGES = [
    ["The harbour has two piers.", "Ships bring timber and salt."],
    ["The lighthouse was built of granite.", "Its lamp turns once a minute."],
]


@pytest.fixture(scope="module")
def harbour(site: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A knowledge base with two documents."""
    folder: Path = tmp_path_factory.mktemp("harbour")
    dataset_id = site.dataset("harbour")
    rows = "".join(f"<tr><td>{ship}</td><td>{dues}</td></tr>" for ship, dues in (("lighter", 4), ("brig", 9)))
    table = f"<h1>Dues</h1><table><tr><th>ship</th><th>dues &amp; tolls</th></tr>{rows}</table>"
    (folder / "dues.html").write_text(table)
    ids = [
        site.upload(dataset_id, path)
        for path in (pdfs.write_lines(folder / "harbour.pdf", PAGES), folder / "dues.html")
    ]
    site.parse(dataset_id, *ids)
    assert {site.wait_ended(dataset_id, one)["run"] for one in ids} == {"DONE"}
    yield dataset_id


def test_a_hit_tells_its_scores_and_leads_to_its_place(open_page: OpenPage, harbour: str) -> None:
    page = open_page(f"/search?kb={harbour}")
    page.get_by_role("searchbox").fill("granite lighthouse")
    page.keyboard.press("Enter")
    first = page.locator(".hit").first
    expect(first.locator("mark")).to_have_text(["lighthouse", "granite"])
    expect(page.locator("#summary")).to_have_text(re.compile(r"\d+ hits? in \d+ ms on the server, \d+ ms in all\."))
    scores = [float(text) for text in first.locator(".score dd").all_inner_texts()]
    total, words, meaning = scores
    assert total == pytest.approx(0.7 * words + 0.3 * meaning, abs=0.002)
    first.get_by_text("Why is it here?").click()
    expect(first.locator(".why-body")).to_contain_text("By words alone it is number 1")
    expect(first.locator(".why-body tbody tr")).to_have_count(2)
    assert_accessible(page)
    expect(page).to_have_url(re.compile(rf"\?q=granite\+lighthouse&kb={harbour}$"))
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("granite lighthouse")
    first.get_by_role("link").click()
    chosen = page.locator(".page-box[aria-current=true]")
    expect(chosen).to_be_visible()
    expect(page.get_by_label("Page", exact=True)).to_have_value("2")
    expect(page.locator(".chunk-chosen")).to_contain_text("granite")
    page.go_back()
    expect(page.locator(".hit").first).to_contain_text("granite")


def test_sliders_change_what_is_found_and_nothing_found_says_why(open_page: OpenPage, harbour: str) -> None:
    page = open_page(f"/search?kb={harbour}&q=timber+and+salt&threshold=1")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    expect(page.locator("#hits")).to_contain_text("left out by the least similarity of 1.00")
    page.get_by_role("button", name=re.compile("Lower it to")).click()
    expect(page.locator(".hit").first).to_contain_text("timber")
    page.get_by_label(re.compile("Least similarity")).fill("0")
    page.get_by_label(re.compile("Words or meaning")).fill("1")
    expect(page.locator(".hit").first.locator("dt").nth(2)).to_have_text(re.compile(r"Meaning . 1\.00"))
    expect(page).to_have_url(re.compile("weight=1"))
    page.get_by_role("searchbox").fill("")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#question-error")).to_have_text("Write what you look for.")
    page.get_by_role("searchbox").fill('"salt timber"')
    page.keyboard.press("Enter")
    expect(page.locator("#hits")).to_contain_text("words in quotes")


def test_hits_are_narrowed_to_a_document_and_tables_are_shown(open_page: OpenPage, harbour: str) -> None:
    page = open_page(f"/search?kb={harbour}&q=ship+dues+table&threshold=0")
    group = page.get_by_role("group", name="Documents of the hits")
    group.get_by_role("button", name=re.compile("dues.html")).click()
    expect(page.locator(".hit")).to_have_count(1)
    expect(page.locator(".hit .rich-table th").first).to_have_text("ship")
    expect(page.locator(".hit .rich-table mark").first).to_be_visible()
    expect(page).to_have_url(re.compile("doc="))
    group.get_by_role("button", name="All documents").click()
    expect(page.locator(".hit").nth(1)).to_be_visible()


def test_it_fits_a_narrow_screen(open_page: OpenPage, harbour: str) -> None:
    page = open_page(f"/search?kb={harbour}&q=lamp", size=NARROW, dark=True)
    expect(page.locator(".hit").first).to_be_visible()
    assert_no_sideways_scroll(page)
    assert_accessible(page)
    page.get_by_text("Knowledge bases and settings").click()
    expect(page.get_by_label(re.compile("harbour"))).to_be_checked()
    assert_no_sideways_scroll(page)
