"""A document's page in a browser: chunks and their places on the page, both ways; edits; the timeline; a parse that is
watched."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image, ImageOps
from playwright.sync_api import Locator, Page, expect

from tests import known_documents, pdfs
from tests.acceptance.browser import (
    NARROW,
    PATIENCE_MS,
    Console,
    OpenPage,
    assert_accessible,
    assert_no_sideways_scroll,
)
from tests.acceptance.instance import Instance

pytestmark = pytest.mark.timeout(600)
expect.set_options(timeout=PATIENCE_MS)
EVIL = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


@dataclass(frozen=True)
class Shelf:
    """Documents that were parsed, by name: the addresses of their pages."""

    pages: dict[str, str]
    ids: dict[str, tuple[str, str]]

    def __getitem__(self, name: str) -> str:
        return self.pages[name]


@pytest.fixture(scope="module")
def shelf(site: Instance, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("shelf")
    (folder / "evil.csv").write_text(f"name,note\nzebra,{EVIL}\nokapi,<b>bold</b>\n")
    files = [
        known_documents.two_columns(folder).path,
        known_documents.ruled_tables(folder).path,
        pdfs.write_pages(folder / "pages.pdf", 5, sentences=4),
        folder / "evil.csv",
    ]
    shelf_id = site.dataset("shelf")
    # A page each, and a page that can't be read fails its range.
    config = {"task_page_size": 1, "on_bad_page": "fail"}
    strict_id = site.call("POST", "/datasets", {"name": "strict", "parser_config": config})["data"]["id"]
    ids = {path.name: (shelf_id, site.upload(shelf_id, path)) for path in files}
    ids["gap.pdf"] = (strict_id, site.upload(strict_id, pdfs.write_without_page(folder / "gap.pdf", 6, 4)))
    for dataset_id in (shelf_id, strict_id):
        site.parse(dataset_id, *(document for dataset, document in ids.values() if dataset == dataset_id))
    ended = {name: site.wait_ended(*place)["run"] for name, place in ids.items()}
    assert ended.pop("gap.pdf") == "FAIL"
    assert set(ended.values()) == {"DONE"}
    yield Shelf({name: f"/datasets/{dataset}/documents/{one}" for name, (dataset, one) in ids.items()}, ids)


def settled(page: Page) -> Page:
    """With the picture of its page there."""
    expect(page.locator(".page-frame")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator(".page-box").first).to_be_visible()
    return page


def ink_of(sheet: Locator, left: float, right: float) -> tuple[float, float, float, float]:
    """Where something is printed between two shares of the page's width: left, top, right, bottom as shares."""
    picture = Image.open(io.BytesIO(sheet.screenshot()))
    piece = picture.crop((round(left * picture.width), 0, round(right * picture.width), picture.height))
    box = ImageOps.invert(piece.convert("L")).point(lambda value: 255 if value > 110 else 0).getbbox()
    assert box is not None
    width, height = picture.size
    return left + box[0] / width, box[1] / height, left + box[2] / width, box[3] / height


def share_of(sheet: Locator, box: Locator) -> tuple[float, float, float, float]:
    outer, inner = sheet.bounding_box(), box.bounding_box()
    assert outer is not None and inner is not None
    left, top = (inner["x"] - outer["x"]) / outer["width"], (inner["y"] - outer["y"]) / outer["height"]
    return left, top, left + inner["width"] / outer["width"], top + inner["height"] / outer["height"]


@pytest.mark.parametrize("width", [1280, 1000, 360])
def test_a_box_stands_where_its_text_is_printed(open_page: OpenPage, shelf: Shelf, width: int) -> None:
    page = settled(open_page(shelf["two columns.pdf"], size={"width": width, "height": 2000}))
    sheet = page.locator(".page-sheet")
    column = share_of(sheet, page.locator(".page-box").filter(has_text="2"))
    page.evaluate("document.querySelector('.page-boxes').style.visibility = 'hidden'")
    printed = ink_of(sheet, 0.52, 1.0)
    for edge, where in zip(column, printed, strict=True):
        assert abs(edge - where) < 0.012, (column, printed)


