"""Pictures of every page, light and dark, wide and narrow: `make screenshots` starts an instance with a little data,
takes them into docs/screenshots/, and makes them small. A page of yours is a line in SHOTS.

They are for people to look at: nothing is asserted but that each page answers."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page

from common.settings import ROOT
from tests import pdfs, prose
from tests.acceptance.browser import NARROW, WIDE, chromium, new_context, sign_in
from tests.acceptance.instance import Instance, running_instance
from tests.waiting import wait_until

OUT = ROOT / "docs" / "screenshots"
_COLOURS = 96
_HIGHEST = 1900


@dataclass(frozen=True)
class Shot:
    """`path` may hold {dataset} and {document}. `prepare` does what a person would before looking."""

    name: str
    path: str
    prepare: Callable[[Page], None] = lambda page: None
    signed_in: bool = True


def _open_first_menu(page: Page) -> None:
    page.get_by_label("Your account").click()


def _select_some(page: Page) -> None:
    for box in page.locator("#rows input[aria-label^=Select]").all()[:3]:
        box.check()


def _open_more_settings(page: Page) -> None:
    page.get_by_text("More settings").click()


def _show_new_key(page: Page) -> None:
    page.get_by_role("button", name="New key").click()
    page.get_by_label("What is it for?").fill("nightly import")


def _choose_chunk(page: Page) -> None:
    page.locator(".chunk-head").nth(1).click()
    page.locator(".page-box[aria-current=true]").first.wait_for()
    page.wait_for_load_state("networkidle")


def _wait_for_tasks(page: Page) -> None:
    page.locator(".task").first.wait_for()


def _ask_why(page: Page) -> None:
    page.locator(".why summary").first.click()
    page.locator(".why-body table").first.wait_for()


def _open_fates(page: Page) -> None:
    page.locator("#ended details:not([hidden]) > summary").first.click()


def _show_what_was_set(page: Page) -> None:
    page.get_by_label("Only what was set").check()


# Taken before there is any data.
FIRST_SHOTS: Sequence[Shot] = (
    Shot("sign-in", "/sign-in", signed_in=False),
    Shot("first-steps", "/"),
)
SHOTS: Sequence[Shot] = (
    Shot("knowledge-bases", "/"),
    Shot("knowledge-base-new", "/datasets/new", _open_more_settings),
    Shot("knowledge-base-settings", "/datasets/{dataset}/settings"),
    Shot("documents", "/datasets/{dataset}"),
    Shot("documents-selected", "/datasets/{dataset}", _select_some),
    Shot("document", "/datasets/{dataset}/documents/{document}", _choose_chunk),
    Shot("document-timeline", "/datasets/{dataset}/documents/{damaged}", _wait_for_tasks),
    Shot("search", "/search?q=how+fast+does+the+wheel+turn", _ask_why),
    Shot("search-nothing", "/search?q=wheel&threshold=1"),
    Shot("api-docs", "/api/docs"),
    Shot("account", "/account", _open_first_menu),
    Shot("account-new-key", "/account", _show_new_key),
    Shot("nothing-here", "/no-such-page"),
)
# Taken while there is work, and after an executor was killed at it.
BUSY_SHOTS: Sequence[Shot] = (
    Shot("admin", "/admin", _open_fates),
    Shot("admin-queues", "/admin/queues"),
    Shot("admin-failed", "/admin/failed"),
    Shot("admin-settings", "/admin/settings", _show_what_was_set),
    Shot("admin-users", "/admin/users"),
)


@dataclass(frozen=True)
class Sample:
    dataset: str
    document: str
    damaged: str


def make_sample(site: Instance, folder: Path) -> Sample:
    """A knowledge base with documents in every state, and a few others beside it."""
    dataset = site.call(
        "POST",
        "/datasets",
        {
            "name": "Paper mills",
            "description": "How paper was made by hand: mills, moulds, felts and the people who worked there.",
        },
    )["data"]["id"]
    for name, description in (("Supplier contracts", "Signed contracts since 2019."), ("Support handbook", "")):
        made = site.call("POST", "/datasets", {"name": name, "description": description, "chunk_method": "laws"})
        site.upload(made["data"]["id"], pdfs.write_pages(folder / f"{name}.pdf", 3))
    example = site.upload(dataset, ROOT / "docs" / "examples" / "paper-mill.pdf")
    notes = folder / "field notes.txt"
    notes.write_text("\n\n".join(prose.paragraph(number, 60) for number in range(30)))
    good = [
        example,
        site.upload(dataset, notes),
        site.upload(dataset, pdfs.write_outlined(folder / "history of felts.pdf", ["Wool", "Water", "Weight"], 8)),
    ]
    damaged = site.upload(dataset, pdfs.write_without_page(folder / "flood of 1802.pdf", 24, 17))
    config = {"task_page_size": 4, "on_bad_page": "fail"}
    site.call("PUT", f"/datasets/{dataset}/documents/{damaged}", {"parser_config": config})
    locked = site.upload(dataset, pdfs.write_encrypted(folder / "ledger 1789.pdf"))
    site.parse(dataset, *good, damaged, locked)
    for document in (*good, damaged, locked):
        site.wait_ended(dataset, document)
    site.upload(dataset, pdfs.write_pages(folder / "inventory.pdf", 4))
    _leave_on_the_way(site, dataset, pdfs.write_long(folder / "encyclopedia of paper.pdf", 60))
    return Sample(dataset, example, damaged)


def make_busy(site: Instance, dataset: str, folder: Path) -> None:
    """Minutes of work, of which an executor that holds some is killed; another user."""
    bulk = pdfs.write_pages(folder / "bulk.pdf", 240).read_bytes()
    documents = []
    for number in range(1, 41):
        path = folder / f"Parish records, volume {number}.pdf"
        path.write_bytes(bulk + f"%{number}\n".encode())
        documents.append(site.upload(dataset, path))
    site.parse(dataset, *documents)
    site.call("POST", "/admin/users", {"email": "nora@example.org", "nickname": "Nora"})

    def busy() -> list[int]:
        running = site.call("GET", "/admin/overview")["executors"]["running"]
        return [one["pid"] for one in running if one["slots_used"] == one["slots"]]

    wait_until(lambda: bool(busy()), what="a busy executor")
    os.kill(busy()[0], signal.SIGKILL)
    wait_until(lambda: bool(site.call("GET", "/admin/overview")["executors"]["ended"]), what="its end to be told")


def _leave_on_the_way(site: Instance, dataset: str, path: Path) -> None:
    """Paused, so that every picture shows it in the same place."""
    document = site.upload(dataset, path)
    site.parse(dataset, document)
    wait_until(lambda: site.document(dataset, document)["progress"] > 0.2, what="a fifth of the long document")
    site.call("POST", f"/datasets/{dataset}/documents/pause", {"document_ids": [document]})


def take(browser: Browser, site: Instance, shots: Sequence[Shot], sample: Sample | None, only: str) -> list[Path]:
    taken: list[Path] = []
    for size, width in ((WIDE, "wide"), (NARROW, "narrow")):
        for dark in (False, True):
            for signed_in in (False, True):
                context = new_context(browser, site, size=size, dark=dark)
                if signed_in:
                    sign_in(context, site)
                for shot in shots:
                    if shot.signed_in is signed_in and only in shot.name:
                        name = f"{shot.name}-{width}-{'dark' if dark else 'light'}.png"
                        taken.append(_take_one(context, shot, sample, OUT / name))
                context.close()
    return taken


def _take_one(context: BrowserContext, shot: Shot, sample: Sample | None, path: Path) -> Path:
    page = context.new_page()
    page.goto(shot.path.format(**vars(sample)) if sample else shot.path, wait_until="load")
    page.wait_for_timeout(300)  # fonts, icons and the first event
    shot.prepare(page)
    page.wait_for_timeout(100)
    path.parent.mkdir(parents=True, exist_ok=True)
    page.evaluate("scrollTo(0, 0)")  # a head that stays on top would stand in the middle
    page.screenshot(path=path, full_page=True, animations="disabled")
    page.close()
    _make_small(path)
    return path


def _make_small(path: Path) -> None:
    """A palette of a few colours: the pages have no photographs."""
    with Image.open(path) as picture:
        cut = picture.convert("RGB").crop((0, 0, picture.width, min(picture.height, _HIGHEST)))
    small = cut.quantize(_COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of the pictures to take")
    only = parser.parse_args().only
    folder = Path(tempfile.mkdtemp(prefix="pm-shots-"))
    try:
        with running_instance(folder / "data") as site, chromium() as browser:
            taken = take(browser, site, FIRST_SHOTS, None, only)
            sample = make_sample(site, folder)
            taken += take(browser, site, SHOTS, sample, only)
            if any(only in shot.name for shot in BUSY_SHOTS):
                make_busy(site, sample.dataset, folder)
                taken += take(browser, site, BUSY_SHOTS, sample, only)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    total = sum(path.stat().st_size for path in taken)
    largest = max(taken, key=lambda path: path.stat().st_size)
    print(f"{len(taken)} pictures in {OUT}, {total / 1e6:.1f} MB")
    print(f"the largest is {largest.name}, {largest.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
