"""The operators' pages in a browser: an executor that is killed while one looks, orders, failed tasks, users."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from common.task_state import TaskState
from tests.acceptance.browser import (
    NARROW,
    Console,
    OpenPage,
    assert_accessible,
    assert_no_sideways_scroll,
    new_context,
    sign_in,
)
from tests.acceptance.instance import Instance, running_instance
from tests.pdfs import write_pages
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

TABS = ("", "/queues", "/failed", "/settings", "/users")


@pytest.fixture(scope="module")
def busy(short_dir: Path) -> Iterator[Instance]:
    """One whose executors are killed and drained; every page is a task."""
    with running_instance(
        short_dir / "admin", PAGEMILL_EXECUTOR_PROCESSES="2", PAGEMILL_TASKS_TASK_PAGE_SIZE="1"
    ) as instance:
        yield instance


@pytest.fixture
def page(browser: Browser, busy: Instance, console: Console) -> Iterator[Page]:
    context = new_context(browser, busy)
    sign_in(context, busy)
    opened = context.new_page()
    console.watch(opened)
    yield opened
    context.close()


def running(instance: Instance) -> list[dict[str, object]]:
    return list(instance.call("GET", "/admin/overview")["executors"]["running"])


def stopped_at_work(instance: Instance) -> tuple[str, int]:
    """Name and pid of an executor that holds tasks and does nothing with them any more: it sleeps."""
    pids = {str(one["name"]): int(str(one["pid"])) for one in running(instance)}
    held = f"SELECT owner, COUNT(*) FROM task WHERE state = {int(TaskState.RUNNING)} AND task_type = 'range'"
    found: list[str] = []

    def stops() -> bool:
        for owner, _ in instance.query(f"{held} GROUP BY owner"):
            name = owner.partition(":")[0]
            os.kill(pids[name], signal.SIGSTOP)
            if instance.query(f"{held} AND owner = ?", owner)[0][1]:
                found.append(name)
                return True
            os.kill(pids[name], signal.SIGCONT)
        return False

    wait_until(stops, what="an executor with tasks")
    return found[0], pids[found[0]]


def test_an_executor_that_is_killed_is_shown_dead_and_its_tasks_move_on(
    busy: Instance, page: Page, tmp_path: Path
) -> None:
    dataset_id = busy.dataset()
    documents = [busy.upload(dataset_id, write_pages(tmp_path / f"volume {n}.pdf", 120 + n)) for n in range(2)]
    page.goto("/admin")
    busy.parse(dataset_id, *documents)
    name, pid = stopped_at_work(busy)
    card = page.locator(f'[data-executor="{name}"]')
    expect(card).to_have_attribute("data-state", re.compile("at work|silent"))
    os.kill(pid, signal.SIGKILL)
    dead = page.locator(f'[data-ended="{name}"][data-state="dead"]')
    expect(dead).to_contain_text("was killed by SIGKILL")
    expect(dead.locator(".fates")).to_contain_text("all of them are done")
    dead.get_by_text("Its tasks, one by one").click()
    expect(dead.locator(".fate-list li").first).to_contain_text("Done")
    expect(card.get_by_role("button", name="Drain")).to_be_visible()  # it was started again
    for document_id in documents:
        assert busy.wait_ended(dataset_id, document_id)["run"] == "DONE"
    expect(page.locator("#chart-tasks svg desc")).to_contain_text("done")
    assert_accessible(page)


def test_an_executor_is_drained_and_resumed(busy: Instance, page: Page) -> None:
    page.goto("/admin")
    name = str(running(busy)[0]["name"])
    card = page.locator(f'[data-executor="{name}"]')
    card.get_by_role("button", name="Drain").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("until you resume it")
    dialog.get_by_role("button", name="Drain").click()
    expect(card).to_have_attribute("data-state", "drained")
    card.get_by_role("button", name="Resume").click()
    expect(card).to_have_attribute("data-state", "idle")


def test_failed_tasks_are_put_together_run_again_and_discarded(busy: Instance, page: Page, tmp_path: Path) -> None:
    dataset_id = busy.dataset("broken")
    for number in range(2):
        (tmp_path / f"{number}.pdf").write_bytes(b"%PDF-1.4\nnothing " + str(number).encode())
        document_id = busy.upload(dataset_id, tmp_path / f"{number}.pdf")
        busy.parse(dataset_id, document_id)
        assert busy.wait_ended(dataset_id, document_id)["run"] == "FAIL"
    page.goto("/admin/failed")
    group = page.locator('[data-cause="unreadable_file"]')
    expect(group).to_contain_text("2 tasks")
    expect(group).to_contain_text("The file is damaged")
    assert_accessible(page)
    group.get_by_role("button", name="Run again").click()
    page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    expect(page.get_by_role("status").filter(has_text="2 tasks run again")).to_be_visible()
    wait_until(
        lambda: [group["count"] for group in busy.call("GET", "/admin/failed")] == [2], what="their second failure"
    )
    expect(group).to_contain_text("2 tasks")
    group.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="No failed task")).to_be_visible()


def test_members_have_no_way_in(site: Instance, browser: Browser, console: Console) -> None:
    user = site.call("POST", "/admin/users", {"email": "member@pagemill.test"})
    context = new_context(browser, site)
    sign_in(context, site, user["email"], user["password"])
    opened = context.new_page()
    console.watch(opened)
    opened.goto("/")
    expect(opened.get_by_role("link", name="Admin")).to_have_count(0)
    for tab in TABS:
        answer = opened.goto(f"/admin{tab}")
        assert answer is not None and answer.status == 403
    assert context.request.get("/api/v1/admin/overview").status == 403
    console.errors.clear()  # Chromium notes the status 403
    context.close()


def test_every_tab_fits_a_narrow_screen_and_has_no_fault(open_page: OpenPage) -> None:
    page = open_page("/admin", size=NARROW)
    for tab in TABS:
        page.goto(f"/admin{tab}")
        assert_no_sideways_scroll(page)
        assert_accessible(page)


def test_a_user_is_added_and_disabled(site: Instance, open_page: OpenPage) -> None:
    page = open_page("/admin/users")
    page.get_by_role("button", name="Add a user").click()
    page.get_by_label("E-mail").fill("nora@pagemill.test")
    page.get_by_role("button", name="Add", exact=True).click()
    secret = page.locator(".secret")
    expect(secret).to_be_visible()
    password = secret.inner_text()
    page.get_by_role("button", name="Close").last.click()
    row = page.locator('[data-user="nora@pagemill.test"]')
    row.get_by_label("Change nora@pagemill.test").click()
    row.get_by_role("button", name="Disable").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("Disabled")
    answer = page.context.request.post("/sign-in", form={"email": "nora@pagemill.test", "password": password})
    assert answer.status == 401


def test_settings_are_found_by_their_name(open_page: OpenPage) -> None:
    page = open_page("/admin/settings")
    page.get_by_label("Find a setting").fill("lease")
    expect(page.locator("#settings tbody tr:visible")).to_have_count(1)
    page.get_by_label("Find a setting").fill("")
    page.get_by_label("Only what was set").check()
    expect(page.locator('[data-key="server.port"]')).to_be_visible()
    expect(page.locator('[data-key="executor.lease_s"]')).to_be_hidden()