def test_a_chunk_shows_its_box_and_a_box_its_chunk(open_page: OpenPage, shelf: Shelf) -> None:
    page = settled(open_page(shelf["pages.pdf"]))
    third = page.locator(".chunk").nth(2)
    third.locator(".chunk-head").click()
    expect(page.get_by_label("Page", exact=True)).to_have_value("3")
    chosen = page.locator(".page-box[aria-current=true]")
    expect(chosen.first).to_have_attribute("data-chunk", third.get_attribute("data-chunk") or "")
    expect(third.locator(".chunk-head")).to_have_attribute("aria-current", "true")
    expect(page).to_have_url(re.compile(r"\?page=3&chunk=\w+$"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("Page", exact=True)).to_have_value("4")
    page.get_by_label("Next page").click()
    expect(page.get_by_label("Page", exact=True)).to_have_value("5")
    page.locator(".page-box").first.click()
    last = page.locator(".chunk").nth(4)
    expect(last).to_have_class(re.compile("chunk-chosen"))
    expect(last).to_be_in_viewport()
    page.reload()
    expect(page.locator(".page-box[aria-current=true]").first).to_be_visible()
    expect(page.locator(".chunk-chosen .chunk-number")).to_have_text("5")
    assert_accessible(page)


def test_tables_are_tables_and_other_markup_is_text(open_page: OpenPage, shelf: Shelf) -> None:
    page = settled(open_page(shelf["ruled tables.pdf"]))
    assert page.locator(".chunk .rich-table tr").count() > 5
    page.goto(shelf["evil.csv"])
    expect(page.locator(".chunk").first).to_contain_text(EVIL)
    assert page.locator(".chunk img, .chunk script, .chunk b").count() == 0
    assert page.locator("#page-view").count() == 0
    page.get_by_label("More about this document").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the file").click()
    assert EVIL in Path(download.value.path()).read_text()


NASTY = (
    "plain <b>text</b> &amp; more",
    "<table><tr><td>&lt;script&gt;</td></tr></table>",
    "</table></td>stray ends",
    "<table><td>no row</td></table>",
    '<table onclick="x"><tr><td>attributes</td></tr></table>',
    '<table><tr><td colspan="9999" rowspan="2">wide</td></tr>never closed',
    "<em><em>deep</em></em><iframe src=/></iframe>",
    "<table><table><tr><td><table>nested</table></td></tr></table></table>",
)


def test_the_text_of_a_chunk_becomes_no_element_but_those_of_tables(open_page: OpenPage) -> None:
    page = open_page("/search")
    module = page.evaluate("document.querySelector('script[src*=\"/js/search.js\"]').src").replace(
        "search.js", "rich_text.js"
    )
    for text in NASTY:
        tags, attributes, shown = page.evaluate(
            """async ([module, text]) => {
                const { richText } = await import(module);
                const nodes = [...richText(text).querySelectorAll("*")];
                const names = new Set(nodes.flatMap((node) => node.getAttributeNames()));
                return [[...new Set(nodes.map((node) => node.localName))], [...names], richText(text).textContent];
            }""",
            [module, text],
        )
        assert set(tags) <= {"span", "div", "mark", "table", "caption", "tr", "th", "td"}, text
        assert set(attributes) <= {"class", "tabindex", "role", "aria-label", "colspan", "rowspan"}, text
        for word in re.findall(r"script|stray|attributes|wide|deep|nested|iframe|text|no row", text):
            assert word in shown, text


def test_chunks_are_found_edited_switched_added_and_deleted(open_page: OpenPage, shelf: Shelf, site: Instance) -> None:
    page = settled(open_page(shelf["pages.pdf"]))
    dataset_id, document_id = shelf.ids["pages.pdf"]
    path = f"/datasets/{dataset_id}/documents/{document_id}/reading"
    page.get_by_label("Find in the chunks").fill(pdfs.sentence(2, 1)[:20])
    expect(page.locator(".chunk-count")).to_contain_text("found")
    expect(page.locator(".chunk mark").first).to_be_visible()
    page.get_by_label("Find in the chunks").fill("")
    expect(page.locator(".chunk-count")).to_have_text("5 chunks")
    page.get_by_label("Edit chunk 2").click()
    page.get_by_label("Text", exact=True).fill("A pelican came by.")
    page.get_by_label("Keywords, one a line").fill("bird\nbeak")
    page.get_by_role("button", name="Save").click()
    second = page.locator(".chunk").nth(1)
    expect(second).to_contain_text("A pelican came by.")
    expect(second.locator(".chunk-words .tag")).to_have_text(["bird", "beak"])
    page.get_by_label("Leave out of searches: chunk 1").click()
    expect(page.locator(".chunk").first).to_contain_text("Not searched")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("The text is empty")
    page.get_by_label("Text", exact=True).fill("A heron stands still.")
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    expect(page.locator(".chunk").first).to_contain_text("Added by hand")
    stored = site.call("GET", path)["data"]["chunks"]
    assert [chunk["content"] for chunk in stored[:3:2]] == ["A heron stands still.", "A pelican came by."]
    assert stored[1]["available"] is False
    page.get_by_label("Delete chunk 1", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator(".chunk-count")).to_have_text("5 chunks")
    page.get_by_label("Pick chunk 4").check()
    page.get_by_label("Pick chunk 5").check()
    expect(page.locator(".chunk-picks")).to_contain_text("2 chunks")
    page.get_by_role("button", name="Leave out", exact=True).click()
    expect(page.locator(".chunk-off")).to_have_count(3)
    page.get_by_role("button", name="Parse again").click()
    expect(page.get_by_role("dialog")).to_contain_text("changes go")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()


def test_a_failed_page_is_told_with_what_to_do_and_replayed(open_page: OpenPage, shelf: Shelf) -> None:
    page = open_page(shelf["gap.pdf"])
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")
    pieces = page.locator(".strip-svg [data-span]")
    expect(pieces).to_have_count(3)
    expect(page.locator(".strip-legend li")).to_have_text(["read: 5 ranges", "failed: 1 range"])
    expect(pieces.nth(1)).to_have_attribute("aria-label", "Page 4: failed")
    assert_accessible(page)
    pieces.first.focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".strip-tip")).to_have_text("Page 4: failed")
    page.keyboard.press("Enter")
    failed = page.locator(".task").filter(has_text="Page 4")
    expect(failed.locator(".task-error").first).to_contain_text("be left out")
    failed.locator("summary").click()
    expect(failed.locator(".attempts li").first).to_contain_text("failed")
    with page.expect_response("**/tasks/replay") as answer:
        page.get_by_role("button", name="Replay failed tasks").click()
    assert answer.value.json()["data"] == {"success_count": 1, "refused_count": 0}
    # It fails again, which is seen without a reload.
    expect(failed.locator("summary")).to_have_text(re.compile("2 attempts"))
    expect(page.locator("#doc-state")).to_contain_text("Failed")
    page.get_by_role("button", name="Page 4", exact=True).click()
    expect(page.locator(".page-note")).to_contain_text("be drawn")


