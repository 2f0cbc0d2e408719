"""Debian's Chromium for the tests of the web UI: one browser a run, a fresh context a test, and what every page is held
to: no error on the console, and no serious fault that axe finds.

All tests share one running Pagemill; one that breaks it starts its own (tests/acceptance/instance.py)."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from api.db.services.account_service import ADMIN_EMAIL
from tests.acceptance.instance import Instance, running_instance
from tests.conftest import missing

ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# A busy machine draws slowly.
PATIENCE_MS = 60_000
WIDE = {"width": 1280, "height": 860}
NARROW = {"width": 360, "height": 780}
_SERIOUS = ("serious", "critical")
expect.set_options(timeout=PATIENCE_MS)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=path, args=ARGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    """A running Pagemill for all tests that break nothing: each makes its own knowledge base."""
    with running_instance(tmp_path_factory.mktemp("ui") / "data") as instance:
        yield instance


@dataclass
class Console:
    """What a page said that it should not have. `expected` are parts of what a test provokes: Chromium notes every
    answer of 400 or more, some time later."""

    errors: list[str] = field(default_factory=list)
    expected: tuple[str, ...] = ()

    def watch(self, page: Page) -> None:
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(f"{message.location.get('url')}: {message.text}")

    def no_console_errors(self) -> None:
        assert [error for error in self.errors if not any(part in error for part in self.expected)] == []


@pytest.fixture
def console() -> Iterator[Console]:
    """Every page of the test is listened to; a test that provokes an error names it in `expected`."""
    heard = Console()
    yield heard
    heard.no_console_errors()


OpenPage = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, site: Instance, console: Console) -> Iterator[OpenPage]:
    """open_page("/path", as_admin=True, width=WIDE, dark=False): a page of a context of its own, signed in or not."""
    contexts: list[BrowserContext] = []

    def open_one(
        path: str = "/", *, as_admin: bool = True, size: dict[str, int] | None = None, dark: bool = False
    ) -> Page:
        context = new_context(browser, site, size=size, dark=dark)
        contexts.append(context)
        if as_admin:
            sign_in(context, site)
        page = context.new_page()
        console.watch(page)
        page.goto(path)
        return page

    yield open_one
    for context in contexts:
        context.close()


def new_context(
    browser: Browser, site: Instance, *, size: dict[str, int] | None = None, dark: bool = False
) -> BrowserContext:
    context = browser.new_context(
        base_url=site.address,
        viewport=size or WIDE,  # type: ignore[arg-type]
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    context.set_default_timeout(PATIENCE_MS)
    context.set_default_navigation_timeout(PATIENCE_MS)
    return context


def sign_in(context: BrowserContext, site: Instance, email: str = ADMIN_EMAIL, password: str | None = None) -> None:
    """By the form's own request, without drawing the page; test_ui_sign_in.py types into it."""
    form = {"email": email, "password": password or site.password() or ""}
    answer = context.request.post("/sign-in", form=form, max_redirects=0)
    assert answer.status == 303, (answer.status, answer.text())


def assert_accessible(page: Page) -> None:
    """No serious or critical fault by axe; what it found is told with the elements."""
    found = Axe().run(page).response["violations"]
    faults = [
        (fault["id"], fault["help"], [node["target"] for node in fault["nodes"]][:5])
        for fault in found
        if fault["impact"] in _SERIOUS
    ]
    assert faults == [], faults


def assert_no_sideways_scroll(page: Page) -> None:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{page.url} is {wide} px too wide"


def screenshot(page: Page, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=path, full_page=True, animations="disabled")
    return path