def test_a_parse_is_watched_and_done_again_with_other_settings(
    open_page: OpenPage, site: Instance, tmp_path: Path
) -> None:
    dataset_id = site.dataset("watched")
    document_id = site.upload(dataset_id, pdfs.write_pages(tmp_path / "long.pdf", 60, sentences=20))
    page = open_page(f"/datasets/{dataset_id}/documents/{document_id}")
    expect(page.locator("#doc-state")).to_contain_text("Not parsed")
    page.get_by_role("button", name="Parse", exact=True).click()
    expect(page.locator("#doc-state")).to_contain_text("Ready")
    settled(page)
    before = int(page.locator("#doc-chunks").inner_text())
    page.get_by_label("More about this document").click()
    page.get_by_role("button", name="Parse with other settings").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("made by hand")
    assert_accessible(page)
    pages = dialog.get_by_role("textbox", name="Pages")
    pages.fill("5-2")
    dialog.get_by_role("button", name="Parse again").click()
    expect(dialog.get_by_role("alert")).to_contain_text("no range of pages")
    pages.fill("1-30")
    dialog.get_by_role("button", name="Parse again").click()
    expect(page.locator("#doc-chunks")).to_have_text(str(before // 2))
    assert site.document(dataset_id, document_id)["parser_config"]["pages"] == [[1, 30]]


def test_a_parse_is_paused_gone_on_with_and_stopped(open_page: OpenPage, site: Instance, tmp_path: Path) -> None:
    dataset_id = site.dataset("stopped")
    document_id = site.upload(dataset_id, pdfs.write_pages(tmp_path / "slow.pdf", 500, sentences=40))
    site.call("PUT", f"/datasets/{dataset_id}/documents/{document_id}", {"parser_config": {"task_page_size": 2}})
    page = open_page(f"/datasets/{dataset_id}/documents/{document_id}?view=timeline")
    page.get_by_role("button", name="Parse", exact=True).click()
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#doc-state")).to_contain_text("Paused")
    expect(page.locator(".strip-legend")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#doc-state")).to_contain_text("Stopped")
    expect(page.locator(".strip-legend")).to_contain_text("stopped")
    assert site.document(dataset_id, document_id)["run"] == "CANCEL"


def test_an_address_that_names_a_chunk_that_is_gone_says_so(open_page: OpenPage, shelf: Shelf) -> None:
    page = settled(open_page(f"{shelf['ruled tables.pdf']}?chunk={'f' * 32}"))
    expect(page.get_by_text("not there any more")).to_be_visible()
    expect(page.locator(".chunk").first).to_be_visible()


def test_it_fits_a_narrow_screen_and_the_dark(open_page: OpenPage, shelf: Shelf) -> None:
    page = settled(open_page(shelf["pages.pdf"], size=NARROW, dark=True))
    assert_no_sideways_scroll(page)
    assert_accessible(page)
    page.get_by_role("tab", name="Timeline").click()
    expect(page.locator(".task").first).to_be_visible()
    assert_no_sideways_scroll(page)
    assert_accessible(page)


def test_a_document_that_is_not_there_is_a_page_that_says_so(
    open_page: OpenPage, shelf: Shelf, console: Console
) -> None:
    dataset_id, _ = shelf.ids["pages.pdf"]
    page = open_page(f"/datasets/{dataset_id}/documents/{'0' * 32}")
    expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    (note,) = console.errors
    assert "404" in note
    console.errors.clear()
